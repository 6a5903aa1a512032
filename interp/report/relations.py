"""The page of heads against relations: a grid of heads for each relation, findings, examples and tables."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from interp.report.attention_words import PicturedHead, pictured_head
from interp.report.heatmap import Cell, head_grid
from interp.report.html import attention_data, flatten, model_with_hash
from interp.report.notebook import MOST_DRAWN
from interp.report.reading import CORRECTIONS
from interp.report.relations_figures import (
    MOST_GRIDS,
    grid_name,
    of_direction,
    paint_excess,
    relation_baselines,
    relations,
    strongest_excess,
)
from interp.report.relations_sentences import (
    ATTENDS,
    DIRECTION,
    EXAMPLE,
    FEWEST_DOCUMENTS,
    REASONS,
    UNTESTABLE,
    VERDICTS,
    direction_name,
    head_name,
    is_causal,
    leading,
    looks_back_only,
    ranked,
    summarise,
)
from interp.report.sections import Facts, Heatmaps, Page, Picture, Section, Sentences, Shaded, Table
from interp.report.tables import Column
from interp.report.words import about, counted, interval, p_value, percent, points

_FEW = 6
"""Directions to which no head attends, and which are not folded away."""
_CAPTION = (
    "Excess accuracy over the best rule without attention, in points of 100 pairs: blue above the rule, sand below it"
)
_COUNTS = {reason: f"n_{reason.replace(' ', '_')}" for reason in REASONS}


def page_of(result: Any) -> Page:
    """The sections of what ``interp.attend`` returns."""
    heads = () if result.maps is None else pictured_heads(result.maps, result.cells)
    evidence = f"{counted(result.provenance['n_documents'], 'document')}, {counted(len(result.relations), 'direction')}"
    maps = {} if result.maps is None else {"attention_maps": result.maps}
    return Page(
        title="Heads against relations",
        kind="relations",
        sections=tuple(_sections(result, heads)),
        provenance=result.provenance,
        about=about(result.provenance, evidence),
        cautions=tuple(filter(None, [looks_back_only(result)])),
        call="interp.plots.relations(result)",
        frames={"heads": result.cells, "relations": result.relations, **maps},
        draws={"relations": partial(relations, result), "baselines": partial(relation_baselines, result)},
        data={"attention": attention_data(head.rows for head in heads)} if heads else {},
    )


def _sections(result: Any, heads: Sequence[PicturedHead]) -> list[Section]:
    found: list[Section] = []
    best = leading(result.cells)
    if len(best):
        found.append(_grids(result, best))
    if 0 < len(result.cells) <= MOST_DRAWN:
        found.append(Picture("", "relations", partial(relations, result), "Excess accuracy of every head"))
    found.append(_findings(result))
    if heads:
        found.append(
            Shaded(
                "Examples",
                heads,
                "Nobody picked these: they are the first of the corpus that can be shown whole, each of another "
                "document, whether the head is right there or not. What is missing to 1 goes to tokens of no word and "
                "to words that are not shown.",
            )
        )
    found += _tables(result, best)
    found.append(Facts("What was asked", asked(result)))
    found.append(Facts("How to read this", how_to_read(result)))
    return found


def _grids(result: Any, best: pd.DataFrame) -> Heatmaps:
    bound, shown = strongest_excess(result), best.head(MOST_GRIDS)
    maps = [
        (grid_name(direction), head_grid(of_direction(result.cells, direction), partial(_cell, bound=bound)))
        for _, direction in shown.iterrows()
    ]
    legend = [f"{each.symbol} {each.name}: {each.meaning}" for name, each in VERDICTS.items() if name != UNTESTABLE]
    left_out = [f"Shown are the first {len(shown)} of {len(best)} directions"] if len(shown) < len(best) else []
    return Heatmaps("Heatmap", maps, ". ".join([_CAPTION, "; ".join(legend), *left_out]) + ".", kind="dense")


def _cell(row: pd.Series, bound: float) -> Cell:
    text = points(row["excess"], 0)
    symbol = VERDICTS[row["verdict"]].symbol if pd.notna(row["verdict"]) else ""
    ends = [f"excess {points(row['excess'])} points"]
    if pd.notna(row["low"]):
        ends[0] += f" {interval(row['low'], row['high'])}"
    ends += [p_value(row["p_adjusted"])] if pd.notna(row["p_adjusted"]) else []
    verdict = row["verdict"] if pd.notna(row["verdict"]) else "not tested"
    title = (
        f"Head {head_name(row)}, {direction_name(row)}: right in {percent(row['accuracy'])}, "
        f"{row['baseline']} in {percent(row['accuracy_baseline'])}; {', '.join(ends)} ({verdict})"
    )
    # Rounded before it is painted: what reads as 0 has one colour.
    return Cell(text, symbol, paint_excess(float(text) / 100, bound).style, title)


def _findings(result: Any) -> Sentences:
    """Directions to which a head attends, then a few of the others; the rest is folded away."""
    summaries = summarise(result)
    attends = [each.text for each in summaries if each.verdict == ATTENDS]
    others = [each.text for each in summaries if each.verdict != ATTENDS]
    n_shown = max(0, _FEW - len(attends))
    return Sentences("Findings", [*attends, *others[:n_shown]], others[n_shown:])


def _tables(result: Any, best: pd.DataFrame) -> list[Section]:
    numbers = [
        Column("verdict"),
        Column("right", "right, %"),
        Column("right_baseline", "best rule, %"),
        Column("points", "excess, points", "points_low", "points_high", digits=1),
        Column("p_adjusted"),
    ]
    more = [Column("baseline"), Column("attention"), Column("right_random", "random head, %"), Column("n_documents")]
    who = [Column("relation"), Column("looks")]
    columns = [*who, Column("name"), *numbers, *more]
    counts = result.relations.rename(columns={"n": "n_scored", **_COUNTS})
    for name in ("offset", "nearest"):
        counts[f"{name}_right"] = 100 * counts[f"accuracy_{name}"]
    counts["chance"] *= 100
    counted_columns = [*who, *map(Column, ("n_pairs", "n_scored", *_COUNTS.values(), "n_documents", "offset"))]
    counted_columns += [Column("offset_right", "its accuracy, %"), Column("nearest")]
    counted_columns += [Column("nearest_right", "its accuracy, %"), Column("chance", "chance, %")]
    caption = "Every head and relation: those that attend, then those with enough documents, by their excess"
    return [
        Table("Tables", "The best head of each relation", _in_percent(best), columns, "heads.csv"),
        Table("", "What was scored, and what position explains", counts, counted_columns, "relations.csv"),
        Table("", caption, _in_percent(ranked(result.cells)), columns, "heads.csv"),
    ]


def _in_percent(cells: pd.DataFrame) -> pd.DataFrame:
    shares = {
        "right": "accuracy",
        "right_baseline": "accuracy_baseline",
        "right_random": "accuracy_random_head",
        "points": "excess",
        "points_low": "low",
        "points_high": "high",
    }
    own = {name: 100 * cells[column].astype(float).round(12) for name, column in shares.items()}
    return cells.assign(**own, name=[f"head {head_name(row)}" for _, row in cells.iterrows()]).reset_index(drop=True)


def asked(result: Any) -> list[tuple[str, str]]:
    """The few facts that a reader asks for; the rest stands under `How it was made`."""
    how = result.provenance
    names = list(dict.fromkeys(result.relations["relation"]))
    known = dict(flatten(how))
    facts = [
        ("Model", model_with_hash(known).get("model", "")),
        ("Looks", "back only (causal)" if is_causal(result) else "both ways (bidirectional)"),
        ("Corpus", _corpus(how)),
        ("Relations", f"{', '.join(names)} ({counted(len(result.relations), 'direction')})"),
        ("Baseline", _corpus_chosen_on(how)),
        ("Too long", _too_long(how["too_long"])),
        *((key.capitalize(), known.get(key, "")) for key in ("seed", "device", "dtype")),
    ]
    return [(name, text) for name, text in facts if text]


def _corpus(how: Mapping[str, Any]) -> str:
    documents = counted(how["n_documents"], "document")
    if how["n_clusters"] < how["n_documents"]:
        documents += f" in {how['n_clusters']:,} groups of neighbours, each of which counts as one document below"
    parts = [documents, counted(how["n_sentences"], "sentence"), counted(how["n_words"], "word")]
    return f"{_files(how.get('data', ()), ': ')}{', '.join(parts)} (hash {str(how['data_hash'])[:12]})"


def _corpus_chosen_on(how: Mapping[str, Any]) -> str:
    halves = "the other half"
    if str(how["chosen_on"]).startswith(halves):
        return f"chosen on {halves} of the documents; every head is tested"
    where = _files(how.get("choose_on", ()), "") or "another corpus"
    return f"chosen, as one head of each relation and direction, on {where} (hash {how['chosen_on'][:12]})"


def _files(paths: Sequence[str], ending: str) -> str:
    return f"{', '.join(Path(path).name for path in paths)}{ending}" if paths else ""


def _too_long(sentences: Any) -> str:
    return f"{counted(len(sentences), 'sentence')}, left out: longer than the model's context" if sentences else ""


def how_to_read(result: Any) -> list[tuple[str, str]]:
    """What the page's terms mean."""
    how, minimum = result.provenance, points(result.provenance["min_effect"], 0)
    halves = bool(result.cells["chosen"].astype(bool).all())
    tested = "all heads and relations" if halves else "the heads that were chosen"
    chosen_on = (
        "the other half of the documents; where the halves choose different rules, both are named."
        if halves
        else "another corpus, as the head of each relation is. The other heads were measured, and not tested: they "
        "have no p and no verdict."
    )
    selected = "That of the best of many heads is too narrow: the adjusted p speaks. " if halves else ""
    ahead = "the related word stands ahead of one that looks back only; " if is_causal(result) else ""
    return [
        (
            "Pair",
            "a word that looks, and the words that it should find; any of them counts as found. A word that several "
            "others depend on is one pair, so the two directions of a relation can differ in number.",
        ),
        (
            "Accuracy",
            "the share of the pairs in which the word that the head attends to most, of those it may choose among, is "
            f"one of these. {_choice(set(how['exclude']))} Attention to a word of several tokens is the sum over them; "
            "attention from it is the mean.",
        ),
        (
            "Baseline",
            "the rule that is right most often without any attention: a fixed offset (offset -2: two words before), "
            "the first or last word, the nearest word of a part of speech (nearest VERB before), the word of the most "
            f"tokens, or chance. It is chosen on {chosen_on}",
        ),
        (
            "Excess",
            "accuracy less the baseline's on the same pairs, in points of 100. [low, high] is its 95 % interval, for "
            f"one head by itself: a bootstrap that draws whole documents. {selected}With fewer than "
            f"{FEWEST_DOCUMENTS} documents nothing is decided.",
        ),
        (
            "Adjusted p",
            "the p-value of “an excess of no more than the minimum”, by a studentised bootstrap of whole documents, "
            f"corrected over {tested} of this report {CORRECTIONS[how['correction']]}.",
        ),
        (
            "Verdict",
            f"“attends” needs an excess that is shown to be above {minimum} points (adjusted p ≤ {how['alpha']:g}); "
            "“none” one that is shown to be below, over all heads, too; what is neither is undecided, and so is every "
            f"head where the baseline leaves less than {minimum} points to be better by. That is where a head looks: "
            "whether the model needs it, ablation tells.",
        ),
        (
            "Left out",
            f"pairs of which nothing can be told: {ahead}a word shares a token with another, or has none (unaligned); "
            "the related words stand outside of what is read at once (outside); there is nothing, or nothing wrong, to "
            "choose (no choice); or no other document could choose a baseline (no baseline).",
        ),
    ]


