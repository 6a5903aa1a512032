"""What does a report need? The data frames of a finished dossier, checked once.

The report never sees a model: anything with these attributes can be drawn, for example
``interp.methods.dossier.HeadsReport``, or frames read back from a saved folder.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import pandas as pd

from interp.errors import InputError
from interp.report.verdicts import VERDICTS

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
    *("minimum_attention", "minimum_effect", "metric", "relation"),
    *("n_units", "n_clusters", "n_attention_clusters", "n_excluded", "n_templates", "n_templates_attended"),
    *("feature", "probe_low", "probe_high", "probe_baseline", "probe_baseline_score", "probe_excess"),
    *("representation", "minimum_probe", "exchange_minimum", "exchange_state"),
    *("attention_state", "effect_state", "specificity", "partners", "group"),
    *("group_effect", "group_low", "group_high", "group_share", "group_share_low", "group_share_high"),
)
TASK_COLUMNS = (
    "task",
    "description",
    "n_units",
    "n_examples",
    "n_clusters",
    "base",
    "base_low",
    "base_high",
    "accuracy_base",
    "accuracy_items",
    "query",
    "metric",
    "n_excluded",
    "n_untagged",
    "dropped",
    "coverage",
)
ATTENTION_COLUMNS = (
    "task",
    "rank",
    "layer",
    "head",
    "example",
    "query_pos",
    "key_pos",
    "weight",
    "token",
    "is_query",
    "is_related",
)


@runtime_checkable
class HeadsFrames(Protocol):
    """The frames of a dossier; see ``interp.methods.dossier.HeadsReport`` for every column."""

    @property
    def frame(self) -> pd.DataFrame:
        """One row per layer, head and task: the evidence and the verdict."""

    @property
    def examples(self) -> pd.DataFrame:
        """One row per layer, head, task and example: the effects."""

    @property
    def tasks(self) -> pd.DataFrame:
        """One row per task: what was asked and how well the unablated model does."""

    @property
    def groups(self) -> pd.DataFrame:
        """One row per task and head that was ablated together with others."""

    @property
    def replication(self) -> pd.DataFrame:
        """One row per task, verdict and model: which heads get it; empty without other models."""

    @property
    def attention_maps(self) -> pd.DataFrame:
        """One row per top head, example, query and key position up to the query that is scored."""

    @property
    def provenance(self) -> Mapping[str, Any]:
        """How the numbers were made."""


@dataclass(frozen=True)
class Dossier:
    """The frames of a dossier, put together here; attributes as in ``HeadsFrames``."""

    frame: pd.DataFrame
    examples: pd.DataFrame
    tasks: pd.DataFrame
    groups: pd.DataFrame
    replication: pd.DataFrame
    attention_maps: pd.DataFrame
    provenance: Mapping[str, Any]


def check_frames(report: HeadsFrames) -> None:
    """Refuse frames that could not be drawn, before anything is written.

    Raises:
        InputError: If a column is missing, a verdict is unknown, a cell of (layer, head, task)
            stands twice, or a task of the heads is not described among the tasks.
    """
    _check_columns("frame", report.frame, HEAD_COLUMNS + FURTHER_HEAD_COLUMNS)
    _check_columns("tasks", report.tasks, TASK_COLUMNS)
    _check_columns("attention_maps", report.attention_maps, ATTENTION_COLUMNS)
    unknown = sorted(set(report.frame["verdict"].astype(str)) - set(VERDICTS))
    if unknown:
        raise InputError(
            f"the report's verdicts: expected {', '.join(VERDICTS)}, got {', '.join(unknown)}; "
            "add the new verdict to interp/report/verdicts.py"
        )
    twice = report.frame.duplicated(["layer", "head", "task"])
    if twice.any():
        cell = report.frame.loc[twice, ["layer", "head", "task"]].iloc[0].to_dict()
        raise InputError(f"the report's heads: expected one row per layer, head and task, got two for {cell}")
    undescribed = sorted(set(report.frame["task"]) - set(report.tasks["task"]))
    if undescribed:
        raise InputError(
            "the report's tasks: expected a row for every task of the heads, "
            f"got none for {', '.join(undescribed)}; add it to `tasks`"
        )


def _check_columns(name: str, frame: pd.DataFrame, columns: tuple[str, ...]) -> None:
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise InputError(
            f"the report's `{name}`: expected the columns {', '.join(columns)}, "
            f"got none called {', '.join(missing)}; build it with interp.heads"
        )


def layer_by_head(frame: pd.DataFrame, task: str, column: str) -> pd.DataFrame:
    """One task's values as a table: layers down, heads across; what was not measured is missing.

    Args:
        frame: One row per layer, head and task.
        task: The task to show.
        column: The column of `frame` to show.
    """
    table = frame[frame["task"] == task].pivot(index="layer", columns="head", values=column)
    return table.reindex(index=sorted(frame["layer"].unique()), columns=sorted(frame["head"].unique()))
