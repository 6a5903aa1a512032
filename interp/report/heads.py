"""The page of a dossier: every head's verdict at a glance, one line a task, then each task's evidence.

The grids come first, and what they show in one line a task. A click on a head opens all that was found about it. Every
figure is a table with colours or a sentence with shaded words, so it suits a light and a dark page, a telephone, a
printer and a screen reader; without its script the page can still be read.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from interp.errors import InputError
from interp.report.attention_words import attending_heads, scored
from interp.report.drawing import Figure
from interp.report.heads_figures import MEASURES, heads, overview
from interp.report.heads_frames import (
    FINDINGS,
    FURTHER_HEAD_COLUMNS,
    HEAD_COLUMNS,
    TASK_COLUMNS,
    VERDICTS,
    check_frames,
    file_names,
    layer_by_head,
    with_shown_names,
)
from interp.report.heads_reading import how_found, how_to_read, replication_sentence, replication_table
from interp.report.heads_sentences import (
    TaskSummary,
    head_sentence,
    place_note,
    reason_sentence,
    rows_of,
    short_line,
    summarise,
)
from interp.report.heatmap import Palette, heatmap, reach
from interp.report.html import attention_data, columnar, flatten, model_with_hash
from interp.report.notebook import MOST_DRAWN
from interp.report.sections import Custom, Facts, Heatmaps, Page, Picture, Section, Sentences, Table
from interp.report.tables import Column, columns_of
from interp.report.words import UNITS, about, counted, left_out

_FEW = 3
"""Findings of a task that are not folded away."""
_NUMBERED = 16
"""Heads of a layer up to which a heatmap has room for numbers."""
_SAID = ("model", "seed", "device")
_ELSEWHERE = ("layer", "head", "query", "metric", "task", "verdict")
"""Columns that have another name or place in the table, or that each task says once."""
_COLUMNS = ("name", "task", "verdict", *(c for c in HEAD_COLUMNS + FURTHER_HEAD_COLUMNS if c not in _ELSEWHERE))
_EVIDENCE = (
    *columns_of("name", "task"),
    Column("mark", "verdict"),
    Column("excess", "excess attention", "excess_low", "excess_high"),
    Column("effect", "effect of resampling", "effect_low", "effect_high"),
    Column("mean_effect", "effect of the mean", "mean_effect_low", "mean_effect_high"),
    Column("exchange", "word exchanged", "exchange_low", "exchange_high"),
    Column("probe_excess", "probe, excess", "probe_excess_low", "probe_excess_high"),
    *columns_of("unit", "reason"),
)
_SEEDS = (
    "Models of other seeds were judged on the same examples. A verdict on a task replicates where some head of the "
    "other model gets it, whichever number that has."
)


@dataclass(frozen=True)
class Grid:
    """Which head stands where: layers down, heads across; ``task`` is the number on the page of the task ``name``."""

    name: str
    task: int
    layers: tuple[int, ...]
    heads: tuple[int, ...]


def page_of(report: Any, cards: Mapping[str, str] | None = None) -> Page:
    """The sections of what ``interp.heads`` returns; `cards` are pages of heads, by their names such as ``2.1``.

    Raises:
        InputError: A card is of no head, or the report cannot be shown: see ``check_frames``.
    """
    cards = cards or {}
    for name in cards:  # each becomes a file's
        if not re.fullmatch(r"\d+\.\d+", name):
            raise InputError(f"card {name[:80]!r}: expected the name of a head, such as '2.1'; name its page by that")
    check_frames(report)
    named = with_shown_names(report)
    cells, maps = _for_readers(named.summary()), named.attention_maps
    return Page(
        title="Which heads track what",
        kind="heads",
        sections=tuple(_sections(report, named, cells, tuple(cards))),
        provenance=report.provenance,
        about=about(_of_model(report.provenance), _size(named)),
        cautions=left_out(report.provenance),
        call="interp.plots.overview(report)",
        frames=_frames(report),
        draws=_draws(report),
        data={
            "heads": columnar(cells, _COLUMNS),
            "tasks": [_of_task(task, rows_of(cells, task)) for _, task in named.tasks.iterrows()],
            "attention": attention_data(maps[maps["task"] == task] for task in named.tasks["task"]),
            "cards": list(cards),
        },
        files={f"cards/{name}.html": text for name, text in cards.items()},
    )


def _for_readers(cells: pd.DataFrame) -> pd.DataFrame:
    """The rows with the heads' names, and as ``sentence`` what each row says."""
    names = [f"{layer}.{head}" for layer, head in zip(cells["layer"], cells["head"], strict=True)]
    return cells.assign(name=names, sentence=[_says(row) for _, row in cells.iterrows()])


