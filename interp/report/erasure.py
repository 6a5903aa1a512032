"""The page of an erasure: each method's effect at each place, beside random directions, and what could be read."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import pandas as pd

from interp.report.dots import Dots, dots_figure, series
from interp.report.drawing import Figure, chosen, require, require_rows
from interp.report.notebook import MOST_DRAWN
from interp.report.results.words import cell_names, largest_names, shown_task, unit_of
from interp.report.sections import MOST_ROWS, Facts, Page, Picture, Section, Sentences, Table
from interp.report.tables import Column
from interp.report.words import about, counted, estimate

_MADE_BY = "interp.methods.erasure.erase"
_MOST_PLACES = 30
_METHODS = {
    "leace": "LEACE: takes away what any linear probe could read, and moves the activations least",
    "random": "random directions, as many as LEACE takes away: its control",
    "inlp": "INLP: takes away what one probe after the other reads",
    "mean": "the mean in place of everything",
    "steer": "adds the difference of the classes' means: turns the feature into the other one",
}


class Erased(Protocol):
    """A feature that was erased: an ``ErasureResult``."""

    @property
    def examples(self) -> pd.DataFrame:
        """One row per task, method, place and example."""

    @property
    def probes(self) -> pd.DataFrame:
        """How well the feature can be read before and after."""

    @property
    def labels(self) -> Sequence[str]:
        """The columns that name a place."""

    @property
    def provenance(self) -> Mapping[str, Any]:
        """How the numbers were made."""

    def summary(self) -> pd.DataFrame:
        """One row per method, place and task."""


def page_of(result: Erased) -> Page:
    """The sections of what ``erase`` found."""
    table, how = _named(result), result.provenance
    n_units = int(table["n_units"].max())
    tasks = list(dict.fromkeys(table["task"]))
    draws = {"erasure": partial(erasure, result)}
    return Page(
        title=f"Erasing {how['feature']}",
        kind="erasure",
        sections=tuple(_sections(result, table)),
        provenance=how,
        about=about(how, f"{counted(n_units, 'unit')} of {', '.join(map(shown_task, tasks))}"),
        cautions=() if how.get("complete", True) else ("Partial: the erasure was interrupted.",),
        call="interp.plots.erasure(result)",
        frames={"effects": result.summary()} | ({"probes": result.probes} if len(result.probes) else {}),
        draws=draws,
    )


def _sections(result: Erased, table: pd.DataFrame) -> list[Section]:
    found: list[Section] = []
    if len(table) <= MOST_DRAWN:
        found.append(
            Picture("Effects", "erasure", partial(erasure, result), "Effects with their intervals", inline=True)
        )
    found.append(Sentences("Findings", _said(result, table)))
    own = table[table["method"] != "random"]
    first = (own if len(own) else table).assign(_size=lambda rows: rows["effect"].abs())
    first = first.sort_values("_size", ascending=False, kind="stable").head(MOST_ROWS)
    first = first.assign(task=first["task"].map(str).map(shown_task))
    columns = [
        *(Column("name", "place"), Column("task"), Column("method")),
        Column("effect", f"effect ({unit_of(result.provenance)})", "low", "high"),
        Column("p_adjusted"),
        Column("excess", "beyond random directions", "excess_low", "excess_high"),
        *(Column("rank", "directions"), Column("n_units"), Column("n_clusters")),
    ]
    caption = "The largest effects of erasing the feature first; those of random directions are in the file"
    found.append(Table("Places", caption, first, columns, "effects.csv", len(table)))
    if len(result.probes):
        found.append(_probes(result))
    found.append(Facts("What was asked", _asked(result)))
    found.append(Facts("How to read this", _READING))
    return found


def _said(result: Erased, table: pd.DataFrame) -> list[str]:
    """What was done, and the largest effect of each method that takes the feature away."""
    feature, methods = result.provenance["feature"], list(dict.fromkeys(table["method"]))
    said = [
        f"{feature} was erased at {counted(table['name'].nunique(), 'place')}, one at a time, by {', '.join(methods)}."
    ]
    for method in methods:
        rows = table[table["method"] == method]
        if method == "random" or rows["effect"].isna().all():
            continue
        best = rows.loc[rows["effect"].abs().idxmax()]
        effect = estimate(best["effect"], best["low"], best["high"], unit_of(result.provenance))
        beyond = ""
        if pd.notna(best["excess"]):
            numbers = estimate(best["excess"], best["excess_low"], best["excess_high"], "")
            beyond = f"; beyond random directions {numbers}"
        said.append(
            f"Largest effect of {method}: {effect} at {best['name']}, on {shown_task(str(best['task']))}{beyond}."
        )
    return said


def _probes(result: Erased) -> Table:
    columns = [
        *(Column("name", "place"), Column("method"), Column("data", "judged on")),
        Column("before", "right before", "before_low", "before_high"),
        Column("after", "right after", "after_low", "after_high"),
        *(Column("majority"), Column("rank", "directions"), Column("n", "examples")),
    ]
    rows = result.probes.assign(name=cell_names(result.probes, result.labels))
    caption = "What logistic regressions read before and after, as shares of right answers"
    return Table("What can be read", caption, rows.head(MOST_ROWS), columns, "probes.csv", len(rows))


def _asked(result: Erased) -> list[tuple[str, str]]:
    how = result.provenance
    at = {"query": "the position that looks back", "related": "the related word", "all": "all positions of the prompt"}
    facts = [("Feature", str(how["feature"])), ("Site", str(how.get("site", ""))), ("Erased at", at.get(how["at"], ""))]
    facts += [(method, _METHODS[method]) for method in how["methods"]]
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


def erasure(result: Erased, task: str | None = None) -> Figure:
    """The effect of every method at every place on one task, with 95 % intervals; the 30 places with the largest.

    Args:
        result: What ``interp.methods.erasure.erase`` returns.
        task: One of its tasks; None for the first, which the erasers were fitted to.

    Raises:
        InputError: It is something else, has no row, or no such task.
    """
    require(result, ("examples", "summary", "labels", "provenance"), "erasure", _MADE_BY)
    require_rows(result.examples, (*result.labels, "task", "method", "effect"), "erasure", _MADE_BY)
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


def _named(result: Erased) -> pd.DataFrame:
    table = result.summary()
    return table.assign(name=cell_names(table, result.labels))
