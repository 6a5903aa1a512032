"""How is each verdict on a head and a relation shown? One symbol and one meaning.

What does a report about relations need? The frames of a finished scoring, checked once.

The report never sees a model: anything with these three attributes can be drawn, for example
``interp.methods.relations.scores.RelationResult``, or frames read back from a saved folder.

Which head speaks for a relation, and which relations come first?

1. Of each relation and direction the head with the largest excess: of those that track, where any does.
2. Directions in which a head attends come first, then those with enough documents for a verdict, each by their excess.

What are relations, and what they relate, called in sentences?

What was found about each relation, in words that can be quoted? No claim without its numbers.

1. A **finding** for each direction: the head that speaks for it (``leading.py``), how often it is right, the best rule
   of position, the excess with its interval, p and the documents; or why nothing is decided.
2. How many pairs were **counted**: of a causal model, that it looks back only.
3. What was **left out**, and why.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import pandas as pd

from interp.errors import InputError
from interp.report.heads_frames import FEWEST_CLUSTERS, Verdict
from interp.report.words import counted, interval, listed, p_value, percent, points

ATTENDS, UNDECIDED, NONE, UNTESTABLE = "attends", "undecided", "none", "not testable"
VERDICTS = {
    verdict.name: verdict
    for verdict in (
        Verdict(
            ATTENDS, "●", "o", True, "finds the related word more often than the best rule without attention, clearly"
        ),
        Verdict(
            UNDECIDED,
            "?",
            r"$\mathbf{?}$",
            True,
            "the data do not decide, or the rule leaves too little to be better by",
        ),
        Verdict(NONE, "·", ".", False, "what it finds beyond the best rule is shown to be less than the minimum"),
        Verdict(UNTESTABLE, "—", "", False, "no pair can be scored"),
    )
}
FEWEST_DOCUMENTS = FEWEST_CLUSTERS
"""Documents that a verdict needs."""


DIRECTION = ("relation", "looks")
FRAME_COLUMNS = (
    *(*DIRECTION, "layer", "head", "accuracy", "attention", "baseline", "accuracy_baseline", "excess", "low", "high"),
    *("p", "p_adjusted", "accuracy_random_head", "n", "n_documents", "chosen", "verdict"),
)
REASONS = ("ahead", "unaligned", "outside", "no choice", "no baseline")
RELATION_COLUMNS = (
    *(*DIRECTION, "n_pairs", "n", *REASONS, "n_documents"),
    *("offset", "accuracy_offset", "nearest", "accuracy_nearest", "chance"),
)
MAP_COLUMNS = (
    *(*DIRECTION, "layer", "head", "rank", "document", "sentence", "query", "word", "token", "weight"),
    *("is_query", "is_related", "is_choice", "is_right"),
)
EXAMPLE = (*DIRECTION, "document", "sentence", "query")
"""What tells the examples of ``attention_maps`` apart."""


@runtime_checkable
class RelationFrames(Protocol):
    """Heads scored on relations; see ``interp.methods.relations.scores.RelationResult`` for every column."""

    @property
    def frame(self) -> pd.DataFrame:
        """One row per relation, direction, layer and head: the numbers and the verdict."""

    @property
    def relations(self) -> pd.DataFrame:
        """One row per relation and direction: how many pairs there are, and what position explains."""

    @property
    def provenance(self) -> Mapping[str, Any]:
        """How the numbers were made."""


def check_relations(frames: RelationFrames, maps: pd.DataFrame | None) -> None:
    """Refuse frames that could not be drawn, before anything is written.

    Args:
        frames: Of the scoring.
        maps: Of the examples, ``MAP_COLUMNS``; None without.

    Raises:
        InputError: A column is missing, a verdict is unknown, or a direction of the heads is not described.
    """
    _check_columns("cells", frames.cells, FRAME_COLUMNS)
    _check_columns("relations", frames.relations, RELATION_COLUMNS)
    if maps is not None:
        _check_columns("attention maps", maps, MAP_COLUMNS)
    unknown = sorted(set(frames.cells["verdict"].dropna()) - set(VERDICTS))
    if unknown:
        raise InputError(
            f"the verdicts on relations: expected {', '.join(VERDICTS)}, got {', '.join(unknown)}; "
            "add the new verdict to interp/report/relations_sentences.py"
        )
    described = set(frames.relations[list(DIRECTION)].itertuples(index=False, name=None))
    undescribed = sorted(set(frames.cells[list(DIRECTION)].itertuples(index=False, name=None)) - described)
    if undescribed:
        raise InputError(
            "the `relations`: expected a row for every relation and direction of the heads, "
            f"got none for {', '.join(map(' '.join, undescribed))}; add it"
        )


def is_causal(frames: RelationFrames) -> bool:
    """Whether the model looks back only."""
    return bool(frames.provenance["attention_dir"] == "causal")


def _check_columns(name: str, frame: pd.DataFrame, columns: tuple[str, ...]) -> None:
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise InputError(
            f"the relations' `{name}`: expected the columns {', '.join(columns)}, got none called "
            f"{', '.join(missing)}; build it with interp.attend"
        )


def leading(frame: pd.DataFrame) -> pd.DataFrame:
    """One row of `frame` for each direction in which anything was scored, the most telling first.

    Args:
        frame: One row per relation, direction, layer and head; see ``frames.FRAME_COLUMNS``.
    """
    tested = ranked(frame[frame["chosen"].astype(bool)])
    return tested.drop_duplicates(list(DIRECTION)).reset_index(drop=True)


def ranked(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows in which anything was scored, in the order of step 2."""
    scored = frame.dropna(subset="excess")
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


