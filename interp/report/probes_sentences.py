"""What is said of probes: the findings in sentences, what was asked, how to read the page, and what speaks against it.

The cell that speaks for all is the first of those that encode the feature, then of the largest excess. No sentence
claims anything without its numbers. What is said of the statistics is what ``interp.methods.probes.judging`` does.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from interp.report.heads_frames import FEWEST_CLUSTERS, MORE_CLUSTERS
from interp.report.heads_reading import CORRECTIONS
from interp.report.html import flatten, model_with_hash
from interp.report.probes_words import (
    BASELINES,
    CONTROL_NAMES,
    ENCODES,
    KINDS,
    NONE,
    UNDECIDED,
    Probed,
    cell_kind,
    cell_name,
    clusters,
    counts,
    feature_name,
    measure_of,
    of_task,
    ranked,
    resampled,
    site_name,
    spoken,
)
from interp.report.words import counted, listed, p_value

_MOST = 5
"""Further cells with a sentence of their own."""


@dataclass(frozen=True)
class ProbeSummary:
    """What was found: ``encodes`` if any cell does, ``none`` if all are shown not to, else ``undecided``; in words."""

    verdict: str
    headline: str
    notes: tuple[str, ...]
    findings: tuple[str, ...]


def summarise(result: Probed) -> ProbeSummary:
    """Put what was found into sentences."""
    verdicts = set(result.cells["verdict"])
    verdict = ENCODES if ENCODES in verdicts else NONE if verdicts == {NONE} else UNDECIDED
    notes = (_description(result), *_unmeasured(result), _unconverged(result.provenance))
    findings = (*_others(result), _counts(result), *_undecided(result))
    return ProbeSummary(verdict, _headline(result, verdict), _said(notes), _said(findings))


def _said(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(filter(None, texts))


def _headline(result: Probed, verdict: str) -> str:
    best = ranked(result.cells).iloc[0]
    feature, kind, alone = result.provenance["feature"], cell_kind(result), len(result.cells) == 1
    who, evidence = _capital(spoken(result, best)), f"{_evidence(result, best)}; {counts(result)}"
    if verdict == ENCODES:
        return f"{who} encodes {feature}: {evidence}."
    if verdict == NONE:
        said = f"{who} does not encode" if alone else f"No {kind} encodes"
        which = "" if alone else f"the best {kind}, {cell_name(best)}: "
        by = f"by the minimum of {_minimum(result)} beyond its controls"
        return f"{said} {feature} {by}: {which}{evidence}."
    which = who if alone else f"The best {kind}, {cell_name(best)}"
    return f"Undecided: {feature}. {which}: {evidence}; {why_undecided(result, best)}."


def _evidence(result: Probed, row: pd.Series) -> str:
    """The numbers of a cell: what it reaches, what a control reaches, and how much more that is."""
    measure = measure_of(result)
    excess = f"{measure.difference(row['excess'])} {measure.interval(row['excess_low'], row['excess_high'])}"
    p = p_value(row["p_adjusted"])
    selectivity = measure.interval(row["selectivity_low"], row["selectivity_high"])
    return (
        f"{measure.reached(row)}, beside {measure.value(row['score_baseline'])} ({CONTROL_NAMES[row['baseline']]}); "
        f"excess {excess}{f', {p}' if p else ''}; selectivity {measure.difference(row['selectivity'])} {selectivity}"
    )


def _description(result: Probed) -> str:
    best = ranked(result.cells).iloc[0]
    if pd.isna(best["bits"]):
        return ""
    return (
        f"Description length: {best['bits']:,.0f} bits for all {best['n']:,} labels with {spoken(result, best)}, a "
        f"compression of {best['compression']:.2f} (of the control task's labels {best['compression_control']:.2f}; 1 "
        "is none)."
    )


def _unmeasured(result: Probed) -> list[str]:
    """Which controls the excess is not over."""
    missing = [CONTROL_NAMES[name] for name in BASELINES if result.cells[name].isna().all()]
    if not missing:
        return []
    return [f"Not measured: {listed(missing)}. The excess is over the toughest of the other controls."]


def _unconverged(how: Mapping[str, Any]) -> str:
    if not how.get("n_unconverged"):
        return ""
    return f"{how['n_unconverged']:,} of {how['n_probes']:,} probes did not come to their optimum."


def _others(result: Probed) -> list[str]:
    """The further cells that encode the feature: the first with their numbers, the rest by name."""
    further = ranked(result.cells).iloc[1:]
    further = further[further["verdict"] == ENCODES]
    own = [
        f"{_capital(spoken(result, row))} encodes it too: {_evidence(result, row)}."
        for _, row in further.head(_MOST).iterrows()
    ]
    rest = [cell_name(row) for _, row in further.iloc[_MOST:].iterrows()]
    kinds = f"{cell_kind(result)}{'s' if len(rest) > 1 else ''}"
    return own + ([f"So {'do' if len(rest) > 1 else 'does'} {kinds} {listed(rest)}."] if rest else [])


def _counts(result: Probed) -> str:
    """How many cells got which verdict."""
    verdicts = result.cells["verdict"].value_counts()
    n_cells = len(result.cells)
    if n_cells == 1:
        return ""
    texts = {
        ENCODES: "encodes it" if verdicts.get(ENCODES) == 1 else "encode it",
        UNDECIDED: "is undecided" if verdicts.get(UNDECIDED) == 1 else "are undecided",
        NONE: f"{'has' if verdicts.get(NONE) == 1 else 'have'} less than {_minimum(result)} beyond the controls",
    }
    parts = [f"{verdicts[name]} {text}" for name, text in texts.items() if name in verdicts]
    if len(parts) == 1:
        return f"All {parts[0].replace(' ', f' {cell_kind(result)}s ', 1)}."
    return f"Of {counted(n_cells, cell_kind(result))}, {listed(parts)}."


def _undecided(result: Probed) -> list[str]:
    """Why cells are undecided, those with one reason together."""
    rows = ranked(result.cells)
    rows = rows[rows["verdict"] == UNDECIDED]
    if len(result.cells) == 1 or rows.empty:
        return []
    reasons = pd.Series([why_undecided(result, row) for _, row in rows.iterrows()], index=rows.index)
    return [
        f"Undecided {_names(result, rows[reasons == reason])}: {reason}." for reason in dict.fromkeys(reasons.tolist())
    ]


def _names(result: Probed, rows: pd.DataFrame) -> str:
    kind, names = cell_kind(result), [cell_name(row) for _, row in rows.iterrows()]
    if len(names) == len(result.cells):
        return f"are all {kind}s"
    return f"is {kind} {names[0]}" if len(names) == 1 else f"are {kind}s {listed(names)}"


def why_undecided(result: Probed, row: pd.Series) -> str:
    """What is missing for a verdict on a cell, as a clause."""
    if row["n_documents"] < FEWEST_CLUSTERS:
        return f"a verdict needs {FEWEST_CLUSTERS} {clusters(result)}s" + f": {MORE_CLUSTERS}" * of_task(result)
    if row["n_lemmas"] < FEWEST_CLUSTERS:
        return f"a verdict needs {FEWEST_CLUSTERS} lemmas"
    if row["score_baseline"] > 1 - result.provenance["min_effect"]:
        return f"the control leaves less than the minimum of {_minimum(result)} to be better by"
    if pd.isna(row["excess_low"]):
        return f"how much {resampled(result)} differ is not known"
    if row["p_adjusted"] > result.provenance["alpha"]:
        return f"neither an excess is shown, nor that it is less than the minimum of {_minimum(result)}"
    return "that its selectivity is above 0 is not shown"


def _minimum(result: Probed) -> str:
    measure, minimum = measure_of(result), result.provenance["min_effect"]
    return f"{100 * minimum:g} points" if measure.in_points else f"{minimum:g}"


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def how_to_read(result: Probed) -> tuple[tuple[str, str], ...]:
    """What the page's terms mean, as (term, explanation) pairs."""
    unit = "in points of 100 words" if measure_of(result).in_points else "as a share of the variance"
    return (
        ("Score", _score(result)),
        ("Controls", _controls(result)),
        (
            "Excess",
            "the score less that of the toughest control (of majority, embedding, position and untrained) on the same "
            f"words, {unit}. With fewer than {FEWEST_CLUSTERS} {resampled(result).replace('and', 'or')} nothing is "
            "decided.",
        ),
        ("Selectivity", _selectivity(unit)),
        (
            "Compression",
            "how many times fewer bits describe all labels, where probes that have seen more and more of them predict "
            "the next (online code), than where nothing is known. A feature that is easy to extract compresses much, "
            "the control task should not; below 1 the probes predict worse than chance.",
        ),
        ("Adjusted p", _p(result)),
        ("Verdict", _verdict(result)),
        *([_CLUSTER] if of_task(result) else []),
    )


