"""From a row of evidence to a verdict, and to the number of units that would decide where nothing is."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from interp.methods.verdict import Evidence, attention_state, effect_state, judge
from interp.stats.intervals import FEWEST_CLUSTERS
from interp.stats.power import required_units


def judge_row(row: Mapping[str, Any], alpha: float, corrected: Mapping[str, float]) -> dict[str, Any]:
    """Verdict, reason and the number of units that would decide, for one head and task.

    Args:
        row: The evidence, in the columns of ``HeadsReport.frame`` and their standard errors.
        alpha: Error rate of a kind of evidence.
        corrected: By kind, the two-sided error rate of one test, corrected for the size of the family.
    """
    attention = Evidence(
        row["excess"],
        row["excess_low"],
        row["excess_high"],
        row["excess_high"] < row["minimum_attention"],
        row["attention_q"],
        row["minimum_attention"],
        row["n_attention_clusters"],
    )
    effect = Evidence(
        row["effect"],
        row["effect_low"],
        row["effect_high"],
        row["effect_absent"],
        row["effect_q"],
        row["minimum_effect"],
        row["n_clusters"],
    )
    verdict, reason = judge(attention, effect, joint_q=row["joint_q"], above_chance=row["above_chance"], alpha=alpha)
    n_to_decide = np.nan
    if verdict == "undecided" and row["above_chance"]:
        needs = []
        if effect_state(effect, alpha) == "undecided":
            needs.append(_units_needed(effect, row["effect_se"], row["n_units"], corrected["effect"]))
        if attention_state(attention, alpha) == "undecided":
            scored = row["n_attention_units"]
            needed = _units_needed(attention, row["excess_se"], scored, corrected["attention"])
            needs.append(np.ceil(needed * row["n_units"] / scored))  # attention is left out on some units
        n_to_decide = float(np.fmax.reduce(needs))
    return {"verdict": verdict, "reason": reason, "n_to_decide": n_to_decide}


def _units_needed(evidence: Evidence, standard_error: float, n_units: int, alpha: float) -> float:
    """Units that tell the minimum effect from 0 with power .8, never fewer than the clusters ask for.

    NaN where that many were measured already: what more of them would show is not known.

    Args:
        evidence: What is undecided.
        standard_error: Of its estimate.
        n_units: Units so far.
        alpha: Two-sided error rate of one test, corrected for the size of the family.

    Where the minimum could be told from 0 already, the estimate lies close to the minimum; then what has to be told
    apart is the estimate and the minimum.
    """
    needed = required_units(standard_error, n_units, evidence.minimum, alpha=alpha)
    if needed <= n_units and evidence.n_clusters >= FEWEST_CLUSTERS:
        gap = abs(evidence.minimum - abs(evidence.estimate))
        needed = required_units(standard_error, n_units, gap, alpha=alpha)
    if evidence.n_clusters >= FEWEST_CLUSTERS:
        return float(needed) if needed > n_units else np.nan
    # An unknown spread (NaN) leaves the number of clusters to decide.
    return float(np.fmax(needed, np.ceil(n_units * FEWEST_CLUSTERS / evidence.n_clusters)))
