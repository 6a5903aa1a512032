"""What would the model say if it stopped at each depth? Its first guess there, and how sure it is."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, to_hex
from matplotlib.patches import Rectangle

from interp.errors import InputError
from interp.report.attention_patterns import token_text
from interp.report.drawing import Figure, draw_table, require, require_rows, wrapped_title
from interp.report.glance import Glance, numbers
from interp.report.heatmap import SEQUENTIAL, ink

_MOST_TOKENS = 60
_FRAME_COLUMNS = ("depth", "example", "pos", "rank", "log_prob", "entropy", "kl")
_TOP_COLUMNS = ("depth", "example", "pos", "place", "token", "text", "log_prob")


class LensLike(Protocol):
    """What a lens reads; see ``interp.residual.logit_lens.LensReading``."""

    @property
    def frame(self) -> pd.DataFrame:
        """One row a boundary and token."""

    @property
    def top(self) -> pd.DataFrame:
        """One row a boundary, token and likely next token."""

    def summary(self) -> pd.DataFrame:
        """One row a boundary."""


def logit_lens(reading: LensLike, *, example: int = 0, tokens: Sequence[str] | None = None) -> Figure:
    """The first guess at every depth and position: its text, coloured by its probability; framed where it is right.

    Args:
        reading: What ``interp.residual.logit_lens.logit_lens`` returns.
        example: Which prompt.
        tokens: The text at each position, with padding where there is some; None for numbers.

    Raises:
        InputError: It is no such reading, has no such prompt, fewer texts than positions, or a prompt of more than 60
            tokens.
    """
    require(reading, ("frame", "top", "summary"), "logit_lens", "interp.residual.logit_lens.logit_lens")
    frame, top = (
        require_rows(each, columns, "logit_lens", "interp.residual.logit_lens.logit_lens")
        for each, columns in ((reading.frame, _FRAME_COLUMNS), (reading.top, _TOP_COLUMNS))
    )
    known = sorted(frame["example"].unique().tolist())
    if example not in known:
        raise InputError(f"example: expected a prompt from {known[0]} to {known[-1]}, got {example!r}")
    own, first = frame[frame["example"] == example], top[(top["example"] == example) & (top["place"] == 0)]
    log_prob = first.pivot(index="depth", columns="pos", values="log_prob").sort_index(ascending=False)
    if log_prob.shape[1] > _MOST_TOKENS:
        raise InputError(
            f"logit_lens: expected a prompt of {_MOST_TOKENS} tokens at most, got {log_prob.shape[1]}; read a shorter "
            "one, or draw reading.summary()"
        )
    guesses = first.assign(text=first["text"].fillna(first["token"].map("#{}".format)))
    texts = guesses.pivot(index="depth", columns="pos", values="text").reindex_like(log_prob)
    right = own.assign(right=own["rank"].eq(0).fillna(False).astype(bool)).pivot(
        index="depth", columns="pos", values="right"
    )
    size = (1.9 + 0.72 * log_prob.shape[1], 1.5 + 0.36 * len(log_prob))
    figure = Figure(figsize=(max(4.0, size[0]), max(2.2, size[1])), dpi=150, layout="constrained")
    ax = figure.subplots()
    named = np.exp(log_prob.astype(float)).set_axis(_headings(log_prob.columns.tolist(), tokens), axis=1)
    palette = sns.color_palette(SEQUENTIAL, as_cmap=True)
    draw_table(ax, named, cmap=palette, vmin=0.0, vmax=1.0, annotate=False, cbar=True, label="probability")
    ax.set_aspect("auto")
    _write(ax, texts, right.reindex_like(log_prob), palette, named)
    ax.set(xlabel="read at", ylabel="blocks before it")
    wrapped_title(ax, "the model's first guess, were it to stop there (framed: what comes next in the prompt)")
    return figure


def _headings(positions: list[int], tokens: Sequence[str] | None) -> list[str]:
    if tokens is None:
        return [str(each) for each in positions]
    if isinstance(tokens, str) or len(tokens) <= max(positions):
        raise InputError(f"tokens: expected a text for each position up to {max(positions)}, got {len(tokens)}")
    return [token_text(tokens[each]) for each in positions]


def _write(ax: Axes, texts: pd.DataFrame, right: pd.DataFrame, palette: Colormap, shown: pd.DataFrame) -> None:
    for row, column in np.ndindex(*texts.shape):
        text = texts.iat[row, column]
        if pd.isna(text):
            continue
        readable = ink(to_hex(palette(shown.iat[row, column])))
        place = (column + 0.5, row + 0.5)
        ax.text(*place, token_text(text)[:10], color=readable, fontsize=7, ha="center", va="center", parse_math=False)
        if right.iat[row, column]:
            ax.add_patch(Rectangle((column, row), 1, 1, fill=False, edgecolor="black", linewidth=1.4, clip_on=False))


def lens_glance(reading: LensLike) -> Glance:
    """What a notebook shows of a reading: how near each depth is to the model's own output."""
    table = reading.summary()
    n_prompts = reading.frame["example"].nunique()
    shown = pd.DataFrame(
        {
            "blocks before it": table["depth"],
            "KL from the output (nats)": numbers(table["kl"], 2),
            "rank of the next token": numbers(table["rank"], 1),
            "its log-probability": numbers(table["log_prob"], 2),
            "entropy (nats)": numbers(table["entropy"], 2),
        }
    )
    few = table.iloc[::-1] if len(table) > 10 else table
    said = (
        f"Read at {len(table)} depths, over {int(table['n'].max()):,} tokens of {n_prompts} "
        f"prompt{'' if n_prompts == 1 else 's'}; means over tokens. The last depth is the model's own output."
    )
    drawable = n_prompts == 1 and reading.frame["pos"].nunique() <= 16 and len(table) <= 13
    return Glance(
        "Logit lens",
        [said],
        shown.loc[few.index],
        len(table),
        ".summary()",
        {},
        "interp.plots.logit_lens(reading)",
        (lambda: logit_lens(reading, example=int(reading.frame["example"].iloc[0]))) if drawable else None,
    )
