"""Figures of heads against relations: a layer x head grid for each relation, and each best head beside its baselines.

Colours are neutral at 0: blue above the best rule, to the largest excess of a direction that can be decided; sand below
it, to ``LEAST``. A dot marks a head that attends.
"""

import textwrap
from functools import cache
from math import ceil
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize, to_hex

from interp.report.dots import dots_figure, found_or_not
from interp.report.drawing import (
    Figure,
    draw_table,
    legend,
    mark_cells,
    one_panel,
    require,
    short,
    thin_ticks,
    wrapped_title,
)
from interp.report.heatmap import Paint
from interp.report.relations_sentences import (
    ATTENDS,
    DIRECTION,
    FEWEST_DOCUMENTS,
    VERDICTS,
    head_name,
    is_causal,
)
from interp.report.words import counted

MOST_GRIDS, MOST_DIRECTIONS = 12, 30
LEAST = 0.5
"""How far below the rule the colours reach."""
_FAINTEST_BOUND = 0.05
_SCHEMES = {"light": ("#e3c98f", "#f6f7f8", "#1b6ca8"), "dark": ("#6b5628", "#1e2227", "#6cc0ff")}
_BASELINES = {
    "accuracy_baseline": ("rule that it is held against", "|", "black", 14),
    "accuracy_offset": ("best offset", "D", "#9c5f00", 5),
    "accuracy_nearest": ("best nearest part of speech", "s", "#7a4da0", 5),
    "accuracy_random_head": ("random other head of the layer", "x", "#5f6670", 5),
    "chance": ("chance", "|", "#5f6670", 5),
}
"""The mark of each, its colour and size in points."""


def paint_excess(value: float, bound: float) -> Paint:
    """The colours of one cell; beyond `bound` it gets the strongest."""
    share = (min(max(value, -LEAST), bound) + LEAST) / (bound + LEAST)
    return Paint(*(to_hex(excess_colours(bound, scheme)(share)) for scheme in _SCHEMES))


@cache
def excess_colours(bound: float, scheme: str = "light") -> LinearSegmentedColormap:
    """The colours from ``-LEAST`` to `bound`, for a ``light`` or a ``dark`` page."""
    places = (0.0, LEAST / (LEAST + bound), 1.0)
    return LinearSegmentedColormap.from_list("excess", list(zip(places, _SCHEMES[scheme], strict=True)))


def strongest_excess(result: Any) -> float:
    """The excess that has the strongest colour: the largest of a direction with enough documents."""
    best = result.leading()
    decidable = best[best["n_documents"] >= FEWEST_DOCUMENTS]
    largest = float((best if decidable.empty else decidable)["excess"].max())
    return max(largest, 2 * float(result.provenance["min_effect"]), _FAINTEST_BOUND)


def of_direction(cells: pd.DataFrame, direction: pd.Series) -> pd.DataFrame:
    """The heads' rows of one direction."""
    return cells[(cells["relation"] == direction["relation"]) & (cells["looks"] == direction["looks"])]


def grid_name(direction: pd.Series) -> str:
    """What stands above a grid: the direction, and on how many pairs its numbers rest."""
    return f"{direction['relation']}, {direction['looks']} (n\u00a0=\u00a0{direction['n']:,})"


