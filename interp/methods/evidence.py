"""The evidence on heads: attention, ablation under two replacements, and probes, gathered task by task and then tested.

For heads that look and matter, also whether what they read at the related word turns the answer (``word_exchange.py``).
Each kind of evidence is one family of tests over layers x heads x tasks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from interp.claims.bootstrap import FEWEST_CLUSTERS, cluster_bootstrap, contributions
from interp.claims.claim import Measured, benjamini_hochberg, claims_of_tasks
from interp.claims.declared import Chosen, holm
from interp.claims.effects import above_chance
from interp.claims.looks import Looks
from interp.claims.units import UnitTable, estimates
from interp.errors import InputError
from interp.interventions.replacement import Means
from interp.interventions.sweep import Progress, SweepResult
from interp.methods.ablation import Head, check_heads
from interp.methods.ablation_looks import CELL, KINDS, Begun, Pieces, ablated, begin, effects_of, joined
from interp.methods.progress import complete, part_of
from interp.methods.representation import PROBED, representation, unread
from interp.methods.task_attention import BY, MEASURES, AttentionResult
from interp.methods.word_exchange import exchange_word
from interp.model.positions import looks_back_only
from interp.options import Correction, HeadsOptions
from interp.runs.run import Run
from interp.tasks.task import Task

_BY: dict[str, type] = dict.fromkeys(CELL, int)
_SEEDS = {"excess": 0, "effect": 1, "mean_effect": 2, "exchange": 3}
"""What is added to the seed of the draws of each kind."""


@dataclass(frozen=True)
class TaskEvidence:
    """All kinds of evidence on one task."""

    task: Task  # what was asked
    answers: pd.DataFrame  # the unablated model's, on all units
    means: Means  # what heads were ablated by beside resamples, for who ablates more of them
    resampled: SweepResult  # effects of ablating each head by resampling
    averaged: SweepResult  # effects of ablating each head by the means
    predicted: pd.DataFrame | None  # as of ``Begun``
    attention: AttentionResult  # from query to related word
    excess: UnitTable | None  # by unit, of heads whose baseline leaves room for one; None where not testable
    exchange: (
        SweepResult | None
    )  # of the related word, for heads that look and matter; None where there is none to test
    representation: pd.DataFrame | None  # one row a head; None where probes were not asked for
    left_out: Mapping[str, str] = field(default_factory=dict)  # by the kind of evidence, why it cannot be had

    def heads(self) -> pd.DataFrame:
        """One row per head: what is not tested of effects and probes."""
        names = ["change_norm", "accuracy_base", "accuracy_intervened", "n_units", "n_clusters"]
        done = self.resampled.means()[[*CELL, *names]].rename(columns={"accuracy_intervened": "accuracy_ablated"})
        averaged = self.averaged.means()
        for name in ("n_units", "n_clusters"):  # on which both were measured
            done[name] = np.minimum(done[name], averaged[name])
        carried = self.representation
        if carried is None:
            carried = done[CELL].assign(**{**dict.fromkeys(PROBED, np.nan), "feature": self.task.feature})
        about = self.description()
        same = ("task", "query", "metric", "mean_replacement", "n_excluded")
        return done.merge(carried, on=CELL).assign(
            **{name: about[name] for name in same},
            n_task_units=about["n_units"],
            relation=self._relation(),
            above_chance=not about["base_low"] <= 0,  # an interval that is not known says nothing about it
        )

    def looks(self, min_attention: float) -> pd.DataFrame:
        """One row per head and value of the feature: where it looks, not tested."""
        seen = self.attention.means()[[*BY, *(name for name in MEASURES if name != "excess"), "baseline"]]
        return seen.merge(self.attention.templates(min_attention), on=list(BY), how="left").assign(task=self.task.name)

    def _relation(self) -> str:
        """What the task's related words are to their queries: one name, or what can be said of several."""
        relations = (each.example.relation for each in self.task.examples)
        names = {relation.name for relation in relations if relation is not None}
        return names.pop() if len(names) == 1 else "related word"

    def examples(self) -> pd.DataFrame:
        """One row per head and example: effects under both replacements, and attention, where they were measured."""
        label = [*CELL, "unit", "example", "cluster", "template", "layout"]
        named = self.averaged.examples[[*label, "effect"]].rename(columns={"effect": "mean_effect"})
        found = self.resampled.examples.merge(named, on=label, how="outer")
        if self.predicted is not None:
            found = found.drop(columns="base").merge(self.predicted, on=label, how="outer")
        scored = self.attention.examples[[*label, "feature_value", "baseline", *MEASURES]]
        if scored.empty:
            found = found.assign(feature_value="", baseline=None, **dict.fromkeys(MEASURES, np.nan))
        else:
            found = found.merge(scored, on=label, how="outer")
        found.insert(2, "task", self.task.name)
        return found.sort_values([*CELL, "example"], ignore_index=True)

    def description(self) -> dict[str, Any]:
        """The task's row: what was asked, and how well the unablated model does."""
        one = self.answers
        base = UnitTable.from_frame(one, "base", by=["model"])
        interval = cluster_bootstrap(base, seed=self.resampled.provenance["seed"])
        accuracy = estimates(UnitTable.from_frame(one, "base_correct", by=["model"]))
        as_given = np.array([example is unit.item for unit in self.task.units for example in unit.examples])
        return {
            "task": self.task.name,
            "description": self.task.description,
            "metric": self.task.metric,
            "query": self.task.query,
            "n_units": len(self.task.units),
            "n_examples": len(self.task.examples),
            "n_clusters": int(base.n_clusters[0]),
            "base": float(interval.estimate[0]),
            "base_low": float(interval.low[0]),
            "base_high": float(interval.high[0]),
            "accuracy_base": float(accuracy[0]),
            "accuracy_items": float(one["base_correct"][as_given[one["example"]]].mean()),
            "n_excluded": self.attention.provenance["n_excluded"],
            "n_untagged": self.attention.provenance["n_untagged"],
            "mean_replacement": self.means.name,
            "dropped": _listed(self._dropped(), "{name}: {value:.0f}"),
            "coverage": _listed(self.task.coverage, "{name}: {value:.0f} %"),
        }

    def _dropped(self) -> dict[str, int]:
        """Units that were left out, and examples whose word counterfactuals were."""
        not_carried = {"without word counterfactuals that the tokenizer carries": self.task.n_words_not_carried}
        return {**self.task.dropped, **{name: n for name, n in not_carried.items() if n}}

    def provenance(self) -> Mapping[str, Any]:
        """How the numbers were made."""
        counts = {name: self.attention.provenance[name] for name in ("n_untagged", "n_excluded", "n_without_reference")}
        return {
            **self.resampled.provenance,
            "mean_replacement": self.means.name,
            "audit_mean": self.averaged.provenance["audit"],
            "predicted": self.predicted is not None,
            **counts,
            "dropped": self._dropped(),
            "coverage": dict(self.task.coverage),
        }


