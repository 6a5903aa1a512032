"""What are a result's task, its unit and its cells called?"""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from interp.report.heads_frames import shown_names
from interp.report.sweep_frames import Names
from interp.report.words import UNITS

_NO_TOKENS = pd.DataFrame(columns=["pos", "token", "share"])


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


def cell_names(table: pd.DataFrame, labels: Iterable[str]) -> list[str]:
    """What each row's cell is called, by the columns that name it."""
    names, columns = Names(_NO_TOKENS), list(labels)
    return [names.cell(dict(zip(columns, row, strict=True))) for row in table[columns].itertuples(index=False)]


def largest_names(table: pd.DataFrame, most: int) -> list[str]:
    """The rows' names with the largest effects, in the order of the table, each once."""
    largest = table.groupby("name", sort=False)["effect"].agg(lambda each: each.abs().max()).nlargest(most)
    return [name for name in dict.fromkeys(table["name"]) if name in largest.index]
