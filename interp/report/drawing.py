"""What do all figures have in common? Coloured cells with their numbers, verdicts as shapes, hatching, and text."""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from numpy.typing import ArrayLike

from interp.report.legible import legible
from interp.report.verdicts import Verdict

_MOST_ANNOTATED = 200
_LONGEST_LABEL, _LONGEST_TITLE = 100, 300
UNMEASURED = "////"


def draw_table(
    ax: Axes,
    table: pd.DataFrame,
    *,
    cmap: Colormap,
    vmin: float,
    vmax: float,
    annotate: bool,
    cbar: bool,
    label: str = "",
    hatches: np.ndarray | None = None,
) -> None:
    """Draw a table of numbers as coloured cells, the first row on top; what is missing is hatched.

    Args:
        ax: Where.
        table: Its index and columns are the ticks' labels.
        cmap: The colours.
        vmin: What has the first of them.
        vmax: What has the last.
        annotate: Whether the numbers are written into the cells, as far as there is room.
        cbar: Whether there is a bar of the colours.
        label: What stands at the bar.
        hatches: How each place is hatched if it is missing; None for all alike.
    """
    values = table.astype(float)
    sns.heatmap(
        values,
        ax=ax,
        cmap=cmap,
        vmin=vmin,
        vmax=vmax,
        # Adding 0 takes the sign from -0.00.
        annot=values.round(2) + 0.0 if annotate and is_annotated(values) else None,
        fmt=".2f",
        annot_kws={"fontsize": 8, "va": "bottom"},
        linewidths=0.5,
        linecolor="white",
        square=not annotate,
        cbar=cbar,
        cbar_kws={"label": label},
        xticklabels=False,
        yticklabels=False,
    )
    # Seaborn would draw the whole figure for every panel, to see whether its labels overlap.
    ax.set_xticks(np.arange(values.shape[1]) + 0.5, labels=list(map(label_text, values.columns)), parse_math=False)
    ax.set_yticks(np.arange(values.shape[0]) + 0.5, labels=list(map(label_text, values.index)), parse_math=False)
    for row, column in np.argwhere(values.isna().to_numpy()).tolist():
        hatch = UNMEASURED if hatches is None else str(hatches[row, column])
        ax.add_patch(Rectangle((column, row), 1, 1, facecolor="0.92", edgecolor="0.6", hatch=hatch, linewidth=0))
    ax.tick_params(length=0)


def is_annotated(table: pd.DataFrame) -> bool:
    """Whether there is room for numbers in the cells."""
    return table.size <= _MOST_ANNOTATED


def hatching(hatch: str = UNMEASURED) -> Patch:
    """A hatched swatch, for a legend."""
    return Patch(facecolor="0.92", edgecolor="0.6", hatch=hatch, linewidth=0)


def verdict_marker(verdict: Verdict, x: ArrayLike = (), y: ArrayLike = ()) -> Line2D:
    """A verdict's shape at every (x, y), edged black or white so that it shows on any colour."""
    with rc_context({"text.usetex": False}):  # some shapes are letters, which TeX, if asked for, would set
        return Line2D(
            x,
            y,
            linestyle="none",
            marker=verdict.marker,
            markersize=11 if verdict.marker == "*" else 7,  # of a star, little is filled
            markerfacecolor="black" if verdict.filled else "white",
            markeredgecolor="white" if verdict.filled else "black",
            markeredgewidth=0.4 if verdict.filled else 1.2,
        )


def short(text: str, most: int) -> str:
    """The text, legible, in `most` characters; an ellipsis stands for the rest."""
    shown = legible(text)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def label_text(name: object) -> str:
    """What a row or a column is called in a figure."""
    return short(str(name), _LONGEST_LABEL)


def wrapped_title(ax: Axes, text: str) -> None:
    """A title that begins where the axes do, in as many lines as it takes."""
    shown = short(text, _LONGEST_TITLE)
    # Matplotlib measures what it wraps as mathematics, whatever else it is told.
    ax.set_title(shown, fontsize=9, loc="left", parse_math=False, wrap="$" not in shown)


def despined(ax: Axes, *, left: bool = False) -> None:
    """Take the frame away but for the axes that are read."""
    sns.despine(ax=ax, left=left)
    ax.tick_params(labelsize=8)


def map_size(n_layers: int, n_heads: int) -> tuple[float, float]:
    """Inches of a map of heads: room for numbers in the cells of a small one, less for those of a large one."""
    wide, high = (0.62, 0.55) if n_layers * n_heads <= _MOST_ANNOTATED else (0.28, 0.26)
    return max(4.2, wide * n_heads + 1.9), max(2.6, high * n_layers + 1.6)


def thin_ticks(ax: Axes, most: int = 26) -> None:
    """Name every second, third ... row and column only, where they are too many to be read."""
    for places, texts, name in (
        (ax.get_xticks(), ax.get_xticklabels(), ax.set_xticks),
        (ax.get_yticks(), ax.get_yticklabels(), ax.set_yticks),
    ):
        every = -(-len(places) // most)
        if every > 1:
            name(places[::every], labels=[each.get_text() for each in texts[::every]], parse_math=False)
