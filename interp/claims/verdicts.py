"""From rows of evidence to states, to a verdict, and to the number of units that would decide an undecided head.

**Specificity**: a head can matter by its size alone: without it, the stream has another norm, or every later head looks
elsewhere. Such a head costs every task, whether or not it looks at the task's related word. So, of a head whose
ablation is a drop, with at least two other tasks that the model can do:

- *general*: a drop on all of them, too, and on some task it is shown not to look at the related word;
- *specific*: another task is shown not to need it, or it looks at the related word on all tasks, and so is about what
  they share;
- *undecided*: neither is shown.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from interp.claims.groups import DOUBT
from interp.claims.rules import DISAGREE, Evidence, Specificity, States, joint_state, judge, undecidable

FEWEST_OTHERS = 2
"""Other tasks that are needed to call a head general or specific."""
OPEN = ("undecided", "needed")
"""Verdicts of which more units would say more."""
REPLACEMENTS = {"effect": "resampling", "mean_effect": "the mean in its place"}
"""The kinds of evidence that are ablations, as a sentence names them."""


def states(frame: pd.DataFrame, alpha: float) -> pd.DataFrame:
    """What each kind of evidence, in columns as of ``Claims.frame``, comes to by itself.

    Returns:
        ``attention_state``, ``effect_state``, ``resample_state`` and ``mean_state`` (of either replacement),
        ``exchange_state`` and ``representation``, row by row; and ``undecidable``: why nothing can be said of any head
        of the task, empty where something can.
    """
    return pd.DataFrame([_states(row, alpha) for row in frame.to_dict("records")], index=frame.index)


def _states(row: Mapping[str, Any], alpha: float) -> dict[str, str]:
    resample, mean = (Evidence.of(row, kind) for kind in REPLACEMENTS)
    by_resample, by_mean = resample.effect(alpha), mean.effect(alpha)
    return {
        "attention_state": Evidence.of(row, "excess").excess(alpha),
        "effect_state": joint_state(by_resample, by_mean),
        "resample_state": by_resample,
        "mean_state": by_mean,
        "exchange_state": Evidence.of(row, "exchange").exchange(alpha),
        "representation": Evidence.of(row, "probe_excess").representation(
            selective=row["selectivity_p_adjusted"] <= alpha,
            has_room=not row["probe_baseline_score"] > 1 - row["probe_excess_minimum"],
            alpha=alpha,
        ),
        "undecidable": undecidable((resample, mean), row["above_chance"]),
    }


def decidable(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of tasks on which anything can be said."""
    return frame[frame["undecidable"] == ""]


def specificities(frame: pd.DataFrame) -> list[Specificity]:
    """Whether a head's effect is about the task, row by row of a frame with the ``states``."""
    by_head = dict(iter(decidable(frame).groupby(["layer", "head"])))
    none = frame.iloc[:0]
    return [
        _specificity(by_head.get((row["layer"], row["head"]), none), row["task"], row["attention_state"])
        for row in frame.to_dict("records")
    ]


def _specificity(of_head: pd.DataFrame, task: str, attention: str) -> Specificity:
    others = of_head[of_head["task"] != task]
    if len(others) < FEWEST_OTHERS:
        return "not testable"
    if others["effect_state"].isin(["none", "rise"]).any():
        return "specific"
    looks = {attention, *others["attention_state"]}
    if looks == {"shown"}:  # whatever its effects are: it is about what the tasks share
        return "specific"
    return "general" if "none" in looks and (others["effect_state"] == "drop").all() else "undecided"


def verdicts(frame: pd.DataFrame) -> pd.DataFrame:
    """The verdict, its reason and the number of units that would decide, row by row.

    The `frame` has the ``states``, ``specificity`` and what ``groups.partners`` adds; ``probed`` says whether probes
    were asked for, ``tested`` which heads can be shown to do anything: ``chosen`` or ``declared`` ones, or all (empty).
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
    if verdict not in OPEN:
        unread = given.representation == "undecided" and verdict in ("attends and causal", "none")
        probe = {"the probe": Evidence.of(row, "probe_excess")} if unread else {}
        return verdict, reason + _not_shown(row, probe), np.nan
    if reason == DISAGREE:
        mean = row["mean_replacement"].replace("_", " ")
        return verdict, f"{reason}: {row['effect']:.2g} by resample and {row['mean_effect']:.2g} by {mean}", np.nan
    unshown, n_exchanged, n_all = _not_shown(row, kinds), row["exchange_n_units"], row["n_task_units"]
    if "the exchanged word" in kinds and n_exchanged != n_all:
        reason += f" (measured on the {n_exchanged:.0f} of {n_all:.0f} units that have a word counterfactual)"
    return verdict, reason + unshown, np.nan if unshown else _units_to_decide(row, kinds)


def states_of(row: Mapping[str, Any]) -> States:
    """The states of one row of a frame as of ``verdicts``."""
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
    """Which kinds of evidence were not chosen, or not declared, so that more units would not show them either."""
    unshown = [name for name, evidence in kinds.items() if evidence.decidable and np.isnan(evidence.p_adjusted)]
    return f"; not {row['tested']}, and so cannot be shown: {', '.join(unshown)}" if unshown else ""


def _open(row: Mapping[str, Any]) -> dict[str, Evidence]:
    """The kinds of evidence that are undecided, and on which the verdict rests."""
    asked: dict[str, str] = {}
    if row["effect_state"] == "undecided":
        by_kind = {"effect": row["resample_state"], "mean_effect": row["mean_state"]}
        asked |= {REPLACEMENTS[kind]: kind for kind, state in by_kind.items() if state == "undecided"}
    if (row["effect_state"], row["attention_state"], row["exchange_state"]) == ("drop", "shown", "undecided"):
        asked["the exchanged word"] = "exchange"
    if row["attention_state"] == "undecided":
        asked["attention"] = "excess"
    found = {name: Evidence.of(row, kind) for name, kind in asked.items()}
    if row["effect_state"] == "none" and row["doubtful"]:
        effect, se, critical, *counts = (row[name] for name in DOUBT)
        found["group"] = Evidence(effect, row["effect_minimum"], se, 1.0, 1.0, critical, *counts)
    return found


def _units_to_decide(row: Mapping[str, Any], kinds: Mapping[str, Evidence]) -> float:
    """The largest number that some open kind of evidence needs; NaN where that of one is not known.

    Ablations take every unit. Of the others, some have nothing to be scored: it is as many again in proportion.
    """
    ablations = (*REPLACEMENTS.values(), "group")
    needs = [
        np.ceil(evidence.units_to_decide() * (1 if name in ablations else row["n_task_units"] / evidence.n_units))
        for name, evidence in kinds.items()
    ]
    return float(np.max(needs)) if needs else np.nan
