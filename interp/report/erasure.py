"""The page of an erasure: each method's effect at each place, beside random directions, and what could be read."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import pandas as pd

from interp.report.dots import Dots, dots_figure, series
from interp.report.drawing import Figure, chosen, require, require_rows
from interp.report.notebook import MOST_DRAWN
from interp.report.results.words import cell_names, largest_names, shown_task, unit_of
from interp.report.sections import MOST_ROWS, Facts, Page, Picture, Section, Sentences, Table
from interp.report.tables import Column, columns_of
from interp.report.words import about, counted, estimate, listed

_MADE_BY = "interp.methods.erasure.erase"
_MOST_PLACES = 30
_METHODS = {
    "leace": "LEACE: takes away what any linear probe could read, and moves the activations least",
    "random": "random directions, as many as LEACE takes away: its control",
    "inlp": "INLP: takes away what one probe after the other reads",
    "mean": "the mean in place of everything",
    "steer": "adds the difference of the classes' means: turns the feature into the other one",
}
_PLACES = {
    "query": "the position that looks back",
    "related": "the related word",
    "all": "all positions of the prompt",
}


def page_of(result: Any) -> Page:
    """The sections of what ``erase`` found."""
    effects, how = result.summary(), result.provenance
    table = effects.assign(name=cell_names(effects, result.labels), task=effects["task"].map(str).map(shown_task))
    draw = partial(erasure, result)
    own = table[table["method"] != "random"]
    first = (own if len(own) else table).sort_values("effect", key=abs, ascending=False, kind="stable").head(MOST_ROWS)
    columns = [
        *(Column("name", "place"), Column("task"), Column("method")),
        Column("effect", f"effect ({unit_of(how)})", "low", "high"),
        Column("p_adjusted"),
        Column("excess", "beyond random directions", "excess_low", "excess_high"),
        *(Column("rank", "directions"), *columns_of("n_units", "n_clusters")),
    ]
    caption = "The largest effects of erasing the feature first; those of random directions are in the file"
    sections: list[Section] = [
        Sentences("Findings", _said(result, table)),
        Table("Places", caption, first, columns, "effects.csv", len(table)),
        *([_probes(result)] if len(result.probes) else []),
        Facts("What was asked", _asked(how)),
        Facts("How to read this", _READING),
    ]
    if len(table) <= MOST_DRAWN:
        sections.insert(0, Picture("Effects", "erasure", draw, "Effects with their intervals", inline=True))
    tasks = ", ".join(dict.fromkeys(table["task"]))
    return Page(
        title=f"Erasing {how['feature']}",
        kind="erasure",
        sections=sections,
        provenance=how,
        about=about(how, f"{counted(int(table['n_units'].max()), 'unit')} of {tasks}"),
        cautions=() if how.get("complete", True) else ("Partial: the erasure was interrupted.",),
        call="interp.plots.erasure(result)",
        frames={"effects": effects} | ({"probes": result.probes} if len(result.probes) else {}),
        draws={"erasure": draw},
    )


def _said(result: Any, table: pd.DataFrame) -> list[str]:
    """What was done, and the largest effect of each method that takes the feature away."""
    how, methods = result.provenance, list(dict.fromkeys(table["method"]))
    places = counted(table["name"].nunique(), "place")
    said = [f"The feature {how['feature']} was erased at {places}, one at a time, by {listed(methods)}."]
    for method, rows in table[table["effect"].notna()].groupby("method", sort=False):
        if method == "random":
            continue
        best = rows.loc[rows["effect"].abs().idxmax()]
        effect = estimate(best["effect"], best["low"], best["high"], unit_of(how))
        beyond = ""
        if pd.notna(best["excess"]):
            numbers = estimate(best["excess"], best["excess_low"], best["excess_high"], "")
            beyond = f"; beyond random directions {numbers}"
        said.append(f"Largest effect of {method}: {effect} at {best['name']}, on {best['task']}{beyond}.")
    return said


def _probes(result: Any) -> Table:
    columns = [
        *(Column("name", "place"), Column("method"), Column("data", "judged on")),
        Column("before", "right before", "before_low", "before_high"),
        Column("after", "right after", "after_low", "after_high"),
        *(Column("majority"), Column("rank", "directions"), Column("n", "examples")),
    ]
    rows = result.probes.assign(name=cell_names(result.probes, result.labels))
    caption = "What logistic regressions read before and after, as shares of right answers"
    return Table("What can be read", caption, rows.head(MOST_ROWS), columns, "probes.csv", len(rows))


def _asked(how: Mapping[str, Any]) -> list[tuple[str, str]]:
    facts = [("Feature", str(how["feature"])), ("Site", str(how.get("site", "")))]
    facts += [("Erased at", _PLACES.get(how["at"], "")), *((method, _METHODS[method]) for method in how["methods"])]
    return [(name, text) for name, text in facts if text]


_READING = [
    ("Effect", "the metric with the feature erased, less the metric without: a cost is negative."),
    ("[low, high]", "the 95 % interval of the estimate before it: a bootstrap that draws whole clusters."),
    ("Adjusted p", "of “the effect is 0”, corrected over all places and tasks of the method by max-T."),
    ("Beyond random directions", "LEACE's effect less that of as many random directions, example by example."),
    (
        "Judged on",
        "fitted: the reference sets that erasers and probes were fitted to. Held out: the scored units. Refitted: "
        "probes that were fitted to other scored units.",
    ),
]


def erasure(result: Any, task: str | None = None) -> Figure:
    """The effect of every method at every place on one task, with 95 % intervals; the 30 places with the largest.

    Args:
        result: What ``interp.methods.erasure.erase`` returns.
        task: One of its tasks; None for the first, which the erasers were fitted to.

    Raises:
        InputError: It is something else, has no row, or no such task.
    """
    require(result, ("examples", "summary", "labels", "provenance"), "erasure", _MADE_BY)
    require_rows(result.examples, (*result.labels, "task", "method", "effect"), "erasure", _MADE_BY)
    table = result.summary()
    table = table.assign(name=cell_names(table, result.labels))
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
