"""The page of a head's card: all tasks at a glance, then each task, then every number in tables.

A section a task: where it looks, what is known in sentences, at which words and by which direct paths its work passes
on, and what its weights say.
"""

from functools import partial
from typing import Any

import pandas as pd

from interp.options import CardOptions
from interp.report import card_evidence
from interp.report.attention_words import attending_heads, scored
from interp.report.card_figures import card as card_figure
from interp.report.card_figures import card_paths
from interp.report.heads import asked
from interp.report.heads_frames import file_names, marked
from interp.report.heads_sentences import place_note
from interp.report.html import attention_data
from interp.report.page_texts import explained_terms
from interp.report.sections import Custom, Facts, Heatmaps, Page, Picture, Section, Sentences, Table
from interp.report.tables import Column
from interp.report.words import about, counted, left_out, listed, visible

_CAPTIONS = {
    "shares": "The effect as a share of what the whole model does",
    "halves": "Two random halves of the clusters",
    "replacements": "Every replacement",
    "agreement": "How alike two replacements order all heads",
    "positions": "Patching by word",
    "feeds": "Direct paths into the head",
    "readers": "Direct paths from the head",
    "feature": "Removed from what the head reads or writes",
    "groups": "Ablated together with other heads",
}
_EVIDENCE = (
    Column("task"),
    Column("mark", "verdict"),
    Column("excess", "attention, excess", "excess_low", "excess_high"),
    Column("effect", "effect of resampling", "effect_low", "effect_high"),
    Column("unit"),
    Column("share", "as a share", "share_low", "share_high"),
    Column("probe_excess", "probe, excess", "probe_excess_low", "probe_excess_high"),
)
_NOTE = (
    "Attention and probe: beyond their toughest control. Ablation: the effect as a share of what the whole model does; "
    "a cost is negative."
)
_RESTORED = "Share restored: of the clean run's answer, by patching; 0 is none of it and 1 is all."


def page_of(result: Any) -> Page:
    """The sections of a ``HeadCard``; with a way back to the report's page where it knows one."""
    card = card_evidence.named(result)
    tasks, maps = [str(task) for task in result.tasks["task"]], card.attention_maps
    draws = {} if card.replacements.empty else {"shares": partial(card_figure, result)}
    patched = {*result.feeds["task"], *result.readers["task"]}
    paths = {f"paths_{name}": task for task, name in zip(tasks, file_names(tasks), strict=True) if task in patched}
    return Page(
        title=f"Head {result.name}",
        kind="head",
        sections=tuple(_sections(result, card)),
        provenance={**result.provenance, **({} if pd.isna(result.copying) else {"copying": result.copying})},
        about=about(result.provenance, f"{counted(len(tasks), 'task')}: {listed(list(card.tasks['task']))}"),
        cautions=left_out(result.provenance),
        call="interp.plots.card(card)",
        frames={name: getattr(result, name) for name in ("verdicts", "tasks", *card_evidence.COLUMNS)},
        draws=draws | {name: partial(card_paths, result, task) for name, task in paths.items()},
        data={"attention": attention_data(maps[maps["task"] == task] for task in card.tasks["task"])},
        back=(result.back, "All heads") if result.back else (),
    )


def _sections(result: Any, card: Any) -> list[Section]:
    found: list[Section] = [Heatmaps("All tasks", [("Evidence at a glance", card_evidence.at_a_glance(card))], _NOTE)]
    if not card.replacements.empty:
        alt = f"What each task loses without head {card.name}, by what replaces it"
        found.append(Picture("", "shares", partial(card_figure, result), alt))
    shares = card.shares[["task", "share", "share_low", "share_high"]]
    evidence = marked(card.verdicts.merge(shares, on="task", how="left"))
    found.append(Sentences("", card_evidence.across_tasks(card)))
    found.append(Table("", "The verdicts, with what they rest on", evidence, _EVIDENCE, "verdicts.csv"))
    for number, task in enumerate(card.tasks["task"]):
        if task in card_evidence.measured(card):
            found += _of_task(card_evidence.of_task(card, task), number)
    usual = {name: getattr(CardOptions, name) for name in ("min_effect", "alpha", "max_units")}
    known = {name: card.provenance.get(name, value) for name, value in usual.items()}
    which = ("Head", f"{card.name}: layer and head, both counted from 0")
    return [
        *found,
        Custom("Tables", "folded_tables", {"tables": [_table(card, name) for name in _CAPTIONS]}),
        Facts("What was asked", [which, *asked(card.tasks, card.provenance)]),
        Facts("How to read this", explained_terms("head", card.provenance, **known)),
    ]


def _of_task(card: Any, number: int) -> list[Section]:
    """The sections of one task; `number` is its place among all."""
    task = card.tasks.iloc[0]
    said, heads = card_evidence.findings(card), attending_heads(scored(card.attention_maps), task["task"])
    looks = {"question": str(task["description"]), "number": number, "head": next(iter(heads), None), "name": card.name}
    found: list[Section] = [
        Custom(f"{task['task']}: {card.verdicts['verdict'].iloc[0]}", "card_attention", looks),
        Sentences("", said, card_evidence.further(card), place_note(said[:1])),
    ]
    if maps := card_evidence.maps_of(card):
        found.append(Heatmaps("", maps, _RESTORED))
    weights = []
    for (_, word, circuit), rows in card.circuits.groupby(["role", "word", "circuit"], sort=False):
        begin = "From" if circuit == "looks for" else "Of"
        tokens = ", ".join(f"{_quoted(row.text)} {row.score:.1f}" for row in rows.itertuples())
        weights.append((f"{begin} {_quoted(word)} {circuit}", tokens))
    if weights:
        found.append(Custom("", "folded_facts", {"pairs": weights, "title": "Its weights on the task's own words"}))
    return found


def _quoted(token: str) -> str:
    return f"“{visible(token)}”"


def _table(card: Any, name: str) -> Table:
    """A table of the card; the ends of intervals stand beside their numbers."""
    frame, columns = getattr(card, name), card_evidence.COLUMNS[name]
    words = {each: frame[each].map({True: "yes", False: "no"}) for each in columns if frame[each].dtype == bool}
    shown = [_column(each, name) for each in columns]
    beside = {end for column in shown for end in (column.low, column.high)}
    left = [column for column in shown if column.name not in beside]
    return Table("", _CAPTIONS[name], frame.assign(**words), [Column("task"), *left], f"{name}.csv")


def _column(name: str, table: str) -> Column:
    alone = name in ("estimate", "kendall") or (name == "effect" and table in ("replacements", "feature"))
    low, high = ("low", "high") if alone else (f"{name}_low", f"{name}_high")
    return Column(name, "", low, high) if low in card_evidence.COLUMNS[table] else Column(name)
