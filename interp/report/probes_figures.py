"""Figures of probes: heads by layer as a map, layers as a curve, and the best cells beside their controls.

Each control has the same colour and mark in every figure. What was not measured is hatched or absent, never 0.
"""

from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from interp.errors import InputError
from interp.report.drawing import (
    Draws,
    Figure,
    chosen,
    draw_table,
    hatching,
    require,
    short,
    verdict_marker,
    wrapped_title,
)
from interp.report.heads_frames import layer_by_head
from interp.report.heatmap import SEQUENTIAL, Cell, Heatmap, paint
from interp.report.probes_words import (
    CONTROL_NAMES,
    ENCODES,
    NONE,
    VERDICTS,
    Probed,
    cell_kind,
    cell_name,
    has_heads,
    measure_of,
    ranked,
    scale_of,
    sites_of,
    spoken,
    subject,
)
from interp.report.words import decimal

MOST_CELLS = 12
TOUGHEST = "▲"
_UNMEASURED = ("", "not measured")
_NOWHERE = -1
_COLUMNS = {"score": "score", **CONTROL_NAMES}


def head_heatmap(result: Probed, column: str) -> Heatmap:
    """Colour a column of the frame, layers down and heads across; the verdicts are its symbols.

    Args:
        result: Of heads.
        column: ``score`` or ``selectivity``.
    """
    numbers = layer_by_head(result.cells.assign(task="", _row=range(len(result.cells))), "", "_row")
    numbers = numbers.fillna(_NOWHERE).astype(int)
    rows = tuple(
        (str(layer), tuple(_of_head(result, column, number) for number in numbers.loc[layer].tolist()))
        for layer in numbers.index
    )
    hatched = (_UNMEASURED,) if (numbers == _NOWHERE).to_numpy().any() else ()
    return Heatmap("Layer", tuple(f"head {head}" for head in numbers.columns), rows, hatched)


def beside(result: Probed) -> pd.DataFrame:
    """The cells that are shown beside their controls: the best heads, or all layers in their order."""
    return ranked(result.cells).head(MOST_CELLS) if has_heads(result) else result.cells


def controls_heatmap(result: Probed) -> Heatmap:
    """Colour what cells and their controls reach; a score has its verdict's symbol, the toughest control its own."""
    shown = beside(result)
    rows = tuple(
        (cell_name(row), tuple(_of_control(result, row, column) for column in _COLUMNS)) for _, row in shown.iterrows()
    )
    hatched = (_UNMEASURED,) if shown[list(_COLUMNS)].isna().to_numpy().any() else ()
    return Heatmap(cell_kind(result).capitalize(), tuple(_COLUMNS.values()), rows, hatched)


def _of_head(result: Probed, column: str, number: int) -> Cell:
    if number == _NOWHERE:
        return Cell("—", "", "", "not measured")
    row, prefix = result.cells.iloc[number], "" if column == "score" else f"{column}_"
    ends = (row[f"{prefix}low"], row[f"{prefix}high"])
    return _cell(result, row, column, VERDICTS[row["verdict"]].symbol, ends, row["verdict"])


def _of_control(result: Probed, row: pd.Series, column: str) -> Cell:
    if column == "score":
        return _cell(result, row, column, VERDICTS[row["verdict"]].symbol, (row["low"], row["high"]), row["verdict"])
    toughest = column == row["baseline"]
    return _cell(result, row, column, TOUGHEST if toughest else "", None, "the toughest" if toughest else "")


def _cell(
    result: Probed, row: pd.Series, column: str, symbol: str, ends: tuple[float, float] | None, said: str
) -> Cell:
    name = f"{spoken(result, row)}, {_COLUMNS.get(column, column)}"
    name = f"{name[0].upper()}{name[1:]}"
    if pd.isna(row[column]):
        return Cell("—", symbol, "", f"{name}: not measured")
    measure, text, (low, high) = measure_of(result), decimal(row[column]), scale_of(result, column)
    number = measure.difference(row[column]) if column == "selectivity" else measure.value(row[column])
    interval = f" {measure.interval(*ends)}" if ends else ""
    # Rounded before it is painted: what reads as the same has one colour.
    style = paint(float(text) - low, "attention", bound=high - low).style
    return Cell(text, symbol, style, f"{name}: {number}{interval}{f' ({said})' if said else ''}")


BLUE, EDGE = "#1b6ca8", "#0d3f63"


@dataclass(frozen=True)
class Style:
    """Of one control."""

    colour: str
    marker: str
    line: str | tuple[int, tuple[int, ...]]


STYLES = {
    "majority": Style("black", "|", (0, (5, 2))),
    "embedding": Style("#9c5f00", "D", "-."),
    "position": Style("#7a4da0", "s", (0, (1, 1))),
    "untrained": Style("#1f7a5c", "^", "--"),
    "permuted": Style("#5f6670", "x", ":"),
    "control": Style("#b23a48", "P", (0, (3, 1, 1, 1))),
    "score_seen": Style(BLUE, ".", (0, (2, 1))),
}


