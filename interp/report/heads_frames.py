"""The verdicts as a reader sees them, the columns of a dossier, and names of tasks for readers and for files.

Every verdict has one symbol and one meaning, the same in pictures, tables and sentences. A task that was read from a
file is named by its path: headings, tables, figures and sentences show the file's stem, the provenance the path.
"""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from interp.errors import InputError
from interp.report.page_texts import texts
from interp.report.words import UNITS


@dataclass(frozen=True)
class Verdict:
    """One of the verdicts that a head can get for a task.

    Attributes:
        name: As it stands in the column ``verdict``.
        symbol: One character, for tables.
        marker: The same shape as a matplotlib marker.
        filled: Whether the shape is filled.
        meaning: What it says about a head, for the legend.
    """

    name: str
    symbol: str
    marker: str
    filled: bool
    meaning: str

    @property
    def slug(self) -> str:
        """The name as a CSS class."""
        return self.name.replace(",", "").replace(" ", "-")

    @property
    def marked(self) -> str:
        """Its symbol and its name."""
        return f"{self.symbol} {self.name}"


VERDICTS = {
    each["name"]: Verdict(**{**each, "meaning": " ".join(each["meaning"].split())}) for each in texts()["verdicts"]
}
"""By name, the strongest first."""
FINDINGS = tuple(VERDICTS)[: list(VERDICTS).index("encodes, unused")]
"""Verdicts that get a sentence for each head."""


HEAD_COLUMNS = (
    *("layer", "head", "task", "query", "attention", "attention_baseline", "excess_p_adjusted"),
    *("effect", "effect_low", "effect_high", "effect_p_adjusted"),
    *("mean_replacement", "mean_effect", "mean_effect_low", "mean_effect_high", "mean_effect_p_adjusted"),
    *("accuracy_base", "accuracy_ablated", "exchange", "exchange_low", "exchange_high", "exchange_p_adjusted"),
    *("probe", "probe_control", "selectivity", "probe_excess_p_adjusted", "verdict"),
)
FURTHER_HEAD_COLUMNS = (
    *("reason", "baseline", "baseline_overlap", "excess", "n_to_decide"),
    *("attention_value", "attention_values", "n_attention_values", "attention_self", "attention_first"),
    *("min_attention", "min_effect", "metric", "relation"),
    *("n_units", "n_clusters", "n_effective", "n_attention_clusters", "n_excluded"),
    *("n_templates", "n_templates_attended"),
    *("feature", "probe_low", "probe_high", "probe_baseline", "probe_baseline_score", "probe_excess"),
    *("representation", "min_probe", "min_exchange", "exchange_state"),
    *("attention_state", "effect_state", "specificity", "partners", "group"),
    *("group_effect", "group_low", "group_high", "group_share", "group_share_low", "group_share_high"),
)
TASK_COLUMNS = (
    *("task", "description", "n_units", "n_examples", "n_clusters", "base", "base_low", "base_high"),
    *("accuracy_base", "accuracy_items", "query", "metric", "n_excluded", "n_untagged", "dropped", "coverage"),
)
ATTENTION_COLUMNS = (
    *("task", "rank", "layer", "head", "example", "query_pos", "key_pos", "weight", "token", "is_query", "is_related"),
)


_NEEDED = {"cells": HEAD_COLUMNS + FURTHER_HEAD_COLUMNS, "tasks": TASK_COLUMNS, "attention_maps": ATTENTION_COLUMNS}


def check_frames(report: Any) -> None:
    """Refuse a dossier that cannot be shown, before anything is written.

    Raises:
        InputError: A column is missing, a verdict is unknown, a head stands twice, or a task is not described.
    """
    for name, columns in _NEEDED.items():
        require_columns(f"the report's `{name}`", getattr(report, name), columns, "interp.heads")
    require_verdicts("the report's verdicts", report.cells)
    twice = report.cells.duplicated(["layer", "head", "task"])
    if twice.any():
        cell = report.cells.loc[twice, ["layer", "head", "task"]].iloc[0].to_dict()
        raise InputError(f"the report's `cells`: expected one row per layer, head and task, got two for {cell}")
    if undescribed := sorted(set(report.cells["task"]) - set(report.tasks["task"])):
        raise InputError(
            f"the report's `tasks`: expected a row for every task of the heads, got none for {', '.join(undescribed)}"
        )


