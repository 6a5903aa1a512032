"""What does a sweep look like at a glance? A heatmap of its cells, and the strongest with their intervals.

Each function returns a ``matplotlib.figure.Figure`` of its own. Colours diverge from the run that is changed; what was
not measured, or could not change anything, is hatched, never 0.

What does a sweep look like? The figures that take a result itself; ``plots.py`` draws them.
"""

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from interp.report.drawing import LINE, Figure, despined, draw_table, hatching, label_text, require, short
from interp.report.heatmap import reach
from interp.report.sweep_cells import (
    LARGE,
    MEANINGS,
    SMALL,
    STATES,
    UNMEASURED,
    Panel,
    described,
    origin,
    panel,
    strongest_first,
)
from interp.report.sweep_frames import GROWING, SweepFrames, sweep_frames
from interp.report.sweep_sentences import along_paths, done, scale, task_name, unit

_MOST_BARS = 20
_LONGEST_TITLE = 60


def heatmap_figure(frames: SweepFrames, cells: pd.DataFrame, panel: Panel) -> Figure:
    """The cells in their places.

    Args:
        frames: Of the sweep.
        cells: As ``described`` gives them.
        panel: Which cell stands where.
    """
    longest = max(len(label_text(each)) for each in panel.columns)
    width, height = 0.62 * len(panel.columns) + 2.4, 0.42 * len(panel.rows) + 1.9 + 0.05 * longest
    figure = Figure(figsize=(max(4.6, width), max(2.8, height)), dpi=150, layout="constrained")
    ax = figure.subplots()
    states = _colour(ax, frames, cells, panel)
    found = _mark(ax, cells, panel)
    turned = longest > 4
    ax.tick_params(axis="x", labelrotation=45 if turned else 0)
    for tick in ax.get_xticklabels():
        tick.set(ha="right" if turned else "center", rotation_mode="anchor")
    ax.set(xlabel=panel.across, ylabel=panel.down)
    _title(figure, frames)
    _legend(figure, found, states)
    return figure


def strongest_figure(frames: SweepFrames, cells: pd.DataFrame) -> Figure:
    """The strongest cells with their intervals, or all of a short single axis in its order."""
    single = len(frames.labels) == 1 and len(cells) <= _MOST_BARS
    shown = cells if single else strongest_first(cells).head(_MOST_BARS)
    figure = Figure(figsize=(6.2, 0.27 * len(shown) + 1.9), dpi=150, layout="constrained")
    ax = figure.subplots()
    start = origin(frames)
    ax.axvline(start, color="0.5", linewidth=0.8)
    colours = sns.color_palette("RdBu", 8)
    for y, (_, cell) in enumerate(shown.iterrows()):
        if pd.isna(cell["shown"]):
            ax.text(start, y, f" {cell['state']}", va="center", fontsize=7, color="0.4")
            continue
        colour = colours[0] if cell["shown"] < start else colours[-1]
        filled = colour if cell["found"] == LARGE else "white"
        ax.plot([cell["shown_low"], cell["shown_high"]], [y, y], color=colour, linewidth=1.6)
        ax.plot([cell["shown"]], [y], "o", color=colour, markerfacecolor=filled, markersize=5.5)
    names = [short(name, 40) for name in shown["name"]]
    ax.set_yticks(np.arange(len(shown)), labels=names, fontsize=8, parse_math=False)
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.tick_params(axis="x", labelsize=8)
    tested = "\n(filled: beyond the correction, and large)" if frames.tested else ""
    ax.set_xlabel(f"{scale(frames)}{tested}", fontsize=9)
    sns.despine(ax=ax, left=True)
    _title(figure, frames)
    return figure


def _colour(ax: Axes, frames: SweepFrames, cells: pd.DataFrame, panel: Panel) -> list[str]:
    """Draw the cells, and hatch what has no number by its reason; returns the reasons that occur."""
    table = pd.DataFrame(panel.table(cells["shown"]), index=list(panel.rows), columns=list(panel.columns))
    states = np.where(panel.numbers >= 0, cells["state"].to_numpy(dtype=object)[panel.numbers], UNMEASURED)
    start, bound = origin(frames), reach(table - origin(frames))
    draw_table(
        ax,
        table,
        cmap=sns.color_palette("RdBu", as_cmap=True),
        vmin=start - bound,
        vmax=start + bound,
        annotate=True,
        cbar=True,
        label=scale(frames).replace(": ", "\n").replace(" (", "\n("),
        hatches=np.array([[STATES[state].hatch if state else "" for state in row] for row in states]),
    )
    return [state for state in STATES if (states == state).any()]


