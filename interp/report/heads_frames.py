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


VERDICTS = {
    verdict.name: verdict
    for verdict in (
        Verdict(
            "tracks",
            "★",
            "*",
            True,
            "looks at the related word, the task needs it, and what it reads there turns the answer; where the task "
            "names a feature, that can be read from what it writes",
        ),
        Verdict(
            "attends and causal",
            "●",
            "o",
            True,
            "looks at the related word, and the task needs it; something that tracking takes is not shown",
        ),
        Verdict(
            "causal, by another route",
            "◆",
            "D",
            True,
            "the task needs what it writes; it looks at the related word by less than the minimum beyond a baseline, "
            "or what it reads there does not turn the answer by the minimum",
        ),
        Verdict("causal", "■", "s", True, "the task needs what it writes; its attention is not testable"),
        Verdict(
            "needed",
            "⬟",
            "p",
            True,
            "the task needs what it writes; where it looks, or whether that turns the answer, is undecided",
        ),
        Verdict(
            "redundant",
            "▲",
            "^",
            True,
            "others stand in for it: the task needs one of the set that is named, and hardly misses any of them alone",
        ),
        Verdict(
            "general",
            "✚",
            "P",
            True,
            "ablating it costs every task that the model can do, and on some it is shown not to look at the related "
            "word",
        ),
        Verdict(
            "attends, not causal",
            "○",
            "o",
            False,
            "looks at the related word; the effect of ablating it is smaller than the minimum that counts",
        ),
        Verdict("opposes", "▼", "v", True, "ablating it helps the task"),
        Verdict(
            "encodes, unused",
            "◇",
            "D",
            False,
            "the feature can be read there; ablating the head costs less than the minimum that counts, and it looks at "
            "the related word by less than the minimum beyond a baseline, or that is not testable",
        ),
        Verdict("undecided", "?", r"$\mathbf{?}$", True, "the data do not decide"),
        Verdict(
            "none",
            "·",
            ".",
            False,
            "its effect is shown to be smaller than the minimum that counts, and so is its attention, or that is not "
            "testable; smaller than the minimum is not nothing",
        ),
    )
}
FEWEST_CLUSTERS = 30
"""Clusters that a verdict needs, as ``interp.claims.bootstrap`` has it."""
MORE_CLUSTERS = "draw more units, or give each its finest lexical draw as cluster, such as subject and verb"
"""What to do where there are fewer."""
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
    *("n_units", "n_clusters", "n_attention_clusters", "n_excluded", "n_templates", "n_templates_attended"),
    *("feature", "probe_low", "probe_high", "probe_baseline", "probe_baseline_score", "probe_excess"),
    *("representation", "min_probe", "exchange_minimum", "exchange_state"),
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


def layer_by_head(frame: pd.DataFrame, task: str, column: str) -> pd.DataFrame:
    """One task's values as a table: layers down, heads across; what was not measured is missing.

    Args:
        frame: One row per layer, head and task.
        task: The task to show.
        column: The column of `frame` to show.
    """
    table = frame[frame["task"] == task].pivot(index="layer", columns="head", values=column)
    return table.reindex(index=sorted(frame["layer"].unique()), columns=sorted(frame["head"].unique()))


_BLIMP = "blimp:"
_LONGEST = 120
"""Characters of a name for readers: a longer one would fill the page."""


def with_shown_names(report: Any) -> Any:
    """A report with every task named for readers; its examples and provenance stay as they are."""
    names = shown_names([str(task) for task in report.tasks["task"]])
    tables = ("cells", "tasks", "groups", "replication", "attention_maps")
    frames = {each: getattr(report, each) for each in tables}
    return replace(report, **{name: frame.assign(task=frame["task"].map(names)) for name, frame in frames.items()})


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
    for n_parts in range(1, len(Path(task).parts) + 1):
        name = _ending(task, n_parts)
        if name not in {_ending(other, n_parts) for other in others}:
            return name
    return task


def _ending(task: str, n_parts: int) -> str:
    """The last parts of a file's path, without ``.jsonl``; another task's name as it is."""
    if not task.startswith(_BLIMP):
        return task
    path = Path(task.removeprefix(_BLIMP).removesuffix(".jsonl"))
    return _BLIMP + "/".join(path.parts[-n_parts:])
