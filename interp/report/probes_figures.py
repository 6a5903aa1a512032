"""Figures of probes: heads by layer as a map, layers as a curve, and the best cells beside their controls.

Each control has the same colour and mark in every figure. What was not measured is hatched or absent, never 0.
"""

from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from interp.errors import InputError
from interp.report import probes_sentences as sentences
from interp.report.cells import capital
from interp.report.dots import dots_figure, found_or_not, series
from interp.report.drawing import LINE, Draws, Figure, chosen, finish, one_panel, require, short
from interp.report.heads_frames import Verdict
from interp.report.heatmap import Grid, grid_of_heads

MOST_CELLS = 12
TOUGHEST = "the toughest"
MARKS = sentences.VERDICTS | {TOUGHEST: Verdict(TOUGHEST, "▲", "^", True, "toughest control: what the excess is over")}
_COLUMNS = {"score": "score", **sentences.CONTROL_NAMES}
_EDGE = "#0d3f63"
_STYLES: dict[str, tuple[str, str, Any]] = {
    "majority": ("black", "|", (0, (5, 2))),
    "embedding": ("#9c5f00", "D", "-."),
    "position": ("#7a4da0", "s", (0, (1, 1))),
    "untrained": ("#1f7a5c", "^", "--"),
    "permuted": ("#5f6670", "x", ":"),
    "control": ("#b23a48", "P", (0, (3, 1, 1, 1))),
    "score_seen": (LINE, ".", (0, (2, 1))),
}
"""Of each control: its colour, its mark and its line."""
_SPREAD = 0.3
"""How far from its cell's line the first and the last control stand."""
_LONGEST_TITLE = 60
Measure = Literal["score", "selectivity"]


def probes(result: Any) -> Figure:
    """The best heads, or all layers, with the 95 % intervals of their scores, beside all of their controls.

    Args:
        result: What ``interp.probe`` returns, of one site.

    Raises:
        InputError: It is something else, has no cell, or several sites.
    """
    _require_one_site(result, "probes")
    shown, low, names = beside(result), _lowest(result), _measured(result)
    score = series(shown, "score", "low", "high").clip(lower=low)
    labels = ("score, encodes", "score, not shown to encode")
    drawn, looks = found_or_not(score, shown["verdict"] == sentences.ENCODES, labels, markersize=8, zorder=4)
    away = dict.fromkeys(drawn, 0.0)
    for name, place in zip(names, np.linspace(-_SPREAD, _SPREAD, len(names)), strict=True):
        label, (colour, marker, _) = sentences.CONTROL_NAMES[name], _STYLES[name]
        drawn[label] = pd.DataFrame({"estimate": shown[name].clip(lower=low), "low": np.nan, "high": np.nan})
        looks[label], away[label] = {"color": colour, "marker": marker}, float(place)
    n_cells, kind = len(result.cells), sentences.cell_kind(result)
    which_cells = f"the best {len(shown)} of {n_cells:,} {kind}s" if len(shown) < n_cells else "scores"
    title = f"{_subject(result)}: {which_cells} beside the controls"
    rows = [sentences.spoken(result, row) for _, row in shown.iterrows()]
    label = f"{_scores(result)}; lines are 95 % intervals"
    figure = dots_figure(rows, drawn, label, title, None, looks=looks, away=away)
    ax = figure.axes[0]
    for row in range(0, len(shown), 2):
        ax.axhspan(row - 0.5, row + 0.5, color="0.96", zorder=0, linewidth=0)
    ax.set_xlim(low - 0.03 * (1 - low), 1 + 0.03 * (1 - low))
    return figure


def probe_map(result: Any, measure: Measure = "score") -> Figure:
    """Every cell: heads as a map, layers as a curve with its 95 % interval.

    Args:
        result: What ``interp.probe`` returns, of one site.
        measure: ``score``, or ``selectivity`` (above the control task's).

    Raises:
        InputError: It is something else, has no cell, several sites, or cells that are no layers; an unknown measure.
    """
    _require_one_site(result, "probe_map")
    column, score = chosen("measure", measure, get_args(Measure)), sentences.measure_of(result).title
    if "layer" not in result.cells:
        raise InputError(
            f"probe_map: expected cells by layer, got {result.provenance['site']} alone; draw "
            "interp.plots.probes(result)"
        )
    if sentences.cell_kind(result) != "head":
        return _curve(result, column)
    start = f"the majority's {sentences.scale_of(result, column)[0]:.2f}" if column == "score" else "0"
    label = score if column == "score" else f"selectivity, of {score}"
    title = f"{short(_subject(result), _LONGEST_TITLE)}\n{label} (colour from {start} up)"
    return map_of_heads(result, column).figure(title, label)


def _require_one_site(result: Any, what: str) -> None:
    require(result, ("cells", "words", "provenance"), what, "interp.probe")
    sites = list(result.cells["site"].unique())
    if len(sites) > 1:
        raise InputError(
            f"{what}: a figure shows one site, got {', '.join(sites)}; choose one: result.at({sites[0]!r})"
        )


def figures(result: Any) -> Draws:
    """What draws every figure, by its name; of a single cell only what stands beside it."""
    maps = {column: partial(probe_map, result, column) for column in get_args(Measure)}
    return {"controls": partial(probes, result), **(maps if len(result.cells) > 1 else {})}