def measured(result: Probed) -> list[str]:
    """The controls that any cell has."""
    return [name for name in STYLES if result.cells[name].notna().any()]


def lowest(result: Probed) -> float:
    """Where the axis of scores begins: no further below the majority than 1 is above it; a share begins at 0."""
    own = float(result.cells[["low", "score", *measured(result)]].min().min())  # few units have no intervals
    majority = float(result.cells["majority"].max())
    return max(own, 0.0 if measure_of(result).in_points else 2 * majority - 1)


def name_axis(ax: Axes, result: Probed, which: str) -> None:
    """Write what scores are along an axis, and how it is cut."""
    cut = ""
    if not measure_of(result).in_points and min(result.cells[name].min() for name in measured(result)) < lowest(result):
        cut = f"; what is below {lowest(result):.2f} is drawn there"
    label = ax.set_xlabel if which == "x" else ax.set_ylabel
    label(f"{measure_of(result).title}{cut}", fontsize=9)


_SPREAD = 0.3
"""How far from its cell's line the first and the last control stand."""


def cells_beside_controls(result: Probed) -> Figure:
    """The best heads, or all layers in their order: dots with 95 % intervals, and the controls' marks around them."""
    shown = beside(result)
    figure = Figure(figsize=(7.4, 0.46 * len(shown) + 2.0), dpi=150, layout="constrained")
    ax = figure.subplots()
    at, low = np.arange(len(shown)), lowest(result)
    for row in at[::2]:
        ax.axhspan(row - 0.5, row + 0.5, color="0.96", zorder=0, linewidth=0)
    names = measured(result)
    for name, away in zip(names, np.linspace(-_SPREAD, _SPREAD, len(names)), strict=True):
        style = STYLES[name]
        ax.plot(
            shown[name].clip(lower=low),
            at + away,
            style.marker,
            color=style.colour,
            markersize=5,
            label=CONTROL_NAMES[name],
            zorder=2,
        )
    _scores(ax, shown, low)
    ax.set_yticks(at, labels=[spoken(result, row) for _, row in shown.iterrows()], fontsize=8, parse_math=False)
    ax.set_ylim(len(shown) - 0.5, -0.5)
    ax.set_xlim(low - 0.03 * (1 - low), 1 + 0.03 * (1 - low))
    name_axis(ax, result, "x")
    ax.tick_params(axis="both", length=0, labelsize=8)
    ax.grid(axis="x", color="0.88")
    ax.set_axisbelow(True)
    sns.despine(ax=ax, left=True)
    wrapped_title(ax, _said(result, len(shown)))
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    return figure


def _said(result: Probed, n_shown: int) -> str:
    n_cells = len(result.cells)
    which = f"the best {n_shown} of {n_cells:,} {cell_kind(result)}s" if n_shown < n_cells else "scores"
    return f"{subject(result)}: {which} beside the controls"


def _scores(ax: Axes, shown: pd.DataFrame, low: float) -> None:
    at = np.arange(len(shown))
    ends = [shown[end].clip(lower=low) for end in ("low", "high")]
    lines = ax.hlines(at, *ends, zorder=3, label="95 % interval")
    lines.set(color=BLUE, linewidth=4, alpha=0.35)
    encodes = (shown["verdict"] == ENCODES).to_numpy()
    for which, colour, label in ((encodes, BLUE, "score, encodes"), (~encodes, "white", "score, not shown to encode")):
        if which.any():
            (dots,) = ax.plot(shown.loc[which, "score"].clip(lower=low), at[which], "o", markersize=8, label=label)
            dots.set(markerfacecolor=colour, markeredgecolor=EDGE, zorder=4)


def curve(result: Probed, column: str) -> Figure:
    """A column of all layers with its 95 % interval.

    Args:
        result: Of layers.
        column: ``score``, with the controls as lines; or ``selectivity``, with a line at 0.
    """
    figure = Figure(figsize=(6.6, 4.2), dpi=150, layout="constrained")
    ax = figure.subplots()
    layers = result.cells["layer"]
    low = lowest(result) if column == "score" else -1.0
    prefix = "" if column == "score" else f"{column}_"
    ends = [result.cells[f"{prefix}{end}"].clip(lower=low) for end in ("low", "high")]
    ax.fill_between(layers, *ends, color=BLUE, alpha=0.2, linewidth=0, label="95 % interval")
    ax.plot(layers, result.cells[column].clip(lower=low), color=BLUE, linewidth=1.8, label=column, zorder=3)
    _dots(ax, result, column, low)
    if column == "score":
        _controls(ax, result, low)
        name_axis(ax, result, "y")
    else:
        ax.axhline(0, color="0.4", linewidth=0.8)
        ax.set_ylabel(f"selectivity (difference of {measure_of(result).title})", fontsize=9)
    ax.set_xlabel("layer", fontsize=9)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.tick_params(labelsize=8)
    ax.grid(axis="y", color="0.9")
    ax.set_axisbelow(True)
    sns.despine(ax=ax)
    wrapped_title(ax, f"{subject(result)}: {column}")
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    return figure


