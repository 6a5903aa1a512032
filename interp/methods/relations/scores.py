"""Which rule is a relation held against? The one that is right most often on documents that it is not held against.

1. The documents fall into two halves, about as many words in each; each half's rules are chosen on the other one. Where
   another corpus chooses, it chooses for all documents.
2. Three baselines: the best **offset** (or first or last word), the best **nearest** word of a part of speech, and the
   **toughest**: the best of all rules, those that are neither (``rules.py``) among them. The nearest word of a
   part of speech is no rule for finding words of that part of speech: it would be the answer.
3. Documents whose rules nothing could choose are not scored.

How much better than a rule is each head, in one direction of one relation? Estimates, before any test.

What does one get of a scoring? Tables of heads and relations, with how they were made; see ``attention.py``.

Which heads track which relations? Intervals, tests over all of them together, and verdicts; see ``attention.py``.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from interp.claims.claim import Measured, claim
from interp.claims.evidence import Evidence
from interp.claims.units import ClusterTable
from interp.methods.in_one_line import counted_verdicts
from interp.methods.relations.counts import RelationCounts, Sums
from interp.methods.relations.words import CHANCE, MOST_TOKENS, rule_names
from interp.report.relations_sentences import leading
from interp.tasks.relations import Direction
from interp.tasks.task import deal

Family = Literal["offset", "nearest", "toughest"]


@dataclass(frozen=True)
class Baseline:
    """A baseline's hits.

    Attributes:
        name: Of its rule; of both halves' rules, where they differ.
        hits: By document; NaN where nothing could choose.
    """

    name: str
    hits: Float[np.ndarray, " document"]


@dataclass(frozen=True)
class DirectionCounts:
    """The sums of one direction, document by document; 0 where a document has nothing of it."""

    direction: Direction
    n: Float[np.ndarray, " document"]
    hits: Float[np.ndarray, "document cell"]
    attention: Float[np.ndarray, "document cell"]
    rules: Float[np.ndarray, "document rule"]

    @classmethod
    def of(cls, counts: RelationCounts, number: int, documents: Sequence[str], causal: bool) -> "DirectionCounts":
        """Put sums into tables; chance is the last rule."""
        n_cells = counts.shape[0] * counts.shape[1]
        n_rules = len(rule_names(causal=causal))
        nothing = Sums(0, np.zeros(n_cells), np.zeros(n_cells), np.zeros(n_rules), 0.0)
        found = [counts.sums.get((document, number), nothing) for document in documents]
        return cls(
            counts.directions[number],
            np.array([each.n for each in found], dtype=float),
            np.stack([each.hits for each in found]),
            np.stack([each.attention for each in found]),
            np.stack([np.append(each.rules, each.chance) for each in found]),
        )


def halves_of(documents: Mapping[str, int]) -> Bool[np.ndarray, " document"]:
    """Which documents are in the second half: the largest are dealt out first, each to the side with fewer words."""
    half = deal(documents)
    return np.array([half[name] == 1 for name in documents])


def baseline(
    own: DirectionCounts,
    chooser: DirectionCounts | None,
    second: Bool[np.ndarray, " document"],
    family: Family,
    *,
    causal: bool,
) -> Baseline:
    """The baseline of a direction.

    Args:
        own: What it is held against.
        chooser: Another corpus' counts; None where the halves choose for each other.
        second: Which documents are in the second half.
        family: Of which rules it is the best.
        causal: Whether the rules look back only.
    """
    names = [*rule_names(causal=causal), CHANCE]
    columns = [at for at, name in enumerate(names) if _belongs(name, family, own.direction)]
    hits, chosen = np.full(len(own.n), np.nan), []
    for half in (False, True):
        here = second == half
        there = own.rules[~here] if chooser is None else chooser.rules
        if here.any() and there[:, columns].sum() > 0:
            best = columns[int(there[:, columns].sum(axis=0).argmax())]
            hits[here] = own.rules[here, best]
            chosen.append(names[best])
    return Baseline(" / ".join(dict.fromkeys(chosen)), hits)


def _belongs(rule: str, family: Family, direction: Direction) -> bool:
    nearest = rule.startswith("nearest")
    if nearest and direction.part_of_speech and rule.split()[1] == direction.part_of_speech:
        return False
    if family == "toughest":
        return True
    return rule not in (CHANCE, MOST_TOKENS) and nearest == (family == "nearest")


@dataclass(frozen=True)
class DirectionScores:
    """One direction's estimates, before any test.

    Attributes:
        own: What was counted, of the documents that have a baseline.
        baselines: By family.
        chosen: Which heads are tested.
        n_unscored: Pairs of the documents that have none.
    """

    own: DirectionCounts
    baselines: Mapping[str, Baseline]
    chosen: Bool[np.ndarray, " cell"]
    n_unscored: int

    @classmethod
    def of(
        cls,
        counts: RelationCounts,
        choosing: RelationCounts | None,
        number: int,
        documents: Sequence[str],
        second: Bool[np.ndarray, " document"],
        *,
        causal: bool,
    ) -> "DirectionScores":
        """Hold a direction's counts against its baselines.

        Args:
            counts: Of the corpus that is scored.
            choosing: Of the one that chooses; None where the halves do.
            number: The direction's.
            documents: Names of all that are scored.
            second: Which of them are in the second half.
            causal: Whether the model looks back only.
        """
        own = DirectionCounts.of(counts, number, documents, causal)
        chooser = None
        chosen = np.ones(own.hits.shape[1], dtype=bool)
        if choosing is not None:
            chooser = DirectionCounts.of(choosing, number, sorted({name for name, _ in choosing.sums}), causal)
            chosen = np.arange(len(chosen)) == chooser.hits.sum(axis=0).argmax()
        found = {
            family: baseline(own, chooser, second, family, causal=causal)
            for family in ("offset", "nearest", "toughest")
        }
        scored = np.isfinite(found["toughest"].hits)
        return cls(
            DirectionCounts(
                own.direction,
                *(
                    np.where(scored[(...,) + (None,) * (each.ndim - 1)], each, 0.0)
                    for each in (own.n, own.hits, own.attention, own.rules)
                ),
            ),
            found,
            chosen,
            int(own.n[~scored].sum()),
        )

    @property
    def excess(self) -> Float[np.ndarray, "document cell"]:
        """Hits less the baseline's, summed."""
        return self.own.hits - np.nan_to_num(self.baselines["toughest"].hits)[:, None]

    @property
    def weights(self) -> Float[np.ndarray, "document cell"]:
        """Pairs behind each sum."""
        return np.broadcast_to(self.own.n[:, None], self.own.hits.shape)

    def frame(self, shape: tuple[int, int]) -> pd.DataFrame:
        """One row per head, untested."""
        n = self.own.n.sum()
        accuracy = _share(self.own.hits.sum(axis=0), n)
        layer, head = np.divmod(np.arange(len(accuracy)), shape[1])
        base = self.baselines["toughest"]
        of_baseline = float(_share(np.nansum(base.hits), n))
        return pd.DataFrame(
            {
                "relation": self.own.direction.relation,
                "looks": self.own.direction.looks,
                "layer": layer,
                "head": head,
                "accuracy": accuracy,
                "attention": _share(self.own.attention.sum(axis=0), n),
                "baseline": base.name,
                "accuracy_baseline": of_baseline,
                "excess": accuracy - of_baseline,
                "accuracy_random_head": _others(accuracy.reshape(shape)).ravel(),
                "n": int(n),
                "n_documents": int((self.own.n > 0).sum()),
                "chosen": self.chosen,
            }
        )

    def row(self, left_out: Mapping[str, int]) -> dict[str, Any]:
        """What is known of the direction as a whole."""
        n = self.own.n.sum()
        reasons = {**left_out, "no baseline": self.n_unscored}
        said = {"relation": self.own.direction.relation, "looks": self.own.direction.looks}
        counted = {"n_pairs": int(n) + sum(reasons.values()), "n": int(n), **reasons}
        rules: dict[str, Any] = {}
        for family in ("offset", "nearest"):
            found = self.baselines[family]
            known = np.isfinite(found.hits)
            accuracy = _share(found.hits[known].sum(), self.own.n[known].sum())
            rules |= {family: found.name, f"accuracy_{family}": float(accuracy)}
        chance = float(_share(self.own.rules[:, -1].sum(), n))
        return {**said, **counted, "n_documents": int((self.own.n > 0).sum()), **rules, "chance": chance}


