"""The page of heads against relations: a grid of heads for each relation, findings, examples and tables."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from interp.report import relations_figures as figures
from interp.report import relations_sentences as sentences
from interp.report.attention_words import PicturedHead, pictured_head
from interp.report.cells import and_p
from interp.report.heatmap import Cell, head_grid
from interp.report.html import attention_data, facts
from interp.report.notebook import MOST_DRAWN
from interp.report.page_texts import CORRECTIONS, explained
from interp.report.relations_sentences import ATTENDS, DIRECTION, FEWEST_DOCUMENTS, REASONS, VERDICTS
from interp.report.sections import Facts, Heatmaps, Page, Picture, Section, Sentences, Shaded, Table
from interp.report.tables import Column, columns_of
from interp.report.words import about, counted, interval, percent, points

_FEW = 6
"""Directions to which no head attends, and which are not folded away."""
_CAPTION = (
    "Excess accuracy over the best rule without attention, in points of 100 pairs: blue above the rule, sand below it"
)
_NOTE = (
    "Nobody picked these: they are the first of the corpus that can be shown whole, each of another document, whether "
    "the head is right there or not. What is missing to 1 goes to tokens of no word and to words that are not shown."
)
_LEFT_OUT = {reason: f"n_{reason.replace(' ', '_')}" for reason in REASONS}
_HEADS = (
    *columns_of("relation", "looks", "name", "verdict"),
    *(Column("accuracy", "right, %", percent=True), Column("accuracy_baseline", "best rule, %", percent=True)),
    Column("excess", "excess, points", "low", "high", percent=True),
    *columns_of("p_adjusted", "baseline", "attention"),
    *(Column("accuracy_random_head", "random head, %", percent=True), Column("n_documents")),
)
_COUNTED = (
    *columns_of("relation", "looks", "n_pairs", "n_scored", *_LEFT_OUT.values()),
    *(*columns_of("n_documents", "offset"), Column("accuracy_offset", "its accuracy, %", percent=True)),
    *(Column("nearest"), Column("accuracy_nearest", "its accuracy, %", percent=True)),
    Column("chance", "chance, %", percent=True),
)


def page_of(result: Any) -> Page:
    """The sections of what ``interp.attend`` returns."""
    heads = () if result.maps is None else _pictured_heads(result.maps, result.cells)
    evidence = f"{counted(result.provenance['n_documents'], 'document')}, {counted(len(result.relations), 'direction')}"
    maps = {} if result.maps is None else {"attention_maps": result.maps}
    draws = {"relations": figures.relations, "baselines": figures.relation_baselines}
    return Page(
        title="Heads against relations",
        kind="relations",
        sections=tuple(_sections(result, heads)),
        provenance=result.provenance,
        about=about(result.provenance, evidence),
        cautions=tuple(filter(None, [sentences.looks_back_only(result)])),
        call="interp.plots.relations(result)",
        frames={"heads": result.cells, "relations": result.relations, **maps},
        draws={name: partial(draw, result) for name, draw in draws.items()},
        data={"attention": attention_data(head.rows for head in heads)} if heads else {},
    )


def _sections(result: Any, heads: Sequence[PicturedHead]) -> list[Section]:
    best, cells = result.leading(), result.cells
    counts = result.relations.rename(columns={"n": "n_scored", **_LEFT_OUT})
    caption = "Every head and relation: those that attend, then those with enough documents, by their excess"
    every, drawn = partial(figures.relations, result), 0 < len(cells) <= MOST_DRAWN
    return [
        *([_grids(result, best)] if len(best) else []),
        *([Picture("", "relations", every, "Excess accuracy of every head")] if drawn else []),
        _findings(result),
        *([Shaded("Examples", heads, _NOTE)] if heads else []),
        Table("Tables", "The best head of each relation", _with_names(best), _HEADS, "heads.csv"),
        Table("", "What was scored, and what position explains", counts, _COUNTED, "relations.csv"),
        Table("", caption, _with_names(result.ranked()), _HEADS, "heads.csv"),
        Facts("What was asked", asked(result)),
        Facts("How to read this", _how_to_read(result)),
    ]


def _grids(result: Any, best: pd.DataFrame) -> Heatmaps:
    bound, shown = figures.strongest_excess(result), best.head(figures.MOST_GRIDS)
    maps = [
        (figures.grid_name(row), head_grid(figures.of_direction(result.cells, row), partial(_cell, bound=bound)))
        for _, row in shown.iterrows()
    ]
    legend = [f"{each.marked}: {each.meaning}" for each in VERDICTS.values() if each.marker]
    left_out = [f"Shown are the first {len(shown)} of {len(best)} directions"] if len(shown) < len(best) else []
    return Heatmaps("Heatmap", maps, ". ".join([_CAPTION, "; ".join(legend), *left_out]) + ".", kind="dense")


def _cell(row: pd.Series, bound: float) -> Cell:
    text, judged = points(row["excess"], 0), pd.notna(row["verdict"])
    ends = f" {interval(row['low'], row['high'])}" if pd.notna(row["low"]) else ""
    title = (
        f"Head {sentences.head_name(row)}, {sentences.direction_name(row)}: right in {percent(row['accuracy'])}, "
        f"{row['baseline']} in {percent(row['accuracy_baseline'])}; excess {points(row['excess'])} points{ends}"
        f"{and_p(row['p_adjusted'])} ({row['verdict'] if judged else 'not tested'})"
    )
    # Rounded before it is painted: what reads as 0 has one colour.
    colours = figures.paint_excess(float(text) / 100, bound)
    return Cell(text, VERDICTS[row["verdict"]].symbol if judged else "", colours.style, title)


def _findings(result: Any) -> Sentences:
    """Directions to which a head attends, then a few of the others; the rest is folded away."""
    summaries = sentences.summarise(result)
    attends = [each.text for each in summaries if each.verdict == ATTENDS]
    others = [each.text for each in summaries if each.verdict != ATTENDS]
    n_shown = max(0, _FEW - len(attends))
    return Sentences("Findings", [*attends, *others[:n_shown]], others[n_shown:])


def _with_names(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(name=[f"head {sentences.head_name(row)}" for _, row in rows.iterrows()])


def asked(result: Any) -> list[tuple[str, str]]:
    """What was asked."""
    how, relations = result.provenance, result.relations
    files, halves = _files(how.get("data", ())), str(how["chosen_on"]).startswith("the other half")
    documents = counted(how["n_documents"], "document")
    if how["n_clusters"] < how["n_documents"]:
        documents += f" in {how['n_clusters']:,} groups of neighbours, each of which counts as one document below"
    counts = ", ".join([documents, counted(how["n_sentences"], "sentence"), counted(how["n_words"], "word")])
    where = f"{_files(how.get('choose_on', ())) or 'another corpus'} (hash {how['chosen_on'][:12]})"
    too_long = counted(len(how["too_long"]), "sentence") if how["too_long"] else ""
    return facts(
        how,
        "model",
        ("Looks", "back only (causal)" if sentences.is_causal(result) else "both ways (bidirectional)"),
        ("Corpus", f"{f'{files}: ' if files else ''}{counts} (hash {str(how['data_hash'])[:12]})"),
        ("Relations", f"{', '.join(relations['relation'].unique())} ({counted(len(relations), 'direction')})"),
        (
            "Baseline",
            "chosen on the other half of the documents; every head is tested"
            if halves
            else f"chosen, as one head of each relation and direction, on {where}",
        ),
        ("Too long", f"{too_long}, left out: longer than the model's context" if too_long else ""),
        *("seed", "device", "dtype"),
    )


def _files(paths: Sequence[str]) -> str:
    return ", ".join(Path(path).name for path in paths)


_CHOICES: Mapping[frozenset[str], str] = {
    frozenset(("special", "self")): "The word itself and tokens of no word, such as BOS, are not among the choices.",
    frozenset(): "The word itself and tokens of no word, such as BOS, may be chosen too.",
    frozenset(("self",)): "The word itself is not among the choices; tokens of no word, such as BOS, are.",
    frozenset(("special",)): "Tokens of no word, such as BOS, are not among the choices; the word itself is.",
}


def _how_to_read(result: Any) -> list[tuple[str, str]]:
    """What the page's terms mean."""
    how, halves = result.provenance, bool(result.cells["chosen"].astype(bool).all())
    chosen_on = (
        "the other half of the documents; where the halves choose different rules, both are named."
        if halves
        else "another corpus, as the head of each relation is. The other heads were measured, and not tested: they "
        "have no p and no verdict."
    )
    causal = sentences.is_causal(result)
    terms = explained(
        "relations",
        choice=_CHOICES[frozenset(how["exclude"])],
        chosen_on=chosen_on,
        selected="For the best of many heads it is too narrow; use the adjusted p. " if halves else "",
        tested="all heads and relations" if halves else "the heads that were chosen",
        ahead="the related word stands ahead of one that looks back only; " if causal else "",
        fewest=FEWEST_DOCUMENTS,
        correction=CORRECTIONS[how["correction"]],
        minimum=points(how["min_effect"], 0),
        alpha=how["alpha"],
    )
    return list(terms.items())


