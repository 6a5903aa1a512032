"""The evidence on the heads of one task: attention, ablation under two replacements, and probes, gathered once.

For heads that look and matter, also whether what they read at the related word turns the answer (``word_exchange.py``).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from interp.claims.bootstrap import FEWEST_CLUSTERS, cluster_bootstrap, contributions
from interp.claims.claim import Measured
from interp.claims.effects import above_chance
from interp.claims.units import UnitTable, estimates
from interp.errors import InputError
from interp.interventions.engine.plan import NoRoomError
from interp.interventions.replacement import Means
from interp.interventions.sweep import Progress, SweepResult
from interp.methods.ablation import Head, check_heads
from interp.methods.ablation_looks import CELL, KINDS, Begun, Pieces, ablated, begin, effects_of, joined
from interp.methods.probes.probe import probe
from interp.methods.progress import complete, named, part_of
from interp.methods.task_attention import BY, MEASURES, AttentionResult
from interp.methods.word_exchange import exchange_word
from interp.model.positions import looks_back_only
from interp.options import HeadsOptions, ProbeOptions
from interp.runs.run import Run
from interp.tasks.task import Task

_OF_PROBES = {
    **{"score": "probe", "low": "probe_low", "high": "probe_high", "baseline": "probe_baseline"},
    **{"score_baseline": "probe_baseline_score", "control": "probe_control"},
    **{name: name for name in ("selectivity", "selectivity_low", "selectivity_p", "selectivity_p_adjusted")},
    **{"excess": "probe_excess", "excess_low": "probe_excess_low", "excess_high": "probe_excess_high"},
    **{name: f"probe_excess_{name}" for name in ("standard_error", "p", "p_adjusted", "p_absent", "critical")},
}
_COUNTS = ("probe_excess_minimum", "probe_excess_n_units", "probe_excess_n_clusters")
PROBED = ("feature", *_OF_PROBES.values(), *_COUNTS)
"""Of ``representation``, after ``layer`` and ``head``."""


def representation(model: Any, task: Task, asked: HeadsOptions, *, progress: Progress | None = None) -> pd.DataFrame:
    """What every head carries of the task's feature: one row a head, ``layer``, ``head`` and ``PROBED``.

    ``probe`` is the accuracy on unseen templates (or documents) and lemmas, ``probe_control`` that of the control task,
    ``selectivity`` what tells the two apart where words are known from training, ``probe_excess`` how far the probe is
    above its toughest control, ``probe_baseline``, with what ``Claims.frame`` says of it, over the heads of the task;
    ``probe_excess_n_clusters`` are the lexical draws, or the lemmas where they are fewer. All is NaN where the task has
    no feature, too few clusters to decide anything, or not two examples of two values.
    """
    if task.feature is None or not can_be_probed(task, task.feature):
        if progress is not None:
            progress(1, 1)
        return unread(model, task, asked.min_probe)
    how: Any = {name: getattr(asked, name) for name in ("alpha", "seed", "memory_budget")}
    options = ProbeOptions(description_lengths=False, permuted_labels=False, min_effect=asked.min_probe, **how)
    step = named(progress, f"{task.name}: probes", "heads")
    found = probe(model, task, task.feature, options, progress=step).cells
    found = found.assign(
        feature=task.feature,
        probe_excess_minimum=asked.min_probe,
        probe_excess_n_units=len(task.units),
        probe_excess_n_clusters=found[["n_documents", "n_lemmas"]].min(axis=1),
    )
    return found.rename(columns=_OF_PROBES)[[*CELL, *PROBED]]


def unread(model: Any, task: Task, minimum: float) -> pd.DataFrame:
    """As ``representation``, where nothing can be told of any head."""
    cells = pd.MultiIndex.from_product([range(model.cfg.n_layers), range(model.cfg.n_heads)], names=CELL)
    empty = pd.DataFrame(np.nan, index=cells, columns=list(PROBED)).assign(feature=task.feature)
    return empty.assign(probe_excess_n_clusters=0, probe_excess_minimum=minimum).reset_index()


def can_be_probed(task: Task, feature: str) -> bool:
    """Whether there are enough clusters, and two examples of two values to judge and to fit erasers on."""
    if len({unit.cluster for unit in task.units}) < FEWEST_CLUSTERS:
        return False
    folds = {unit.fold for unit in task.units}
    if max(folds) >= len(task.references):
        return False
    for units in (task.units, *(task.references[fold] for fold in folds)):
        counts = Counter(each.example.features.get(feature) for unit in units for each in unit.examples)
        if len(counts) < 2 or min(counts.values()) < 2 or None in counts:
            return False
    return True


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
    except NoRoomError:  # which may pass
        raise
    except InputError as error:
        left_out["exchange"] = error.fault
    base: Any = {"metric": task.metric, "seed": seed}
    if exchange is not None and not above_chance(complete(exchange).examples, CELL, **base).all():
        exchange = None  # the model does not tell the two words' answers apart: there is nothing to turn
    carried = None
    if asked.probes:
        try:
            carried = representation(model, task, asked, progress=progress)
        except InputError as error:
            carried, left_out["probes"] = unread(model, task, asked.min_probe), error.fault
    return TaskEvidence(
        task,
        begun.answers,
        begun.means,
        resampled,
        averaged,
        begun.predicted,
        attention,
        excess,
        exchange,
        carried,
        left_out,
    )


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
