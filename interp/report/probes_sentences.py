"""What is said of probes: the findings in sentences, how to read the page, and what speaks against the scores.

The cell that speaks for all is the first of those that encode the feature, then of the largest excess. No sentence
claims anything without its numbers. What is said of the statistics is what ``interp.methods.probes.judging`` does.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pandas as pd

from interp.report.probes_words import (
    BASELINES,
    CONTROL_NAMES,
    ENCODES,
    NONE,
    UNDECIDED,
    capital,
    cell_kind,
    cell_name,
    clusters,
    counts,
    measure_of,
    minimum_of,
    of_task,
    ranked,
    resampled,
    spoken,
)
from interp.report.reading import CORRECTIONS
from interp.report.words import FEWEST_CLUSTERS, MORE_CLUSTERS, counted, listed, p_value

_MOST = 5
"""Further cells with a sentence of their own."""


@dataclass(frozen=True)
class ProbeSummary:
    """What was found: ``encodes`` if any cell does, ``none`` if all are shown not to, else ``undecided``; in words."""

    verdict: str
    headline: str
    notes: tuple[str, ...]
    findings: tuple[str, ...]


def summarise(result: Any) -> ProbeSummary:
    """Put what was found into sentences."""
    verdicts = set(result.cells["verdict"])
    verdict = ENCODES if ENCODES in verdicts else NONE if verdicts == {NONE} else UNDECIDED
    findings = (*_others(result), *_counts(result), *_undecided(result))
    return ProbeSummary(verdict, _headline(result, verdict), _notes(result), findings)


def _headline(result: Any, verdict: str) -> str:
    best, feature, kind = ranked(result.cells).iloc[0], result.provenance["feature"], cell_kind(result)
    who, evidence = capital(spoken(result, best)), f"{_evidence(result, best)}; {counts(result)}"
    alone, which = len(result.cells) == 1, f"best {kind}, {cell_name(best)}"
    if verdict == ENCODES:
        return f"{who} encodes {feature}: {evidence}."
    if verdict == NONE:
        said = f"{who} does not encode" if alone else f"No {kind} encodes"
        least = f"by the minimum of {minimum_of(result)} beyond its controls"
        return f"{said} {feature} {least}: {'' if alone else f'the {which}: '}{evidence}."
    return f"Undecided: {feature}. {who if alone else f'The {which}'}: {evidence}; {why_undecided(result, best)}."


def _evidence(result: Any, row: pd.Series) -> str:
    """The numbers of a cell: what it reaches, what a control reaches, and how much more that is."""
    measure, p = measure_of(result), p_value(row["p_adjusted"])
    beside = f"{measure.value(row['score_baseline'])} ({CONTROL_NAMES[row['baseline']]})"
    return (
        f"{measure.reached(row)}, beside {beside}; excess {measure.estimate(row, 'excess')}{f', {p}' if p else ''}; "
        f"selectivity {measure.estimate(row, 'selectivity')}"
    )


def _notes(result: Any) -> tuple[str, ...]:
    """How easy the feature is to extract, which controls the excess is not over, and what did not converge."""
    best, how, notes = ranked(result.cells).iloc[0], result.provenance, []
    if not pd.isna(best["bits"]):
        notes.append(
            f"Description length: {best['bits']:,.0f} bits for all {best['n']:,} labels with {spoken(result, best)}, a "
            f"compression of {best['compression']:.2f} (of the control task's labels "
            f"{best['compression_control']:.2f}; 1 is none)."
        )
    missing = [CONTROL_NAMES[name] for name in BASELINES if result.cells[name].isna().all()]
    if missing:
        notes.append(f"Not measured: {listed(missing)}. The excess is over the toughest of the other controls.")
    if how.get("n_unconverged"):
        notes.append(f"{how['n_unconverged']:,} of {how['n_probes']:,} probes did not converge.")
    return tuple(notes)


def _others(result: Any) -> list[str]:
    """The further cells that encode the feature: the first with their numbers, the rest by name."""
    further = ranked(result.cells).iloc[1:]
    further = further[further["verdict"] == ENCODES]
    own = [
        f"{capital(spoken(result, row))} encodes it too: {_evidence(result, row)}."
        for _, row in further.head(_MOST).iterrows()
    ]
    rest = [cell_name(row) for _, row in further.iloc[_MOST:].iterrows()]
    verb = "encodes" if len(rest) == 1 else "encode"
    return own + ([f"{_named(result, rest)} {verb} it too."] if rest else [])


def _named(result: Any, names: list[str]) -> str:
    """Cells as the beginning of a sentence."""
    kind = cell_kind(result)
    if len(names) == len(result.cells):
        return f"All {kind}s"
    return capital(f"{kind}{'s' if len(names) > 1 else ''} {listed(names)}")


def _counts(result: Any) -> list[str]:
    """How many cells got which verdict."""
    found, n_cells, kind = Counter(result.cells["verdict"]), len(result.cells), cell_kind(result)
    if n_cells == 1:
        return []
    less = f"less than {minimum_of(result)} beyond the controls"
    said = {
        ENCODES: ("encodes it", "encode it"),
        UNDECIDED: ("is undecided", "are undecided"),
        NONE: (f"has {less}", f"have {less}"),
    }
    parts = [(found[name], texts[found[name] > 1]) for name, texts in said.items() if name in found]
    if len(parts) == 1:
        return [f"All {n_cells} {kind}s {parts[0][1]}."]
    return [f"Of {counted(n_cells, kind)}, {listed([f'{n} {text}' for n, text in parts])}."]


def _undecided(result: Any) -> list[str]:
    """Why cells are undecided, those with one reason together."""
    rows = ranked(result.cells)
    rows = rows[rows["verdict"] == UNDECIDED]
    if len(result.cells) == 1 or rows.empty:
        return []
    by_reason: dict[str, list[str]] = {}
    for _, row in rows.iterrows():
        by_reason.setdefault(why_undecided(result, row), []).append(cell_name(row))
    return [
        f"{_named(result, names)} {'is' if len(names) == 1 else 'are'} undecided: {reason}."
        for reason, names in by_reason.items()
    ]


def why_undecided(result: Any, row: pd.Series) -> str:
    """What is missing for a verdict on a cell, as a clause."""
    minimum = f"the minimum of {minimum_of(result)}"
    if row["n_documents"] < FEWEST_CLUSTERS:
        return f"a verdict needs {FEWEST_CLUSTERS} {clusters(result)}s" + f": {MORE_CLUSTERS}" * of_task(result)
    if row["n_lemmas"] < FEWEST_CLUSTERS:
        return f"a verdict needs {FEWEST_CLUSTERS} lemmas"
    if row["score_baseline"] > 1 - result.provenance["min_effect"]:
        return f"the control leaves less than {minimum} to be better by"
    if pd.isna(row["excess_low"]):
        return f"how much {resampled(result)} differ is not known"
    if row["p_adjusted"] > result.provenance["alpha"]:
        return f"neither an excess is shown, nor that it is less than {minimum}"
    return "that its selectivity is above 0 is not shown"


_READING = {
    "Score": "{title}: {meaning}, on words that share nothing that is held out with those that the probe was trained "
    "on. [low, high] is its 95 % interval: a bootstrap that draws whole {groups}{wider}. It tells how much {groups} "
    "differ: where all words are right it has no width. It is that of one {kind} by itself: of the best of many it is "
    "too narrow, and the adjusted p speaks.",
    "Controls": "what is reached without the feature being there. Majority: {ignorant}. Embedding: a probe on the "
    "embedding of the token that is read, which has seen no other word. Position: on where it stands. Untrained: on "
    "the same place of a model of the same shape with random weights. Permuted: on the labels in random order; it "
    "shows how far chance goes, and is no bar.",
    "Excess": "the score less that of the toughest control (of majority, embedding, position and untrained) on the "
    "same words, {unit}. With fewer than {fewest} {either} nothing is decided.",
    "Selectivity": "the score less that of the control task, both on folds in which words may be known from training "
    "(“score, known words”), {unit}. In the control task every type of the word that carries the feature (of senses, "
    "which no word carries, every occurrence) has a label at random, always the same: what a probe learns of it, it "
    "has learnt by heart. A probe that is not selective is strong enough to find what the model has not put there.",
    "Compression": "how many times fewer bits describe all labels, where probes that have seen more and more of them "
    "predict the next (online code), than where nothing is known. A feature that is easy to extract compresses much, "
    "the control task should not; below 1 the probes predict worse than chance.",
    "Adjusted p": "the p-value of “an excess of no more than the minimum”, by a studentised bootstrap of whole "
    "{groups}{larger}. It is corrected over all cells of this report {correction}.",
    "Verdict": "“encodes” needs an excess that is shown to be above {minimum} (adjusted p ≤ {alpha:g}) and a "
    "selectivity that is shown to be above 0; “none” one that is shown to be below {minimum}, over all cells, too; "
    "what is neither is undecided, and so is all where a control leaves less than that to be better by. Encoding is "
    "what can be read: whether the model uses it, erasure and ablation tell.",
    "Cluster": "the words of one lexical draw, such as a subject's noun with both of its numbers.",
}


def how_to_read(result: Any) -> list[tuple[str, str]]:
    """What the page's terms mean, as (term, explanation) pairs."""
    measure, groups, how = measure_of(result), resampled(result), result.provenance
    two = "lemmas" in groups
    facts = {
        "title": measure.title,
        "meaning": measure.meaning,
        "ignorant": measure.ignorant,
        "unit": "in points of 100 words" if measure.in_points else "as a share of the variance",
        "groups": groups,
        "either": groups.replace("and", "or"),
        "wider": "; of the two the wider counts" if two else "",
        "larger": "; of the two the larger counts" if two else "",
        "kind": cell_kind(result),
        "fewest": FEWEST_CLUSTERS,
        "correction": CORRECTIONS[how["correction"]],
        "minimum": minimum_of(result),
        "alpha": how["alpha"],
    }
    terms = [term for term in _READING if term != "Cluster" or of_task(result)]
    return [(term, _READING[term].format(**facts)) for term in terms]


def cautions(result: Any) -> list[str]:
    """What speaks against the scores: that the embedding alone reaches the best, or that no probe is selective."""
    measure, cells, said = measure_of(result), result.cells, []
    best = cells.loc[cells["score"].idxmax()]
    says_something = best["embedding"] - best["majority"] >= result.provenance["min_effect"]
    if says_something and best["embedding"] >= best["low"]:
        said.append(
            "The word itself gives the feature away: a probe on its embedding alone reaches "
            f"{measure.value(best['embedding'])}, the best score is {measure.estimate(best, 'score', '%')} "
            f"({spoken(result, best)}). What is read there need not have been computed by the model: read another "
            "word, or balance the data."
        )
    low = cells["selectivity_low"]
    if low.notna().any() and not (low > 0).any():
        said.append(
            "Nothing is selective: no probe is shown to do better at the feature than at the control task, whose "
            "labels it can only learn by heart. The scores say as much of the probe as of the model."
        )
    return said
