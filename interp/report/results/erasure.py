"""What did erasing a feature do? Each method's effect at each place, beside random directions."""

from typing import Any

import pandas as pd

from interp.report.dots import Dots, dots_figure, series
from interp.report.drawing import Figure, chosen, require, require_rows
from interp.report.glance import MOST_DRAWN, Glance, with_interval
from interp.report.results.words import cell_names, largest_names, shown_task, unit_of

_MADE_BY = "interp.methods.erasure.erase"
_MOST_PLACES = 30


def erasure(result: Any, task: str | None = None) -> Figure:
    """The effect of every method at every place on one task, with 95 % intervals; the 30 places with the largest.

    Args:
        result: What ``interp.methods.erasure.erase`` returns.
        task: One of its tasks; None for the first, which the erasers were fitted to.

    Raises:
        InputError: It is something else, has no row, or no such task.
    """
    require(result, ("frame", "summary", "labels", "provenance"), "erasure", _MADE_BY)
    require_rows(result.frame, (*result.labels, "task", "method", "effect"), "erasure", _MADE_BY)
    table = _named(result)
    tasks = list(dict.fromkeys(table["task"]))
    which = tasks[0] if task is None else chosen("task", task, tasks)
    own = table[table["task"] == which]
    rows = largest_names(own, _MOST_PLACES)
    drawn = {
        str(method): series(found.set_index("name").reindex(rows), "effect", "low", "high")
        for method, found in own.groupby("method", sort=False)
    }
    few = "" if len(rows) == own["name"].nunique() else f" (the {len(rows)} largest of {own['name'].nunique()} places)"
    title = f"{shown_task(str(which))}: effect of erasing {result.provenance['feature']}{few}"
    return dots_figure(Dots(rows, drawn, f"effect ({unit_of(result.provenance)}; a cost is negative)", title))


def erasure_glance(result: Any) -> Glance:
    """What a notebook shows of it: the largest effects of erasing the feature, not those of random directions."""
    table = _named(result)
    own = table[table["method"] != "random"]
    first = (own if len(own) else table).assign(_size=lambda rows: rows["effect"].abs())
    first = first.sort_values("_size", ascending=False, kind="stable")
    shown = pd.DataFrame(
        {
            "place": first["name"],
            "task": first["task"].map(str).map(shown_task),
            "method": first["method"],
            f"effect ({unit_of(result.provenance)})": with_interval(first, "effect", "low", "high"),
            "beyond random directions": with_interval(first, "excess", "excess_low", "excess_high"),
        }
    )
    feature, methods = result.provenance["feature"], ", ".join(map(str, table["method"].unique()))
    return Glance(
        f"Erasing {feature}",
        [f"{feature} was erased at {table['name'].nunique()} places, one at a time, by {methods}."],
        shown,
        len(table),
        ".summary()",
        result.provenance,
        "interp.plots.erasure(result)",
        (lambda: erasure(result)) if len(table) <= MOST_DRAWN else None,
    )


def _named(result: Any) -> pd.DataFrame:
    table = result.summary()
    return table.assign(name=cell_names(table, result.labels))
