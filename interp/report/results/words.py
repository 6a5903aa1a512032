"""What a result's task, unit and cells are called, and the page of a result that is one table and one figure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from interp.report.drawing import Figure
from interp.report.heads_frames import shown_names
from interp.report.html import flatten
from interp.report.notebook import MOST_DRAWN
from interp.report.sections import Facts, Page, Picture, Section, Sentences, Table
from interp.report.sweep_cells import cell_names as cell_names
from interp.report.words import METRICS, UNITS, about, counted


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


def page_of_table(
    result: Any, title: str, sentences: Sequence[str], table: Table, draw: Callable[[], Figure], figure: str
) -> Page:
    """The page of a result that is one figure, what was found, and one table.

    `figure` is the name of the figure in ``interp.plots`` and in the folder.
    """
    how = result.provenance
    asked = [
        ("Task", task_of(how)),
        ("Phenomenon", str(how.get("question", ""))),
        ("Measured", METRICS.get(str(how["metric"]), str(how["metric"]))),
        *((name.replace("_", " ").capitalize(), text) for name, text in flatten(how) if name in _ASKED),
    ]
    sections: list[Section] = [Picture("Figure", figure, draw, title, inline=True)] if table.n <= MOST_DRAWN else []
    sections += [
        Sentences("Findings", sentences),
        table,
        Facts("What was asked", [(name, text) for name, text in asked if text]),
    ]
    return Page(
        title=title,
        kind="sweep",
        sections=tuple(sections),
        provenance=how,
        about=about(how, counted(result.examples["example"].nunique(), "example")),
        cautions=() if how.get("complete", True) else ("Partial: it was interrupted.",),
        call=f"interp.plots.{figure}(result)",
        frames={"cells": result.summary()},
        draws={figure: draw},
    )


_ASKED = ("site", "direction", "method", "replacement", "min_effect", "alpha", "seed")