def require_columns(what: str, frame: pd.DataFrame, columns: Sequence[str], made_by: str) -> None:
    """Refuse a frame that lacks a column."""
    if missing := [column for column in columns if column not in frame.columns]:
        raise InputError(
            f"{what}: expected the columns {', '.join(columns)}, got no {', '.join(missing)}; build it with {made_by}"
        )


def require_verdicts(what: str, frame: pd.DataFrame) -> None:
    """Refuse verdicts that have no meaning."""
    if unknown := sorted(set(frame["verdict"].astype(str)) - set(VERDICTS)):
        raise InputError(
            f"{what}: expected {'; '.join(VERDICTS)}; got {'; '.join(unknown)}; add a new one to "
            "interp/report/page_texts.toml"
        )


def head_names(frame: pd.DataFrame) -> list[str]:
    """``2.1`` for head 1 of layer 2, row by row."""
    return [f"{layer}.{head}" for layer, head in zip(frame["layer"], frame["head"], strict=True)]


def marked(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows with their verdicts as a table shows them (``mark``), and the ``unit`` of their metric."""
    marks = [VERDICTS[name].marked for name in frame["verdict"]]
    return frame.assign(mark=marks, unit=[UNITS.get(metric, metric) for metric in frame["metric"]])


def layer_by_head(frame: pd.DataFrame, task: str, column: str) -> pd.DataFrame:
    """One column of a task's rows as a table: layers down, heads across; what was not measured is missing."""
    table = frame[frame["task"] == task].pivot(index="layer", columns="head", values=column)
    return table.reindex(index=sorted(frame["layer"].unique()), columns=sorted(frame["head"].unique()))


_BLIMP = "blimp:"
_LONGEST = 120
"""Characters of a name for readers: a longer one would fill the page."""


def with_shown_names(report: Any) -> Any:
    """A dossier or a card with every task named for readers; its examples and provenance stay as they are."""
    names = shown_names([str(task) for task in report.tasks["task"]])
    frames = frames_by_task(report).items()
    return replace(report, **{name: each.assign(task=each["task"].map(names)) for name, each in frames})


def frames_by_task(report: Any) -> dict[str, pd.DataFrame]:
    """The frames of a dossier or a card that tell tasks apart, by their names; without the examples."""
    frames = {name: each for name, each in vars(report).items() if isinstance(each, pd.DataFrame)}
    return {name: each for name, each in frames.items() if "task" in each and name != "examples"}


def shown_names(tasks: Sequence[str]) -> dict[str, str]:
    """A distinct name for each task: of a path its last part, with as many folders as tell it from the others.

    Of a name that is too long to read it is the beginning, with an ellipsis.
    """
    names = {task: _shown_name(task, [other for other in tasks if other != task]) for task in tasks}
    taken = set(names.values())
    for task, name in names.items():
        if len(name) > _LONGEST:
            endings = (f"…{n}" if n > 1 else "…" for n in itertools.count(1))
            beginnings = (name[: _LONGEST - len(ending)] + ending for ending in endings)
            names[task] = next(each for each in beginnings if each not in taken)
            taken.add(names[task])
    return names


def file_names(tasks: Sequence[str]) -> list[str]:
    """A distinct name for each task that every file system takes: a path's last part, in plain letters."""
    names: list[str] = []
    for task in tasks:
        plain = re.sub(r"[^a-z0-9_]+", "-", Path(task).stem.lower().removeprefix(_BLIMP)).strip("-")[:60]
        candidates = (f"{plain or 'task'}-{n}" if n > 1 else plain or "task" for n in itertools.count(1))
        names.append(next(name for name in candidates if name not in names))
    return names


def _shown_name(task: str, others: Sequence[str]) -> str:
    endings = (_ending(task, n) for n in range(1, len(Path(task).parts) + 1))
    taken = ({_ending(other, n) for other in others} for n in itertools.count(1))
    return next((name for name, theirs in zip(endings, taken, strict=False) if name not in theirs), task)


def _ending(task: str, n_parts: int) -> str:
    """The last parts of a file's path, without ``.jsonl``; another task's name as it is."""
    if not task.startswith(_BLIMP):
        return task
    path = Path(task.removeprefix(_BLIMP).removesuffix(".jsonl"))
    return _BLIMP + "/".join(path.parts[-n_parts:])
