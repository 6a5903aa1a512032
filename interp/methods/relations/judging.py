"""Which heads track which relations? Intervals, tests over all of them together, and verdicts; see ``attention.py``."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from interp.claims.claim import Measured, claim
from interp.claims.evidence import Evidence
from interp.claims.units import ClusterTable
from interp.methods.relations.baselines import halves_of
from interp.methods.relations.counts import RelationCounts
from interp.methods.relations.result import CELL, RelationResult
from interp.methods.relations.scores import DirectionScores

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