def _share(hits: Any, n: float) -> Any:
    """Hits as a share; NaN of nothing."""
    return hits / n if n else hits * np.nan


def _others(accuracy: Float[np.ndarray, "layer head"]) -> Float[np.ndarray, "layer head"]:
    """What a random other head of the same layer is expected to reach; NaN where there is none."""
    n_heads = accuracy.shape[1]
    if n_heads == 1:
        return np.full(accuracy.shape, np.nan)
    return (accuracy.sum(axis=1, keepdims=True) - accuracy) / (n_heads - 1)


CELL = ["relation", "looks", "layer", "head"]


@dataclass(frozen=True)
class RelationResult:
    """How well every head finds every relation.

    Attributes:
        frame: One row per relation, direction, layer and head: ``relation``, ``looks`` (who at whom), ``layer``,
            ``head``, ``accuracy`` (share of the pairs whose most attended other word is a related one), ``attention``
            (mean on the related words), ``baseline`` (its name), ``accuracy_baseline``, ``excess`` with its interval
            ``low``, ``high`` (95 %, documents resampled), ``p`` (that the excess is no more than the minimum),
            ``p_adjusted`` (over all that was tested), ``p_absent`` (that it is the minimum at least),
            ``accuracy_random_head`` (mean of the layer's other heads), ``n`` (pairs scored),
            ``n_documents`` (of more than 1,000 in the corpus, groups of neighbours), ``chosen`` and ``verdict``. Where
            heads were chosen on another corpus, the others have no p and no verdict. What could not be measured is NaN.
        relations: One row per relation and direction: ``n_pairs``, ``n`` (scored), how many were not by reason
            (``ahead``: a causal model cannot look there; ``unaligned``; ``outside`` of the window; ``no choice``;
            ``no baseline``: in documents whose baseline nothing else could choose), ``n_documents``, the baselines
            ``offset`` (a position or fixed distance) and ``nearest`` (the nearest word of a part of speech) with their
            accuracies, and ``chance``.
        provenance: How the numbers were made.
    """

    frame: pd.DataFrame
    relations: pd.DataFrame
    provenance: Mapping[str, Any]

    def __repr__(self) -> str:
        verdicts = counted_verdicts(self.frame)
        return f"RelationResult({len(self.relations)} directions, heads in them: {verdicts}; the best of each: .best())"

    def _repr_html_(self) -> str:
        """What a notebook shows: the findings in words, the strongest with their intervals, and a figure if small."""
        from interp.report.glance import as_html
        from interp.report.relations import relations_glance

        return as_html(relations_glance(self))

    def best(self) -> pd.DataFrame:
        """The head of each relation and direction: the chosen one; of several, one that attends, by its excess."""
        return self.relations[CELL[:2]].merge(leading(self.frame), on=CELL[:2])

    def save(self, out: str | Path, maps: pd.DataFrame | None = None) -> Path:
        """Write tables, figures and one self-contained page into the folder `out`; see ``save_relations``.

        Args:
            out: The folder; made, or replaced where it holds an older report.
            maps: Example sentences, as ``relation_maps.relation_maps`` gives them; None for none.

        Raises:
            OutputError: If `out` cannot be used.
        """
        from interp.report.relations import save_relations

        return save_relations(self, maps, out)