def _says(row: pd.Series) -> str:
    if row["verdict"] in FINDINGS:
        return head_sentence(row)
    reason = reason_sentence(row)
    return f"{reason}." if reason else ""


def _sections(report: Any, named: Any, cells: pd.DataFrame, cards: tuple[str, ...]) -> list[Section]:
    summaries = summarise(named)
    tasks = [task for _, task in named.tasks.iterrows()]
    grids = [_grid(cells, number, str(task["task"])) for number, task in enumerate(tasks)]
    lines = [short_line(each.task, cells[cells["task"] == each.task], each.open_questions) for each in summaries]
    present = [verdict for name, verdict in VERDICTS.items() if name in set(cells["verdict"])]
    others = [verdict for verdict in VERDICTS.values() if verdict not in present]
    found: list[Section] = [
        Custom("Verdicts", "verdict_grids_part", {"grids": grids}),
        Sentences("", lines, note=" ".join(how_found(report.provenance))),
        Custom("", "legend_part", {"verdicts": present, "others": others, "cards": cards}),
    ]
    if len(cells) <= MOST_DRAWN:
        found.append(Picture("", "overview", partial(overview, report), "All kinds of evidence and the verdicts"))
    found.append(_strongest(cells))
    if not named.replication.empty:
        table, caption = replication_table(named.replication), "Which heads of which model get each verdict"
        found.append(Sentences("Other seeds", [replication_sentence(table)], note=_SEEDS))
        found.append(Table("", caption, table, columns_of(*map(str, table.columns)), "replication.csv"))
    for task, summary, (grid, _) in zip(tasks, summaries, grids, strict=True):
        found += _task_sections(task, summary, rows_of(cells, task), grid, named.attention_maps)
    return [
        *found,
        Facts("How to read this", how_to_read(cells, report.provenance)),
        Table("Tables", "Every head and task", cells, columns_of(*_COLUMNS), "heads.csv", data="heads"),
        Table("", "The tasks", named.tasks, columns_of(*TASK_COLUMNS), "manifest.json"),
        Facts("What was asked", asked(named.tasks, report.provenance)),
    ]


def _grid(cells: pd.DataFrame, number: int, task: str) -> tuple[Grid, list[list[Any]]]:
    verdicts = layer_by_head(cells, task, "verdict")
    rows = [[VERDICTS.get(str(name)) for name in row] for row in verdicts.to_numpy()]
    return Grid(task, number, tuple(verdicts.index), tuple(verdicts.columns)), rows


def _strongest(cells: pd.DataFrame) -> Table:
    """By verdict, then by the size of the effect."""
    order = cells.assign(_verdict=cells["verdict"].map(list(VERDICTS).index), _size=-cells["effect"].abs())
    ordered = order.sort_values(["_verdict", "_size"], kind="stable").assign(
        mark=lambda rows: [VERDICTS[name].marked for name in rows["verdict"]],
        unit=lambda rows: rows["metric"].map(lambda metric: UNITS.get(metric, metric)),
    )
    shown = [column for column in _EVIDENCE if ordered[column.name].replace("", np.nan).notna().any()]
    return Table("Evidence", "Every head and task, the strongest findings first", ordered, shown, "heads.csv")


