"""The tests of the evidence on all tasks: each kind is one family over layers x heads x tasks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from interp.claims.bootstrap import FEWEST_CLUSTERS
from interp.claims.claim import Measured, benjamini_hochberg, claims_of_tasks, holm
from interp.claims.declared import Chosen
from interp.claims.looks import Looks
from interp.interventions.sweep import SweepResult
from interp.methods.ablation import Head
from interp.methods.ablation_looks import CELL, KINDS, effects_of
from interp.methods.evidence import TaskEvidence
from interp.methods.task_attention import BY
from interp.options import Correction, HeadsOptions

_BY: dict[str, type] = dict.fromkeys(CELL, int)
_SEEDS = {"excess": 0, "effect": 1, "mean_effect": 2, "exchange": 3}
"""What is added to the seed of the draws of each kind."""


@dataclass(frozen=True)
class Ablations:
    """The tests of both kinds of ablation, look by look, of one model."""

    kinds: Mapping[str, Looks]

    @classmethod
    def of(cls, n_looks: int, asked: HeadsOptions) -> "Ablations":
        """Before the first of them."""
        how = {"correction": asked.correction}
        seeds = {kind: {**how, "seed": asked.seed + _SEEDS[kind]} for kind in KINDS}
        return cls({kind: Looks(kind, _BY, n_looks, asked.alpha, seeds[kind]) for kind in KINDS})

    def look(
        self,
        by_kind: Mapping[str, Mapping[str, SweepResult]],
        predicted: Mapping[str, pd.DataFrame | None],
        chosen: Chosen | None,
        asked: HeadsOptions,
    ) -> "Ablations":
        """Test what is measured by now, by kind and task, with what is `predicted` on each task."""
        found = {}
        for kind, sweeps in by_kind.items():
            measured = {task: effects_of(each, kind, predicted.get(task), asked) for task, each in sweeps.items()}
            found[kind] = self.kinds[kind].look(measured, **_may_be("effect", measured, chosen))
        return Ablations(found)

    def stay(self, task: str) -> dict[str, list[Head]]:
        """By kind, the heads of which more is to be measured on a task."""
        found = {}
        for kind, looks in self.kinds.items():
            assert looks.frame is not None
            assert looks.open is not None
            rows = looks.frame[looks.open & (looks.frame["task"] == task).to_numpy()]
            found[kind] = [(int(layer), int(head)) for layer, head in zip(rows["layer"], rows["head"], strict=True)]
        return found


def in_one_look(evidence: Sequence[TaskEvidence], asked: HeadsOptions) -> Ablations:
    """The tests of ablations that were measured on all units at once."""
    sweeps = {
        "effect": {each.task.name: each.resampled for each in evidence},
        "mean_effect": {each.task.name: each.averaged for each in evidence},
    }
    return Ablations.of(1, asked).look(sweeps, {each.task.name: each.predicted for each in evidence}, None, asked)


def _may_be(kind: str, measured: Mapping[str, Measured], chosen: Chosen | None) -> dict[str, list[np.ndarray]]:
    """Which cells may be shown, and absent, task by task."""
    found = {}
    for name, rows_of in (("hypotheses", kind), ("absences", "absent")):
        if chosen is not None and rows_of in chosen:
            may = chosen[rows_of].to_dict()
            found[name] = [
                np.array([may[(task, *cell[:2])] for cell in own.values.cells], dtype=bool)
                for task, own in measured.items()
            ]
    return found


def tested(
    evidence: Sequence[TaskEvidence], ablations: Ablations, chosen: Chosen | None, asked: HeadsOptions
) -> pd.DataFrame:
    """The evidence with its tests: each kind is one family over layers x heads x tasks (probes: one by task).

    One row per task, layer and head: the columns of ``TaskEvidence.heads`` and, for each of ``excess``, ``effect`` (of
    resampling), ``mean_effect`` and ``exchange``, those of ``Claims.frame``. Attention is that of the value of the
    feature, ``attention_value``, at which it is shown most clearly, and absent where it is at every value;
    ``attention_values`` are those at which it is shown, of ``n_attention_values``. `chosen` are the rows that may be
    shown, by kind of evidence; None for all.
    """
    frame = pd.concat([each.heads() for each in evidence], ignore_index=True)
    attention = {each.task.name: Measured(each.excess, asked.min_attention) for each in evidence if each.excess}
    exchanged = {
        each.task.name: effects_of(each.exchange, "exchange", None, asked)
        for each in evidence
        if each.exchange is not None
    }
    how: dict[str, Any] = {"correction": asked.correction, "alpha": asked.alpha}
    looks = pd.concat([each.looks(asked.min_attention) for each in evidence], ignore_index=True)
    seen = claims_of_tasks(
        "excess",
        attention,
        {**_BY, "feature_value": object},
        **how,
        **_may_be("excess", attention, chosen),
        alternative="greater",
        seed=asked.seed + _SEEDS["excess"],
    )
    turned = claims_of_tasks(
        "exchange",
        exchanged,
        _BY,
        **how,
        **_may_be("exchange", exchanged, chosen),
        seed=asked.seed + _SEEDS["exchange"],
    )
    clearest = _clearest(looks.merge(seen, on=["task", *BY], how="left"), asked.alpha)
    for found in (clearest, *(each.frame for each in ablations.kinds.values()), turned):
        frame = frame.merge(found, on=["task", *CELL], how="left")
    kinds = ("excess", *KINDS, "exchange")
    counts = [f"{kind}_{name}" for kind in kinds for name in ("n_units", "n_clusters", "n_effective")]
    return _with_probes(frame.fillna(dict.fromkeys(counts, 0)), chosen, asked.correction)


def _clearest(looks: pd.DataFrame, alpha: float) -> pd.DataFrame:
    """One row a task and head: of the value at which attention is shown most clearly.

    Where it is absent at all values but one that cannot be tested, it is that one: nothing is known of the head.
    """
    cell = ["task", *CELL]
    tested = (looks["excess_n_clusters"] >= FEWEST_CLUSTERS) & looks["excess_standard_error"].notna()
    looks = looks.assign(tested=tested)
    by_head = looks.groupby(cell)
    absent = by_head["excess_p_absent"].transform("max")
    unknown = (absent <= alpha) & ~by_head["tested"].transform("all")
    order = looks.assign(first=looks["tested"] != unknown, excess_p_absent=absent)
    order = order.sort_values(["first", "excess_p_adjusted", "excess"], ascending=[False, True, False])
    found = order.drop_duplicates(cell).drop(columns=["first", "tested"])
    shown = looks[looks["excess_p_adjusted"] <= alpha].groupby(cell)["feature_value"].agg(", ".join)
    named = found.merge(shown.rename("attention_values").reset_index(), on=cell, how="left")
    named["n_attention_values"] = named.merge(looks.groupby(cell).size().rename("n").reset_index(), on=cell)["n"]
    return named.rename(columns={"feature_value": "attention_value"}).fillna({"attention_values": ""})


def _with_probes(frame: pd.DataFrame, chosen: Chosen | None, correction: Correction) -> pd.DataFrame:
    """Probes were corrected over a task's heads; now over tasks as well, or over what was chosen."""
    n_tasks = frame.loc[frame["probe_excess_p_adjusted"].notna(), "task"].nunique()
    enough = frame["probe_excess_n_clusters"] >= FEWEST_CLUSTERS
    found = {"probe_excess_p_absent": np.minimum(1.0, n_tasks * frame["probe_excess_p_absent"])}
    for kind in ("probe_excess", "selectivity"):
        p = frame[f"{kind}_p"].where(enough).to_numpy(dtype=float)
        if chosen is not None:
            may = chosen["probe"].reindex(pd.MultiIndex.from_frame(frame[["task", *CELL]]))
            adjusted = holm(np.where(may, p, np.nan))
        elif correction == "fdr":
            adjusted = benjamini_hochberg(p)
        else:
            adjusted = np.minimum(1.0, n_tasks * frame[f"{kind}_p_adjusted"])
        found[f"{kind}_p_adjusted"] = adjusted
    return frame.assign(**found)
