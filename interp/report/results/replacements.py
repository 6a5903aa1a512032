"""Components under several replacements: their effects, as a figure and as a page."""

from functools import partial
from typing import Any

import pandas as pd

from interp.report.card_tables import spoken
from interp.report.dots import Dots, dots_figure, series
from interp.report.drawing import Figure, require
from interp.report.results.words import cell_names, largest_names, measured, page_of_table, task_of, unit_of
from interp.report.sections import Page, Table
from interp.report.tables import Column
from interp.report.words import estimate

_MADE_BY = "interp.methods.replacements_compared.compare_replacements"
_MOST = 30


def replacements(result: Any) -> Figure:
    """Every component's effect under every replacement, with 95 % intervals; grey is too small to count.

    Of more than 30 components, those with the largest effect under any.

    Args:
        result: What ``interp.methods.replacements_compared.compare_replacements`` returns.

    Raises:
        InputError: It is something else, or has no row.
    """
    require(result, ("replacements", "labels"), "replacements", _MADE_BY)
    measured(result, (*result.labels, "replacement", "effect"), "replacements", _MADE_BY)
    table = _named(result)
    rows = largest_names(table, _MOST)
    drawn = {
        spoken(each): series(
            table[table["replacement"] == each].set_index("name").reindex(rows), "effect", "low", "high"
        )
        for each in result.replacements
    }
    few = "" if len(rows) == table["name"].nunique() else f" (the {len(rows)} largest of {table['name'].nunique()})"
    title = f"{task_of(result.provenance)}: effect of ablation by what replaces it{few}"
    across = f"effect ({unit_of(result.provenance)}; a cost is negative; grey: too small to count)"
    return dots_figure(Dots(rows, drawn, across, title, ignored=float(table["minimum"].mean())))


def page_of(result: Any) -> Page:
    """The page of every component, with its effect and what is concluded under each replacement."""
    table = _named(result)
    found = result.conclusions()
    n = found["agreement"].value_counts()
    order = table.groupby("name")["effect"].agg(lambda each: each.abs().max()).sort_values(ascending=False).index
    columns = {}
    for each in result.replacements:
        own = table[table["replacement"] == each].set_index("name").loc[order]
        ends = own[["effect", "low", "high", "state"]].itertuples(index=False, name=None)
        columns[each] = [f"{estimate(effect, low, high, '')}: {state}" for effect, low, high, state in ends]
    shown = Table(
        "Components",
        f"The largest effects first ({unit_of(result.provenance)}), with the conclusion under each replacement",
        pd.DataFrame({"component": list(order), **columns}),
        (Column("component"), *(Column(each, spoken(each)) for each in result.replacements)),
        "cells.csv",
    )
    said = (
        f"Of {len(found)} components, {n.get('agrees', 0)} come to one conclusion under all replacements, "
        f"{n.get('flips', 0)} to contrary ones, and {n.get('open', 0)} are open."
    )
    title = f"Replacements compared: {task_of(result.provenance)}"
    return page_of_table(result, title, [said], shown, partial(replacements, result), "replacements")


def _named(result: Any) -> pd.DataFrame:
    table = result.summary()
    return table.assign(name=cell_names(table, result.labels))
