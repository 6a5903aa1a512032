"""How much better than a rule is each head, in one direction of one relation? Estimates, before any test."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from interp.methods.relations.baselines import Baseline, DirectionCounts, baseline
from interp.methods.relations.counts import RelationCounts


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
