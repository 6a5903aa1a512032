"""What was asked of heads? The few facts that a page says; the rest stands under `How it was made`.

What does a head's card on the page need? Every row of the dossier, with the sentence that says what was found.

How does a reader see it all? One self-contained HTML page: no network, no model, no server.

1. The verdicts come first, in sentences; then every head at a glance. What few will read is folded away.
2. Every figure is a table with colours or a sentence with shaded words, so that it suits a light
   and a dark page, a telephone, a printer and a screen reader. Without its script the page can be read; with it, a head
   opens its card, and heads can be asked where they look.
3. ``document.py`` makes it a document that asks for nothing.

What does a notebook show of a dossier? What each task's heads do, and the findings with their numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from interp.report.attention_words import AttendingHead, attending_heads, scored
from interp.report.glance import MOST_DRAWN, Glance, with_interval
from interp.report.heads_figures import overview
from interp.report.heads_frames import (
    FINDINGS,
    FURTHER_HEAD_COLUMNS,
    HEAD_COLUMNS,
    TASK_COLUMNS,
    VERDICTS,
    HeadsFrames,
    Verdict,
    check_frames,
    layer_by_head,
    with_shown_names,
)
from interp.report.heads_reading import how_found, how_to_read, replication_sentence, replication_table
from interp.report.heads_sentences import TaskSummary, head_sentence, leads, reason_sentence, summarise
from interp.report.heatmap import Heatmap, heatmap, reach
from interp.report.html import attention_data, columnar, flatten, model_with_hash, render
from interp.report.sortable import Table, sortable
from interp.report.words import UNITS, counted, left_out

_SAID = ("model", "seed", "device")


def asked(tasks: pd.DataFrame, provenance: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The tasks, the model with its hash, the seed and the device, as far as they are known.

    Args:
        tasks: One row per task: ``task``, ``n_units`` and ``n_clusters``.
        provenance: As ``document.flatten`` gives it.
    """
    counts = tasks[["task", "n_units", "n_clusters"]].itertuples(index=False, name=None)
    known = short_names(provenance)
    known |= model_with_hash(known)
    facts = [("Tasks", ", ".join(f"{task} ({n} units in {clusters} clusters)" for task, n, clusters in counts))]
    return facts + [(key.capitalize(), known[key]) for key in _SAID if key in known]


