"""What is the answer, in one sentence a task? The strongest finding, and the names of the other heads with one."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from interp.report.amounts import listed
from interp.report.frames import HeadsFrames
from interp.report.sentences import TaskSummary, strongest_first, verdict_sentence


@dataclass(frozen=True)
class Lead:
    """Of one task."""

    task: str
    finding: str
    others: str


def leads(report: HeadsFrames, summaries: Sequence[TaskSummary]) -> tuple[Lead, ...]:
    """Of every task, in their order, what stands at the top of the page.

    Args:
        report: With the tasks named for readers.
        summaries: Its sentences; see ``sentences.summarise``.
    """
    return tuple(
        _lead(summary.task, strongest_first(report.frame[report.frame["task"] == summary.task]), summary.open_questions)
        for summary in summaries
    )


def _lead(task: str, found: pd.DataFrame, open_questions: tuple[str, ...]) -> Lead:
    if found.empty:
        return Lead(task, " ".join(("No head has a finding.", *open_questions[:1])), "")
    return Lead(task, f"{verdict_sentence(found.iloc[0])}.", _others(found.iloc[1:]))


def _others(found: pd.DataFrame) -> str:
    names = found.assign(name=[f"{row.layer}.{row.head}" for row in found.itertuples()])
    groups = [f"“{verdict}”: {listed(list(rows['name']))}" for verdict, rows in names.groupby("verdict", sort=False)]
    return f"Also {'; '.join(groups)}." if groups else ""