def _pictured_heads(maps: pd.DataFrame, cells: pd.DataFrame) -> tuple[PicturedHead, ...]:
    """The examples of every direction that has some, in their order."""
    of_head = [*DIRECTION, "layer", "head"]
    by_head = cells.set_index(of_head, drop=False).sort_index()
    return tuple(_pictured(rows, by_head.loc[key]) for key, rows in maps.groupby(of_head, sort=False))


def _pictured(rows: pd.DataFrame, cell: pd.Series) -> PicturedHead:
    placed = []
    for number, (_, each) in enumerate(rows.groupby(list(sentences.EXAMPLE), sort=False)):
        words = each.sort_values("word").reset_index(drop=True)
        query = int(np.flatnonzero(words["is_query"])[0])
        placed.append(words.assign(example=number, caption=_caption(words), key_pos=words.index, query_pos=query))
    return pictured_head(
        pd.concat(placed).assign(verdict=cell["verdict"] if pd.notna(cell["verdict"]) else ""),
        title=f"{sentences.direction_name(cell)}: head {sentences.head_name(cell)}",
        note=f"Right in {percent(cell['accuracy'])} of all {cell['n']:,} pairs that were scored.",
    )


def _caption(words: pd.DataFrame) -> str:
    first = words.iloc[0]
    if first["is_right"]:
        return f"{first['sentence']} — right here"
    choice = words.loc[words["is_choice"], "token"]
    instead = f"“{choice.iloc[0]}”" if len(choice) else "what is not shown"
    return f"{first['sentence']} — wrong here: it attends most to {instead}"
