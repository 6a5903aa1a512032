"""The page of an erasure: each method's effect at each place, beside random directions, and what could be read."""

from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd

from interp.report.dots import dots_figure, series
from interp.report.drawing import Figure, chosen, require, require_rows
from interp.report.html import facts
from interp.report.page_texts import explained
from interp.report.results.one_table import cell_names, largest_names, page_of_table, shown_task, unit_of
from interp.report.sections import MOST_ROWS, Facts, Page, Section, Table
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
_READ = (
    *(Column("name", "place"), Column("method"), Column("data", "judged on")),
    Column("before", "right before", "before_low", "before_high"),
    Column("after", "right after", "after_low", "after_high"),
    *(Column("majority"), Column("rank", "directions"), Column("n", "examples")),
)


def page_of(result: Any) -> Page:
    """The sections of what ``erase`` found."""
    how, table = result.provenance, _named(result.summary(), result)
    table = table.assign(task=table["task"].map(str).map(shown_task))
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
    places = Table("Places", caption, first, columns, "effects.csv", len(table))
    draw = partial(erasure, result)
    title = f"Erasing {how['feature']}"
    page = page_of_table(result, title, _said(result, table), places, draw, kind="erasure")
    methods = ((method, _METHODS[method]) for method in how["methods"])
    asked = facts(how, "feature", "site", ("Erased at", _PLACES.get(how["at"], "")), *methods)
    sections: list[Section] = [each for each in page.sections if not isinstance(each, Facts)]
    frames, read = dict(page.frames), result.probes
    if len(read):
        frames["probes"] = read
        caption = "What logistic regressions read before and after, as shares of right answers"
        rows = _named(read, result).head(MOST_ROWS)
        sections.append(Table("What can be read", caption, rows, _READ, "probes.csv", len(read)))
    sections += [Facts("What was asked", asked), Facts("How to read this", list(explained("erasure").items()))]
    size = f"{counted(int(table['n_units'].max()), 'unit')} of {', '.join(table['task'].unique())}"
    return replace(page, sections=sections, about=about(how, size), frames=frames)


def _named(rows: pd.DataFrame, result: Any) -> pd.DataFrame:
    return rows.assign(name=cell_names(rows, result.labels))


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
        excess = estimate(best["excess"], best["excess_low"], best["excess_high"])
        beyond = f"; beyond random directions {excess}" if pd.notna(best["excess"]) else ""
        said.append(f"Largest effect of {method}: {effect} at {best['name']}, on {best['task']}{beyond}.")
    return said


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
    table = _named(result.summary(), result)
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
    return dots_figure(rows, drawn, f"effect ({unit_of(result.provenance)}; a cost is negative)", title)
