"""Gradient estimates by cell, and what a screen by them found and missed: figures and pages."""

from functools import partial
from typing import Any

import numpy as np

from interp.report.dots import Dots, dots_figure, series
from interp.report.drawing import Figure, despined, require, require_rows, style, wrapped_title
from interp.report.heads_figures import head_map
from interp.report.results.words import cell_names, largest_first, measured, page_of_table, task_of, unit_of
from interp.report.sections import Page, Table
from interp.report.tables import Column
from interp.report.words import estimate

_MADE_BY = "interp.methods.attribution.attribute"
_MOST = 30


def estimates(result: Any) -> Figure:
    """Estimated effects of patching: of layers by heads as a map, else the 30 largest as dots with 95 % intervals.

    Args:
        result: What ``interp.methods.attribution.attribute`` returns.

    Raises:
        InputError: It is something else, or has no row.
    """
    require(result, ("labels",), "estimates", _MADE_BY)
    table = measured(result, (*result.labels, "estimate"), "estimates", _MADE_BY)
    unit = unit_of(result.provenance)
    title = f"{task_of(result.provenance)}: estimated effect of patching {result.provenance['site']} ({unit})"
    if tuple(result.labels) == ("layer", "head"):
        return head_map(table, "estimate", title=title, signed=True)
    shown = largest_first(table, "estimate").head(_MOST)
    few = "" if len(shown) == len(table) else f": the {len(shown)} largest of {len(table)}"
    drawn = {"estimate": series(shown, "estimate", "low", "high")}
    return dots_figure(Dots(cell_names(shown, result.labels), drawn, f"estimated effect ({unit})", f"{title}{few}"))


def screen(found: Any) -> Figure:
    """Estimates beside exact effects, cell by cell: those at the top, and the audit drawn from the others.

    Args:
        found: What ``interp.patch(..., screen=True).screen`` is.

    Raises:
        InputError: It is something else, or nothing was measured.
    """
    require(found, ("cells", "recall", "method"), "screen", "interp.patch(..., screen=True).screen")
    frame = require_rows(found.cells, ("estimate", "effect", "chosen"), "screen", "interp.patch(..., screen=True)")
    figure = Figure(figsize=(4.8, 4.2), dpi=150, layout="constrained")
    ax = figure.subplots()
    for number, which in enumerate(("top", "audit")):
        rows = frame[frame["chosen"] == which]
        ax.plot(rows["estimate"], rows["effect"], linestyle="none", markersize=5, label=which, **style(number))
    ends = np.array([*ax.get_xlim(), *ax.get_ylim()])
    ax.plot([ends.min(), ends.max()], [ends.min(), ends.max()], color="0.6", linewidth=0.8, zorder=0, label="equal")
    ax.set_xlabel("estimate by gradients", fontsize=9)
    ax.set_ylabel("exact effect", fontsize=9)
    ax.legend(fontsize=8, frameon=False)
    left = int((frame["chosen"] == "not measured").sum())
    wrapped_title(ax, f"screen by {str(found.method).replace('_', ' ')}: {left} of {len(frame)} cells not measured")
    despined(ax)
    return figure


def page_of(result: Any) -> Page:
    """The page of estimates, or of a screen."""
    return _screened(result) if hasattr(result, "recall") else _estimated(result)


def _estimated(result: Any) -> Page:
    table, unit = largest_first(result.summary(), "estimate"), unit_of(result.provenance)
    shown = Table(
        "Cells",
        "The largest estimates first",
        table.assign(name=cell_names(table, result.labels)),
        (Column("name", "cell"), Column("estimate", f"estimated effect ({unit})", "low", "high"), Column("n_units")),
        "cells.csv",
    )
    how = str(result.provenance["method"]).replace("_", " ")
    title = f"Estimated by {how}: {task_of(result.provenance)}"
    said = ["Intervals are of the estimates, not of the effects; interp.patch measures those."]
    return page_of_table(result, title, said, shown, partial(estimates, result), "estimates")


def _screened(found: Any) -> Page:
    recall, cells = found.recall(), found.cells
    names = [name for name in cells.columns if name not in ("estimate", "effect", "chosen")]
    first = largest_first(cells, "effect")
    shown = Table(
        "Cells",
        "The largest exact effects first",
        first.assign(name=cell_names(first, names)),
        (Column("name", "cell"), Column("effect", "exact effect"), Column("estimate"), Column("chosen")),
        "cells.csv",
    )
    n, method = cells["chosen"].value_counts(), str(found.method).replace("_", " ")
    said = (
        f"Of {len(cells)} cells, the {n.get('top', 0)} with the largest estimates by {method} were measured, and "
        f"{n.get('audit', 0)} drawn from the others. Of the {recall.sought} largest effects, a share of "
        f"{estimate(recall.estimate, recall.low, recall.high, '')} is among them."
    )
    return page_of_table(found, "Screen", [said], shown, partial(screen, found), "screen")
