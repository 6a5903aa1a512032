"""What was found about heads and relations, in sentences: no claim without its numbers.

1. Of each relation and direction one head speaks: the one with the largest excess, among those that attend if any does.
2. Directions in which a head attends come first, then those with enough documents for a verdict, each by their excess.
3. A **finding** says how often the head is right, the best rule without attention, the excess with its interval, p and
   the documents; or why nothing is decided. Then how many pairs were **counted**, and what was **left out**, and why.
"""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from interp.report.cells import and_p, capital, descending, is_are
from interp.report.heads_frames import Verdict
from interp.report.page_texts import texts
from interp.report.words import FEWEST_CLUSTERS, counted, interval, listed, percent, points, size

ATTENDS, UNDECIDED, NONE, UNTESTABLE = "attends", "undecided", "none", "not testable"
_MEANINGS = (
    (ATTENDS, "●", "o", True, "finds the related word more often than the best rule without attention, clearly"),
    (UNDECIDED, "?", r"$\mathbf{?}$", True, "inconclusive data, or the rule leaves too little room for improvement"),
    (NONE, "·", ".", False, "what it finds beyond the best rule is shown to be less than the minimum"),
    (UNTESTABLE, "—", "", False, "no pair can be scored"),
)
VERDICTS = {meaning[0]: Verdict(*meaning) for meaning in _MEANINGS}
FEWEST_DOCUMENTS = FEWEST_CLUSTERS
"""Documents that a verdict needs."""
DIRECTION = ("relation", "looks")
REASONS = {
    "ahead": "whose related word stands ahead",
    "unaligned": "with a word that has no token of its own",
    "outside": "whose related words stand outside of what is read at once",
    "no choice": "without a choice to make",
    "no baseline": "in documents for which nothing else could choose a baseline",
}
"""Why pairs are not scored, by their column of a result's `relations`."""
EXAMPLE = (*DIRECTION, "document", "sentence", "query")
"""What tells the examples of ``relation_maps`` apart."""


def is_causal(result: Any) -> bool:
    """Whether the model looks back only."""
    return bool(result.provenance["attention_dir"] == "causal")


_TARGETS = {
    "anaphor to antecedent": "an antecedent",
    "antecedent to anaphor": "a later mention",
    "any word to it": "such a word",
    "query to related": "the related word",
    "related to query": "the word that it is related to",
}


_TOWARDS = {
    "query to related": "to the related word of “{relation}”",
    "related to query": "from the related word of “{relation}” to its query",
}
"""Of links, whose names are the user's."""


def direction_name(row: pd.Series) -> str:
    """A direction as sentences name it, such as ``nsubj (head to dependent)``."""
    return f"{row['relation']} ({row['looks']})"


def target(relation: str, looks: str) -> str:
    """What should be found, with its article: ``the subject`` of ``nsubj``, from head to dependent."""
    dependent = texts()["dependents"].get(relation.split(":")[0], "dependent")
    if looks == "head to dependent":
        return f"the {dependent}"
    if looks == "dependent to head":
        return f"what the {dependent} depends on"
    if relation == "coref:nearest" and looks == "anaphor to antecedent":
        return "the nearest antecedent"
    return _TARGETS.get(looks, "the related word")


def head_name(row: pd.Series) -> str:
    """A head as L.H."""
    return f"{row['layer']}.{row['head']}"


@dataclass(frozen=True)
class DirectionSummary:
    """What the evidence says about one direction of a relation.

    ``verdict`` is ``attends`` if any head does, ``none`` if every tested head is shown not to, else ``undecided``; or
    ``not testable``. ``attention`` is empty where nothing was scored, ``left_out`` where all was.
    """

    name: str
    verdict: str
    finding: str
    attention: str
    counted: str
    left_out: str

    @property
    def text(self) -> str:
        """All of it."""
        counts = "; ".join(filter(None, (self.counted, self.left_out)))
        return " ".join(filter(None, (self.finding, self.attention, f"({capital(counts)}.)")))


def summarise(result: Any) -> tuple[DirectionSummary, ...]:
    """Put every direction into sentences, the most telling first; what is not testable comes last."""
    described = {(row["relation"], row["looks"]): row for _, row in result.relations.iterrows()}
    heads = dict(list(result.cells.groupby(list(DIRECTION), sort=False)))
    found = []
    for _, best in result.leading().iterrows():
        direction = (best["relation"], best["looks"])
        tested = heads[direction][heads[direction]["chosen"].astype(bool)]
        verdicts = set(tested["verdict"])
        verdict = ATTENDS if ATTENDS in verdicts else verdicts.pop() if len(verdicts) == 1 else UNDECIDED
        finding = _finding(best, tested, verdict, result)
        found.append(_summary(described.pop(direction), verdict, finding, _attention(best), result))
    untestable = (_summary(row, UNTESTABLE, _untestable(row), "", result) for row in described.values())
    return (*found, *untestable)


