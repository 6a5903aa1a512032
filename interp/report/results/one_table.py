"""What a result's task, unit and cells are called, and the page of a result that is one table and one figure."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd

from interp.report.drawing import Figure, require, require_rows
from interp.report.heads_frames import shown_names
from interp.report.html import flatten
from interp.report.notebook import MOST_DRAWN
from interp.report.sections import Facts, Page, Picture, Section, Sentences, Table
from interp.report.sweep_cells import cell_names as cell_names
from interp.report.words import METRICS, UNITS, about, counted

_ASKED = ("site", "direction", "method", "replacement", "min_effect", "alpha", "seed")
MADE_BY = {
    "estimates": "interp.methods.attribution.attribute",
    "lenses": "interp.residual.tuned_lens.compare_lenses",
    "logit_attribution": "interp.direct_logit_attribution",
    "logit_lens": "interp.residual.logit_lens.logit_lens",
    "pairs": "interp.methods.head_sets.pairwise",
    "replacements": "interp.methods.replacements_compared.compare_replacements",
    "self_repair": "interp.methods.self_repair.self_repair",
    "stream": "interp.residual_stream",
}
"""By figure, the call that makes what it is drawn of."""


def task_of(provenance: Mapping[str, Any]) -> str:
    """The task's name for readers."""
    return shown_task(str(provenance["task"]))


def shown_task(name: str) -> str:
    """A task's name for readers."""
    return shown_names([name])[name]


def unit_of(provenance: Mapping[str, Any]) -> str:
    """The unit of the metric."""
    metric = str(provenance["metric"])
    return UNITS.get(metric, metric)


def largest_names(table: pd.DataFrame, most: int) -> list[str]:
    """The rows' names with the largest effects, in the order of the table, each once."""
    largest = table.groupby("name", sort=False)["effect"].agg(lambda each: each.abs().max()).nlargest(most)
    return [name for name in dict.fromkeys(table["name"]) if name in largest.index]


def largest_first(table: pd.DataFrame, column: str, first: pd.Series | None = None) -> pd.DataFrame:
    """The rows by the size of a column; those marked as `first` before all others."""
    order = table.assign(_first=True if first is None else first, _size=table[column].abs())
    return order.sort_values(["_first", "_size"], ascending=False, kind="stable").drop(columns=["_first", "_size"])


def measured(figure: str, result: Any, *columns: str, needs: Sequence[str] = ()) -> pd.DataFrame:
    """A result's examples, for its figure; refuses a result without what the figure needs, a row, or a column."""
    require(result, ("examples", "summary", *needs), figure, MADE_BY[figure])
    labels = result.labels if "labels" in needs else ()
    return require_rows(result.examples, (*labels, *columns), figure, MADE_BY[figure])


def page_of_table(
    result: Any,
    title: str,
    sentences: Sequence[str],
    table: Table,
    draw: partial[Figure] | None = None,
    *,
    kind: str = "sweep",
    drawn: bool = True,
    before: Sequence[Section] = (),
    reading: Sequence[tuple[str, str]] = (),
    evidence: str = "",
) -> Page:
    """The page of a result that is one figure, what was found, and one table.

    `draw` is of a function of ``interp.plots``, which the page names even where it is not `drawn`. `before` are its
    first sections, `reading` says what its terms mean, `evidence` how much was measured, if not so many examples.
    """
    how, figure = result.provenance, draw.func.__name__ if draw else ""
    metric = str(how.get("metric", ""))
    asked = [
        ("Task", task_of(how) if "task" in how else ""),
        ("Phenomenon", str(how.get("question", ""))),
        ("Measured", METRICS.get(metric, metric)),
        *((name.replace("_", " ").capitalize(), text) for name, text in flatten(how) if name in _ASKED),
    ]
    sections: list[Section] = list(before)
    if draw and drawn and table.n <= MOST_DRAWN:
        sections.append(Picture("Figure", figure, draw, title, inline=True))
    sections += [Sentences("Findings", sentences), table]
    if any(text for _, text in asked):
        sections.append(Facts("What was asked", [(name, text) for name, text in asked if text]))
    if reading:
        sections.append(Facts("How to read this", reading))
    n = result.examples["example"].nunique() if "example" in result.examples else 0
    intervals = any(column.low for column in table.columns)
    return Page(
        title=title,
        kind=kind,
        sections=tuple(sections),
        provenance=how,
        about=about(how, evidence or (counted(n, "example") if n else ""), intervals=intervals),
        cautions=() if how.get("complete", True) else ("Partial: it was interrupted.",),
        call=f"interp.plots.{figure}(result)" if figure else "",
        frames={table.file.removesuffix(".csv"): result.summary()},
        draws={figure: draw} if draw and drawn else {},
    )