def _controls(ax: Axes, result: Probed, low: float) -> None:
    """A line for each; those that are the same everywhere are one."""
    alike: dict[tuple[float, ...], list[str]] = {}
    for name in measured(result):
        alike.setdefault(tuple(result.cells[name].clip(lower=low).round(6)), []).append(name)
    for values, names in alike.items():
        style, label = STYLES[names[0]], ",\n".join(CONTROL_NAMES[name] for name in names)
        ax.plot(result.cells["layer"], values, color=style.colour, linestyle=style.line, linewidth=1.2, label=label)


def _dots(ax: Axes, result: Probed, column: str, low: float) -> None:
    """A dot for every layer; filled, hollow or small by its verdict."""
    for name, verdict in VERDICTS.items():
        rows = result.cells[result.cells["verdict"] == name]
        if len(rows):
            (dots,) = ax.plot(rows["layer"], rows[column].clip(lower=low), linestyle="none", marker="o", label=name)
            dots.set(markersize=7 if verdict.filled else 4, markeredgecolor=EDGE, zorder=4)
            dots.set_markerfacecolor(BLUE if verdict.symbol == "●" else "white")


_LONGEST_TITLE = 60


def figures(result: Probed) -> Draws:
    """What draws every figure, by its name; of a single cell only what stands beside it."""
    draws = {"controls": partial(cells_beside_controls, result)}
    if len(result.cells) > 1:
        draw = heatmap if has_heads(result) else curve
        draws |= {column: partial(draw, result, column) for column in ("score", "selectivity")}
    return draws


def heatmap(result: Probed, column: str) -> Figure:
    """A column of all heads, layers down and heads across.

    Args:
        result: Of heads.
        column: ``score``, whose colours run from the majority's level to 1, or ``selectivity``, from 0 as far.
    """
    frame = result.cells.assign(task="")
    table = layer_by_head(frame, "", column)
    n_layers, n_heads = table.shape
    size = (max(4.2, 0.62 * n_heads + 1.9), max(2.6, 0.55 * n_layers + 1.6))
    figure = Figure(figsize=size, dpi=150, layout="constrained")
    ax = figure.subplots()
    low, high = scale_of(result, column)
    palette = sns.color_palette(SEQUENTIAL, as_cmap=True)
    draw_table(ax, table, cmap=palette, vmin=low, vmax=high, annotate=True, cbar=True, label=_label(result, column))
    ax.set(xlabel="head", ylabel="layer")
    verdicts = layer_by_head(frame, "", "verdict").to_numpy()
    present = [name for name in VERDICTS if name != NONE and (verdicts == name).any()]
    for name in present:
        rows, columns = np.nonzero(verdicts == name)
        ax.add_line(verdict_marker(VERDICTS[name], columns + 0.5, rows + 0.72))
    _title(ax, result, column, low)
    handles: list[Artist] = [verdict_marker(VERDICTS[name]) for name in present]
    if table.isna().to_numpy().any():
        handles, present = [*handles, hatching()], [*present, "not measured"]
    if handles:
        figure.legend(handles, present, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    return figure


def _label(result: Probed, column: str) -> str:
    name = measure_of(result).title
    return name if column == "score" else f"selectivity, of {name}"


def _title(ax: Axes, result: Probed, column: str, low: float) -> None:
    what = short(subject(result), _LONGEST_TITLE)
    since = f"the majority's {low:.2f}" if column == "score" else "0"
    ax.set_title(f"{what}\n{_label(result, column)} (colour from {since} up)", fontsize=9, parse_math=False)


Measure = Literal["score", "selectivity"]


def probes(result: Probed) -> Figure:
    """The best heads, or all layers, with the 95 % intervals of their scores, beside all of their controls.

    Args:
        result: What ``interp.probe`` returns, of one site.

    Raises:
        InputError: It is something else, has no cell, or several sites.
    """
    return cells_beside_controls(_checked(result, "probes"))


def probe_map(result: Probed, measure: Measure = "score") -> Figure:
    """Every cell: heads as a map, layers as a curve with its 95 % interval.

    Args:
        result: What ``interp.probe`` returns, of one site.
        measure: ``score``, or ``selectivity`` (above the control task's).

    Raises:
        InputError: It is something else, has no cell, several sites, or cells that are no layers; an unknown measure.
    """
    result, column = _checked(result, "probe_map"), chosen("measure", measure, get_args(Measure))
    if "layer" not in result.cells:
        raise InputError(
            f"probe_map: expected cells by layer, got {result.provenance['site']} alone; draw "
            "interp.plots.probes(result)"
        )
    return heatmap(result, column) if has_heads(result) else curve(result, column)


def _checked(result: Probed, what: str) -> Probed:
    require(result, ("cells", "words", "provenance"), what, "interp.probe")
    sites = sites_of(result)
    if len(sites) > 1:
        raise InputError(
            f"{what}: a figure shows one site, got {', '.join(sites)}; choose one: result.at({sites[0]!r})"
        )
    return result