def short_names(provenance: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The facts by the last part of their names, the first of each: runs of several tasks keep them a level down."""
    return {name.rsplit(".", 1)[-1]: text for name, text in reversed(provenance)}


def for_cards(report: HeadsFrames) -> pd.DataFrame:
    """The dossier's frame, with the heads' names and, as ``sentence``, what each row says.

    Args:
        report: With the tasks named for readers.
    """
    names = [f"{layer}.{head}" for layer, head in zip(report.frame["layer"], report.frame["head"], strict=True)]
    said = [_says(row) for _, row in report.frame.iterrows()]
    return report.frame.assign(name=names, sentence=said)


def _says(row: pd.Series) -> str:
    if row["verdict"] in FINDINGS:
        return head_sentence(row)
    reason = reason_sentence(row)
    return f"{reason}." if reason else ""


def of_tasks(report: HeadsFrames) -> list[dict[str, Any]]:
    """Of every task, in their order: what the numbers of its heads are, and how far the effects reach."""
    return [_of_task(task, report.frame[report.frame["task"] == task["task"]]) for _, task in report.tasks.iterrows()]


def _of_task(task: pd.Series, heads: pd.DataFrame) -> dict[str, Any]:
    present = [VERDICTS[str(name)] for name in heads["verdict"].unique()]
    ends = heads[["effect", "effect_low", "effect_high", "exchange", "exchange_low", "exchange_high"]]
    return {
        "name": str(task["task"]),
        "unit": UNITS.get(task["metric"], str(task["metric"])),
        "relation": str(heads["relation"].iloc[0]),
        "reach": reach(ends),
        "verdicts": {each.name: {"slug": each.slug, "symbol": each.symbol} for each in present},
    }


_FEW = 3
"""Findings of a task that are not folded away."""
_ROWS = 200
"""Of a table, those that stand in the page itself; its script has all."""
_NUMBERED = 16
"""Heads of a layer up to which a heatmap has room for numbers."""
_FIRST = ("task", "verdict")
_ELSEWHERE = ("layer", "head", "query", "metric", *_FIRST)
"""Columns that have another name or place in the table, or that each task says once."""


@dataclass(frozen=True)
class Grid:
    """Which head stands where: layers down, heads across; ``task`` is the number on the page of the task ``name``."""

    name: str
    task: int
    layers: tuple[int, ...]
    heads: tuple[int, ...]


@dataclass(frozen=True)
class TaskView:
    """What the page shows of one task; of its sentences, ``further`` are folded away."""

    name: str
    unit: str
    facts: tuple[tuple[str, str], ...]
    summary: TaskSummary
    shown: tuple[str, ...]
    further: tuple[str, ...]
    grid: Grid
    verdicts: tuple[tuple[Verdict | None, ...], ...]
    excess: Heatmap
    effect: Heatmap
    feature: str
    probe: Heatmap
    top: AttendingHead | None


def render_page(
    report: HeadsFrames,
    *,
    command: str | None = None,
    cards: Sequence[str] = (),
) -> str:
    """The whole report as one HTML document.

    Args:
        report: The frames of a finished dossier.
        command: The command line that asked for it, shown for whoever wants to repeat it.
        cards: The heads, such as ``2.1``, that have a page of their own in the folder ``cards`` beside this one.

    Raises:
        InputError: If the frames are not a dossier's; see ``frames.check_frames``.
    """
    check_frames(report)
    provenance = flatten(report.provenance)
    report = with_shown_names(report)
    summaries, heads, maps = summarise(report), for_cards(report), report.attention_maps
    views = _task_views(report, summaries)
    rest = (each for each in HEAD_COLUMNS + FURTHER_HEAD_COLUMNS if each not in _ELSEWHERE)
    columns = ("name", *_FIRST, *rest)
    return render(
        "page.html",
        about=_about(report, provenance),
        how_found=how_found(report.provenance),
        left_out=left_out(report.provenance),
        leads=leads(report, summaries),
        asked=asked(report.tasks, provenance),
        command=command,
        tasks=views,
        size="" if len(views[0].grid.heads) <= _NUMBERED else "tiny",
        cards=cards,
        verdicts=list(VERDICTS.values()),
        reading=how_to_read(report),
        replication=None if report.replication.empty else _replication(report),
        heads_table=sortable(heads.head(_ROWS), columns),
        heads=columnar(heads, columns),
        of_tasks=of_tasks(report),
        attention_data=attention_data(maps[maps["task"] == task] for task in report.tasks["task"]),
        tasks_table=sortable(report.tasks, TASK_COLUMNS),
        provenance=provenance,
    )


def _replication(report: HeadsFrames) -> tuple[str, Table]:
    table = replication_table(report.replication)
    return replication_sentence(table), sortable(table, tuple(table.columns))


def _about(report: HeadsFrames, provenance: list[tuple[str, str]]) -> str:
    """What was looked at, in one line."""
    known = short_names(provenance)
    n_heads = len(report.frame[["layer", "head"]].drop_duplicates())
    of_model = f" of the model {known['model']}" if "model" in known else ""
    parts = [f"{counted(n_heads, 'head')}{of_model}"]
    parts.append(counted(len(report.tasks), "task"))
    return "; ".join(parts)


def _task_views(report: HeadsFrames, summaries: Sequence[TaskSummary]) -> list[TaskView]:
    maps = scored(report.attention_maps)
    return [
        _task_view(report, number, task, summary, attending_heads(maps, task["task"]))
        for number, ((_, task), summary) in enumerate(zip(report.tasks.iterrows(), summaries, strict=True))
    ]


def _task_view(
    report: HeadsFrames, number: int, task: pd.Series, summary: TaskSummary, top: Sequence[AttendingHead]
) -> TaskView:
    found = summary.findings
    verdicts = layer_by_head(report.frame, task["task"], "verdict")
    return TaskView(
        name=str(task["task"]),
        unit=UNITS.get(task["metric"], task["metric"]),
        facts=_task_facts(task),
        summary=summary,
        shown=found[:_FEW] or ("No head has a finding for this task.", *summary.open_questions),
        further=(*found[_FEW:], *summary.open_questions) if found else (),
        grid=Grid(str(task["task"]), number, tuple(verdicts.index), tuple(verdicts.columns)),
        verdicts=tuple(tuple(VERDICTS.get(str(name)) for name in row) for row in verdicts.to_numpy()),
        excess=heatmap(report.frame, task["task"], "excess", "attention"),
        effect=heatmap(report.frame, task["task"], "effect", "effect"),
        feature=_feature(report.frame[report.frame["task"] == task["task"]]),
        probe=heatmap(report.frame, task["task"], "probe_excess", "attention"),
        top=top[0] if top else None,
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


def heads_glance(report: HeadsFrames) -> Glance:
    """What a notebook shows of ``interp.heads``."""
    named = with_shown_names(report)
    table = found_first(named.frame)
    return Glance(
        f"Which heads track what: {', '.join(named.tasks['task'])}",
        [*left_out(report.provenance), *(_in_short(each, named.frame) for each in summarise(report))],
        evidence_table(table),
        len(report.frame),
        ".frame",
        report.provenance,
        "interp.plots.overview(report)",
        (lambda: overview(report)) if len(report.frame) <= MOST_DRAWN else None,
    )


def _in_short(task: TaskSummary, frame: pd.DataFrame) -> str:
    """A task's headline; where no head's attention or effect was found, also what is open."""
    found = frame.loc[frame["task"] == task.task, "verdict"].isin(FINDINGS).any()
    more = () if found else (*filter(None, [task.untested]), *task.open_questions)
    return " ".join([f"{task.task}: {task.headline}", *more])


def found_first(frame: pd.DataFrame) -> pd.DataFrame:
    """A dossier's rows by their verdicts, then by the size of the effect."""
    order = frame.assign(_verdict=frame["verdict"].map(list(VERDICTS).index), _size=-frame["effect"].abs())
    return order.sort_values(["_verdict", "_size"], kind="stable").drop(columns=["_verdict", "_size"])


def evidence_table(table: pd.DataFrame) -> pd.DataFrame:
    """Attention, resampling and probe on each row, with intervals."""
    units = table["metric"].map(lambda metric: UNITS.get(metric, metric))
    effects = with_interval(table, "effect", "effect_low", "effect_high")
    marks = table["verdict"].map(lambda verdict: f"{VERDICTS[verdict].symbol} {verdict}")
    return pd.DataFrame(
        {
            "head": [f"{layer}.{head}" for layer, head in zip(table["layer"], table["head"], strict=True)],
            "task": table["task"],
            "verdict": marks,
            "excess attention": with_interval(table, "excess", "excess_low", "excess_high"),
            "effect of resampling": [f"{text} {unit}" for text, unit in zip(effects, units, strict=True)],
            "probe, excess": with_interval(table, "probe_excess", "probe_excess_low", "probe_excess_high"),
        }
    )
