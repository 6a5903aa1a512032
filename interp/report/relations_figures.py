"""Which colour does an excess get? Blue above the best rule; below it sand that fades, so that near misses are seen.

The colour jumps at 0, where a head stops being worse than a rule without attention.

Which relations and which heads fit into a picture? All heads of a small model, else those that matter for any.

1. Down go the directions in which anything was scored, the most telling first.
2. Across go the heads, layer by layer. Of more than ``MOST_HEADS``: those that attend to a relation or are its best
   head; of too many of these, the ones with the largest excess.
3. Colours reach to the largest excess of a direction with enough documents: what can be decided is told apart.

What do heads against relations look like at a glance? Excess by head, and each best head beside what explains it.

Each function returns a ``matplotlib.figure.Figure`` of its own.

What do heads against relations look like? The figures that take a result itself; ``plots.py`` draws them.

How do examples become shaded sentences? The query and the words that it should find marked, right or wrong said.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_hex
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from interp.report.attended import Word, attending_heads
from interp.report.drawing import Figure, draw_table, label_text, require, wrapped_title
from interp.report.heatmap import Paint, ink
from interp.report.relations_sentences import (
    ATTENDS,
    DIRECTION,
    EXAMPLE,
    FEWEST_DOCUMENTS,
    RelationFrames,
    check_relations,
    direction_name,
    head_name,
    is_causal,
    leading,
)
from interp.report.words import counted, percent

FADED = 0.5
"""From this much below the rule on, a cell has no colour."""
_SCHEMES = {
    "light": ("#f6f7f8", "#f1dfba", "#d3e5f3", "#1b6ca8"),
    "dark": ("#1e2227", "#5c4a26", "#1f4563", "#6cc0ff"),
}


def paint_excess(value: float, bound: float) -> Paint:
    """The colours of one cell; beyond `bound` it gets the strongest."""
    share = (min(max(value, -FADED), bound) + FADED) / (bound + FADED)
    light, dark = (to_hex(excess_colours(bound, scheme)(share)) for scheme in _SCHEMES)
    return Paint(light, ink(light), dark, ink(dark))


@cache
def excess_colours(bound: float, scheme: str = "light") -> LinearSegmentedColormap:
    """The colours from ``-FADED`` to `bound`, for a ``light`` or a ``dark`` page."""
    least, below, above, most = _SCHEMES[scheme]
    zero = FADED / (FADED + bound)
    return LinearSegmentedColormap.from_list("excess", [(0.0, least), (zero, below), (zero, above), (1.0, most)])


MOST_HEADS = 60
_FAINTEST_BOUND = 0.05


@dataclass(frozen=True)
class RelationPanel:
    """What stands where.

    Attributes:
        directions: The rows, as (relation, looks).
        heads: The columns, as (layer, head).
        n_heads: How many heads the model has.
        n_directions: How many directions have numbers.
        bound: The excess that has the strongest colour.
    """

    directions: tuple[tuple[str, str], ...]
    heads: tuple[tuple[int, int], ...]
    n_heads: int
    n_directions: int
    bound: float

    @property
    def left_out(self) -> str:
        """What is not in the picture, as a sentence; empty where all is."""
        parts = []
        if len(self.heads) < self.n_heads:
            parts.append(
                f"the {len(self.heads)} of {self.n_heads} heads that are the best for a relation or attend to one"
            )
        if len(self.directions) < self.n_directions:
            parts.append(f"the first {len(self.directions)} of {self.n_directions} directions")
        return f"Shown are {' and '.join(parts)}." if parts else ""

    def table(self, frame: pd.DataFrame, column: str) -> pd.DataFrame:
        """A column of `frame`, directions down and heads across; what was not measured is missing."""
        keyed = frame.set_index([*DIRECTION, "layer", "head"])[column].unstack(["layer", "head"])
        return keyed.reindex(index=pd.MultiIndex.from_tuples(self.directions), columns=list(self.heads))


def panel(frames: RelationFrames, most_directions: int | None = None) -> RelationPanel | None:
    """The picture of a scoring; None where nothing was scored.

    Args:
        frames: Of the scoring.
        most_directions: How many rows there is room for; None for all.
    """
    best = leading(frames.cells)
    if best.empty:
        return None
    directions = tuple(best[list(DIRECTION)].itertuples(index=False, name=None))
    decidable = best[best["n_documents"] >= FEWEST_DOCUMENTS]
    bound = (best if decidable.empty else decidable)["excess"].max()
    return RelationPanel(
        directions[:most_directions],
        _heads(frames.cells, best),
        len(frames.cells[["layer", "head"]].drop_duplicates()),
        len(directions),
        max(float(bound), 2 * float(frames.provenance["min_effect"]), _FAINTEST_BOUND),
    )


def _heads(frame: pd.DataFrame, best: pd.DataFrame) -> tuple[tuple[int, int], ...]:
    every = sorted(set(frame[["layer", "head"]].itertuples(index=False, name=None)))
    if len(every) <= MOST_HEADS:
        return tuple(every)
    mattering = pd.concat([frame[frame["verdict"] == ATTENDS], best]).sort_values("excess", ascending=False)
    kept = mattering.drop_duplicates(["layer", "head"]).head(MOST_HEADS)
    return tuple(sorted(kept[["layer", "head"]].itertuples(index=False, name=None)))


def headings(heads: tuple[tuple[int, int], ...]) -> tuple[str, ...]:
    """Heads as L.H."""
    return tuple(f"{layer}.{head}" for layer, head in heads)


def row_names(frames: RelationFrames, panel: RelationPanel) -> tuple[str, ...]:
    """The rows' headings: the direction, and on how many pairs its numbers rest."""
    n = frames.relations.set_index(list(DIRECTION))["n"]
    return tuple(f"{relation}, {looks} (n\u00a0=\u00a0{n[relation, looks]:,})" for relation, looks in panel.directions)


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
    table = shown.table(frames.cells, "excess")
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
    _mark_attending(ax, shown.table(frames.cells, "verdict").to_numpy())
    _title(ax, frames, f"accuracy over the best rule without attention, in points. {shown.left_out}".rstrip())
    if (frames.cells["verdict"] == ATTENDS).any():
        figure.legend([_dot()], ["attends"], loc="outside lower center", fontsize=8, frameon=False)
    return figure


