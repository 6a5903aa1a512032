"""Which cells encode the feature? Intervals over documents and lemmas, one family of tests over all cells, verdicts.

1. The **baseline** of a cell is the control that reaches most there: majority, embedding, position, the untrained
   model. The **excess** is the score less the baseline's, word by word. Choosing the toughest control on the scored
   words themselves can only make it tougher.
2. Documents are resampled. Where lemmas are held out, words of one lemma are not independent either: a head that knows
   words alone is right or wrong about a new lemma as a whole, and 40 lemmas have luck that 10,000 words hide. So lemmas
   are resampled, too, and the wider interval and the larger p count.
3. ``encodes``: an excess of no more than the minimum is rejected, over all cells, and so is a selectivity of no more
   than 0. ``none``: an excess of the minimum at least is rejected. What is neither, or has too few documents or lemmas,
   or a control that leaves less than the minimum to be better by, is ``undecided``.

Cameron, Gelbach & Miller (2011), "Robust inference with multiway clustering".
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from interp.claims.bootstrap import FEWEST_CLUSTERS, cluster_bootstrap
from interp.claims.claim import Claims, claim
from interp.claims.claim import Measured as Held
from interp.claims.units import UnitTable, estimates
from interp.methods.probes.labels import Labelled
from interp.methods.probes.measuring import Measured

BASELINES = ("majority", "embedding", "position", "untrained")
CONTROLS = (*BASELINES, "permuted")

PerCell = Float[np.ndarray, " cell"]
Values = Float[np.ndarray, "#cell example"]


def tabulate(cells: pd.DataFrame, found: Measured, labelled: Labelled, how: Mapping[str, Any]) -> pd.DataFrame:
    """One row a cell: scores beside their controls, tests and verdicts.

    Args:
        cells: Labels of the cells.
        found: What was measured.
        labelled: The examples.
        how: ``minimum``, ``alpha``, ``correction`` and ``seed``.
    """
    index = pd.MultiIndex.from_frame(cells)

    def tables(values: Values) -> list[UnitTable]:
        wide = np.ascontiguousarray(np.broadcast_to(values, (len(cells), values.shape[1])).T)
        return [UnitTable(wide, names, labelled.strata, index) for names in labelled.resampled]

    means = {name: estimates(tables(each)[0]) for name, each in found.scores.items()}
    names = [name for name in BASELINES if name in means]
    toughest = np.stack([means[name] for name in names]).argmax(axis=0)
    base = np.stack([np.broadcast_to(found.scores[name], found.scores["probe"].shape) for name in names])
    excess = tables(found.scores["probe"] - base[toughest, np.arange(len(cells))])
    selective = tables(found.scores["seen"] - found.scores["control"])
    tested, of_selectivity = _tested(excess, how["minimum"], how), _tested(selective, 0.0, how)
    # The toughest control was chosen on these words, which makes the excess small: that must not pass for an absence.
    tested["p_absent"] = np.minimum(1.0, len(names) * tested["p_absent"])
    frame = cells.assign(
        **_interval("score", "", tables(found.scores["probe"]), how),
        baseline=[names[each] for each in toughest],
        score_baseline=np.stack([means[name] for name in names]).max(axis=0),
        **_interval("excess", "excess_", excess, how),
        **tested,
        score_seen=means["seen"],
        control=means["control"],
        **_interval("selectivity", "selectivity_", selective, how),
        **{f"selectivity_{name}": of_selectivity[name] for name in ("p", "p_adjusted")},
        **{name: means.get(name, np.nan) for name in CONTROLS},
        bits=found.bits,
        compression=found.uniform / found.bits,
        compression_prior=found.prior / found.bits,
        compression_control=found.uniform / found.control_bits,
        n=len(labelled.values),
        n_documents=len(set(labelled.clusters)),
        n_lemmas=np.nan if labelled.lemmas is None else len(set(labelled.lemmas)),
    )
    return frame.assign(verdict=[_verdict(row, how) for row in frame.to_dict("records")])


def _interval(name: str, prefix: str, tables: Sequence[UnitTable], how: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The estimate, and the ends of the widest of the intervals."""
    found = [cluster_bootstrap(table, seed=how["seed"]) for table in tables]
    return {
        name: found[0].estimate,
        f"{prefix}low": np.min([each.low for each in found], axis=0),
        f"{prefix}high": np.max([each.high for each in found], axis=0),
    }


_TESTED = ("p", "p_adjusted", "p_absent", "standard_error", "critical")


def _tested(tables: Sequence[UnitTable], minimum: float, how: Mapping[str, Any]) -> dict[str, PerCell]:
    """Documents and lemmas by themselves; what is less sure of the two counts."""
    found: list[Claims] = [
        claim(
            [Held(table, minimum, counted=True)],
            alternative="greater",
            correction=how["correction"],
            alpha=how["alpha"],
            seed=how["seed"],
        )[0]
        for table in tables
    ]
    return {name: np.max([getattr(each, name) for each in found], axis=0) for name in _TESTED}


def _verdict(row: Mapping[Any, Any], how: Mapping[str, Any]) -> str:
    if row["n_documents"] < FEWEST_CLUSTERS or row["n_lemmas"] < FEWEST_CLUSTERS:
        return "undecided"
    if row["score_baseline"] > 1 - how["minimum"]:  # a control leaves no room to be better
        return "undecided"
    if row["p_adjusted"] <= how["alpha"] and row["selectivity_p_adjusted"] <= how["alpha"]:
        return "encodes"
    return "none" if row["p_absent"] <= how["alpha"] else "undecided"
