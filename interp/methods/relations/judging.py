"""Which heads track which relations? Intervals, tests over all of them together, and verdicts; see ``attention.py``."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from interp.methods.relations.baselines import halves_of
from interp.methods.relations.counts import RelationCounts
from interp.methods.relations.result import CELL, RelationResult
from interp.methods.relations.scores import DirectionScores
from interp.methods.verdict import Evidence, attention_state
from interp.stats.intervals import cluster_bootstrap
from interp.stats.multiplicity import benjamini_hochberg
from interp.stats.permutation import sign_flip_test
from interp.stats.units import ClusterTable, standard_errors

VERDICT = {"shown": "tracks", "none": "none", "undecided": "undecided", "not testable": "not testable"}
_FRAME = ["accuracy", "attention", "baseline", "accuracy_baseline", "excess", "low", "high", "p", "q"]
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
    frame[["low", "high", "p", "q", "se"]] = np.nan
    if tested.any():
        frame.loc[tested, ["low", "high", "p", "q", "se"]] = _tested(table, how)
    frame["verdict"] = [_verdict(row, how) if row.chosen else None for row in frame.itertuples()]
    columns = [*CELL, *_FRAME]
    relations = pd.DataFrame([part.row(counts.reasons(number)) for number, part in enumerate(parts)])
    return RelationResult(frame[columns], relations, {**how, "shape": counts.shape, "n_clusters": len(words)})


def _tested(table: ClusterTable, how: Mapping[str, Any]) -> Float[np.ndarray, "cell column"]:
    """Interval, p, q and standard error of every cell."""
    interval = cluster_bootstrap(table, seed=how["seed"])
    (test,) = sign_flip_test([table], alternative="greater", seed=how["seed"])
    q = test.p_family if how["correction"] == "max-T" else benjamini_hochberg(test.p)
    return np.stack([interval.low, interval.high, test.p, q, standard_errors(table)], axis=1)


def _verdict(row: Any, how: Mapping[str, Any]) -> str:
    """Where the baseline leaves less than the minimum, an excess that is smaller says nothing about a head."""
    if row.accuracy_baseline > 1 - how["minimum"]:
        return "undecided"
    absent = row.high < how["minimum"]
    evidence = Evidence(row.excess, row.se, absent, row.q, how["minimum"], row.n_documents)
    return VERDICT[attention_state(evidence, how["alpha"])]