_CLUSTER = ("Cluster", "the words of one lexical draw, such as a subject's noun with both of its numbers.")


def _score(result: Probed) -> str:
    measure, groups = measure_of(result), resampled(result)
    wider = "; of the two the wider counts" if "lemmas" in groups else ""
    return (
        f"{measure.title}: {measure.meaning}, on words that share nothing that is held out with those that the probe "
        f"was trained on. [low, high] is its 95 % interval: a bootstrap that draws whole {groups}{wider}. It tells how "
        f"much {groups} differ: where all words are right it has no width. It is that of one {cell_kind(result)} by "
        "itself: of the best of many it is too narrow, and the adjusted p speaks."
    )


def _p(result: Probed) -> str:
    groups = resampled(result)
    larger = "; of the two the larger counts" if "lemmas" in groups else ""
    return (
        "the p-value of “an excess of no more than the minimum”, by a studentised bootstrap of whole "
        f"{groups}{larger}. It is corrected over all cells of this report "
        f"{CORRECTIONS[result.provenance['correction']]}."
    )


def _controls(result: Probed) -> str:
    return (
        f"what is reached without the feature being there. Majority: {measure_of(result).ignorant}. Embedding: a probe "
        "on the embedding of the token that is read, which has seen no other word. Position: on where it stands. "
        "Untrained: on the same place of a model of the same shape with random weights. Permuted: on the labels in "
        "random order; it shows how far chance goes, and is no bar."
    )


