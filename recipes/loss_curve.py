"""How did a training go? Its loss as a table and as a picture, beside the model."""

from functools import partial
from pathlib import Path

import pandas as pd
import seaborn as sns

from interp.report.drawing import Figure, ordinary_style, require_rows, write_pictures
from interp.report.folder import FOLDER, absolute, check_new_folder, os_errors_of

TABLE, PICTURE = "loss.csv", "loss"
SMOOTHED = 100


def check_training_folder(out: str | Path, *, begun: bool) -> Path:
    """Find out whether a training can write to `out`: new, empty, or `begun` by a training before.

    Returns:
        `out` as an absolute path.

    Raises:
        OutputError: It is a file, holds something else, or cannot be written.
    """
    return absolute(out, FOLDER) if begun else check_new_folder(out)


@ordinary_style()
def save_loss(frame: pd.DataFrame, folder: Path) -> None:
    """Write ``loss.csv`` and ``loss.png`` to `folder`.

    Args:
        frame: ``step``, ``tokens``, ``split`` (``train`` or ``held out``) and ``loss`` in nats a token.
        folder: Where the model lies.

    Raises:
        OutputError: The folder cannot be written.
    """
    with os_errors_of(folder, FOLDER):
        frame.to_csv(folder / TABLE, index=False)
        write_pictures({PICTURE: partial(loss_curve, frame)}, folder, dpi=150)


def loss_curve(frame: pd.DataFrame) -> Figure:
    """The loss by tokens seen: of training (a running mean over up to a hundredth of the steps), and held out.

    Args:
        frame: As for ``save_loss``; such as ``loss.csv`` beside a trained model.

    Raises:
        InputError: It is no such frame, or has no row.
    """
    require_rows(frame, ("tokens", "split", "loss"), "loss", "interp train")
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    with sns.axes_style("ticks"):
        ax = figure.subplots()
    colours = sns.color_palette("colorblind")
    trained, held_out = frame[frame["split"] == "train"], frame[frame["split"] == "held out"]
    window = max(1, len(trained) // SMOOTHED)
    smooth = trained["loss"].rolling(window, min_periods=1).mean()
    ax.plot(trained["tokens"], smooth, color=colours[0], label=f"training (mean of {window} steps)")
    if len(held_out):
        ax.plot(held_out["tokens"], held_out["loss"], "o--", color=colours[1], markersize=3.5, label="held out")
        ax.legend(frameon=False)
    ax.set(xlabel="tokens seen", ylabel="cross-entropy (nats a token)", title="Next-token loss")
    ax.xaxis.set_major_formatter(lambda value, _: _short(value))
    sns.despine(figure)
    return figure


def _short(tokens: float) -> str:
    for size, unit in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if tokens >= size:
            return f"{tokens / size:g}{unit}"
    return f"{tokens:g}"
