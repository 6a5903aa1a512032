"""Does it matter what replaces a component? Its effect under each kind of replacement."""

from typing import Any

import pandas as pd

from interp.report.card_tables import spoken
from interp.report.dots import Dots, dots_figure, series
from interp.report.drawing import Figure, require, require_rows
from interp.report.glance import MOST_DRAWN, Glance, with_interval
from interp.report.results.words import cell_names, largest_names, task_of, unit_of

_MADE_BY = "interp.methods.replacements_compared.compare_replacements"
_MOST = 30


def replacements(result: Any) -> Figure:
    """Every component's effect under every kind of replacement, with 95 % intervals; grey is too small to count.

    Of more than 30 components, those with the largest effect under any kind.

    Args:
        result: What ``interp.methods.replacements_compared.compare_replacements`` returns.

    Raises:
        InputError: It is something else, or has no row.
    """
    require(result, ("frame", "effects", "kinds", "labels", "provenance"), "replacements", _MADE_BY)
    require_rows(result.frame, (*result.labels, "kind", "effect"), "replacements", _MADE_BY)
    table = _named(result)
    rows = largest_names(table, _MOST)
    drawn = {
        spoken(each): series(table[table["kind"] == each].set_index("name").reindex(rows), "effect", "low", "high")
        for each in result.kinds
    }
    few = "" if len(rows) == table["name"].nunique() else f" (the {len(rows)} largest of {table['name'].nunique()})"
    title = f"{task_of(result.provenance)}: effect of ablation by what replaces it{few}"
    across = f"effect ({unit_of(result.provenance)}; a cost is negative; grey: too small to count)"
    return dots_figure(Dots(rows, drawn, across, title, ignored=float(table["minimum"].mean())))


def replacements_glance(result: Any) -> Glance:
    """What a notebook shows of it: those first whose conclusion depends on the replacement."""
    table = _named(result)
    found = result.conclusions()
    n = found["agreement"].value_counts()
    order = table.groupby("name")["effect"].agg(lambda each: each.abs().max()).sort_values(ascending=False).index
    by_kind = {}
    for each in result.kinds:
        own = table[table["kind"] == each].set_index("name").loc[order]
        texts = with_interval(own, "effect", "low", "high")
        by_kind[spoken(each)] = [f"{text}: {state}" for text, state in zip(texts, own["state"], strict=True)]
    said = (
        f"Of {len(found)} components, {n.get('agrees', 0)} come to one conclusion under all kinds, {n.get('flips', 0)} "
        f"to contrary ones, and {n.get('open', 0)} are open."
    )
    return Glance(
        f"Replacements compared: {task_of(result.provenance)}",
        [said],
        pd.DataFrame({"component": list(order), **by_kind}),
        len(order),
        ".effects()",
        result.provenance,
        "interp.plots.replacements(result)",
        (lambda: replacements(result)) if len(table) <= MOST_DRAWN else None,
    )


def _named(result: Any) -> pd.DataFrame:
    table = result.effects()
    return table.assign(name=cell_names(table, result.labels))
