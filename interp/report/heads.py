"""The page of a dossier: every head's verdict at a glance, one line a task, then each task's evidence.

The grids come first, and what they show in one line a task. A click on a head opens all that was found about it. Every
figure is a table with colours or a sentence with shaded words, so it suits a light and a dark page, a telephone, a
printer and a screen reader; without its script the page can still be read.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from interp.errors import InputError
from interp.report import heads_frames as frames
from interp.report import heads_sentences as sentences
from interp.report.attention_words import attending_heads, scored
from interp.report.drawing import Figure
from interp.report.heads_figures import MEASURES, heads, overview
from interp.report.heads_frames import HEAD_COLUMNS, VERDICTS
from interp.report.heatmap import heatmap, reach
from interp.report.html import attention_data, columnar, flatten, model_with_hash
from interp.report.notebook import MOST_DRAWN
from interp.report.page_texts import explained_terms, texts
from interp.report.sections import Custom, Facts, Heatmaps, Page, Picture, Section, Sentences, Table
from interp.report.tables import Column, columns_of
from interp.report.words import FEWEST_CLUSTERS, MORE_CLUSTERS, UNITS, about, counted, left_out

_FEW = 3
"""Findings of a task that are not folded away."""
_NUMBERED = 16
"""Heads of a layer up to which a heatmap has room for numbers."""
_SAID = ("model", "seed", "device")
_ELSEWHERE = ("layer", "head", "query", "metric", "task", "verdict")
"""Columns that have another name or place in the table, or that each task says once."""
_NUMBERS = tuple(name for name in HEAD_COLUMNS + frames.FURTHER_HEAD_COLUMNS if name not in _ELSEWHERE)
_COLUMNS = ("name", "task", "verdict", *_NUMBERS)
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


def page_of(report: Any, cards: Mapping[str, str] | None = None) -> Page:
    """The sections of what ``interp.heads`` returns; `cards` are pages of heads, by their names such as ``2.1``.

    Raises:
        InputError: A card is of no head, or the report cannot be shown: see ``check_frames``.
    """
    cards = cards or {}
    for name in cards:  # each becomes a file's
        if not re.fullmatch(r"\d+\.\d+", name):
            raise InputError(f"card {name[:80]!r}: expected the name of a head, such as '2.1'; name its page by that")
    frames.check_frames(report)
    named, summary, tasks = frames.with_shown_names(report), report.summary(), report.tasks
    maps, cells = named.attention_maps, frames.marked(named.summary())
    cells = cells.assign(name=frames.head_names(cells), sentence=[_says(row) for _, row in cells.iterrows()])
    has_places = cells["baseline"].str.contains(r"position \d", na=False).any()
    ordered = summary[[*HEAD_COLUMNS, *(name for name in summary if name not in HEAD_COLUMNS)]]
    kept = {"heads": ordered, "groups": report.groups, "replication": report.replication}
    n_heads, n_layers = len(cells[["layer", "head"]].drop_duplicates()), cells["layer"].nunique()
    measured = f"{counted(len(tasks), 'task')}, {int(tasks['n_units'].sum()):,} units"
    size = f"{counted(n_heads, 'head')} in {counted(n_layers, 'layer')} · {measured}"
    return Page(
        title="Which heads track what",
        kind="heads",
        sections=tuple(_sections(report, named, cells, tuple(cards))),
        provenance=report.provenance,
        about=about(_of_model(report.provenance), size),
        cautions=left_out(report.provenance),
        call="interp.plots.overview(report)",
        frames={name: frame for name, frame in kept.items() if name != "replication" or len(frame)},
        draws=_draws(report),
        data={
            "heads": columnar(cells.drop(columns=["mark", "unit"]), _COLUMNS),
            "tasks": [_of_task(task, sentences.rows_of(cells, task)) for _, task in named.tasks.iterrows()],
            "attention": attention_data(maps[maps["task"] == task] for task in named.tasks["task"]),
            "cards": list(cards),
            **({"place": texts()["clauses"]["place"]} if has_places else {}),
        },
        files={f"cards/{name}.html": text for name, text in cards.items()},
    )


def _says(row: pd.Series) -> str:
    if row["verdict"] in frames.FINDINGS:
        return sentences.head_sentence(row)
    reason = sentences.reason_sentence(row)
    return f"{reason}." if reason else ""


def _sections(report: Any, named: Any, cells: pd.DataFrame, cards: tuple[str, ...]) -> list[Section]:
    summaries, tasks = sentences.summarise(named), [task for _, task in named.tasks.iterrows()]
    grids = [_grid(cells, number, str(task["task"])) for number, task in enumerate(tasks)]
    present = [verdict for name, verdict in VERDICTS.items() if name in set(cells["verdict"])]
    others = [verdict for verdict in VERDICTS.values() if verdict not in present]
    found: list[Section] = [
        Custom("Verdicts", "verdict_grids_part", {"grids": grids, "verdicts": present, "others": others}),
        Sentences("", [each.line for each in summaries], note=" ".join(how_found(report.provenance))),
        *([Custom("", "cards_part", {"cards": cards})] if cards else []),
    ]
    if len(cells) <= MOST_DRAWN:
        found.append(Picture("", "overview", partial(overview, report), "All kinds of evidence and the verdicts"))
    found.append(_strongest(cells))
    if not named.replication.empty:
        table = replication_table(named.replication)
        caption, columns = "Which heads of which model get each verdict", columns_of(*map(str, table.columns))
        found.append(Sentences("Other seeds", [replication_sentence(table)], note=_SEEDS))
        found.append(Table("", caption, table, columns, "replication.csv"))
    for task, summary, (grid, _) in zip(tasks, summaries, grids, strict=True):
        found += _task_sections(task, summary, sentences.rows_of(cells, task), grid, named.attention_maps)
    return [
        *found,
        Facts("How to read this", how_to_read(cells, report.provenance)),
        Table("Tables", "Every head and task", cells, columns_of(*_COLUMNS), "heads.csv", data="heads"),
        Table("", "The tasks", named.tasks, columns_of(*frames.TASK_COLUMNS), "manifest.json"),
        Facts("What was asked", asked(named.tasks, report.provenance)),
    ]


def _grid(cells: pd.DataFrame, number: int, task: str) -> tuple[dict[str, Any], list[list[Any]]]:
    """Where each head stands, and its verdict; `number` is that of the task on the page."""
    verdicts = frames.layer_by_head(cells, task, "verdict")
    rows = [[VERDICTS.get(str(name)) for name in row] for row in verdicts.to_numpy()]
    return {"name": task, "task": number, "layers": list(verdicts.index), "heads": list(verdicts.columns)}, rows


def _strongest(cells: pd.DataFrame) -> Table:
    """By verdict, then by the size of the effect."""
    order = cells.assign(_verdict=cells["verdict"].map(list(VERDICTS).index), _size=-cells["effect"].abs())
    ordered = order.sort_values(["_verdict", "_size"], kind="stable")
    shown = [column for column in _EVIDENCE if ordered[column.name].replace("", np.nan).notna().any()]
    return Table("Evidence", "Every head and task, the strongest findings first", ordered, shown, "heads.csv")


def _task_sections(
    task: pd.Series, summary: sentences.TaskSummary, cells: pd.DataFrame, grid: dict[str, Any], maps: pd.DataFrame
) -> list[Section]:
    found = summary.findings
    shown = found[:_FEW] or ("No head has a finding for this task.", *summary.open_questions)
    if summary.largest and summary.largest not in shown:  # never folded away
        shown = (*shown, summary.largest)
    further = [each for each in (*found[_FEW:], *summary.open_questions) if each not in shown]
    excess = "Attention to the related word, less the best baseline's; no colour below 0"
    effect = f"Effect of resampling the head ({UNITS.get(task['metric'], task['metric'])}); a cost is negative"
    heats = [
        (excess, heatmap(cells, grid["name"], "excess", "attention")),
        (effect, heatmap(cells, grid["name"], "effect", "effect")),
    ]
    if cells["probe"].notna().any():
        probe = f"Accuracy of a probe for {cells['feature'].iloc[0]}, less its toughest control's; no colour below 0"
        heats.append((probe, heatmap(cells, grid["name"], "probe_excess", "attention")))
    said = [*filter(None, (summary.headline, summary.untested)), *shown]
    facts = {"About": "description", "Looks from": "query", "Left out or replaced": "dropped", "Coverage": "coverage"}
    known = [(label, str(task[name])) for label, name in facts.items() if pd.notna(task[name]) and str(task[name])]
    sections: list[Section] = [
        Heatmaps(grid["name"], heats, kind="" if len(grid["heads"]) <= _NUMBERED else "tiny", grid=grid),
        Sentences("", said, further, sentences.place_note([*said, *further])),
        Facts("", known),
    ]
    if top := attending_heads(scored(maps), grid["name"]):
        sections.append(Custom("", "top_heads_part", {"number": grid["task"], "head": top[0]}))
    return sections


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


def _draws(report: Any) -> dict[str, Callable[[], Figure]]:
    cells, tasks = report.summary(), [str(task) for task in report.tasks["task"]]
    draws: dict[str, Callable[[], Figure]] = {"overview": partial(overview, report)}
    for task, name in zip(tasks, frames.file_names(tasks), strict=True):
        for measure in MEASURES:
            if measure != "probe" or cells.loc[cells["task"] == task, "probe"].notna().any():
                draws[f"{measure}_{name}"] = partial(heads, report, task, measure)
    return draws


def how_to_read(cells: pd.DataFrame, provenance: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What the page's terms mean, as (term, explanation) pairs."""
    known = {"min_attention": cells["min_attention"].iloc[0], "fewest_clusters": FEWEST_CLUSTERS}
    return explained_terms("heads", provenance, **known, more_clusters=MORE_CLUSTERS)


