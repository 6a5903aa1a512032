"""Which cells encode the feature? Intervals over documents, one family of tests over all cells, and verdicts.

1. The **baseline** of a cell is the control that reaches most there: majority, embedding, position, the untrained
   model. The **excess** is the score less the baseline's, word by word; documents are what is resampled and flipped.
2. ``encodes``: q <= alpha, an excess of the minimum at least, and a selectivity whose interval lies above 0. ``none``:
   the excess' interval lies below the minimum. What is neither, or has fewer than 20 documents, is ``undecided``.

Choosing the toughest control on the scored words themselves can only make it tougher.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from interp.methods.probes.labels import Labelled
from interp.methods.probes.measuring import Measured
from interp.stats.intervals import FEWEST_CLUSTERS, cluster_bootstrap
from interp.stats.multiplicity import benjamini_hochberg
from interp.stats.permutation import sign_flip_test
from interp.stats.units import UnitTable, estimates

BASELINES = ("majority", "embedding", "position", "untrained")
CONTROLS = (*BASELINES, "permuted")

Values = Float[np.ndarray, "cell example"]


def tabulate(cells: pd.DataFrame, found: Measured, labelled: Labelled, how: Mapping[str, Any]) -> pd.DataFrame:
    """One row a cell: scores beside their controls, tests and verdicts.

    Args:
        cells: Labels of the cells.
        found: What was measured.
        labelled: The examples.
        how: ``minimum``, ``alpha``, ``correction`` and ``seed``.
    """
    index = pd.MultiIndex.from_frame(cells)

    def table(values: Values) -> UnitTable:
        wide = np.broadcast_to(values, (len(cells), values.shape[1])).T
        return UnitTable(np.ascontiguousarray(wide), labelled.clusters, labelled.strata, index)

    scores = {name: table(each) for name, each in found.scores.items()}
    means = {name: estimates(each) for name, each in scores.items()}
    names = [name for name in BASELINES if name in scores]
    toughest = np.stack([means[name] for name in names]).argmax(axis=0)
    base = np.stack([scores[name].values for name in names])[toughest, :, np.arange(len(cells))]
    excess = table(scores["probe"].values.T - base)
    selectivity = table(found.scores["seen"] - found.scores["control"])
    (test,) = sign_flip_test([excess], alternative="greater", seed=how["seed"])
    frame = cells.assign(
        **_interval("score", "", scores["probe"], how),
        baseline=[names[each] for each in toughest],
        score_baseline=estimates(table(base)),
        **_interval("excess", "excess_", excess, how),
        p=test.p,
        q=test.p_family if how["correction"] == "max-T" else benjamini_hochberg(test.p),
        score_seen=means["seen"],
        control=means["control"],
        **_interval("selectivity", "selectivity_", selectivity, how),
        **{name: means.get(name, np.nan) for name in CONTROLS},
        bits=found.bits,
        compression=found.uniform / found.bits,
        compression_prior=found.prior / found.bits,
        compression_control=found.uniform / found.control_bits,
        n=len(labelled.values),
        n_documents=excess.n_clusters,
    )
    return frame.assign(verdict=[_verdict(row, how) for row in frame.to_dict("records")])


def _interval(name: str, prefix: str, table: UnitTable, how: Mapping[str, Any]) -> dict[str, np.ndarray]:
    found = cluster_bootstrap(table, seed=how["seed"])
    return {name: found.estimate, f"{prefix}low": found.low, f"{prefix}high": found.high}


def _verdict(row: Mapping[Any, Any], how: Mapping[str, Any]) -> str:
    if row["n_documents"] < FEWEST_CLUSTERS:
        return "undecided"
    selective = not row["selectivity_low"] <= 0  # an interval that is not known says nothing
    if row["q"] <= how["alpha"] and row["excess"] >= how["minimum"] and selective:
        return "encodes"
    return "none" if row["excess_high"] < how["minimum"] else "undecided"
