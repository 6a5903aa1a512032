"""What the model would say if it stopped at each depth, and how two lenses compare: figures and pages."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, to_hex
from matplotlib.patches import Rectangle

from interp.errors import InputError
from interp.report.attention_patterns import token_text
from interp.report.dots import Dots, dots_figure
from interp.report.drawing import Figure, draw_table, require, require_rows, wrapped_title
from interp.report.heatmap import SEQUENTIAL, ink
from interp.report.results.words import measured, page_of_table, position_names
from interp.report.sections import Page, Table
from interp.report.tables import Column
from interp.report.words import counted, decimal, percent

_MOST_TOKENS = 60
_MADE_BY = "interp.residual.logit_lens.logit_lens"
_COMPARED_BY = "interp.residual.tuned_lens.compare_lenses"
_LENSES = {"logit lens": "kl_logit_lens", "tuned lens": "kl_tuned_lens"}
_COLUMNS = ("depth", "example", "pos", "rank", "log_prob", "entropy", "kl")
_TOP_COLUMNS = ("depth", "example", "pos", "place", "token", "text", "log_prob")


def logit_lens(reading: Any, *, example: int = 0, tokens: Sequence[str] | None = None) -> Figure:
    """The first guess at every depth and position: its text, coloured by its probability; framed where it is right.

    Args:
        reading: What ``interp.residual.logit_lens.logit_lens`` returns.
        example: Which prompt.
        tokens: The text at each position, with padding where there is some, in place of those of the tokenizer.

    Raises:
        InputError: It is no such reading, has no such prompt, fewer texts than positions, or a prompt of more than 60
            tokens.
    """
    require(reading, ("examples", "top", "summary"), "logit_lens", _MADE_BY)
    rows, top = (
        require_rows(each, columns, "logit_lens", _MADE_BY)
        for each, columns in ((reading.examples, _COLUMNS), (reading.top, _TOP_COLUMNS))
    )
    known = sorted(rows["example"].unique().tolist())
    if example not in known:
        raise InputError(f"example: expected a prompt from {known[0]} to {known[-1]}, got {example!r}")
    own, first = rows[rows["example"] == example], top[(top["example"] == example) & (top["place"] == 0)]
    log_prob = first.pivot(index="depth", columns="pos", values="log_prob").sort_index(ascending=False)
    if log_prob.shape[1] > _MOST_TOKENS:
        raise InputError(
            f"logit_lens: expected a prompt of {_MOST_TOKENS} tokens at most, got {log_prob.shape[1]}; read a shorter "
            "one, or draw reading.summary()"
        )
    guesses = first.assign(text=first["text"].fillna(first["token"].map("#{}".format)))
    texts = guesses.pivot(index="depth", columns="pos", values="text").reindex_like(log_prob)
    right = own.assign(right=own["rank"].eq(0).fillna(False).astype(bool))
    right = right.pivot(index="depth", columns="pos", values="right").reindex_like(log_prob)
    size = (1.9 + 0.72 * log_prob.shape[1], 1.5 + 0.36 * len(log_prob))
    figure = Figure(figsize=(max(4.0, size[0]), max(2.2, size[1])), dpi=150, layout="constrained")
    ax = figure.subplots()
    named = np.exp(log_prob.astype(float)).set_axis(position_names(own, log_prob.columns.tolist(), tokens), axis=1)
    palette = sns.color_palette(SEQUENTIAL, as_cmap=True)
    draw_table(ax, named, cmap=palette, vmin=0.0, vmax=1.0, annotate=False, cbar=True, label="probability")
    ax.set_aspect("auto")
    ax.tick_params(axis="x", rotation=90 if max(map(len, named.columns)) > 8 else 0)
    ax.tick_params(labelsize=8)
    _write(ax, texts, right, palette, named)
    ax.set(xlabel="read at", ylabel="blocks before it")
    wrapped_title(ax, "the model's first guess, were it to stop there (framed: what comes next in the prompt)")
    return figure


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


def lenses(result: Any) -> Figure:
    """How far each depth is from the model's own output by the logit lens and by a tuned one: means over tokens.

    Args:
        result: What ``interp.residual.tuned_lens.compare_lenses`` returns.

    Raises:
        InputError: It is something else, or has no row.
    """
    table = measured(result, ("depth", *_LENSES.values()), "lenses", _COMPARED_BY)
    drawn = {
        name: pd.DataFrame({"estimate": table[column], "low": np.nan, "high": np.nan})
        for name, column in _LENSES.items()
    }
    rows = [counted(depth, "block") for depth in table["depth"]]
    return dots_figure(Dots(rows, drawn, "KL from the model's own output (nats)", "read after so many blocks"))


def page_of(result: Any) -> Page:
    """The page of a reading, or of two lenses compared."""
    return _reading(result) if hasattr(result, "top") else _compared(result)


def _reading(result: Any) -> Page:
    table, examples = result.summary(), result.examples
    first, before = table.iloc[0], table.iloc[-2]
    said = [
        f"Read at {len(table)} depths, over {counted(int(table['n'].max()), 'token')} of "
        f"{counted(examples['example'].nunique(), 'prompt')}; numbers are means over tokens. The last depth is the "
        "model's own output.",
        f"The KL divergence from that output falls from {decimal(first['kl'])} nats at the embeddings to "
        f"{decimal(before['kl'])} before the last block.",
    ]
    if table["right"].notna().all():
        said.append(
            f"The next token is the first guess for {percent(first['right'])} of the tokens at the embeddings, for "
            f"{percent(before['right'])} before the last block, and for {percent(table.iloc[-1]['right'])} at the end."
        )
    columns = (
        Column("depth", "blocks before it"),
        Column("kl", "KL from the output (nats)"),
        Column("rank", "rank of the next token"),
        Column("log_prob", "its log-probability"),
        Column("entropy", "entropy (nats)"),
        Column("n", "tokens"),
    )
    shown = Table("Depths", "The model's own output first", table.iloc[::-1], columns, "depths.csv")
    draw = partial(logit_lens, result, example=int(examples["example"].iloc[0]))
    title = "Logit lens" if result.provenance.get("lens", "logit lens") == "logit lens" else "Lens with a translator"
    small = examples["pos"].max() < _MOST_TOKENS
    return page_of_table(result, title, said, shown, draw if small else None, "logit_lens", kind="residual")


def _compared(result: Any) -> Page:
    table = result.summary()
    nearer = int((table["kl_tuned_lens"] < table["kl_logit_lens"]).sum())
    said = [
        f"The tuned lens is nearer to the model's own output at {nearer} of {len(table) - 1} depths before it; means "
        f"over {counted(int(table['n'].max()), 'token')}."
    ]
    columns = [Column("depth", "blocks before it"), Column("kl_logit_lens", "KL, logit lens (nats)")]
    columns += [Column("kl_tuned_lens", "KL, tuned lens (nats)"), Column("n", "tokens")]
    shown = Table("Depths", "Mean divergence from the model's own output", table, columns, "depths.csv")
    return page_of_table(result, "Lenses compared", said, shown, partial(lenses, result), "lenses", kind="residual")
