"""From a row of evidence to a verdict, and to the number of units that would decide where nothing is."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.stats import norm

from interp.methods.verdict import (
    Evidence,
    Representation,
    attention_state,
    effect_state,
    judge,
    representation_state,
)
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
        row["excess_se"],
        row["excess_high"] < row["minimum_attention"],
        row["attention_q"],
        row["minimum_attention"],
        row["n_attention_clusters"],
    )
    effect = Evidence(
        row["effect"],
        row["effect_se"],
        row["effect_absent"],
        row["effect_q"],
        row["minimum_effect"],
        row["n_clusters"],
    )
    found = _representation(row)
    carried = representation_state(found, alpha)
    verdict, reason = judge(
        attention,
        effect,
        carried,
        joint_q=row["joint_q"],
        tracks_q=row["tracks_q"],
        above_chance=row["above_chance"],
        alpha=alpha,
    )
    n_to_decide = np.nan
    if verdict == "undecided" and row["above_chance"]:
        needs = []
        if effect_state(effect, alpha) == "undecided":
            needs.append(_units_needed(effect, row["n_units"], corrected["effect"]))
        if attention_state(attention, alpha) == "undecided":
            scored = row["n_attention_units"]
            needed = _units_needed(attention, scored, corrected["attention"])
            needs.append(np.ceil(needed * row["n_units"] / scored))  # attention is left out on some units
        decides = effect_state(effect, alpha) == "none" and attention_state(attention, alpha) != "shown"
        if carried == "undecided" and decides:
            needs.append(_units_needed(found.probe, row["n_units"], corrected["probe"]))
        n_to_decide = float(np.fmax.reduce(needs))
    return {"verdict": verdict, "reason": reason, "n_to_decide": n_to_decide, "representation": carried}


def _representation(row: Mapping[str, Any]) -> Representation:
    return Representation(
        probe=Evidence(
            row["probe_excess"],
            # As wide as Student's t asks for, so a little too large: about the units that are needed, not of a test.
            (row["probe_excess_high"] - row["probe_excess_low"]) / (2 * norm.ppf(0.975)),
            row["probe_excess_high"] < row["minimum_probe"],
            row["probe_q"],
            row["minimum_probe"],
            0 if np.isnan(row["probe"]) else int(row["n_probe_clusters"]),
        ),
        selective=not row["selectivity_low"] <= 0,  # an interval that is not known says nothing
        has_room=row["probe_baseline_score"] <= 1 - row["minimum_probe"],
        erasure_effect=row["erasure_effect"],
        erasure_random=row["erasure_random"],
        erasure_p=row["erasure_p"],
        minimum_effect=row["minimum_effect"],
    )


def _units_needed(evidence: Evidence, n_units: int, alpha: float) -> float:
    """Units that tell the minimum effect from 0 with power .8, never fewer than the clusters ask for.

    Where the minimum could be told from 0 already, the estimate lies close to the minimum; then what has to be told
    apart is the estimate and the minimum. NaN where that many were measured already: what more of them would show is
    not known.

    Args:
        evidence: What is undecided.
        n_units: Units so far.
        alpha: Two-sided error rate of one test, corrected for the size of the family.
    """
    needed = required_units(evidence.standard_error, n_units, evidence.minimum, alpha=alpha)
    if evidence.n_clusters < FEWEST_CLUSTERS:
        # An unknown spread (NaN) leaves the number of clusters to decide.
        return float(np.fmax(needed, np.ceil(n_units * FEWEST_CLUSTERS / evidence.n_clusters)))
    if needed <= n_units:
        gap = abs(evidence.minimum - abs(evidence.estimate))
        needed = required_units(evidence.standard_error, n_units, gap, alpha=alpha)
    return needed if needed > n_units else np.nan