def gathered(
    model: Any,
    begun: Begun,
    pieces: Pieces,
    asked: HeadsOptions,
    run: Run | None = None,
    progress: Progress | None = None,
) -> TaskEvidence:
    """All the evidence on a task: with the word exchanged for heads that may track, and the feature probed for."""
    task, attention, seed = begun.task, begun.attention, asked.seed
    resampled, averaged = (joined(pieces[kind]) for kind in ("effect", "mean_effect"))
    excess = attention.table("excess").only(attention.has_room(asked.min_attention)) if attention.testable else None
    measured = [
        effects_of(each, kind, begun.predicted, asked) for kind, each in zip(KINDS, (resampled, averaged), strict=True)
    ]
    looking = [] if excess is None else _able(excess, measured, asked.min_attention)
    if not looks_back_only(model):  # behind layer 0 the word's keys and values hold other words, too
        looking = [head for head in looking if head[0] == 0]
    how: Any = {"seed": seed, "memory_budget": asked.memory_budget, "run": run}
    exchange, left_out = None, dict[str, str]()
    try:
        exchange = exchange_word(model, task, heads=looking, **how) if looking else None
    except InputError as error:
        left_out["exchange"] = error.fault
    base: Any = {"metric": task.metric, "seed": seed}
    if exchange is not None and not above_chance(complete(exchange).examples, CELL, **base).all():
        exchange = None  # the model does not tell the two words' answers apart: there is nothing to turn
    carried = None
    if asked.probes:
        try:
            carried = representation(model, task, asked, run=run, progress=progress)
        except InputError as error:
            carried, left_out["probes"] = unread(model, task, asked.min_probe), error.fault
    found = (resampled, averaged, begun.predicted, attention, excess, exchange, carried)
    return TaskEvidence(task, begun.answers, begun.means, *found, left_out)


def gather(
    model: Any, task: Task, asked: HeadsOptions, *, progress: Progress | None = None, run: Run | None = None
) -> TaskEvidence:
    """All the evidence on all heads and units, in one look."""
    steps = [part_of(progress, number, 2, model.cfg.n_layers * model.cfg.n_heads) for number in range(2)]
    begun = begin(model, task, replace(asked, first_look=0), run=run)
    stay = dict.fromkeys(KINDS, check_heads(model, None))
    pieces = {kind: [each] for kind, each in ablated(model, begun, 0, 1, stay, asked, run, steps[0]).items()}
    return gathered(model, begun, pieces, asked, run, steps[1])


def _able(excess: UnitTable, ablations: Sequence[Measured], min_attention: float) -> list[Head]:
    """The heads that may attend and be causal, as far as any test might let them."""
    looks = pd.Series(estimates(excess) >= min_attention, index=excess.cells).groupby(level=CELL).any()
    able = looks.to_numpy(copy=True)
    for each in ablations:
        assert isinstance(each.minimum, UnitTable)
        able &= contributions(each.values).estimate <= -estimates(each.minimum)
    return [(int(layer), int(head)) for layer, head in looks.index[able]]


def _listed(counts: Mapping[str, int | float], form: str) -> str:
    return "; ".join(form.format(name=name, value=value) for name, value in counts.items())


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