def direction_name(relation: str, looks: str) -> str:
    """A direction as sentences name it, such as ``nsubj (head to dependent)``."""
    return f"{relation} ({looks})"


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


_WHY_LEFT_OUT = {
    "ahead": "whose related word stands ahead",
    "unaligned": "with a word that has no token of its own",
    "outside": "whose related words stand outside of what is read at once",
    "no choice": "without a choice to make",
    "no baseline": "in documents for which nothing else could choose a baseline",
}


@dataclass(frozen=True)
class DirectionSummary:
    """What the evidence says about one direction of a relation.

    Attributes:
        name: Of the relation, with who looks at whom.
        verdict: ``attends`` if any head does, ``none`` if every tested head is shown not to, else ``undecided``; or
            ``not testable``.
        finding: What was found, to be quoted.
        attention: How much of its attention the best head gives; empty where nothing was scored.
        counted: How many pairs were scored, of how many.
        left_out: How many were not, by reason; empty where all were.
    """

    name: str
    verdict: str
    finding: str
    attention: str
    counted: str
    left_out: str


def summarise(frames: RelationFrames) -> tuple[DirectionSummary, ...]:
    """Put every direction into sentences, the most telling first; what is not testable comes last."""
    described = {(row["relation"], row["looks"]): row for _, row in frames.relations.iterrows()}
    heads = dict(list(frames.cells.groupby(["relation", "looks"], sort=False)))
    found = []
    for _, best in leading(frames.cells).iterrows():
        row = described.pop((best["relation"], best["looks"]))
        own = heads[best["relation"], best["looks"]]
        tested = own[own["chosen"].astype(bool)]
        said = (_finding(best, tested, frames), _attention(best))
        found.append(_summary(row, verdict_of(tested), said, frames))
    return (*found, *(_summary(row, UNTESTABLE, (_untestable(row), ""), frames) for row in described.values()))


def verdict_of(tested: pd.DataFrame) -> str:
    """The verdict on a direction, from those on its tested heads."""
    verdicts = set(tested["verdict"])
    if ATTENDS in verdicts:
        return ATTENDS
    return verdicts.pop() if len(verdicts) == 1 else UNDECIDED


def looks_back_only(frames: RelationFrames) -> str:
    """What to mind about a causal model's numbers; empty for one that looks both ways."""
    if not is_causal(frames):
        return ""
    return (
        "Looking back only: this model is causal, so a word sees none that comes after it. Pairs whose related word "
        "stands ahead are counted and not scored, and the rules that heads are held against look back as well. These "
        "numbers must not be compared with those of a model that looks both ways: they are of other pairs, and against "
        "other rules."
    )


def _summary(row: pd.Series, verdict: str, said: tuple[str, str], frames: RelationFrames) -> DirectionSummary:
    n_pairs, n = int(row["n_pairs"]), int(row["n"])
    of = f"{n:,} of {counted(n_pairs, 'pair')}"
    scored = (
        f"looking back only: {of} can be scored" if is_causal(frames) else f"{of} {'is' if n == 1 else 'are'} scored"
    )
    scored += f", in {counted(int(row['n_documents']), 'document')}" if n else ""
    reasons = [f"{int(row[name]):,} {_WHY_LEFT_OUT[name]}" for name in REASONS if row[name]]
    left_out = f"not scored: {'; '.join(reasons)}" if reasons else ""
    return DirectionSummary(direction_name(row["relation"], row["looks"]), verdict, *said, scored, left_out)