def looks_back_only(result: Any) -> str:
    """What to mind about a causal model's numbers; empty for one that looks both ways."""
    if not is_causal(result):
        return ""
    return (
        "Looking back only: this model is causal, so a word sees none that comes after it. Pairs whose related word "
        "stands ahead are counted and not scored, and the rules that heads are held against look back as well. These "
        "numbers must not be compared with those of a model that looks both ways: they are of other pairs, and against "
        "other rules."
    )


def _summary(row: pd.Series, verdict: str, finding: str, attention: str, result: Any) -> DirectionSummary:
    n = int(row["n"])
    of = f"{n:,} of {counted(int(row['n_pairs']), 'pair')}"
    scored = f"looking back only: {of} can be scored" if is_causal(result) else f"{of} {is_are(n)} scored"
    scored += f", in {counted(int(row['n_documents']), 'document')}" if n else ""
    reasons = [f"{int(row[name]):,} {why}" for name, why in REASONS.items() if row[name]]
    left_out = f"not scored: {'; '.join(reasons)}" if reasons else ""
    return DirectionSummary(direction_name(row), verdict, finding, attention, scored, left_out)


def _untestable(row: pd.Series) -> str:
    why = ": no other document has such pairs, to choose a baseline on" if row["no baseline"] else ""
    return f"Not testable: {direction_name(row)}. Of {counted(int(row['n_pairs']), 'pair')}, none can be scored{why}."


def _finding(best: pd.Series, tested: pd.DataFrame, verdict: str, result: Any) -> str:
    """What the best head does, with its numbers, and which other heads do so."""
    name, head, alone = direction_name(best), head_name(best), len(tested) == 1
    evidence, which = _evidence(best), "head that was chosen" if alone else "best head"
    towards = _TOWARDS.get(best["looks"], "to {relation} ({looks})").format_map(best)
    others = tested[(tested["layer"] != best["layer"]) | (tested["head"] != best["head"])]
    if verdict == ATTENDS:
        return f"Head {head} attends {towards}: it {evidence}.{_too(others, ATTENDS)}"
    least = f"the minimum of {points(result.provenance['min_effect'], 0)} points"
    if verdict == NONE and alone:
        return f"Head {head} does not attend {towards} by {least} beyond a rule: it {evidence}."
    if verdict == NONE:
        return f"No head attends {towards} by {least} beyond a rule: the {which}, {head}, {evidence}."
    also = _too(others, UNDECIDED) if best["verdict"] == NONE else ""
    why = _why_undecided(best, result.provenance["min_effect"], least)
    return f"Undecided: {name}. The {which}, {head}, {evidence}{why}.{also}"


def _evidence(best: pd.Series) -> str:
    """How often a head is right, how often the rule is, and by how much it is better."""
    return (
        f"attends most to {target(best['relation'], best['looks'])} in {percent(best['accuracy'])} of "
        f"{counted(int(best['n']), 'pair')}, against {percent(best['accuracy_baseline'])} for “{best['baseline']}” "
        f"(excess {points(best['excess'])} points {interval(best['low'], best['high'])}{and_p(best['p_adjusted'])}"
        f"; {counted(int(best['n_documents']), 'document')})"
    )


def _attention(best: pd.Series) -> str:
    share = f"On average {size(best['attention'])} of its attention goes to {target(best['relation'], best['looks'])}"
    if pd.isna(best["accuracy_random_head"]):
        return f"{share}."
    return f"{share}; another head of its layer, drawn at random, is right in {percent(best['accuracy_random_head'])}."


def _why_undecided(best: pd.Series, minimum: float, least: str) -> str:
    """What is missing for a verdict on this head, as the end of a sentence."""
    if best["verdict"] == NONE:
        return f", and is shown to be better than the rule by less than {least}"
    if best["n_documents"] < FEWEST_DOCUMENTS:
        return f": a verdict needs {FEWEST_DOCUMENTS} documents"
    if best["accuracy_baseline"] > 1 - minimum:
        return f": the rule leaves less than {least} of room for improvement"
    if pd.isna(best["low"]):
        return ": it is not known how much its documents differ"
    return f": neither a lead over the rule is shown, nor that it is less than {least}"


def _too(others: pd.DataFrame, verdict: str) -> str:
    """The other heads with a verdict, the largest excess first, as a sentence of their own."""
    same = descending(others[others["verdict"] == verdict], "excess")
    names = [head_name(row) for _, row in same.iterrows()]
    if not names:
        return ""
    some = "Another head" if len(names) == 1 else f"{len(names)} other heads"
    attends = "attends" if len(names) == 1 else "attend"
    does = f"{attends} to it too" if verdict == ATTENDS else f"{is_are(len(names))} undecided"
    return f" {some} {does}: {listed(names)}."