def map_of_heads(result: Any, column: str) -> Grid:
    """``score`` or ``selectivity`` of every head, coloured from the majority's level or from 0 up."""
    start, bound = sentences.scale_of(result, column)
    titles = [_said(result, row, column, row["verdict"]) for _, row in result.cells.iterrows()]
    frame = result.cells.assign(task="")
    return grid_of_heads(frame, "", column, titles, sentences.VERDICTS, palette="attention", start=start, bound=bound)


def controls_grid(result: Any) -> Grid:
    """What the best cells and their controls reach; a score has its verdict's mark, the toughest control its own."""
    shown = beside(result)
    columns, (start, bound) = list(_COLUMNS), sentences.scale_of(result, "score")
    marks = [
        [row["verdict"], *(TOUGHEST if name == row["baseline"] else "" for name in columns[1:])]
        for _, row in shown.iterrows()
    ]
    titles = [
        [_said(result, row, name, mark) for name, mark in zip(columns, own, strict=True)]
        for (_, row), own in zip(shown.iterrows(), marks, strict=True)
    ]
    names = [sentences.cell_name(row) for _, row in shown.iterrows()]
    values = shown[columns].set_axis(names, axis=0).set_axis(list(_COLUMNS.values()), axis=1)
    how: Any = {"palette": "attention", "start": start, "bound": bound}
    return Grid(sentences.cell_kind(result), "", values, np.array(titles), np.array(marks), MARKS, **how)


def _said(result: Any, row: pd.Series, column: str, mark: str) -> str:
    """What hovering over a number says."""
    measure = sentences.measure_of(result)
    name = capital(f"{sentences.spoken(result, row)}, {_COLUMNS.get(column, column)}")
    if pd.isna(row[column]):
        return f"{name}: not measured"
    if column in sentences.CONTROL_NAMES:
        number = measure.value(row[column])
    else:
        number = measure.estimate(row, column, "%" if column == "score" else "points")
    return f"{name}: {number}{f' ({mark})' if mark else ''}"


def beside(result: Any) -> pd.DataFrame:
    """The cells that are shown beside their controls: the best heads, or all layers in their order."""
    return sentences.ranked(result.cells).head(MOST_CELLS) if sentences.cell_kind(result) == "head" else result.cells


def _curve(result: Any, column: str) -> Figure:
    """A column of all layers with its 95 % interval: ``score``, with the controls as lines, or ``selectivity``."""
    (figure, ax), layers = one_panel(6.6, 4.2), result.cells["layer"]
    low, prefix = (_lowest(result), "") if column == "score" else (-1.0, f"{column}_")
    drawn = series(result.cells, column, f"{prefix}low", f"{prefix}high").clip(lower=low)
    ax.fill_between(layers, drawn["low"], drawn["high"], color=LINE, alpha=0.2, linewidth=0, label="95 % interval")
    ax.plot(layers, drawn["estimate"], color=LINE, linewidth=1.8, label=column, zorder=3)
    for name, verdict in sentences.VERDICTS.items():
        there = result.cells["verdict"] == name
        if there.any():
            look: dict[str, Any] = {"markersize": 7 if verdict.filled else 4, "markeredgecolor": _EDGE, "zorder": 4}
            fill = LINE if name == sentences.ENCODES else "white"
            ax.plot(layers[there], drawn["estimate"][there], "o", color=LINE, markerfacecolor=fill, label=name, **look)
    if column == "score":
        _control_lines(ax, result, low)
        up = _scores(result)
    else:
        ax.axhline(0, color="0.4", linewidth=0.8)
        up = f"selectivity (difference of {sentences.measure_of(result).title})"
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.grid(axis="y", color="0.9")
    ax.set_axisbelow(True)
    finish(ax, f"{_subject(result)}: {column}", "layer", up)
    figure.legend(loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    return figure


def _control_lines(ax: Axes, result: Any, low: float) -> None:
    """A line for each control; those that are the same everywhere are one."""
    alike: dict[tuple[float, ...], list[str]] = {}
    for name in _measured(result):
        alike.setdefault(tuple(result.cells[name].clip(lower=low).round(6)), []).append(name)
    for values, names in alike.items():
        colour, _, line = _STYLES[names[0]]
        label = ",\n".join(sentences.CONTROL_NAMES[name] for name in names)
        ax.plot(result.cells["layer"], values, color=colour, linestyle=line, linewidth=1.2, label=label)


def _subject(result: Any) -> str:
    """What is read, where, and of which model."""
    how = result.provenance
    return f"{how['feature']} in {how['site']} of {how.get('model', 'a model')}"


def _measured(result: Any) -> list[str]:
    """The controls that any cell has."""
    return [name for name in _STYLES if result.cells[name].notna().any()]


def _lowest(result: Any) -> float:
    """Where the axis of scores begins: no further below the majority than 1 is above it; a share begins at 0."""
    own = float(result.cells[["low", "score", *_measured(result)]].min().min())  # few units have no intervals
    majority = float(result.cells["majority"].max())
    return max(own, 0.0 if sentences.measure_of(result).in_points else 2 * majority - 1)


def _scores(result: Any) -> str:
    """What scores are, and how their axis is cut."""
    low, measure = _lowest(result), sentences.measure_of(result)
    cut = not measure.in_points and min(result.cells[name].min() for name in _measured(result)) < low
    return f"{measure.title}; what is below {low:.2f} is drawn there" if cut else measure.title