def relations(result: Any) -> Figure:
    """How much more often than the best rule each head finds each relation: layers down, heads across.

    A dot marks a head that attends. Of many directions the first 12 are drawn, the most telling first.

    Args:
        result: What ``interp.attend`` returns.

    Raises:
        InputError: It is something else.
    """
    require(result, ("cells", "relations", "provenance"), "relations", "interp.attend")
    best = result.leading()
    if best.empty:
        return _nothing(result)
    shown, bound = best.head(MOST_GRIDS), strongest_excess(result)
    n_layers, n_heads = (result.cells[name].nunique() for name in ("layer", "head"))
    wide, high = max(2.6, 0.22 * n_heads + 0.8), max(1.3, 0.22 * n_layers + 0.8)
    n_across = max(1, min(len(shown), int(13 / wide)))
    n_down = ceil(len(shown) / n_across)
    size = (max(6.0, wide * n_across + 1.0), high * n_down + 1.1)
    figure = Figure(figsize=size, dpi=150, layout="constrained")
    axes = figure.subplots(n_down, n_across, squeeze=False).ravel()
    handles: dict[str, Artist] = {}
    colours, low, top = excess_colours(bound), -100 * LEAST, 100 * bound
    for ax, (_, direction) in zip(axes, shown.iterrows(), strict=False):
        rows = of_direction(result.cells, direction).set_index(["layer", "head"])
        table = 100 * rows["excess"].unstack()
        draw_table(ax, table, cmap=colours, vmin=low, vmax=top, annotate=False, cbar=False)
        handles |= mark_cells(ax, rows["verdict"].unstack().to_numpy(), {ATTENDS: VERDICTS[ATTENDS]})
        ax.set_title("\n".join(textwrap.wrap(short(grid_name(direction), 80), int(13 * wide))), fontsize=8)
        ax.title.set_parse_math(False)
        ax.set(xlabel="head", ylabel="layer")
        ax.tick_params(labelsize=7, labelrotation=0)
        thin_ticks(ax)
    for ax in axes[len(shown) :]:
        ax.set_axis_off()
    bar = figure.colorbar(ScalarMappable(Normalize(low, top), colours), ax=list(axes), pad=0.01, fraction=0.03)
    bar.set_label("excess, points", fontsize=8)
    bar.ax.tick_params(labelsize=8)
    left_out = f" The first {len(shown)} of {len(best)} directions." if len(shown) < len(best) else ""
    said = f"{_about(result)}: accuracy over the best rule without attention, in points.{left_out}"
    figure.suptitle(textwrap.fill(said, int(13 * size[0])), fontsize=9, parse_math=False)
    legend(figure, handles)
    return figure


def relation_baselines(result: Any) -> Figure:
    """How often each relation's best head is right, with the 95 % interval of its lead, beside all baselines.

    Args:
        result: What ``interp.attend`` returns.

    Raises:
        InputError: It is something else.
    """
    require(result, ("cells", "relations", "provenance"), "relation_baselines", "interp.attend")
    best = result.leading()
    if best.empty:
        return _nothing(result)
    rows = best.head(MOST_DIRECTIONS).merge(
        result.relations, on=list(DIRECTION), suffixes=("", "_relation"), validate="one_to_one"
    )
    # The interval is that of the lead: it stands where the rule is.
    low, high = ((rows["accuracy_baseline"] + rows[end]).clip(0, 1) for end in ("low", "high"))
    own = 100 * pd.DataFrame({"estimate": rows["accuracy"], "low": low, "high": high})
    look: Any = {"markersize": 7, "zorder": 4}
    drawn, looks = found_or_not(own, rows["verdict"] == ATTENDS, ("best head that attends", "best head"), **look)
    for column, (label, marker, colour, size) in _BASELINES.items():
        drawn[label] = pd.DataFrame({"estimate": 100 * rows[column], "low": np.nan, "high": np.nan})
        looks[label] = {"marker": marker, "color": colour, "markersize": size}
    names = [f"{row['relation']}, {row['looks']}: {head_name(row)} (n = {row['n']:,})" for _, row in rows.iterrows()]
    kept = "" if len(rows) == len(best) else f" The first {len(rows)} of {len(best)} directions."
    title = f"{_about(result)}: how often the related word is found.{kept}"
    label = "accuracy, % of the pairs;\nlines are 95 % intervals of the lead over the best rule"
    together = dict.fromkeys(drawn, 0.0)
    figure = dots_figure(names, drawn, label, title, None, looks=looks, away=together, longest=100)
    figure.axes[0].set_xlim(-2, 102)
    return figure


def _about(result: Any) -> str:
    looks = " (looking back only)" if is_causal(result) else ""
    return (
        f"{result.provenance.get('model', 'a model')}{looks}, {counted(result.provenance['n_sentences'], 'sentence')}"
    )


def _nothing(result: Any) -> Figure:
    figure, ax = one_panel(6.0, 1.2)
    ax.set_axis_off()
    wrapped_title(ax, f"{_about(result)}: no pair can be scored.")
    return figure
