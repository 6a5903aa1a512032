"""The page of probes: every head in its place, the findings in sentences, and cells beside their controls."""

from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from interp.report import probes_figures as figures
from interp.report import probes_sentences as sentences
from interp.report.heatmap import Heatmap
from interp.report.html import facts
from interp.report.notebook import MOST_DRAWN
from interp.report.probes_sentences import CONTROLS, cell_kind, measure_of
from interp.report.sections import MOST_ROWS, Facts, Heatmaps, Page, Picture, Section, Sentences, Table
from interp.report.tables import Column, columns_of
from interp.report.words import about, counted, listed

_DENSE = 12
"""From more heads a layer on, a heatmap's cells are small."""
_SCORES = (
    Column("verdict"),
    Column("score", "", "low", "high"),
    Column("toughest"),
    Column("score_baseline", "its score"),
    Column("excess", "", "excess_low", "excess_high"),
    Column("p_adjusted"),
    Column("selectivity", "", "selectivity_low", "selectivity_high"),
)
_NUMBERS = (
    *columns_of("score_seen", "control", "compression", "compression_control"),
    *(*columns_of(*CONTROLS), Column("bits", digits=0), *columns_of("n_words", "n_documents", "n_lemmas")),
)
_SHARES = ("score", "score_baseline", "score_seen", "control", *CONTROLS, "excess", "selectivity")
_KINDS = {
    "logistic": "logistic regression (linear), penalised by L2",
    "ridge": "least squares (linear), penalised by L2",
    "lda": "linear discriminant analysis, shrunk",
    "mlp": "a network with one hidden layer (not linear), by weight decay",
}
_SITES = {
    "z": "what each head reads off the words that it attends to",
    "result": "what each head writes into the stream",
    "q": "queries",
    "k": "keys",
    "v": "values",
    "embed": "embeddings of tokens",
    "pos_embed": "embeddings of positions",
    "resid_pre": "the stream before each layer",
    "resid_mid": "the stream between each layer's attention and its MLP",
    "resid_post": "the stream after each layer",
    "attn_out": "what each layer's attention writes",
    "mlp_out": "what each layer's MLP writes",
    "mlp_pre": "neurons of each layer's MLP, before their function",
    "mlp_post": "neurons of each layer's MLP",
}
_FEATURES = {
    "upos": "universal part of speech of the word that is read",
    "deprel": "dependency label of the word that is read, without its subtype",
    "distance": "how many words after the word that is read its head stands (below 0: before it)",
    "entity": "type of the entity that is mentioned, read at the mention's head",
    "number": "number of a verb's subject, read at the word before the verb",
    "gender": "gender of a pronoun's antecedent, read at the word before the pronoun",
    "antecedent": "lemma of a pronoun's antecedent, read at the pronoun",
}
_READ_AT = {
    "at": {"query": "the position that predicts the answer", "related": "the related word"},
    "pooling": {
        "first": "first token of a word",
        "last": "last token of a word",
        "mean": "mean over a word's tokens",
    },
    "context": {"document": "in windows of documents", "sentence": "in sentences by themselves"},
}
_CLASSES = 6
"""Of so many at most each is named with its words."""


def page_of(result: Any) -> Page:
    """The sections of what ``interp.probe`` found; of several sites, the headline and the maps of each."""
    sites = list(result.cells["site"].unique())
    alone = len(sites) == 1
    by_site = {site: result if alone else result.at(site) for site in sites}
    draws = {(site, name): draw for site, each in by_site.items() for name, draw in figures.figures(each).items()}
    title = f"Probes: {result.provenance['feature']} in {result.provenance['site']}"
    size = f"{counted(len(result.words), 'word')}, {sentences.counts(result)}"
    return Page(
        title=title,
        kind="probes",
        sections=tuple(_sections(result, by_site, title)),
        provenance=result.provenance,
        about=about(result.provenance, size),
        cautions=tuple(dict.fromkeys(text for each in by_site.values() for text in sentences.cautions(each))),
        call=f"interp.plots.probes(result{'' if alone else f'.at({sites[0]!r})'})",
        frames={"probes": result.cells, "words": result.words},
        draws={name if alone else f"{site}_{name}": draw for (site, name), draw in draws.items()},
    )


def _sections(result: Any, by_site: dict[str, Any], title: str) -> list[Section]:
    found: list[Section] = []
    alone, there = len(by_site) == 1, set(result.cells["verdict"])
    legend = " ".join(f"{each.marked}: {each.meaning}." for name, each in sentences.VERDICTS.items() if name in there)
    dense = "dense" if "head" in result.cells and result.cells["head"].nunique() > _DENSE else ""
    maps = [(f"{'' if alone else f'{site}: '}{text}", map) for site, own in by_site.items() for text, map in _maps(own)]
    if maps:
        found.append(Heatmaps("Heatmap", maps, legend, dense))
    if alone and len(result.cells) <= MOST_DRAWN:
        found.append(Picture("", "probes", partial(figures.probes, result), title))
    found.append(_findings(by_site))
    toughest = figures.MARKS[figures.TOUGHEST]
    note = f"{toughest.symbol} {toughest.meaning}.{'' if maps else f' {legend}'}"
    for site, each in by_site.items():
        grid = (_controls_caption(each), figures.controls_grid(each).heatmap())
        found.append(Heatmaps("Controls" if alone else f"Controls at {site}", [grid], note))
    found += _tables(result, alone)
    found.append(Facts("What was asked", asked(result)))
    found.append(Facts("How to read this", sentences.how_to_read(result)))
    return found


