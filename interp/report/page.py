"""How does a reader see it all? One self-contained HTML page: no network, no model, no server.

1. Every figure is a table with colours or a sentence with shaded words, so that it suits a light
   and a dark page, a telephone, a printer and a screen reader.
2. Jinja2 escapes everything that comes from data: a token such as ``<script>`` stays text.
3. The page forbids itself the network by a content security policy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined

from interp.report.attended import AttendingHead, attending_heads
from interp.report.frames import FURTHER_HEAD_COLUMNS, HEAD_COLUMNS, TASK_COLUMNS, HeadsFrames, check_frames
from interp.report.heatmap import Heatmap, heatmap
from interp.report.sentences import UNITS, TaskSummary, summarise
from interp.report.verdicts import VERDICTS, Verdict

_CAPTIONS = {
    "attention_q": "attention q",
    "baseline": "which baseline",
    "attention_baseline": "best baseline",
    "effect_low": "effect, low",
    "effect_high": "effect, high",
    "effect_q": "effect q",
    "accuracy_base": "accuracy, whole model",
    "accuracy_ablated": "accuracy, ablated",
    "n_to_decide": "units to decide",
    "minimum_effect": "minimum effect",
    "n_units": "units",
    "n_examples": "examples",
    "base_low": "base, low",
    "base_high": "base, high",
}


@dataclass(frozen=True)
class TaskView:
    """What the page shows of one task."""

    name: str
    unit: str
    facts: tuple[tuple[str, str], ...]
    summary: TaskSummary
    excess: Heatmap
    effect: Heatmap
    heads: tuple[AttendingHead, ...]


@dataclass(frozen=True)
class TableCell:
    """One cell of a sortable table: what is read, and the number that it sorts by."""

    text: str
    key: str

    @property
    def numeric(self) -> bool:
        """Whether it is a number."""
        return bool(self.key)


@dataclass(frozen=True)
class Table:
    """A sortable table."""

    columns: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]


def render_page(report: HeadsFrames, *, command: str | None = None) -> str:
    """The whole report as one HTML document.

    Args:
        report: The frames of a finished dossier.
        command: The command line that asked for it, shown for whoever wants to repeat it.

    Raises:
        InputError: If the frames are not a dossier's; see ``frames.check_frames``.
    """
    check_frames(report)
    environment = Environment(
        loader=PackageLoader("interp.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    provenance = flatten(report.provenance)
    return environment.get_template("page.html").render(
        asked=_asked(report, provenance, command),
        tasks=_task_views(report),
        overview=_overview(report.frame, list(report.tasks["task"])),
        verdicts=list(VERDICTS.values()),
        heads_table=_table(report.frame, HEAD_COLUMNS + FURTHER_HEAD_COLUMNS),
        tasks_table=_table(report.tasks, TASK_COLUMNS),
        provenance=provenance,
    )


def flatten(value: Any, name: str = "") -> list[tuple[str, str]]:
    """Nested values as (dotted name, text) pairs, in their order.

    Of a list of mappings, what is the same in all is said once; the rest is named by each one's
    ``task``, or by its number from 0.
    """
    if isinstance(value, Mapping):
        return [pair for key, each in value.items() for pair in flatten(each, f"{name}.{key}" if name else str(key))]
    if isinstance(value, list | tuple) and value and all(isinstance(each, Mapping) for each in value):
        return _flatten_mappings(value, name)
    if isinstance(value, list | tuple):
        return [(name, ", ".join(str(each) for each in value))]
    return [(name, str(value))]


def _flatten_mappings(mappings: Sequence[Mapping[str, Any]], name: str) -> list[tuple[str, str]]:
    each_flat = [dict(flatten(each)) for each in mappings]
    shared = [pair for pair in each_flat[0].items() if all(flat.get(pair[0]) == pair[1] for flat in each_flat)]
    pairs = [(f"{name}.{key}", text) for key, text in shared]
    for number, flat in enumerate(each_flat):
        owner = f"{name}.{flat.get('task', number)}"
        pairs += [(f"{owner}.{key}", text) for key, text in flat.items() if (key, text) not in shared]
    return pairs


def _asked(report: HeadsFrames, provenance: list[tuple[str, str]], command: str | None) -> list[tuple[str, str]]:
    """The few facts that belong at the top; the rest stands under `How it was made`."""
    units = zip(report.tasks["task"], report.tasks["n_units"], strict=True)
    facts = [("Tasks", ", ".join(f"{task} ({n} units)" for task, n in units))]
    for label, key in (("Model", "model"), ("Seed", "seed"), ("Ablation", "ablation"), ("Device", "device")):
        # Runs of several tasks keep such facts a level down.
        found = [text for name, text in provenance if name.rsplit(".", 1)[-1] == key]
        facts += [(label, text) for text in found[:1]]
    return facts if command is None else [*facts, ("Command", command)]


def _task_views(report: HeadsFrames) -> list[TaskView]:
    return [
        TaskView(
            name=str(task["task"]),
            unit=UNITS.get(task["metric"], task["metric"]),
            facts=_task_facts(task),
            summary=summary,
            excess=heatmap(report.frame, task["task"], "excess", "excess"),
            effect=heatmap(report.frame, task["task"], "effect", "effect"),
            heads=attending_heads(report.attention_maps, task["task"]),
        )
        for (_, task), summary in zip(report.tasks.iterrows(), summarise(report), strict=True)
    ]


def _task_facts(task: pd.Series) -> tuple[tuple[str, str], ...]:
    facts = (
        ("Question", task["description"]),
        ("Looks from", task["query"]),
        ("Left out", task["dropped"]),
        ("Coverage", task["coverage"]),
    )
    return tuple((label, str(text)) for label, text in facts if pd.notna(text) and str(text))


def _overview(frame: pd.DataFrame, tasks: list[str]) -> list[tuple[str, list[tuple[str, Verdict | None]]]]:
    """One row per head: its name, and its verdict for every task."""
    table = frame.pivot(index=["layer", "head"], columns="task", values="verdict").sort_index()
    return [
        (f"{layer}.{head}", [(task, VERDICTS.get(str(row.get(task)))) for task in tasks])
        for (layer, head), row in table.iterrows()
    ]


def _table(frame: pd.DataFrame, columns: tuple[str, ...]) -> Table:
    captions = tuple(_CAPTIONS.get(column, column) for column in columns)
    rows = frame[list(columns)].itertuples(index=False, name=None)
    return Table(captions, tuple(tuple(map(_table_cell, columns, row)) for row in rows))


def _table_cell(column: str, value: Any) -> TableCell:
    if pd.isna(value):
        return TableCell("—", "")
    if isinstance(value, str):
        return TableCell(value, "")
    whole = isinstance(value, int) or column.startswith("n_")
    return TableCell(f"{value:.0f}" if whole else _short(value), repr(float(value)))


def _short(number: float) -> str:
    """Three decimals; scientific where that would read as 0."""
    return f"{number:.1e}" if 0 < abs(number) < 0.0005 else f"{round(number, 3) + 0.0:.3f}"