VERDICT = {"shown": "attends", "none": "none", "undecided": "undecided", "not testable": "not testable"}
_FRAME = ["accuracy", "attention", "baseline", "accuracy_baseline", "excess", "low", "high"]
_FRAME += ["p", "p_adjusted", "p_absent"]
_TESTED = ("p", "p_adjusted", "p_absent", "standard_error", "critical")
_FRAME += ["accuracy_random_head", "n", "n_documents", "chosen", "verdict"]


def tabulate(
    counts: RelationCounts, choosing: RelationCounts | None, documents: Mapping[str, int], how: Mapping[str, Any]
) -> RelationResult:
    """Turn counts into estimates, tests and verdicts.

    Args:
        counts: Of the corpus that is scored.
        choosing: Of the corpus that chooses baselines and heads; None where the halves choose baselines.
        documents: Words of each document that is scored.
        how: The provenance, with ``attention_dir``, ``minimum``, ``alpha``, ``correction`` and ``seed``.
    """
    words: Counter[str] = Counter()
    for name, n_words in documents.items():
        words[counts.clusters[name]] += n_words
    causal, second = how["attention_dir"] == "causal", halves_of(words)
    parts = [
        DirectionScores.of(counts, choosing, number, list(words), second, causal=causal)
        for number in range(len(counts.directions))
    ]
    frame = pd.concat([part.frame(counts.shape) for part in parts], ignore_index=True)
    tested = frame["chosen"].to_numpy() & (frame["n"].to_numpy() > 0)
    table = ClusterTable(
        np.concatenate([part.excess for part in parts], axis=1)[:, tested],
        np.concatenate([part.weights for part in parts], axis=1)[:, tested],
        pd.MultiIndex.from_frame(frame.loc[tested, CELL]),
    )
    frame[["low", "high", *_TESTED]] = np.nan
    if tested.any():
        (found,) = claim(
            [Measured(table, how["minimum"], counted=True)],
            alternative="greater",
            correction=how["correction"],
            alpha=how["alpha"],
            seed=how["seed"],
        )
        frame.loc[tested, ["low", "high"]] = np.stack([found.interval.low, found.interval.high], axis=1)
        for name in _TESTED:
            frame.loc[tested, name] = getattr(found, name)
    frame["verdict"] = [_verdict(row, how) if row["chosen"] else None for row in frame.to_dict("records")]
    columns = [*CELL, *_FRAME]
    relations = pd.DataFrame([part.row(counts.reasons(number)) for number, part in enumerate(parts)])
    return RelationResult(frame[columns], relations, {**how, "shape": counts.shape, "n_clusters": len(words)})


def _verdict(row: Mapping[Any, Any], how: Mapping[str, Any]) -> str:
    """Where the baseline leaves less than the minimum, an excess that is smaller says nothing about a head."""
    if row["accuracy_baseline"] > 1 - how["minimum"]:
        return "undecided"
    evidence = Evidence(
        row["excess"],
        how["minimum"],
        row["standard_error"],
        row["p_adjusted"],
        row["p_absent"],
        row["critical"],
        row["n"],
        row["n_documents"],
    )
    return VERDICT[evidence.excess(how["alpha"])]
