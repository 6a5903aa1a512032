"""How do relations and heads become a table that a browser colours? Excess in points, with the verdict's symbol.

How does one read a page about relations? The few lines that every number on it rests on.

What they say of the statistics is what ``interp.methods.relations.attend`` and ``interp.methods.relations.scores`` do.

Which columns of the relations and heads does a page show? Sortable tables; all else is in the CSV files.

How does a reader see heads against relations? One self-contained HTML page, as the dossier's.

1. That a causal model looks back only comes first, then the findings, heads that attend at the top; then what was
   asked.
2. The heatmap is a table with colours; hovering over a cell tells its numbers.
3. Examples show where the best heads look.
4. The tables can be sorted; of very many heads they have the first. Provenance is folded away.

Where does a report about relations go? One folder, as the dossier's: written whole or not at all.

What does a notebook show of heads against relations? The page's finding for each direction, and its best heads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from interp.report.drawing import ordinary_style, write_pictures
from interp.report.folder import RELATIONS, check_output, in_place_of, write_manifest
from interp.report.glance import MOST_DRAWN, Glance, numbers
from interp.report.heads_frames import Verdict
from interp.report.heads_reading import CORRECTIONS
from interp.report.heatmap import Cell, Heatmap
from interp.report.html import attention_data, flatten, model_with_hash, render
from interp.report.relations_figures import (
    RelationPanel,
    baselines_figure,
    headings,
    paint_excess,
    panel,
    pictured_heads,
    relations,
    relations_figure,
    row_names,
)
from interp.report.relations_sentences import (
    ATTENDS,
    DIRECTION,
    FEWEST_DOCUMENTS,
    NONE,
    REASONS,
    UNDECIDED,
    UNTESTABLE,
    VERDICTS,
    DirectionSummary,
    RelationFrames,
    check_relations,
    direction_name,
    head_name,
    is_causal,
    leading,
    looks_back_only,
    ranked,
    summarise,
)
from interp.report.sortable import Table, sortable
from interp.report.words import counted, interval, p_value, percent, points


def relation_heatmap(frames: RelationFrames, panel: RelationPanel) -> Heatmap:
    """Colour the excess of every head of `panel`."""
    cells = frames.cells.set_index([*DIRECTION, "layer", "head"], drop=False).sort_index()
    rows = tuple(
        (name, tuple(_cell(cells.loc[(*direction, *head)], panel.bound) for head in panel.heads))
        for direction, name in zip(panel.directions, row_names(frames, panel), strict=True)
    )
    return Heatmap("Relation", headings(panel.heads), rows, ())


def _cell(row: pd.Series, bound: float) -> Cell:
    text = points(row["excess"], 0)
    symbol = VERDICTS[row["verdict"]].symbol if pd.notna(row["verdict"]) else ""
    # Rounded before it is painted: what reads as 0 has one colour.
    return Cell(text, symbol, paint_excess(float(text) / 100, bound).style, _title(row))


def _title(row: pd.Series) -> str:
    ends = [f"excess {points(row['excess'])} points"]
    if pd.notna(row["low"]):
        ends[0] += f" {interval(row['low'], row['high'])}"
    ends += [p_value(row["p_adjusted"])] if pd.notna(row["p_adjusted"]) else []
    verdict = row["verdict"] if pd.notna(row["verdict"]) else "not tested"
    return (
        f"Head {head_name(row)}, {direction_name(row['relation'], row['looks'])}: right in {percent(row['accuracy'])}, "
        f"{row['baseline']} in {percent(row['accuracy_baseline'])}; {', '.join(ends)} ({verdict})"
    )


def how_to_read(frames: RelationFrames) -> tuple[tuple[str, str], ...]:
    """What the page's terms mean, as (term, explanation) pairs."""
    how, minimum = frames.provenance, points(frames.provenance["min_effect"], 0)
    halves = bool(frames.cells["chosen"].astype(bool).all())
    tested = "all heads and relations" if halves else "the heads that were chosen"
    return (
        (
            "Pair",
            "a word that looks, and the words that it should find; any of them counts as found. A word that several "
            "others depend on is one pair, so the two directions of a relation can differ in number.",
        ),
        (
            "Accuracy",
            "the share of the pairs in which the word that the head attends to most, of those it may choose among, is "
            f"one of these. {_choice(frames)} Attention to a word of several tokens is the sum over them; attention "
            "from it is the mean.",
        ),
        (
            "Baseline",
            "the rule that is right most often without any attention: a fixed offset (offset -2: two words before), "
            "the first or last word, the nearest word of a part of speech (nearest VERB before), the word of the most "
            f"tokens, or chance. It is chosen on {_chosen_on(halves)}",
        ),
        (
            "Excess",
            "accuracy less the baseline's on the same pairs, in points of 100. [low, high] is its 95 % interval: a "
            f"bootstrap that draws whole documents. {_selected(halves)}With fewer than {FEWEST_DOCUMENTS} documents "
            "nothing is decided.",
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
        ("Left out", _left_out(frames)),
    )


def _selected(halves: bool) -> str:
    if not halves:
        return ""
    return "It is that of one head by itself: of the best of many it is too narrow, and the adjusted p speaks. "


def _choice(frames: RelationFrames) -> str:
    excluded = set(frames.provenance["exclude"])
    if excluded == {"special", "self"}:
        return "The word itself and tokens of no word, such as BOS, are no choice."
    if not excluded:
        return "The word itself and tokens of no word, such as BOS, may be chosen too."
    if excluded == {"self"}:
        return "The word itself is no choice; tokens of no word, such as BOS, are."
    return "Tokens of no word, such as BOS, are no choice; the word itself is."


def _chosen_on(halves: bool) -> str:
    if not halves:
        return (
            "another corpus, as the head of each relation is. The other heads were measured, and not tested: they have "
            "no p and no verdict."
        )
    return "the other half of the documents; where the halves choose different rules, both are named."


def _left_out(frames: RelationFrames) -> str:
    ahead = "the related word stands ahead of one that looks back only; " if is_causal(frames) else ""
    return (
        f"pairs of which nothing can be told: {ahead}a word shares a token with another, or has none (unaligned); the "
        "related words stand outside of what is read at once (outside); there is nothing, or nothing wrong, to choose "
        "(no choice); or no other document could choose a baseline (no baseline). The table of relations counts them."
    )


MOST_ROWS = 200
_NUMBERS = ("accuracy", "attention", "accuracy_baseline", "excess", "excess_low", "excess_high", "p_adjusted")
_HEADS = (*DIRECTION, "name", "verdict", *_NUMBERS, "baseline", "accuracy_random_head", "n_scored", "n_documents")
_RELATIONS = (
    *(*DIRECTION, "best_head", "verdict", *_NUMBERS, "baseline", "n_pairs", "n_scored"),
    *(f"n_{reason.replace(' ', '_')}" for reason in REASONS),
    *("n_documents", "offset", "accuracy_offset", "nearest", "accuracy_nearest", "accuracy_random_head", "chance"),
)


def relations_table(frames: RelationFrames) -> Table:
    """Every direction with its best head, and what was not scored."""
    renamed = {reason: f"n_{reason.replace(' ', '_')}" for reason in REASONS}
    counted = frames.relations.rename(columns={"n": "n_scored", **renamed})
    best = _named(leading(frames.cells)).drop(columns=["n_scored", "n_documents"]).rename(columns={"name": "best_head"})
    return sortable(counted.merge(best, on=list(DIRECTION), how="left", validate="one_to_one"), _RELATIONS)


def heads_table(frames: RelationFrames) -> tuple[Table, str]:
    """The first heads in the order of ``leading.py``, and the table's caption."""
    order = ranked(frames.cells)
    caption = "Every head and relation: those that attend, then those with enough documents, by their excess"
    if len(order) > MOST_ROWS:
        caption = (
            f"The first {MOST_ROWS} of {len(order):,}: heads that attend, then those with enough documents, by their "
            "excess; all of them are in heads.csv"
        )
    return sortable(_named(order.head(MOST_ROWS)), _HEADS), caption


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    renamed = {"low": "excess_low", "high": "excess_high", "n": "n_scored"}
    return frame.rename(columns=renamed).assign(name=[head_name(row) for _, row in frame.iterrows()])


_FEW = 6
"""Directions with the same verdict that are not folded away."""
_TITLES = {
    ATTENDS: "Relations that a head attends to",
    UNDECIDED: "Undecided",
    NONE: "Relations that no tested head attends to by the minimum",
    UNTESTABLE: "Not testable",
}
_CAPTION = (
    "Excess accuracy over the best rule without attention, in points of 100 pairs; blue above it; below it sand, which "
    "fades with the distance"
)


@dataclass(frozen=True)
class Findings:
    """The directions with one verdict; ``further`` are folded away."""

    verdict: Verdict
    title: str
    shown: tuple[DirectionSummary, ...]
    further: tuple[DirectionSummary, ...]


def render_relations(frames: RelationFrames, maps: pd.DataFrame | None = None, *, command: str | None = None) -> str:
    """The report as one HTML document.

    Args:
        frames: Of the scoring.
        maps: Of the examples; None without.
        command: The command line that asked for it, shown for whoever wants to repeat it.

    Raises:
        InputError: The frames are not those of a scoring; see ``frames.check_relations``.
    """
    check_relations(frames, maps)
    shown, (table, caption) = panel(frames), heads_table(frames)
    heads = () if maps is None else pictured_heads(maps, frames.cells)
    return render(
        "attend.html",
        asked=asked(frames),
        looks_back_only=looks_back_only(frames),
        findings=_findings(summarise(frames)),
        heatmap=None if shown is None else relation_heatmap(frames, shown),
        heatmap_caption=_CAPTION,
        left_out="" if shown is None else shown.left_out,
        verdicts=[each for name, each in VERDICTS.items() if name != UNTESTABLE],
        heads=heads,
        attention_data=attention_data(head.rows for head in heads),
        relations_table=relations_table(frames),
        heads_table=table,
        heads_caption=caption,
        reading=how_to_read(frames),
        command=command,
        provenance=flatten(frames.provenance),
    )


def asked(frames: RelationFrames) -> list[tuple[str, str]]:
    """The few facts that belong at the top; the rest stands under `How it was made`."""
    how = frames.provenance
    names = list(dict.fromkeys(frames.relations["relation"]))
    known = dict(flatten(how))
    facts = [
        ("Model", model_with_hash(known).get("model", "")),
        ("Looks", "back only (causal)" if is_causal(frames) else "both ways (bidirectional)"),
        ("Corpus", _corpus(how)),
        ("Relations", f"{', '.join(names)} ({counted(len(frames.relations), 'direction')})"),
        ("Baseline", _corpus_chosen_on(how)),
        ("Too long", _too_long(how["too_long"])),
        *((key.capitalize(), known.get(key, "")) for key in ("seed", "device", "dtype")),
    ]
    return [(name, text) for name, text in facts if text]


def _corpus(how: Any) -> str:
    parts = [_documents(how)] if "n_documents" in how else []
    parts += [counted(how["n_sentences"], "sentence"), counted(how["n_words"], "word")]
    return f"{_files(how.get('data', ()), ': ')}{', '.join(parts)} (hash {str(how['data_hash'])[:12]})"


def _documents(how: Any) -> str:
    joined = how["n_clusters"] < how["n_documents"]
    groups = f" in {how['n_clusters']:,} groups of neighbours, each of which counts as one document below"
    return f"{counted(how['n_documents'], 'document')}{groups if joined else ''}"


def _corpus_chosen_on(how: Any) -> str:
    halves = "the other half"
    if str(how["chosen_on"]).startswith(halves):
        return f"chosen on {halves} of the documents; every head is tested"
    where = _files(how.get("choose_on", ()), "") or "another corpus"
    return f"chosen, as one head of each relation and direction, on {where} (hash {how['chosen_on'][:12]})"


def _files(paths: Sequence[str], ending: str) -> str:
    """Files by their names; empty where the corpus came from no file."""
    return f"{', '.join(Path(path).name for path in paths)}{ending}" if paths else ""


def _too_long(sentences: Any) -> str:
    return f"{counted(len(sentences), 'sentence')}, left out: longer than the model's context" if sentences else ""


def _findings(summaries: Sequence[DirectionSummary]) -> list[Findings]:
    groups = []
    for name, title in _TITLES.items():
        own = tuple(each for each in summaries if each.verdict == name)
        most = len(own) if name == ATTENDS else _FEW
        if own:
            groups.append(Findings(VERDICTS[name], title, own[:most], own[most:]))
    return groups


@ordinary_style()
def save_relations(
    frames: RelationFrames, maps: pd.DataFrame | None, out: str | Path, command: str | None = None
) -> Path:
    """Write what was found about heads and relations into the folder `out`.

    These are ``relations.csv``, ``heads.csv``, ``heads.parquet``, ``report.html`` and ``manifest.json``; with examples
    also ``attention_maps.parquet``; where anything was scored also ``figures``.

    Args:
        frames: Of the scoring.
        maps: Where the best heads look in examples, as ``interp.methods.relations.examples`` gives it; None without.
        out: The folder; made, with its parents, or replaced where it holds an older report.
        command: The command line that asked for it, for the page and the manifest.

    Returns:
        The folder, as an absolute path.

    Raises:
        OutputError: If `out` cannot be used; see ``check_output``.
        InputError: If the frames are not those of a scoring.
    """
    folder = check_output(out)
    page = render_relations(frames, maps, command=command)
    draws = {"relations": partial(relations_figure, frames), "baselines": partial(baselines_figure, frames)}
    with in_place_of(folder) as draft:
        frames.relations.to_csv(draft / "relations.csv", index=False)
        frames.cells.to_csv(draft / "heads.csv", index=False)
        frames.cells.to_parquet(draft / "heads.parquet", index=False)
        if maps is not None:
            maps.to_parquet(draft / "attention_maps.parquet", index=False)
        write_pictures(draws, draft / "figures")
        (draft / "report.html").write_text(page, encoding="utf-8")
        write_manifest(draft, frames.provenance, command, kind=RELATIONS)
    return folder


def relations_glance(result: RelationFrames) -> Glance:
    """What a notebook shows of ``interp.attend``."""
    first = ranked(result.cells[result.cells["chosen"].astype(bool)])
    excess = [f"{points(row['excess'])} {interval(row['low'], row['high'])}" for _, row in first.iterrows()]
    shown = pd.DataFrame(
        {
            "relation": first["relation"],
            "who looks at whom": first["looks"],
            "head": [head_name(row) for _, row in first.iterrows()],
            "accuracy": first["accuracy"].map(percent),
            "best rule": first["accuracy_baseline"].map(percent),
            "excess (points)": excess,
            "adjusted p": numbers(first["p_adjusted"], 4),
            "verdict": first["verdict"],
        }
    )
    looks = ", looking back only" if is_causal(result) else ""
    n_drawn = result.cells[["relation", "looks", "layer", "head"]].drop_duplicates()
    return Glance(
        f"Heads against relations: {counted(int(result.provenance['n_sentences']), 'sentence')}{looks}",
        [each.finding for each in summarise(result)],
        shown,
        len(result.cells),
        ".frame",
        result.provenance,
        "interp.plots.relations(result)",
        (lambda: relations(result)) if len(n_drawn) <= MOST_DRAWN else None,
    )