def _selectivity(unit: str) -> str:
    return (
        "the score less that of the control task, both on folds in which words may be known from training (“score, "
        f"known words”), {unit}. In the control task every type of the word that carries the feature (of senses, which "
        "no word carries, every occurrence) has a label at random, always the same: what a probe learns of it, it has "
        "learnt by heart. A probe that is not selective is strong enough to find what the model has not put there."
    )


def _verdict(result: Probed) -> str:
    how, measure = result.provenance, measure_of(result)
    minimum = f"{100 * how['min_effect']:g} points" if measure.in_points else f"{how['min_effect']:g}"
    return (
        f"“encodes” needs an excess that is shown to be above {minimum} (adjusted p ≤ {how['alpha']:g}) and a "
        f"selectivity that is shown to be above 0; “none” one that is shown to be below {minimum}, over all cells, "
        "too; what is neither is undecided, and so is all where a control leaves less than that to be better by. "
        "Encoding is what can be read: whether the model uses it, erasure and ablation tell."
    )


_CLASSES = 6
"""Of so many at most each is named with its words."""


def title(result: Probed) -> str:
    """What a page is called."""
    how = result.provenance
    return f"Probes: {how['feature']} in {how['site']}"


def asked(result: Probed) -> list[tuple[str, str]]:
    """Names of facts, and what they are; the rest stands under `How it was made`."""
    how = result.provenance
    known = dict(flatten(how))
    facts = [
        ("Model", model_with_hash(known).get("model", "")),
        ("Feature", feature_name(result)),
        ("Site", site_name(result)),
        ("Data", _data(result)),
        ("Words", f"{counted(len(result.words), 'word')} with a label, in {counts(result)}"),
        ("Labels", _labels(result)),
        ("Read at", _read_at(result)),
        ("Held out", _held_out(result)),
        ("Probe", _probe(result)),
        ("Score", f"{measure_of(result).title}: {measure_of(result).meaning}"),
        *((key.capitalize(), known.get(key, "")) for key in ("seed", "device", "dtype")),
    ]
    return [(name, text) for name, text in facts if text]


