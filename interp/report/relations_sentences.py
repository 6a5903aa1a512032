"""What was found about heads and relations, in sentences: no claim without its numbers.

1. Of each relation and direction one head speaks: the one with the largest excess, among those that attend if any does.
2. Directions in which a head attends come first, then those with enough documents for a verdict, each by their excess.
3. A **finding** says how often the head is right, the best rule without attention, the excess with its interval, p and
   the documents; or why nothing is decided. Then how many pairs were **counted**, and what was **left out**, and why.
"""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from interp.report.heads_frames import Verdict
from interp.report.words import FEWEST_CLUSTERS, counted, interval, listed, p_value, percent, points

ATTENDS, UNDECIDED, NONE, UNTESTABLE = "attends", "undecided", "none", "not testable"
_MEANINGS = (
    (ATTENDS, "●", "o", True, "finds the related word more often than the best rule without attention, clearly"),
    (UNDECIDED, "?", r"$\mathbf{?}$", True, "the data do not decide, or the rule leaves too little to be better by"),
    (NONE, "·", ".", False, "what it finds beyond the best rule is shown to be less than the minimum"),
    (UNTESTABLE, "—", "", False, "no pair can be scored"),
)
VERDICTS = {meaning[0]: Verdict(*meaning) for meaning in _MEANINGS}
FEWEST_DOCUMENTS = FEWEST_CLUSTERS
"""Documents that a verdict needs."""
DIRECTION = ("relation", "looks")
REASONS = ("ahead", "unaligned", "outside", "no choice", "no baseline")
MAP_COLUMNS = (
    *(*DIRECTION, "layer", "head", "rank", "document", "sentence", "query", "word", "token", "weight"),
    *("is_query", "is_related", "is_choice", "is_right"),
)
EXAMPLE = (*DIRECTION, "document", "sentence", "query")
"""What tells the examples of ``relation_maps`` apart."""


def is_causal(result: Any) -> bool:
    """Whether the model looks back only."""
    return bool(result.provenance["attention_dir"] == "causal")


def leading(cells: pd.DataFrame) -> pd.DataFrame:
    """One row for each direction in which anything was scored, the most telling first."""
    tested = ranked(cells[cells["chosen"].astype(bool)])
    return tested.drop_duplicates(list(DIRECTION)).reset_index(drop=True)


def ranked(cells: pd.DataFrame) -> pd.DataFrame:
    """The rows in which anything was scored: those that attend, then those with enough documents, by their excess."""
    scored = cells.dropna(subset="excess")
    order = scored.assign(_attends=scored["verdict"] == ATTENDS, _enough=scored["n_documents"] >= FEWEST_DOCUMENTS)
    order = order.sort_values(["_attends", "_enough", "excess"], ascending=False, kind="stable")
    return order.drop(columns=["_attends", "_enough"])


_DEPENDENTS = {
    "acl": "adnominal clause",
    "advcl": "adverbial clause",
    "advmod": "adverbial modifier",
    "amod": "adjectival modifier",
    "appos": "apposition",
    "aux": "auxiliary",
    "case": "case marker",
    "cc": "coordinating conjunction",
    "ccomp": "clausal complement",
    "conj": "conjunct",
    "cop": "copula",
    "csubj": "clausal subject",
    "det": "determiner",
    "discourse": "discourse element",
    "expl": "expletive",
    "iobj": "indirect object",
    "mark": "marker",
    "nmod": "nominal modifier",
    "nsubj": "subject",
    "nummod": "numeral",
    "obj": "object",
    "obl": "oblique nominal",
    "punct": "punctuation mark",
    "vocative": "vocative",
    "xcomp": "open clausal complement",
}
_TARGETS = {
    "anaphor to antecedent": "an antecedent",
    "antecedent to anaphor": "a later mention",
    "any word to it": "such a word",
    "query to related": "the related word",
    "related to query": "the word that it is related to",
}
_WHY_LEFT_OUT = {
    "ahead": "whose related word stands ahead",
    "unaligned": "with a word that has no token of its own",
    "outside": "whose related words stand outside of what is read at once",
    "no choice": "without a choice to make",
    "no baseline": "in documents for which nothing else could choose a baseline",
}


def direction_name(row: pd.Series) -> str:
    """A direction as sentences name it, such as ``nsubj (head to dependent)``."""
    return f"{row['relation']} ({row['looks']})"


def target(relation: str, looks: str) -> str:
    """What should be found, with its article: ``the subject`` of ``nsubj``, from head to dependent."""
    dependent = _DEPENDENTS.get(relation.split(":")[0], "dependent")
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
        return f"{self.finding} ({'; '.join(filter(None, (self.attention, self.counted, self.left_out)))}.)"


def summarise(result: Any) -> tuple[DirectionSummary, ...]:
    """Put every direction into sentences, the most telling first; what is not testable comes last."""
    described = {(row["relation"], row["looks"]): row for _, row in result.relations.iterrows()}
    heads = dict(list(result.cells.groupby(list(DIRECTION), sort=False)))
    found = []
    for _, best in leading(result.cells).iterrows():
        own = heads[best["relation"], best["looks"]]
        tested = own[own["chosen"].astype(bool)]
        said = (_finding(best, tested, result), _attention(best))
        row = described.pop((best["relation"], best["looks"]))
        found.append(_summary(row, verdict_of(tested), said, result))
    return (*found, *(_summary(row, UNTESTABLE, (_untestable(row), ""), result) for row in described.values()))


