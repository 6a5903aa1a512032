"""From rows of evidence to states, to a verdict, and to the number of units that would decide where nothing is."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from interp.claims.evidence import Evidence, effect_state, exchange_state, representation_state
from interp.claims.rules import DISAGREE, States, judge, undecidable

REPLACEMENTS = {"effect": "resampling", "mean_effect": "the mean in its place"}
"""The kinds of evidence that ablation is, as a sentence has them."""


def states(frame: pd.DataFrame, alpha: float) -> pd.DataFrame:
    """What each kind of evidence comes to by itself.

    Args:
        frame: The evidence, in columns as of ``Claims.frame``.
        alpha: Error rate of a kind of evidence.

    Returns:
        ``attention_state``, ``effect_state``, ``resample_state`` and ``mean_state`` (of either replacement),
        ``exchange_state`` and ``representation``, row by row; and ``undecidable``: why nothing can be said of any head
        of the task, empty where something can.
    """
    rows = frame.to_dict("records")
    resample, mean = ([Evidence.of(row, kind) for row in rows] for kind in REPLACEMENTS)
    found = {
        "attention_state": [Evidence.of(row, "excess").excess(alpha) for row in rows],
        "effect_state": [effect_state(*both, alpha) for both in zip(resample, mean, strict=True)],
        "resample_state": [each.effect(alpha) for each in resample],
        "mean_state": [each.effect(alpha) for each in mean],
        "exchange_state": [exchange_state(Evidence.of(row, "exchange"), alpha) for row in rows],
        "representation": [_representation(row, alpha) for row in rows],
        "undecidable": [
            undecidable((one, other), row["above_chance"]) for one, other, row in zip(resample, mean, rows, strict=True)
        ],
    }
    return pd.DataFrame(found, index=frame.index)


def decidable(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of tasks on which anything can be said."""
    return frame[frame["undecidable"] == ""]


def verdicts(frame: pd.DataFrame) -> pd.DataFrame:
    """The verdict, its reason and the number of units that would decide, row by row.

    Args:
        frame: As of ``states``, with these, ``specificity`` and what ``groups.partners`` adds; ``probed`` says whether
            probes were asked for, and ``tested`` of which heads anything can be shown: ``chosen`` or ``declared`` ones,
            or all (empty).
    """
    judged = [_judge(row) for row in frame.to_dict("records")]
    return pd.DataFrame(judged, columns=["verdict", "reason", "n_to_decide"], index=frame.index)


def _judge(row: Mapping[str, Any]) -> tuple[str, str, float]:
    kinds = _open(row)
    if row["undecidable"]:
        # More units decide where clusters are too few, and nothing where the model cannot do the task.
        return "undecided", row["undecidable"], _units_to_decide(row, kinds) if row["above_chance"] else np.nan
    given = states_of(row)
    verdict, reason = judge(given)
    if verdict != "undecided":
        unread = given.representation == "undecided" and verdict in ("attends and causal", "none")
        probe = {"the probe": Evidence.of(row, "probe_excess")} if unread else {}
        return verdict, reason + _not_shown(row, probe), np.nan
    if reason == DISAGREE:
        mean = row["mean_replacement"].replace("_", " ")
        return verdict, f"{reason}: {row['effect']:.2g} by resample and {row['mean_effect']:.2g} by {mean}", np.nan
    unshown = _not_shown(row, kinds)
    exchanged = _exchanged(row) if "the exchanged word" in kinds else ""
    return verdict, reason + exchanged + unshown, np.nan if unshown else _units_to_decide(row, kinds)


def _exchanged(row: Mapping[str, Any]) -> str:
    """On how many units the word was exchanged, if not on all."""
    n_units, n_all = row["exchange_n_units"], row["n_units"]
    if n_units == n_all:
        return ""
    return f" (measured on the {n_units:.0f} of {n_all:.0f} units that have a word counterfactual)"


def states_of(row: Mapping[str, Any]) -> States:
    """What each kind of evidence comes to, of one row of a frame as of ``verdicts``."""
    return States(
        attention=row["attention_state"],
        effect=row["effect_state"],
        representation=row["representation"],
        specificity=row["specificity"],
        exchange=row["exchange_state"],
        has_feature=isinstance(row["feature"], str),
        partners=tuple(row["partners"].split()),
        doubtful=tuple(row["doubtful"].split()),
        no_partners=row["member"] == "no",
        caveat=row["caveat"],
        probed=row["probed"],
        replacements=(row["resample_state"], row["mean_state"]),
    )


def _not_shown(row: Mapping[str, Any], kinds: Mapping[str, Evidence]) -> str:
    """That some kinds of evidence were not chosen, or not declared, so that more units would not show them either."""
    unshown = [name for name, evidence in kinds.items() if evidence.decidable and np.isnan(evidence.p_adjusted)]
    return f"; not {row['tested']}, and so cannot be shown: {', '.join(unshown)}" if unshown else ""


def _representation(row: Mapping[str, Any], alpha: float) -> str:
    return representation_state(
        Evidence.of(row, "probe_excess"),
        selective=row["selectivity_p_adjusted"] <= alpha,
        has_room=not row["probe_baseline_score"] > 1 - row["probe_excess_minimum"],
        alpha=alpha,
    )


def _open(row: Mapping[str, Any]) -> dict[str, Evidence]:
    """The kinds of evidence that are undecided, and on which the verdict rests."""
    found: dict[str, Evidence] = {}
    if row["effect_state"] == "undecided":
        states_of = zip(REPLACEMENTS, (row["resample_state"], row["mean_state"]), strict=True)
        found |= {REPLACEMENTS[kind]: Evidence.of(row, kind) for kind, state in states_of if state == "undecided"}
    if row["effect_state"] == "drop" and row["attention_state"] == "shown" and row["exchange_state"] == "undecided":
        found["the exchanged word"] = Evidence.of(row, "exchange")
    if row["attention_state"] == "undecided":
        found["attention"] = Evidence.of(row, "excess")
    if row["effect_state"] == "none" and row["doubtful"]:
        found["group"] = _doubt(row)
    return found


def _doubt(row: Mapping[str, Any]) -> Evidence:
    """That the head and others stand in for each other."""
    one = Evidence.of(row, "effect")
    effect, error = row["doubtful_effect"], row["doubtful_se"]
    return Evidence(effect, one.minimum, error, 1.0, 1.0, row["doubtful_critical"], one.n_units, one.n_clusters)


def _units_to_decide(row: Mapping[str, Any], kinds: Mapping[str, Evidence]) -> float:
    """The largest number that some open kind of evidence needs; NaN where that of one is not known."""
    needs = [np.ceil(evidence.units_to_decide() * row["n_units"] / evidence.n_units) for evidence in kinds.values()]
    return float(np.max(needs)) if needs else np.nan
