"""What a result's task, unit and cells are called, and the page of a result that is one table and one figure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from interp.errors import InputError
from interp.report.attention_patterns import token_text
from interp.report.drawing import Figure, require, require_rows
from interp.report.heads_frames import shown_names
from interp.report.html import flatten
from interp.report.notebook import MOST_DRAWN
from interp.report.sections import Facts, Page, Picture, Section, Sentences, Table
from interp.report.sweep_cells import cell_names as cell_names
from interp.report.words import METRICS, UNITS, about, counted

_ASKED = ("site", "direction", "method", "replacement", "min_effect", "alpha", "seed")


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


def measured(result: Any, columns: Sequence[str], figure: str, made_by: str) -> pd.DataFrame:
    """A result's table, for its figure.

    Raises:
        InputError: It is another kind of result, or has no row.
    """
    require(result, ("examples", "summary", "provenance"), figure, made_by)
    require_rows(result.examples, columns, figure, made_by)
    table: pd.DataFrame = result.summary()
    return table


def position_names(rows: pd.DataFrame, positions: Sequence[int], tokens: Sequence[str] | None) -> list[str]:
    """The text at each position: that of `tokens`, or of the `rows` of one prompt; its number where neither has any.

    Refuses fewer texts than positions.
    """
    if tokens is None:
        known = {} if "text" not in rows else rows.drop_duplicates("pos").set_index("pos")["text"].dropna()
        return [token_text(known[each]) if each in known else str(each) for each in positions]
    if isinstance(tokens, str) or len(tokens) <= max(positions):
        raise InputError(f"tokens: expected a text for each position up to {max(positions)}, got {len(tokens)}")
    return [token_text(tokens[each]) for each in positions]


def page_of_table(
    result: Any,
    title: str,
    sentences: Sequence[str],
    table: Table,
    draw: Callable[[], Figure] | None = None,
    figure: str = "",
    *,
    kind: str = "sweep",
) -> Page:
    """The page of a result that is one figure, what was found, and one table.

    `figure` is the name of the figure in ``interp.plots`` and in the folder.
    """
    how = result.provenance
    metric = str(how.get("metric", ""))
    asked = [
        ("Task", task_of(how) if "task" in how else ""),
        ("Phenomenon", str(how.get("question", ""))),
        ("Measured", METRICS.get(metric, metric)),
        *((name.replace("_", " ").capitalize(), text) for name, text in flatten(how) if name in _ASKED),
    ]
    sections: list[Section] = []
    if draw is not None and table.n <= MOST_DRAWN:
        sections.append(Picture("Figure", figure, draw, title, inline=True))
    sections += [Sentences("Findings", sentences), table]
    if any(text for _, text in asked):
        sections.append(Facts("What was asked", [(name, text) for name, text in asked if text]))
    n = result.examples["example"].nunique() if "example" in result.examples else 0
    intervals = any(column.low for column in table.columns)
    return Page(
        title=title,
        kind=kind,
        sections=tuple(sections),
        provenance=how,
        about=about(how, counted(n, "example") if n else "", intervals=intervals),
        cautions=() if how.get("complete", True) else ("Partial: it was interrupted.",),
        call=f"interp.plots.{figure}(result)" if figure else "",
        frames={table.file.removesuffix(".csv"): result.summary()},
        draws={} if draw is None else {figure: draw},
    )
