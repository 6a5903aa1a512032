"""What do heads against relations look like at a glance? Excess by head, and each best head beside what explains it.

Each function returns a ``matplotlib.figure.Figure`` of its own.
"""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from interp.report.amounts import counted
from interp.report.drawing import draw_table, label_text, wrapped_title
from interp.report.figure import Figure
from interp.report.relations.colours import FADED, excess_colours
from interp.report.relations.frames import DIRECTION, RelationFrames, is_causal
from interp.report.relations.leading import leading
from interp.report.relations.panel import RelationPanel, headings, panel, row_names
from interp.report.relations.verdicts import ATTENDS
from interp.report.relations.words import head_name

MOST_DIRECTIONS = 30
_BLUE = "#1b6ca8"
_BASELINES = {
    "accuracy_baseline": ("rule that it is held against", "|", "black", 14),
    "accuracy_offset": ("best offset", "D", "#9c5f00", 5),
    "accuracy_nearest": ("best nearest part of speech", "s", "#7a4da0", 5),
    "accuracy_random_head": ("random other head of the layer", "x", "#5f6670", 5),
    "chance": ("chance", "|", "#5f6670", 5),
}
"""The mark of each, its colour and size in points."""


def relations_figure(frames: RelationFrames) -> Figure:
    """The excess of every head for every relation and direction, heads that attend to one marked."""
    shown = panel(frames, MOST_DIRECTIONS)
    if shown is None:
        return _nothing(frames)
    n_heads, n_rows = len(shown.heads), len(shown.directions)
    size = (max(6.0, 0.26 * n_heads + 3.6), max(2.8, 0.26 * n_rows + 1.9))
    figure = Figure(figsize=size, dpi=150, layout="constrained")
    ax = figure.subplots()
    table = shown.table(frames.frame, "excess")
    table.index = pd.Index(row_names(frames, shown))
    table.columns = pd.Index(headings(shown.heads))
    cmap, ends = excess_colours(shown.bound), (-100 * FADED, 100 * shown.bound)
    draw_table(ax, 100 * table, cmap=cmap, vmin=ends[0], vmax=ends[1], annotate=False, cbar=False)
    ax.set_aspect("auto")
    ax.tick_params(axis="x", labelrotation=90, labelsize=7)
    ax.tick_params(axis="y", labelrotation=0, labelsize=8)
    ax.set_xlabel("head (layer.head)", fontsize=9)
    bar = figure.colorbar(ax.collections[0], ax=ax, aspect=max(8, n_rows), pad=0.01, fraction=0.03)
    bar.set_label("excess, points", fontsize=8)
    bar.ax.tick_params(labelsize=8)
    _separate_layers(ax, shown)
    _mark_attending(ax, shown.table(frames.frame, "verdict").to_numpy())
    _title(ax, frames, f"accuracy over the best rule without attention, in points. {shown.left_out}".rstrip())
    if (frames.frame["verdict"] == ATTENDS).any():
        figure.legend([_dot()], ["attends"], loc="outside lower center", fontsize=8, frameon=False)
    return figure


def baselines_figure(frames: RelationFrames) -> Figure:
    """How often each best head is right, beside what position, another head and chance explain."""
    best = leading(frames.frame).head(MOST_DIRECTIONS)
    if best.empty:
        return _nothing(frames)
    rows = best.merge(frames.relations, on=list(DIRECTION), suffixes=("", "_relation"), validate="one_to_one")
    figure = Figure(figsize=(8.2, 0.3 * len(rows) + 2.0), dpi=150, layout="constrained")
    ax = figure.subplots()
    at = np.arange(len(rows))
    for column, (label, marker, colour, size) in _BASELINES.items():
        ax.plot(100 * rows[column], at, marker, color=colour, markersize=size, label=label, zorder=2)
    low, high = (100 * (rows["accuracy_baseline"] + rows[end]).clip(0, 1) for end in ("low", "high"))
    leads = ax.hlines(at, low, high, zorder=3, label="95 % interval of its lead\nover the best rule")
    leads.set(color=_BLUE, linewidth=4, alpha=0.35)
    attends = rows["verdict"] == ATTENDS
    for which, colour, label in ((~attends, "white", "best head"), (attends, _BLUE, "best head that attends")):
        if which.any():
            (dots,) = ax.plot(100 * rows.loc[which, "accuracy"], at[which], "o", markersize=7, zorder=4, label=label)
            dots.set(markerfacecolor=colour, markeredgecolor="#0d3f63")
    _name_rows(ax, rows)
    n_all = len(leading(frames.frame))
    kept = "" if len(rows) == n_all else f" The first {len(rows)} of {n_all} directions."
    _title(ax, frames, f"how often the related word is found.{kept}")
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    return figure


def _name_rows(ax: Axes, rows: pd.DataFrame) -> None:
    names = [f"{row['relation']}, {row['looks']}: {head_name(row)} (n = {row['n']:,})" for _, row in rows.iterrows()]
    ax.set_yticks(np.arange(len(rows)), labels=list(map(label_text, names)), fontsize=8, parse_math=False)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.set_xlim(-2, 102)
    ax.set_xlabel("accuracy, % of the pairs", fontsize=9)
    ax.tick_params(axis="x", labelsize=8)
    ax.grid(axis="y", color="0.92", zorder=0)
    ax.set_axisbelow(True)
    sns.despine(ax=ax, left=True)
    ax.tick_params(axis="y", length=0)


def _separate_layers(ax: Axes, shown: RelationPanel) -> None:
    layers = np.array([layer for layer, _ in shown.heads])
    for at in np.flatnonzero(np.diff(layers)).tolist():
        ax.axvline(at + 1, color="0.25", linewidth=0.8)


def _mark_attending(ax: Axes, verdicts: np.ndarray) -> None:
    rows, columns = np.nonzero(verdicts == ATTENDS)
    if len(rows):
        ax.add_line(_dot(columns + 0.5, rows + 0.5))


def _dot(x: ArrayLike = (), y: ArrayLike = ()) -> Line2D:
    """What marks a head that attends."""
    return Line2D(x, y, linestyle="none", marker="o", markersize=6, markerfacecolor="black", markeredgecolor="white")


def _title(ax: Axes, frames: RelationFrames, shown: str) -> None:
    how = frames.provenance
    looks = " (looking back only)" if is_causal(frames) else ""
    where = f"{how.get('model', 'a model')}{looks}, {counted(how['n_sentences'], 'sentence')}"
    wrapped_title(ax, f"{where}: {shown}")


def _nothing(frames: RelationFrames) -> Figure:
    figure = Figure(figsize=(6.0, 1.2), dpi=150, layout="constrained")
    ax = figure.subplots()
    ax.set_axis_off()
    _title(ax, frames, "no pair can be scored.")
    return figure