def _findings(by_site: dict[str, Any]) -> Sentences:
    summaries = {site: sentences.summarise(each) for site, each in by_site.items()}
    if len(summaries) > 1:
        return Sentences("Findings", [f"{site}: {each.headline}" for site, each in summaries.items()])
    (summary,) = summaries.values()
    return Sentences("Findings", [summary.headline, *summary.findings], (), " ".join(summary.notes))


def _maps(result: Any) -> list[tuple[str, Heatmap]]:
    """Every head, with captions; none where cells are no heads, or there is one alone."""
    if cell_kind(result) != "head" or len(result.cells) == 1:
        return []
    name, (low, _) = measure_of(result).title, sentences.scale_of(result, "score")
    captions = {
        "score": f"Score ({name}); no colour up to the majority's {low:.2f}",
        "selectivity": f"Selectivity (difference of {name}); no colour up to 0",
    }
    return [(caption, figures.map_of_heads(result, column).heatmap()) for column, caption in captions.items()]


def _controls_caption(result: Any) -> str:
    kind, shown, n_cells = cell_kind(result), len(figures.beside(result)), len(result.cells)
    which = f"The best {shown} of {n_cells:,} {kind}s" if shown < n_cells else f"Every {kind}"
    return f"{f'The {kind}' if n_cells == 1 else which} beside the controls ({measure_of(result).title})"


def _tables(result: Any, alone: bool) -> list[Table]:
    """The scores with their intervals and verdicts; then every other number."""
    kind = cell_kind(result)
    order = sentences.ranked(result.cells) if kind == "head" else result.cells
    shown = order.head(MOST_ROWS).rename(columns={"n": "n_words"})
    names = [sentences.cell_name(row) for _, row in shown.iterrows()]
    shown = shown.assign(name=names, toughest=shown["baseline"].map(sentences.CONTROL_NAMES))
    caption = f"Every {kind}" + (": those that encode the feature, then by their excess" if kind == "head" else "")
    if len(order) > MOST_ROWS:
        first_of = f"The first {MOST_ROWS} of {len(order):,} {kind}s"
        caption = f"{first_of}, by verdict and excess; all of them are in probes.csv"
    cell = (*columns_of(*(() if alone else ("site",))), Column("name", kind))
    rest = f"{caption}: controls and counts"
    parts = [(*cell, *_SCORES), (*cell, *_NUMBERS)]
    if measure_of(result).in_points:
        parts = [tuple(map(_in_points, each)) for each in parts]
    return [
        Table("Cells", caption, shown, parts[0], "probes.csv", len(order)),
        Table("", rest, shown, parts[1], "probes.csv", len(order)),
    ]


def _in_points(column: Column) -> Column:
    """As sentences have it: a share of words in points of 100."""
    unit = ", points" if column.name in ("excess", "selectivity") else ", %"
    return replace(column, heading=column.title + unit, percent=True) if column.name in _SHARES else column


def asked(result: Any) -> list[tuple[str, str]]:
    """What was asked, as names of facts and what they are."""
    how, measure = result.provenance, measure_of(result)
    site, penalties = str(how["site"]), how["penalties"]
    chosen = f"; of {len(penalties)} strengths of the penalty, one is chosen within each training set"
    fitted = f"; {how['n_probes']:,} fitted" if "n_probes" in how else ""
    apart = "no word is tested that shares one of these with a word of the training"
    return facts(
        how,
        "model",
        ("Feature", _feature_name(result)),
        ("Site", f"{site} ({_SITES[site]})" if site in _SITES else site),
        ("Data", _data(result)),
        ("Words", f"{counted(len(result.words), 'word')} with a label, in {sentences.counts(result)}"),
        ("Labels", _labels(result)),
        ("Read at", ", ".join(names[how[key]] for key, names in _READ_AT.items() if how.get(key) in names)),
        ("Held out", f"{' and '.join(how['held_out'])}: {apart} ({how['cv']} folds of each)"),
        ("Probe", f"{_KINDS.get(how['kind'], how['kind'])}{chosen if len(penalties) > 1 else ''}{fitted}"),
        ("Score", f"{measure.title}: {measure.meaning}"),
        *("seed", "device", "dtype"),
    )


def _feature_name(result: Any) -> str:
    """The feature, and where it is read."""
    name = str(result.provenance["feature"])
    kind, colon, rest = name.partition(":")
    if sentences.of_task(result):
        return f"{name}, as the task's examples have it"
    if colon and kind in ("feats", "sense"):
        what = f"morphological feature {rest}" if kind == "feats" else f"sense of “{rest}”"
        return f"{name}: {what} of the word that is read"
    return f"{name}: {_FEATURES[name]}" if name in _FEATURES else name


def _data(result: Any) -> str:
    how = result.provenance
    ending = f" (hash {str(how['data_hash'])[:12]})" if "data_hash" in how else ""
    if "task" in how:
        return f"task {how['task']}{ending}"
    if how.get("store"):
        folder = f", {Path(how['store']).name}" if isinstance(how["store"], str) else ""
        return f"stored activations{folder}{ending}"
    files = ", ".join(Path(path).name for path in how.get("data", ()))
    read = counted(how["n_documents"], "document") if "n_documents" in how else ""
    return ": ".join(filter(None, (files, read))) + ending


def _labels(result: Any) -> str:
    """The classes by their size, or the span of the numbers."""
    values = result.words["value"].astype(str)
    if result.provenance["measure"] == "R2":
        numbers = pd.to_numeric(values)
        return f"numbers from {numbers.min():g} to {numbers.max():g}, on average {numbers.mean():.2f}"
    named = [f"{name} ({n:,})" for name, n in Counter(values).most_common()]
    return listed(named) if len(named) <= _CLASSES else f"{len(named)} classes, from {named[0]} to {named[-1]}"