def baselines_figure(frames: RelationFrames) -> Figure:
    """How often each best head is right, beside what position, another head and chance explain."""
    best = leading(frames.cells).head(MOST_DIRECTIONS)
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
    n_all = len(leading(frames.cells))
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


def relations(result: RelationFrames) -> Figure:
    """How much more often than the best rule each head finds each relation, with a dot where a head attends to it.

    Args:
        result: What ``interp.attend`` returns.

    Raises:
        InputError: It is something else, or lacks a column.
    """
    return relations_figure(_checked(result, "relations"))


def relation_baselines(result: RelationFrames) -> Figure:
    """How often each relation's best head is right, with the 95 % interval of its lead, beside all baselines.

    Args:
        result: What ``interp.attend`` returns.

    Raises:
        InputError: It is something else, or lacks a column.
    """
    return baselines_figure(_checked(result, "relation_baselines"))


def _checked(result: RelationFrames, what: str) -> RelationFrames:
    require(result, ("cells", "relations", "provenance"), what, "interp.attend")
    check_relations(result, None)
    return result


@dataclass(frozen=True)
class Picture:
    """One sentence: where it stands and whether the head is right, and its words."""

    caption: str
    words: tuple[Word, ...]


@dataclass(frozen=True)
class PicturedHead:
    """A head on the examples of one direction; ``rows`` are these as ``embedded.attention_figure`` takes them."""

    title: str
    note: str
    pictures: tuple[Picture, ...]
    rows: pd.DataFrame


def pictured_heads(maps: pd.DataFrame, frame: pd.DataFrame) -> tuple[PicturedHead, ...]:
    """Every direction that has examples, in their order.

    Args:
        maps: One row per example and word; see ``frames.MAP_COLUMNS``.
        frame: One row per direction and head, with how often it is right.
    """
    cells = frame.set_index([*DIRECTION, "layer", "head"], drop=False).sort_index()
    return tuple(
        _pictured(rows, cells.loc[key]) for key, rows in maps.groupby([*DIRECTION, "layer", "head"], sort=False)
    )


def _pictured(rows: pd.DataFrame, cell: pd.Series) -> PicturedHead:
    examples = [each.sort_values("word").reset_index(drop=True) for _, each in rows.groupby(list(EXAMPLE), sort=False)]
    captions = [_caption(each) for each in examples]
    verdict = cell["verdict"] if pd.notna(cell["verdict"]) else ""
    placed = pd.concat(
        [
            each.assign(example=number, caption=caption, key_pos=each.index, query_pos=int(each["is_query"].idxmax()))
            for number, (each, caption) in enumerate(zip(examples, captions, strict=True))
        ]
    ).assign(task="", verdict=verdict)
    (head,) = attending_heads(placed, "")
    pictures = tuple(Picture(*pair) for pair in zip(captions, head.sentences, strict=True))
    note = f"Right in {percent(cell['accuracy'])} of all {cell['n']:,} pairs that were scored."
    title = f"{direction_name(cell['relation'], cell['looks'])}: head {head_name(cell)}"
    return PicturedHead(title, note, pictures, placed)


def _caption(rows: pd.DataFrame) -> str:
    first = rows.iloc[0]
    if first["is_right"]:
        outcome = "right here"
    else:
        choice = rows.loc[rows["is_choice"], "token"]
        instead = f"“{choice.iloc[0]}”" if len(choice) else "what is not shown"
        outcome = f"wrong here: it attends most to {instead}"
    return f"{first['sentence']} — {outcome}"
