"""From rows of evidence to states, to a verdict, and to the number of units that would decide where nothing is."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from interp.methods.verdict import (
    Evidence,
    Representation,
    States,
    attention_state,
    effect_state,
    judge,
    related_state,
    representation_state,
    undecidable,
)
from interp.stats.intervals import FEWEST_CLUSTERS
from interp.stats.power import required_units

_COLUMNS = {
    "effect": ("effect", "effect_se", "effect_absent", "effect_q", "minimum_effect", "n_clusters"),
    "related": (
        *("related_effect", "related_se", "related_absent", "related_p"),
        *("related_minimum", "n_related_clusters"),
    ),
    "erasure": ("erasure_effect", "erasure_se", "erasure_absent", "erasure_p", "minimum_effect", "n_clusters"),
}
"""Of ``Evidence``, in order: that the task needs the head, what it finds at the related word, the feature there."""
_MEASURED = {"attention": "n_attention_units", "related": "n_related_units"}
"""The columns that count the units of kinds that are left out on some."""


def states(frame: pd.DataFrame, alpha: float) -> pd.DataFrame:
    """What each kind of evidence comes to by itself.

    Args:
        frame: The evidence, in the columns of ``HeadsReport.frame`` and their standard errors.
        alpha: Error rate of a kind of evidence.

    Returns:
        ``attention_state``, ``effect_state``, ``related_state`` and ``representation``, row by row; and
        ``undecidable``: why nothing can be said of any head of the task, empty where something can.
    """
    rows = frame.to_dict("records")
    found = {
        "attention_state": [attention_state(_attention(row), alpha) for row in rows],
        "effect_state": [effect_state(_of("effect", row), alpha) for row in rows],
        "related_state": [related_state(_of("related", row), alpha) for row in rows],
        "representation": [representation_state(_representation(row), alpha) for row in rows],
        "undecidable": [undecidable(_of("effect", row), row["above_chance"]) for row in rows],
    }
    return pd.DataFrame(found, index=frame.index)


def decidable(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of tasks on which anything can be said."""
    return frame[frame["undecidable"] == ""]


def verdicts(frame: pd.DataFrame, alpha: float, corrected: Mapping[str, float]) -> pd.DataFrame:
    """The verdict, its reason and the number of units that would decide, row by row.

    Args:
        frame: As of ``states``, with these, ``specificity`` and what ``partners`` adds.
        alpha: Error rate of a kind of evidence.
        corrected: By kind, the two-sided error rate of one test, corrected for the size of the family.
    """
    judged = [_judge(row, alpha, corrected) for row in frame.to_dict("records")]
    return pd.DataFrame(judged, columns=["verdict", "reason", "n_to_decide"], index=frame.index)


def _judge(row: Mapping[str, Any], alpha: float, corrected: Mapping[str, float]) -> tuple[str, str, float]:
    if row["undecidable"]:
        # More units decide where clusters are too few, and nothing where the model cannot do the task.
        return "undecided", row["undecidable"], _units_to_decide(row, corrected) if row["above_chance"] else np.nan
    given = States(
        attention=row["attention_state"],
        effect=row["effect_state"],
        representation=row["representation"],
        specificity=row["specificity"],
        related=row["related_state"],
        partners=tuple(row["partners"].split()),
        doubtful=tuple(row["doubtful"].split()),
        caveat=row["caveat"],
    )
    verdict, reason = judge(given, joint_q=row["joint_q"], tracks_q=row["tracks_q"], alpha=alpha)
    if verdict != "undecided":
        return verdict, reason, np.nan
    unchosen = [kind for kind, evidence in _open(row).items() if evidence.decidable and np.isnan(evidence.q)]
    if unchosen:
        return verdict, f"{reason}; not chosen for a test of {' and '.join(unchosen)}", np.nan
    return verdict, reason, _units_to_decide(row, corrected)


def _open(row: Mapping[str, Any]) -> dict[str, Evidence]:
    """The kinds of evidence that are undecided, and on which the verdict rests."""
    found = {}
    if row["effect_state"] == "undecided":
        found["effect"] = _of("effect", row)
    if row["effect_state"] == "drop" and row["attention_state"] == "shown" and row["related_state"] == "undecided":
        found["related"] = _of("related", row)
    if row["attention_state"] == "undecided":
        found["attention"] = _attention(row)
    decides = row["effect_state"] == "none" and row["attention_state"] != "shown"
    if row["representation"] == "undecided" and decides:
        found["probe"] = _representation(row).probe
    if row["representation"] == "carried" and decides:
        found["erasure"] = _of("erasure", row)
    if row["effect_state"] == "none" and row["doubtful"]:
        found["pair"] = _pair(row)
    return found


def _of(kind: str, row: Mapping[str, Any]) -> Evidence:
    """A kind of evidence that has all of it in columns."""
    return Evidence(*(row[name] for name in _COLUMNS[kind]))


def _pair(row: Mapping[str, Any]) -> Evidence:
    """That another head stands in for this one."""
    interaction, error = row["doubtful_interaction"], row["doubtful_se"]
    return Evidence(interaction, error, False, 1.0, row["minimum_effect"], row["n_clusters"])


def _units_to_decide(row: Mapping[str, Any], corrected: Mapping[str, float]) -> float:
    """The largest number that some open kind of evidence needs; NaN where that of one is not known."""
    needs = []
    for kind, evidence in _open(row).items():
        measured = row[_MEASURED.get(kind, "n_units")]
        needed = _units_needed(evidence, measured, corrected[kind])
        needs.append(np.ceil(needed * row["n_units"] / measured))
    return float(np.max(needs)) if needs else np.nan


def _attention(row: Mapping[str, Any]) -> Evidence:
    return Evidence(
        row["excess"],
        row["excess_se"],
        row["excess_high"] < row["minimum_attention"],
        row["attention_q"],
        row["minimum_attention"],
        row["n_attention_clusters"],
    )


def _representation(row: Mapping[str, Any]) -> Representation:
    return Representation(
        probe=Evidence(
            row["probe_excess"],
            # As wide as Student's t asks for, so a little too large: about the units that are needed, not of a test.
            (row["probe_excess_high"] - row["probe_excess_low"]) / (2 * norm.ppf(0.975)),
            row["probe_absent"],
            row["probe_q"],
            row["minimum_probe"],
            0 if np.isnan(row["probe"]) else int(row["n_probe_clusters"]),
        ),
        selective=not row["selectivity_low"] <= 0,  # an interval that is not known says nothing
        has_room=row["probe_baseline_score"] <= 1 - row["minimum_probe"],
        erasure_effect=row["erasure_effect"],
        erasure_random=row["erasure_random"],
        erasure_p=row["erasure_p"],
        erasure_absent=row["erasure_absent"],
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