def _task_sections(
    task: pd.Series, summary: TaskSummary, cells: pd.DataFrame, grid: Grid, maps: pd.DataFrame
) -> list[Section]:
    found, unit = summary.findings, UNITS.get(task["metric"], task["metric"])
    shown = found[:_FEW] or ("No head has a finding for this task.", *summary.open_questions)
    further = (*found[_FEW:], *summary.open_questions) if found else ()
    heats: list[tuple[str, str, Palette]] = [
        ("Attention to the related word, less the best baseline's; no colour below 0", "excess", "attention"),
        (f"Effect of resampling the head ({unit}); a cost is negative", "effect", "effect"),
    ]
    if cells["probe"].notna().any():
        feature = cells["feature"].iloc[0]
        caption = f"Accuracy of a probe for {feature}, less its toughest control's; no colour below 0"
        heats.append((caption, "probe_excess", "attention"))
    drawn = [(caption, heatmap(cells, grid.name, column, palette)) for caption, column, palette in heats]
    said = [*filter(None, (summary.headline, summary.untested)), *shown]
    sections: list[Section] = [
        Heatmaps(grid.name, drawn, kind="" if len(grid.heads) <= _NUMBERED else "tiny", grid=grid),
        Sentences("", said, further, place_note([*said, *further])),
        Facts("", _task_facts(task)),
    ]
    if top := attending_heads(scored(maps), grid.name):
        sections.append(Custom("", "top_heads_part", {"number": grid.task, "head": top[0]}))
    return sections


def _task_facts(task: pd.Series) -> list[tuple[str, str]]:
    names = {"About": "description", "Looks from": "query", "Left out": "dropped", "Coverage": "coverage"}
    return [(label, str(task[name])) for label, name in names.items() if pd.notna(task[name]) and str(task[name])]


def asked(tasks: pd.DataFrame, provenance: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The few facts that a reader of a dossier or a card asks for; the rest stands under `How it was made`."""
    known = _of_model(provenance)
    known |= model_with_hash(known)
    counts = tasks[["task", "n_units", "n_clusters"]].itertuples(index=False, name=None)
    said = ", ".join(f"{task} ({n} units in {clusters} clusters)" for task, n, clusters in counts)
    return [("Tasks", said), *((key.capitalize(), known[key]) for key in _SAID if key in known)]


def _of_model(provenance: Mapping[str, Any]) -> dict[str, str]:
    """Facts by the last part of their names, the first of each: runs of several tasks keep them a level down."""
    return {name.rsplit(".", 1)[-1]: text for name, text in reversed(flatten(provenance))}


def _size(report: Any) -> str:
    """How much was measured, in a few words."""
    cells, tasks = report.summary(), report.tasks
    layers, heads = cells["layer"].nunique(), len(cells[["layer", "head"]].drop_duplicates())
    n_units, n_tasks = int(tasks["n_units"].sum()), len(tasks)
    return f"{counted(heads, 'head')} in {counted(layers, 'layer')} · {counted(n_tasks, 'task')}, {n_units:,} units"


def _of_task(task: pd.Series, cells: pd.DataFrame) -> dict[str, Any]:
    """What the page's script needs to show a head's card: units, verdicts, and how far effects reach."""
    ends = cells[["effect", "effect_low", "effect_high", "exchange", "exchange_low", "exchange_high"]]
    present = [VERDICTS[str(name)] for name in cells["verdict"].unique()]
    return {
        "name": str(task["task"]),
        "unit": UNITS.get(task["metric"], str(task["metric"])),
        "relation": str(cells["relation"].iloc[0]),
        "reach": reach(ends),
        "verdicts": {each.name: {"slug": each.slug, "symbol": each.symbol} for each in present},
    }


def _frames(report: Any) -> dict[str, pd.DataFrame]:
    cells = report.summary()
    rest = [column for column in cells.columns if column not in HEAD_COLUMNS]
    frames = {"heads": cells[[*HEAD_COLUMNS, *rest]], "groups": report.groups}
    return frames if report.replication.empty else {**frames, "replication": report.replication}


def _draws(report: Any) -> dict[str, Callable[[], Figure]]:
    cells, tasks = report.summary(), [str(task) for task in report.tasks["task"]]
    draws: dict[str, Callable[[], Figure]] = {"overview": partial(overview, report)}
    for task, name in zip(tasks, file_names(tasks), strict=True):
        for measure in MEASURES:
            if measure != "probe" or cells.loc[cells["task"] == task, "probe"].notna().any():
                draws[f"{measure}_{name}"] = partial(heads, report, task, measure)
    return draws