def _untestable(row: pd.Series) -> str:
    name = direction_name(row["relation"], row["looks"])
    why = ": no other document has such pairs, to choose a baseline on" if row["no baseline"] else ""
    return f"Not testable: {name}. Of {counted(int(row['n_pairs']), 'pair')}, none can be scored{why}."


def _finding(best: pd.Series, tested: pd.DataFrame, frames: RelationFrames) -> str:
    name, head = direction_name(best["relation"], best["looks"]), f"Head {head_name(best)}"
    verdict, evidence, alone = verdict_of(tested), _evidence(best), len(tested) == 1
    others = tested[(tested["layer"] != best["layer"]) | (tested["head"] != best["head"])]
    if verdict == ATTENDS:
        return f"{head} attends to {name}: it {evidence}.{_too(others, ATTENDS)}"
    which = "the head that was chosen" if alone else "the best head"
    if verdict == NONE:
        least = f"the minimum of {_minimum(frames)} beyond a rule"
        said = (
            f"{head} does not attend to {name} by {least}: it"
            if alone
            else f"No head attends to {name} by {least}: {which}, {head_name(best)},"
        )
        return f"{said} {evidence}."
    why = _why_undecided(best, frames)
    also = _too(others, UNDECIDED) if best["verdict"] == NONE else ""
    return f"Undecided: {name}. {which.capitalize()}, {head_name(best)}, {evidence}{why}.{also}"


def _evidence(best: pd.Series) -> str:
    """The numbers of a head: what it is right in, what a rule is right in, and by how much it is better."""
    p = p_value(best["p_adjusted"])
    excess = f"excess {points(best['excess'])} points {interval(best['low'], best['high'])}"
    return (
        f"attends most to {target(best['relation'], best['looks'])} in {percent(best['accuracy'])} of "
        f"{counted(int(best['n']), 'pair')}, against {percent(best['accuracy_baseline'])} for “{best['baseline']}” "
        f"({excess}{f', {p}' if p else ''}; {counted(int(best['n_documents']), 'document')})"
    )


def _attention(best: pd.Series) -> str:
    """How much of a head's attention the words have that it should find, and what a random head is right in."""
    share = f"on average {best['attention']:.2f} of its attention goes to {target(best['relation'], best['looks'])}"
    if pd.isna(best["accuracy_random_head"]):
        return share
    return f"{share}; another head of its layer, drawn at random, is right in {percent(best['accuracy_random_head'])}"


def _why_undecided(best: pd.Series, frames: RelationFrames) -> str:
    """What is missing for a verdict on this head, as the end of a sentence."""
    if best["verdict"] == NONE:
        return f", and is shown to be better than the rule by less than the minimum of {_minimum(frames)}"
    if best["n_documents"] < FEWEST_DOCUMENTS:
        return f": a verdict needs {FEWEST_DOCUMENTS} documents"
    if best["accuracy_baseline"] > 1 - frames.provenance["min_effect"]:
        return f": the rule leaves less than the minimum of {_minimum(frames)} to be better by"
    if pd.isna(best["low"]):
        return ": how much its documents differ is not known"
    return f": neither a lead over the rule is shown, nor that it is less than the minimum of {_minimum(frames)}"


def _too(others: pd.DataFrame, verdict: str) -> str:
    """The other heads with a verdict, the largest excess first, as a sentence of their own."""
    same = others[others["verdict"] == verdict].sort_values("excess", ascending=False, kind="stable")
    names: Sequence[str] = [head_name(row) for _, row in same.iterrows()]
    if not len(names):
        return ""
    some = "Another head" if len(names) == 1 else f"{len(names)} other heads"
    if verdict == ATTENDS:
        return f" {some} {'attends' if len(names) == 1 else 'attend'} to it too: {listed(list(names))}."
    return f" {some} {'is' if len(names) == 1 else 'are'} undecided: {listed(list(names))}."


def _minimum(frames: RelationFrames) -> str:
    return f"{points(frames.provenance['minimum'], 0)} points"