def _data(result: Probed) -> str:
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


def _labels(result: Probed) -> str:
    """The classes by their size, or the span of the numbers."""
    values = result.words["value"].astype(str)
    if result.provenance["measure"] == "R2":
        numbers = pd.to_numeric(values)
        return f"numbers from {numbers.min():g} to {numbers.max():g}, on average {numbers.mean():.2f}"
    counts = Counter(values).most_common()
    named = [f"{name} ({n:,})" for name, n in counts]
    if len(named) <= _CLASSES:
        return listed(named)
    return f"{len(named)} classes, from {named[0]} to {named[-1]}"


def _read_at(result: Probed) -> str:
    how = result.provenance
    at = {"query": "the position that predicts the answer", "related": "the related word"}.get(how.get("at", ""), "")
    context = {"document": "in windows of documents", "sentence": "in sentences by themselves"}
    tokens = {"first": "first token of a word", "last": "last token of a word", "mean": "mean over a word's tokens"}
    parts = (at, tokens.get(how.get("pooling", ""), ""), context.get(how.get("context", ""), ""))
    return ", ".join(filter(None, parts))


def _held_out(result: Probed) -> str:
    how = result.provenance
    return (
        f"{' and '.join(how['held_out'])}: no word is tested that shares one of these with a word of the training "
        f"({how['cv']} folds of each)"
    )


def _probe(result: Probed) -> str:
    how = result.provenance
    penalties = how["penalties"]
    chosen = ""
    if len(penalties) > 1:
        chosen = f"; of {len(penalties)} strengths of the penalty, one is chosen within each training set"
    fitted = f"; {how['n_probes']:,} fitted" if "n_probes" in how else ""
    return f"{KINDS.get(how['kind'], how['kind'])}{chosen}{fitted}"


def cautions(result: Probed) -> list[str]:
    """Warnings, in sentences; none where nothing speaks against the scores."""
    return [text for text in (_given_away(result), _unselective(result)) if text]


def _given_away(result: Probed) -> str:
    """That the embedding alone, which says something, reaches the interval of the best score."""
    measure, best = measure_of(result), result.cells.loc[result.cells["score"].idxmax()]
    says_something = best["embedding"] - best["majority"] >= result.provenance["min_effect"]
    if not (says_something and best["embedding"] >= best["low"]):
        return ""
    return (
        "The word itself gives the feature away: a probe on its embedding alone reaches "
        f"{measure.value(best['embedding'])}, the best score is {measure.value(best['score'])} "
        f"{measure.interval(best['low'], best['high'])} ({spoken(result, best)}). What is read there need not have "
        "been computed by the model: read another word, or balance the data."
    )


def _unselective(result: Probed) -> str:
    """That no probe learns the feature better than labels at random."""
    low = result.cells["selectivity_low"]
    if low.isna().all() or (low > 0).any():
        return ""
    return (
        "Nothing is selective: no probe is shown to do better at the feature than at the control task, whose labels it "
        "can only learn by heart. The scores say as much of the probe as of the model."
    )