REPLICATES = "replicates"
_IN_WORDS = {
    "no": "in none",
    "open": "in none, where heads are undecided",
    "not judged": "where no other seed is judged",
}


def replication_table(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per task and verdict: the heads of each model that get it, and whether it replicates.

    Args:
        frame: One row per task, verdict and model, the model in question first; as of
            ``interp.methods.judging.replication``.

    Returns:
        ``task``, ``verdict``, a column for each model, and ``replicates``: ``yes`` (in all others), ``in 1 of 2``,
        ``in 1 of 1 judged`` where another cannot be judged on the task, ``no``; ``open`` where no other model gets it
        and heads of one are undecided; ``not judged`` where no other model can be; or ``not here`` where only others
        get it. By task, the strongest verdicts first.
    """
    models = list(dict.fromkeys(frame["model"]))
    places = {"task": list(dict.fromkeys(frame["task"])), "verdict": list(VERDICTS)}
    ordered = frame.sort_values(list(places), key=lambda each: each.map(places[each.name].index), kind="stable")
    rows = []
    for place, own in ordered.groupby(list(places), sort=False):
        by_model = own.to_dict("records")
        rows.append((*place, *map(_found, by_model), _replicates(*by_model)))
    return pd.DataFrame(rows, columns=[*places, *models, REPLICATES])


def _found(row: Mapping[Any, Any]) -> str | None:
    """One model's heads, or why none is named."""
    if row["heads"]:
        return ", ".join(row["heads"].split())
    if not row["judged"]:
        return "not judged"
    return f"{row['n_undecided']} undecided" if row["n_undecided"] else None


def _replicates(first: Mapping[Any, Any], *others: Mapping[Any, Any]) -> str:
    judged = [row for row in others if row["judged"]]
    n_found = sum(row["heads"] != "" for row in judged)
    if not first["heads"]:
        return "not here"
    if not judged:
        return "not judged"
    if n_found == len(others):
        return "yes"
    if n_found:
        return f"in {n_found} of {len(judged)}{'' if len(judged) == len(others) else ' judged'}"
    return "open" if any(row["n_undecided"] for row in judged) else "no"


def replication_sentence(table: pd.DataFrame) -> str:
    """How many of the first model's verdicts replicate; `table` is as of ``replication_table``."""
    here = table[table[REPLICATES] != "not here"]
    missing, n_others = here[here[REPLICATES] != "yes"], table.shape[1] - 4
    n_found = len(here) - len(missing)
    rest = [
        f"{task}: “{verdict}” {_IN_WORDS.get(found, found)}"
        for task, verdict, found in missing[["task", "verdict", REPLICATES]].itertuples(index=False)
    ]
    return str(
        texts()["found"]["others"].format(
            verdicts=counted(len(here), "verdict"),
            found=f"{n_found} {'replicates' if n_found == 1 else 'replicate'}",
            whom={1: "the other seed", 2: "both other seeds"}.get(n_others, f"all {n_others} other seeds"),
            rest=f" Not so {'; '.join(rest)}." if rest else "",
        )
    )


def how_found(provenance: Mapping[str, Any]) -> list[str]:
    """Sentences: what was declared and what became of it; or that nothing was.

    Args:
        provenance: Of a dossier; ``declared`` is as of ``interp.claims.declared``.
    """
    declared, said = provenance.get("declared"), texts()["found"]
    if not declared:
        return [said["chosen" if provenance.get("chosen_on") else "everything"]]
    when = said["after" if declared["measured"] < declared["written"] else "before"]
    claims = counted(len(declared["claims"]), "claim")
    found = [said["declared"].format(**{**declared, "when": when, "claims": claims})]
    for claim in declared["claims"]:
        unsaid = "a part of it is undecided or was not tested" if claim["outcome"] == "open" else ""
        because = f" ({reason})" if (reason := claim["reason"] or unsaid) else ""
        found.append(said["claim"].format(**claim, how=claim["outcome"].capitalize(), because=because))
    return found
