"""How does a reader see it all? One self-contained HTML page: no network, no model, no server.

1. Every figure is a table with colours or a sentence with shaded words, so that it suits a light
   and a dark page, a telephone, a printer and a screen reader.
2. What was asked and the verdicts at a glance come first; what few will read is folded away.
3. ``document.py`` makes it a document that asks for nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from interp.report.attended import AttendingHead, attending_heads
from interp.report.development import DevelopmentFrames, development_table, partial
from interp.report.document import flatten, model_with_hash, render
from interp.report.frames import FURTHER_HEAD_COLUMNS, HEAD_COLUMNS, TASK_COLUMNS, HeadsFrames, check_frames
from interp.report.heatmap import Heatmap, heatmap
from interp.report.metrics import UNITS
from interp.report.names import with_shown_names
from interp.report.reading import how_to_read
from interp.report.replicated import replication_sentence, replication_table
from interp.report.sentences import TaskSummary, reason_of, summarise
from interp.report.sortable import Table, sortable
from interp.report.verdicts import VERDICTS, Verdict

_FEW = 3
"""Findings of a task that are not folded away."""
_FIRST = ("task", "verdict")
_ELSEWHERE = ("layer", "head", "query", "metric", *_FIRST)
"""Columns that have another name or place in the table, or that each task says once."""


@dataclass(frozen=True)
class TaskView:
    """What the page shows of one task; of its sentences, ``further`` are folded away."""

    name: str
    unit: str
    facts: tuple[tuple[str, str], ...]
    summary: TaskSummary
    shown: tuple[str, ...]
    further: tuple[str, ...]
    excess: Heatmap
    effect: Heatmap
    feature: str
    probe: Heatmap
    heads: tuple[AttendingHead, ...]


def render_page(
    report: HeadsFrames,
    *,
    command: str | None = None,
    development: DevelopmentFrames | None = None,
    cards: Sequence[str] = (),
) -> str:
    """The whole report as one HTML document.

    Args:
        report: The frames of a finished dossier.
        command: The command line that asked for it, shown for whoever wants to repeat it.
        development: Where `report` is the last of a training's checkpoints: the frames of all of them.
        cards: The heads, such as ``2.1``, that have a page of their own in the folder ``cards`` beside this one.

    Raises:
        InputError: If the frames are not a dossier's; see ``frames.check_frames``.
    """
    check_frames(report)
    provenance = flatten(report.provenance)
    report = with_shown_names(report)
    named = report.frame.assign(name=[f"{row.layer}.{row.head}" for row in report.frame.itertuples()])
    rest = (each for each in HEAD_COLUMNS + FURTHER_HEAD_COLUMNS if each not in _ELSEWHERE)
    columns = ("name", *_FIRST, *rest)
    return render(
        "page.html",
        asked=_asked(report, provenance),
        command=command,
        tasks=_task_views(report),
        overview=_overview(report.frame, list(report.tasks["task"])),
        cards=cards,
        verdicts=list(VERDICTS.values()),
        reading=how_to_read(report),
        development=None if development is None else _development(development),
        replication=None if report.replication.empty else _replication(report),
        partial="" if development is None else partial(development),
        heads_table=sortable(named, columns),
        tasks_table=sortable(report.tasks, TASK_COLUMNS),
        provenance=provenance,
    )


def _development(development: DevelopmentFrames) -> Table:
    table = development_table(development)
    return sortable(table, tuple(table.columns))


def _replication(report: HeadsFrames) -> tuple[str, Table]:
    table = replication_table(report.replication)
    return replication_sentence(table), sortable(table, tuple(table.columns))


def _asked(report: HeadsFrames, provenance: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The few facts that belong at the top; the rest stands under `How it was made`."""
    counts = report.tasks[["task", "n_units", "n_clusters"]].itertuples(index=False, name=None)
    # Runs of several tasks keep such facts a level down.
    first = {name.rsplit(".", 1)[-1]: text for name, text in reversed(provenance)}
    first |= model_with_hash(first)
    facts = [("Tasks", ", ".join(f"{task} ({n} units in {clusters} clusters)" for task, n, clusters in counts))]
    return facts + [(key.capitalize(), first[key]) for key in ("model", "seed", "ablation", "device") if key in first]


def _task_views(report: HeadsFrames) -> list[TaskView]:
    return [
        _task_view(report, task, summary)
        for (_, task), summary in zip(report.tasks.iterrows(), summarise(report), strict=True)
    ]


def _task_view(report: HeadsFrames, task: pd.Series, summary: TaskSummary) -> TaskView:
    found = summary.findings
    return TaskView(
        name=str(task["task"]),
        unit=UNITS.get(task["metric"], task["metric"]),
        facts=_task_facts(task),
        summary=summary,
        shown=found[:_FEW] or ("No head has a finding for this task.", *summary.open_questions),
        further=(*found[_FEW:], *summary.open_questions) if found else (),
        excess=heatmap(report.frame, task["task"], "excess", "attention"),
        effect=heatmap(report.frame, task["task"], "effect", "effect"),
        feature=_feature(report.frame[report.frame["task"] == task["task"]]),
        probe=heatmap(report.frame, task["task"], "probe_excess", "attention"),
        heads=attending_heads(report.attention_maps, task["task"]),
    )


def _feature(heads: pd.DataFrame) -> str:
    """What was probed for; empty where nothing was."""
    return "" if heads["probe"].isna().all() else str(heads["feature"].iloc[0])


def _task_facts(task: pd.Series) -> tuple[tuple[str, str], ...]:
    facts = (
        ("Question", task["description"]),
        ("Looks from", task["query"]),
        ("Left out", task["dropped"]),
        ("Coverage", task["coverage"]),
    )
    return tuple((label, str(text)) for label, text in facts if pd.notna(text) and str(text))


def _overview(frame: pd.DataFrame, tasks: list[str]) -> list[tuple[str, list[tuple[str, Verdict | None, str]]]]:
    """One row per head: its name, and for every task its verdict, if any, with what hovering over it says."""
    rows = []
    for (layer, head), found in frame.groupby(["layer", "head"]):
        by_task = found.set_index("task")
        rows.append((f"{layer}.{head}", [_overview_cell(f"{layer}.{head}", task, by_task) for task in tasks]))
    return rows


def _overview_cell(head: str, task: str, by_task: pd.DataFrame) -> tuple[str, Verdict | None, str]:
    if task not in by_task.index:
        return task, None, f"Head {head}, {task}: not measured"
    row = by_task.loc[task]
    verdict, reason = VERDICTS[str(row["verdict"])], reason_of(row)
    return task, verdict, f"Head {head}, {task}: {verdict.name}{f' ({reason})' if reason else ''}"