def _mark(ax: Axes, cells: pd.DataFrame, panel: Panel) -> list[str]:
    """Mark the findings, 0.72 of the way down their cells; returns the kinds that occur."""
    present = []
    for kind in (LARGE, SMALL):
        there = panel.table((cells["found"] == kind).astype(float)) == 1
        rows, columns = np.nonzero(there)
        if len(rows):
            ax.add_line(_marker(kind, columns + 0.5, rows + 0.72))
            present.append(kind)
    return present


def _marker(kind: str, x: np.ndarray, y: np.ndarray) -> Line2D:
    filled = kind == LARGE
    return Line2D(
        x,
        y,
        linestyle="none",
        marker="o",
        markersize=5,
        markerfacecolor="black" if filled else "white",
        markeredgecolor="white" if filled else "black",
        markeredgewidth=0.4 if filled else 1.0,
    )


def _legend(figure: Figure, found: list[str], states: list[str]) -> None:
    nowhere = np.array([])
    handles: list[Artist] = [_marker(kind, nowhere, nowhere) for kind in found]
    handles += [hatching(STATES[state].hatch) for state in states]
    if handles:
        labels = [*(MEANINGS[kind] for kind in found), *states]
        figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=8, frameon=False)


def _title(figure: Figure, frames: SweepFrames) -> None:
    of = "" if frames.n_asked is None else f" of {frames.n_asked}"
    partial = "" if frames.complete else f"\nPARTIAL: {frames.n_measured}{of} examples"
    what = textwrap.fill(done(frames), int(11 * figure.get_figwidth()))
    text = f"{short(task_name(frames), _LONGEST_TITLE)}\n{what}{partial}"
    figure.suptitle(text, fontsize=9, parse_math=False)


def sweep(result: Any, *, tokens: Sequence[str] | None = None) -> Figure:
    """Every cell in its place: layers by heads, or by positions; of a single axis, dots with 95 % intervals.

    Colours diverge from the run that is changed (0; where the clean run is patched into, 1), and reach as far above as
    below. Black dots are beyond the correction and large, white ones beyond it but small. What could not change
    anything is hatched by its reason. Of more than 48 rows the strongest are shown; what is wider is shown as dots.

    Args:
        result: What ``interp.ablate``, ``interp.patch`` or ``interp.path_patch`` returns.
        tokens: The text at each position, for cells by position where all prompts have one length.

    Raises:
        InputError: It is no sweep, has no row, or there are fewer texts than positions.
    """
    frames = sweep_frames(result, tokens)
    cells = described(frames)
    in_a_row = along_paths(frames) or len(frames.labels) == 1 or frames.labels == GROWING
    placed = None if in_a_row else panel(frames, cells)
    return strongest_figure(frames, cells) if placed is None else heatmap_figure(frames, cells, placed)


def strongest(result: Any, *, tokens: Sequence[str] | None = None) -> Figure:
    """The 20 strongest cells as dots with their 95 % intervals; all cells in their order where there is one short axis.

    Args:
        result: As for ``sweep``.
        tokens: As for ``sweep``.

    Raises:
        InputError: As for ``sweep``.
    """
    frames = sweep_frames(result, tokens)
    return strongest_figure(frames, described(frames))


def greedy(result: Any) -> Figure:
    """What a growing set of ablated heads costs, step by step, with 95 % intervals: the half that did not choose them.

    Args:
        result: What ``interp.methods.head_sets.greedy`` returns.

    Raises:
        InputError: It is something else.
    """
    require(result, ("chosen", "summary", "provenance", "labels"), "greedy", "interp.methods.head_sets.greedy")
    return greedy_figure(sweep_frames(result))


def greedy_figure(frames: SweepFrames) -> Figure:
    """The curve of a growing set of heads."""
    steps = frames.cells.sort_values("step")
    figure = Figure(figsize=(max(4.6, 0.55 * len(steps) + 2.2), 3.4), dpi=150, layout="constrained")
    ax = figure.subplots()
    place = steps["step"].to_numpy()
    ends = np.abs(steps[["low", "high"]].to_numpy().T - steps["effect"].to_numpy())
    ax.errorbar(place, steps["effect"], yerr=ends, fmt="o-", markersize=4.5, capsize=2.5, color=LINE)
    ax.axhline(0, color="0.5", linewidth=0.8)
    names = [f"+ {layer}.{head}" for layer, head in zip(steps["layer"], steps["head"], strict=True)]
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if len(names) <= 30:
        ax.set_xticks(place, labels=names, fontsize=8, rotation=0 if len(names) < 12 else 90)
    ax.set_xlabel("head that is ablated, too", fontsize=9)
    ax.set_ylabel(f"effect ({unit(frames)})", fontsize=9)
    ax.set_title(f"{short(task_name(frames), 60)}\n{done(frames)}", fontsize=9, parse_math=False)
    despined(ax)
    return figure
