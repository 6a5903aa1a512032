"""The figures of a sweep: a heatmap of its cells, the strongest with their intervals, and a growing set's curve.

Colours diverge from no effect; what was not measured, or could not change anything, is hatched, never 0.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from interp.report.dots import dots_figure, found_or_not, series
from interp.report.drawing import LINE, Figure, finish, one_panel, require, short
from interp.report.heads_frames import head_names
from interp.report.results.one_table import task_of
from interp.report.sweep_cells import FOUND, GROWING, LARGE, PATH, Swept, panel, strongest_first, swept
from interp.report.sweep_sentences import done, scale

_MOST_BARS = 20
_LONGEST_TITLE = 60


def sweep(result: Any, *, tokens: Sequence[str] | None = None) -> Figure:
    """Every cell in its place: layers by heads, or by positions; of a single axis, dots with 95 % intervals.

    Colours diverge from no effect, and reach as far above as below. Black dots are significant after correction and
    large, white ones significant but small. What could not change anything is hatched by its reason. Of more than 48
    rows the strongest are shown; what is wider is shown as dots.

    Args:
        result: What ``interp.ablate``, ``interp.patch`` or ``interp.path_patch`` returns.
        tokens: The text at each position, for cells by position where all prompts have one length.

    Raises:
        InputError: It is no sweep, has no row, or there are fewer texts than positions.
    """
    shown = swept(result, tokens)
    in_a_row = shown.labels in (PATH, GROWING) or len(shown.labels) == 1
    return strongest(shown) if in_a_row or panel(shown) is None else heatmap(shown)


def heatmap(shown: Swept) -> Figure:
    """The cells in their places, of a sweep that has a panel."""
    placed = panel(shown)
    assert placed is not None, "who draws it has asked for the panel"
    return placed[0].figure(_title(shown), scale(shown).replace(": ", "\n").replace(" (", "\n("))


def strongest(result: Any, *, tokens: Sequence[str] | None = None) -> Figure:
    """The 20 strongest cells as dots with their 95 % intervals; all cells in their order where there is one short axis.

    Args:
        result: As for ``sweep``.
        tokens: As for ``sweep``.

    Raises:
        InputError: As for ``sweep``.
    """
    shown = swept(result, tokens)
    single = len(shown.labels) == 1 and len(shown.cells) <= _MOST_BARS
    cells = shown.cells if single else strongest_first(shown.cells).head(_MOST_BARS)
    large, names = cells["found"] == LARGE, (FOUND[LARGE].name, "not beyond it, or small")
    if not shown.tested:
        large, names = large | True, ("", "")
    drawn, looks = found_or_not(series(cells, "shown", "shown_low", "shown_high"), large, names)
    rows, states, together = cells["name"].tolist(), cells["state"].tolist(), dict.fromkeys(drawn, 0.0)
    return dots_figure(rows, drawn, scale(shown), _title(shown), looks=looks, away=together, missing=states)


def greedy(result: Any) -> Figure:
    """What a growing set of ablated heads costs, step by step, with 95 % intervals: the half that did not choose them.

    Args:
        result: What ``interp.methods.head_sets.greedy`` returns.

    Raises:
        InputError: It is something else.
    """
    if not isinstance(result, Swept):
        require(result, ("chosen", "summary", "provenance", "labels"), "greedy", "interp.methods.head_sets.greedy")
    shown = swept(result)
    steps = shown.summary.sort_values("step")
    figure, ax = one_panel(max(4.6, 0.55 * len(steps) + 2.2), 3.4)
    place = steps["step"].to_numpy()
    ends = np.abs(steps[["low", "high"]].to_numpy().T - steps["effect"].to_numpy())
    ax.errorbar(place, steps["effect"], yerr=ends, fmt="o-", markersize=4.5, capsize=2.5, color=LINE)
    ax.axhline(0, color="0.5", linewidth=0.8)
    names = [f"+ {name}" for name in head_names(steps)]
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if len(names) <= 30:
        ax.set_xticks(place, labels=names, fontsize=8, rotation=0 if len(names) < 12 else 90)
    finish(ax, _title(shown), "head that is ablated, too", f"effect ({shown.unit})")
    return figure


def _title(shown: Swept) -> str:
    n_asked = shown.provenance.get("n_asked")
    of = "" if n_asked is None else f" of {n_asked}"
    partial = "" if shown.complete else f"\nPARTIAL: {shown.n_measured}{of} examples"
    return f"{short(task_of(shown.provenance), _LONGEST_TITLE)}\n{done(shown)}{partial}"