def verdict_of(tested: pd.DataFrame) -> str:
    """The verdict on a direction, from those on its tested heads."""
    verdicts = set(tested["verdict"])
    if ATTENDS in verdicts:
        return ATTENDS
    return verdicts.pop() if len(verdicts) == 1 else UNDECIDED


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


def _summary(row: pd.Series, verdict: str, said: tuple[str, str], result: Any) -> DirectionSummary:
    n_pairs, n = int(row["n_pairs"]), int(row["n"])
    of = f"{n:,} of {counted(n_pairs, 'pair')}"
    scored = (
        f"looking back only: {of} can be scored" if is_causal(result) else f"{of} {'is' if n == 1 else 'are'} scored"
    )
    scored += f", in {counted(int(row['n_documents']), 'document')}" if n else ""
    reasons = [f"{int(row[name]):,} {why}" for name, why in _WHY_LEFT_OUT.items() if row[name]]
    left_out = f"not scored: {'; '.join(reasons)}" if reasons else ""
    return DirectionSummary(direction_name(row), verdict, *said, scored, left_out)


def _untestable(row: pd.Series) -> str:
    why = ": no other document has such pairs, to choose a baseline on" if row["no baseline"] else ""
    return f"Not testable: {direction_name(row)}. Of {counted(int(row['n_pairs']), 'pair')}, none can be scored{why}."


def _finding(best: pd.Series, tested: pd.DataFrame, result: Any) -> str:
    name, head = direction_name(best), f"Head {head_name(best)}"
    verdict, evidence, alone = verdict_of(tested), _evidence(best), len(tested) == 1
    others = tested[(tested["layer"] != best["layer"]) | (tested["head"] != best["head"])]
    if verdict == ATTENDS:
        return f"{head} attends to {name}: it {evidence}.{_too(others, ATTENDS)}"
    which = "the head that was chosen" if alone else "the best head"
    if verdict == NONE:
        least = f"the minimum of {_minimum(result)} beyond a rule"
        if alone:
            return f"{head} does not attend to {name} by {least}: it {evidence}."
        return f"No head attends to {name} by {least}: {which}, {head_name(best)}, {evidence}."
    also = _too(others, UNDECIDED) if best["verdict"] == NONE else ""
    why = _why_undecided(best, result)
    return f"Undecided: {name}. {which.capitalize()}, {head_name(best)}, {evidence}{why}.{also}"


def _evidence(best: pd.Series) -> str:
    """How often a head is right, how often the rule is, and by how much it is better."""
    p = p_value(best["p_adjusted"])
    excess = f"excess {points(best['excess'])} points {interval(best['low'], best['high'])}"
    return (
        f"attends most to {target(best['relation'], best['looks'])} in {percent(best['accuracy'])} of "
        f"{counted(int(best['n']), 'pair')}, against {percent(best['accuracy_baseline'])} for “{best['baseline']}” "
        f"({excess}{f', {p}' if p else ''}; {counted(int(best['n_documents']), 'document')})"
    )


def _attention(best: pd.Series) -> str:
    share = f"on average {best['attention']:.2f} of its attention goes to {target(best['relation'], best['looks'])}"
    if pd.isna(best["accuracy_random_head"]):
        return share
    return f"{share}; another head of its layer, drawn at random, is right in {percent(best['accuracy_random_head'])}"


def _why_undecided(best: pd.Series, result: Any) -> str:
    """What is missing for a verdict on this head, as the end of a sentence."""
    if best["verdict"] == NONE:
        return f", and is shown to be better than the rule by less than the minimum of {_minimum(result)}"
    if best["n_documents"] < FEWEST_DOCUMENTS:
        return f": a verdict needs {FEWEST_DOCUMENTS} documents"
    if best["accuracy_baseline"] > 1 - result.provenance["min_effect"]:
        return f": the rule leaves less than the minimum of {_minimum(result)} to be better by"
    if pd.isna(best["low"]):
        return ": how much its documents differ is not known"
    return f": neither a lead over the rule is shown, nor that it is less than the minimum of {_minimum(result)}"


def _too(others: pd.DataFrame, verdict: str) -> str:
    """The other heads with a verdict, the largest excess first, as a sentence of their own."""
    same = others[others["verdict"] == verdict].sort_values("excess", ascending=False, kind="stable")
    names = [head_name(row) for _, row in same.iterrows()]
    if not names:
        return ""
    some = "Another head" if len(names) == 1 else f"{len(names)} other heads"
    if verdict == ATTENDS:
        return f" {some} {'attends' if len(names) == 1 else 'attend'} to it too: {listed(names)}."
    return f" {some} {'is' if len(names) == 1 else 'are'} undecided: {listed(names)}."


def _minimum(result: Any) -> str:
    return f"{points(result.provenance['min_effect'], 0)} points"
