"""What do the counts say about each head? Baselines, excess, intervals, tests and verdicts; see ``attention.py``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from interp.methods.relation_baselines import Baseline, DirectionCounts, baseline, halves_of
from interp.methods.relation_counts import RelationCounts
from interp.methods.verdict import Evidence, attention_state
from interp.stats.intervals import cluster_bootstrap
from interp.stats.multiplicity import benjamini_hochberg
from interp.stats.permutation import sign_flip_test
from interp.stats.units import ClusterTable, standard_errors

CELL = ["relation", "looks", "layer", "head"]
VERDICT = {"shown": "tracks", "none": "none", "undecided": "undecided", "not testable": "not testable"}


@dataclass(frozen=True)
class RelationResult:
    """How well every head finds every relation.

    Attributes:
        frame: One row per relation, direction, layer and head: ``relation``, ``looks`` (who at whom), ``layer``,
            ``head``, ``accuracy`` (share of the pairs whose most attended other word is a related one), ``attention``
            (mean on the related words), ``baseline`` (its name), ``accuracy_baseline``, ``excess`` with its interval
            ``low``, ``high`` (95 %, documents resampled), ``p`` (one-sided, signs of documents flipped), ``q``
            (corrected), ``accuracy_random_head`` (mean of the layer's other heads), ``n`` (pairs scored),
            ``n_documents``, ``chosen`` and ``verdict``. Where heads were chosen on another corpus, the others have no
            p, q and verdict. What could not be measured is NaN.
        relations: One row per relation and direction: ``n_pairs``, ``n`` (scored), how many were not by reason
            (``ahead``: a causal model cannot look there; ``unaligned``; ``outside`` of the window; ``no choice``;
            ``no baseline``: in documents whose baseline nothing else could choose), ``n_documents``, the baselines
            ``offset`` (a position or fixed distance) and ``nearest`` (the nearest word of a part of speech) with their
            accuracies, and ``chance``.
        provenance: How the numbers were made.
    """

    frame: pd.DataFrame
    relations: pd.DataFrame
    provenance: Mapping[str, Any] = field(repr=False)

    def best(self) -> pd.DataFrame:
        """The head of each relation and direction: the chosen one; of several, one that tracks, by its excess."""
        found = self.frame[self.frame["chosen"]].dropna(subset="excess")
        first = found.assign(other=found["verdict"] != "tracks").sort_values(
            ["other", "excess"], ascending=[True, False]
        )
        return found.loc[first.drop_duplicates(CELL[:2]).index.sort_values()].reset_index(drop=True)


    def save(self, out: str | Path, maps: pd.DataFrame | None = None) -> Path:
        """Write tables, figures and one self-contained page into the folder `out`; see ``save_relations``.

        Args:
            out: The folder; made, or replaced where it holds an older report.
            maps: Example sentences, as ``relation_maps.relation_maps`` gives them; None for none.

        Raises:
            OutputError: If `out` cannot be used.
        """
        from interp.report.relations.folder import save_relations

        return save_relations(self, maps, out)


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
    causal, second = how["attention_dir"] == "causal", halves_of(documents)
    parts = [
        _Part.of(counts, choosing, number, list(documents), second, causal=causal)
        for number in range(len(counts.directions))
    ]
    frame = pd.concat([part.frame(counts.shape) for part in parts], ignore_index=True)
    tested = frame["chosen"].to_numpy() & (frame["n"].to_numpy() > 0)
    table = ClusterTable(
        np.concatenate([part.excess for part in parts], axis=1)[:, tested],
        np.concatenate([part.weights for part in parts], axis=1)[:, tested],
        pd.MultiIndex.from_frame(frame.loc[tested, CELL]),
    )
    frame[["low", "high", "p", "q", "se"]] = np.nan
    if tested.any():
        frame.loc[tested, ["low", "high", "p", "q", "se"]] = _tested(table, how)
    frame["verdict"] = [_verdict(row, how) if row.chosen else None for row in frame.itertuples()]
    columns = [*CELL, *_FRAME]
    relations = pd.DataFrame([part.row(counts.reasons(number)) for number, part in enumerate(parts)])
    return RelationResult(frame[columns], relations, {**how, "shape": counts.shape})


_FRAME = ["accuracy", "attention", "baseline", "accuracy_baseline", "excess", "low", "high", "p", "q"]
_FRAME += ["accuracy_random_head", "n", "n_documents", "chosen", "verdict"]


@dataclass(frozen=True)
class _Part:
    """One direction's numbers.

    Attributes:
        own: What was counted, of the documents that have a baseline.
        baselines: By family.
        chosen: Which heads are tested.
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
    ) -> "_Part":
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
        return np.repeat(self.own.n[:, None], self.own.hits.shape[1], axis=1)

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
            rules |= {family: found.name, f"accuracy_{family}": float(_share(np.nansum(found.hits), n))}
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


def _tested(table: ClusterTable, how: Mapping[str, Any]) -> Float[np.ndarray, "cell column"]:
    """Interval, p, q and standard error of every cell."""
    interval = cluster_bootstrap(table, seed=how["seed"])
    (test,) = sign_flip_test([table], alternative="greater", seed=how["seed"])
    q = test.p_family if how["correction"] == "max-T" else benjamini_hochberg(test.p)
    return np.stack([interval.low, interval.high, test.p, q, standard_errors(table)], axis=1)


def _verdict(row: Any, how: Mapping[str, Any]) -> str:
    absent = row.high < how["minimum"]
    evidence = Evidence(row.excess, row.se, absent, row.q, how["minimum"], row.n_documents)
    return VERDICT[attention_state(evidence, how["alpha"])]