def _choice(excluded: set[str]) -> str:
    if excluded == {"special", "self"}:
        return "The word itself and tokens of no word, such as BOS, are no choice."
    if not excluded:
        return "The word itself and tokens of no word, such as BOS, may be chosen too."
    if excluded == {"self"}:
        return "The word itself is no choice; tokens of no word, such as BOS, are."
    return "Tokens of no word, such as BOS, are no choice; the word itself is."


def pictured_heads(maps: pd.DataFrame, cells: pd.DataFrame) -> tuple[PicturedHead, ...]:
    """The examples of every direction that has some, in their order."""
    by_head = cells.set_index([*DIRECTION, "layer", "head"], drop=False).sort_index()
    return tuple(
        _pictured(rows, by_head.loc[key]) for key, rows in maps.groupby([*DIRECTION, "layer", "head"], sort=False)
    )


def _pictured(rows: pd.DataFrame, cell: pd.Series) -> PicturedHead:
    placed = []
    for number, (_, each) in enumerate(rows.groupby(list(EXAMPLE), sort=False)):
        words = each.sort_values("word").reset_index(drop=True)
        query = int(np.flatnonzero(words["is_query"])[0])
        placed.append(words.assign(example=number, caption=_caption(words), key_pos=words.index, query_pos=query))
    return pictured_head(
        pd.concat(placed).assign(verdict=cell["verdict"] if pd.notna(cell["verdict"]) else ""),
        title=f"{direction_name(cell)}: head {head_name(cell)}",
        note=f"Right in {percent(cell['accuracy'])} of all {cell['n']:,} pairs that were scored.",
    )


def _caption(words: pd.DataFrame) -> str:
    first = words.iloc[0]
    if first["is_right"]:
        return f"{first['sentence']} — right here"
    choice = words.loc[words["is_choice"], "token"]
    instead = f"“{choice.iloc[0]}”" if len(choice) else "what is not shown"
    return f"{first['sentence']} — wrong here: it attends most to {instead}"
