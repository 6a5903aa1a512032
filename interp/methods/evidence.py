"""The evidence on the heads of one task: attention, ablation under two replacements, and probes, gathered once.

For heads that look and matter, also whether what they read at the related word turns the answer (``word_exchange.py``).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from interp.claims.bootstrap import FEWEST_CLUSTERS, cluster_bootstrap
from interp.claims.claim import Measured, benjamini_hochberg, claims_of_tasks, holm
from interp.claims.declared import Chosen
from interp.claims.effects import above_chance, against_base
from interp.claims.units import UnitTable, estimates
from interp.errors import InputError
from interp.interventions.reference_set import make_replacement, mean_of_positions, with_donors
from interp.interventions.replacement import Means
from interp.interventions.sweep import Progress, SweepResult
from interp.methods.ablation import Head, ablate
from interp.methods.behaviour import require_able
from interp.methods.grid import complete, part_of
from interp.methods.probes.probe import probe
from interp.methods.task_attention import BY, MEASURES, AttentionResult, task_attention
from interp.methods.word_exchange import exchange_word
from interp.model.positions import looks_back_only
from interp.model.sites import Site
from interp.options import Correction, HeadsOptions, ProbeOptions
from interp.runs.run import Run
from interp.tasks.task import Task

CELL = ["layer", "head"]
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


def representation(
    model: Any, task: Task, *, minimum: float, alpha: float, seed: int, progress: Progress | None = None
) -> pd.DataFrame:
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
        return unread(model, task, minimum)
    asked = ProbeOptions(description_lengths=False, permuted_labels=False, min_effect=minimum, alpha=alpha, seed=seed)
    found = probe(model, task, task.feature, asked, progress=progress).cells
    found = found.assign(
        feature=task.feature,
        probe_excess_minimum=minimum,
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
    means: Means  # what heads were ablated by beside resamples, for who ablates more of them
    resampled: SweepResult  # effects of ablating each head by resampling
    averaged: SweepResult  # effects of ablating each head by the means
    attention: AttentionResult  # from query to related word
    excess: UnitTable | None  # by unit, of heads whose baseline leaves room for one; None where not testable
    exchange: (
        SweepResult | None
    )  # of the related word, for heads that look and matter; None where there is none to test
    representation: pd.DataFrame | None  # one row a head; None where probes were not asked for
    left_out: Mapping[str, str] = field(default_factory=dict)  # by the kind of evidence, why it cannot be had

    def heads(self) -> pd.DataFrame:
        """One row per head: what is not tested of effects and probes."""
        done = self.resampled.means()[[*CELL, "change_norm", "accuracy_base", "accuracy_intervened"]]
        done = done.rename(columns={"accuracy_intervened": "accuracy_ablated"})
        carried = self.representation
        if carried is None:
            carried = done[CELL].assign(**{**dict.fromkeys(PROBED, np.nan), "feature": self.task.feature})
        about = self.description()
        same = ("task", "query", "metric", "mean_replacement", "n_units", "n_excluded", "n_clusters")
        return done.merge(carried, on=CELL).assign(
            **{name: about[name] for name in same},
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
        """One row per head and example: effects under both replacements, and attention where it was scored."""
        effects = self.resampled.examples.copy()
        effects.insert(2, "task", self.task.name)
        effects = effects.assign(mean_effect=self.averaged.examples["effect"].to_numpy())
        scored = self.attention.examples[[*BY, "example", "baseline", *MEASURES]]
        if scored.empty:
            return effects.assign(feature_value="", baseline=None, **dict.fromkeys(MEASURES, np.nan))
        return effects.merge(scored, on=[*CELL, "example"], how="left")

    def description(self) -> dict[str, Any]:
        """The task's row: what was asked, and how well the unablated model does."""
        frame = self.resampled.examples
        one = frame[(frame["layer"] == frame["layer"].iloc[0]) & (frame["head"] == frame["head"].iloc[0])]
        base = UnitTable.from_frame(one, "base")
        interval = cluster_bootstrap(base, seed=self.resampled.provenance["seed"])
        accuracy = estimates(UnitTable.from_frame(one, "base_correct"))
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
            **counts,
            "dropped": self._dropped(),
            "coverage": dict(self.task.coverage),
        }


def gather(
    model: Any, task: Task, asked: HeadsOptions, *, progress: Progress | None = None, run: Run | None = None
) -> TaskEvidence:
    """Run the attention pass and both ablation sweeps, probe, and exchange the word for heads that may track.

    Units that have no other example of their template and length to resample from are left out, and counted. An
    interrupted sweep is no evidence on the task. Unless it is measured `anyway`, the model has to do the task at all.
    """
    task, seed = with_donors(task), asked.seed
    if not asked.anyway:
        require_able(model, task, seed=seed)
    attention = task_attention(model, task, seed=seed)
    n_heads = model.cfg.n_layers * model.cfg.n_heads
    steps = [part_of(progress, number, 3 if asked.probes else 2, n_heads) for number in range(3)]
    how: Any = {"seed": seed, "draws": asked.draws, "run": run}
    means = _means(model, task)
    resampled = complete(ablate(model, task, replacement="resample", **how, progress=steps[0]))
    averaged = complete(ablate(model, task, replacement=means, **how, progress=steps[1]))
    excess = attention.table("excess").only(attention.has_room(asked.min_attention)) if attention.testable else None
    looking = [] if excess is None else _able(excess, [resampled, averaged], asked)
    if not looks_back_only(model):  # behind layer 0 the word's keys and values hold other words, too
        looking = [head for head in looking if head[0] == 0]
    exchange = exchange_word(model, task, heads=looking, seed=seed, run=run) if looking else None
    base: Any = {"metric": task.metric, "seed": seed}
    if exchange is not None and not above_chance(complete(exchange).examples, CELL, **base).all():
        exchange = None  # the model does not tell the two words' answers apart: there is nothing to turn
    carried, left_out = None, dict[str, str]()
    if asked.probes:
        how = {"minimum": asked.min_probe, "alpha": asked.alpha, "seed": seed}
        try:
            carried = representation(model, task, **how, progress=steps[2])
        except InputError as error:
            carried, left_out = unread(model, task, asked.min_probe), {"probes": error.fault}
    return TaskEvidence(task, means, resampled, averaged, attention, excess, exchange, carried, left_out)


def tested(evidence: Sequence[TaskEvidence], chosen: Chosen | None, asked: HeadsOptions) -> pd.DataFrame:
    """The evidence with its tests: each kind is one family over layers x heads x tasks (probes: one by task).

    One row per task, layer and head: the columns of ``TaskEvidence.heads`` and, for each of ``excess``, ``effect`` (of
    resampling), ``mean_effect`` and ``exchange``, those of ``Claims.frame``. Attention is that of the value of the
    feature, ``attention_value``, at which it is shown most clearly, and absent where it is at every value;
    ``attention_values`` are those at which it is shown, of ``n_attention_values``. `chosen` are the rows that may be
    shown, by kind of evidence; None for all.
    """
    frame = pd.concat([each.heads() for each in evidence], ignore_index=True)
    rows = list(frame[["task", *CELL]].itertuples(index=False, name=None))
    attention = {each.task.name: Measured(each.excess, asked.min_attention) for each in evidence if each.excess}
    measured: dict[str, dict[str, Measured]] = {"excess": attention}
    for kind, name in (("effect", "resampled"), ("mean_effect", "averaged"), ("exchange", "exchange")):
        sweeps = {each.task.name: getattr(each, name) for each in evidence if getattr(each, name) is not None}
        measured[kind] = {
            task: against_base(each.examples, "effect", CELL, asked.min_effect) for task, each in sweeps.items()
        }
    for number, (kind, there) in enumerate(measured.items()):
        how: dict[str, Any] = {"correction": asked.correction, "alpha": asked.alpha, "seed": asked.seed + number}
        for name, rows_of in (("hypotheses", kind.removeprefix("mean_")), ("absences", "absent")):
            if chosen is not None and rows_of in chosen:
                may = dict(zip(rows, chosen[rows_of], strict=True))
                how[name] = [
                    np.array([may[(task, *cell[:2])] for cell in own.values.cells], dtype=bool)
                    for task, own in there.items()
                ]
        by: dict[str, type] = dict.fromkeys(CELL, int)
        if kind == "excess":
            by, how = {**by, "feature_value": object}, {**how, "alternative": "greater"}
        found = claims_of_tasks(kind, there, by, **how)
        if kind == "excess":
            looks = pd.concat([each.looks(asked.min_attention) for each in evidence], ignore_index=True)
            found = _clearest(looks.merge(found, on=["task", *BY], how="left"), asked.alpha)
        frame = frame.merge(found, on=["task", *CELL], how="left")
    counts = [f"{kind}_{name}" for kind in measured for name in ("n_units", "n_clusters")]
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
            adjusted = holm(np.where(chosen["probe"], p, np.nan))
        elif correction == "fdr":
            adjusted = benjamini_hochberg(p)
        else:
            adjusted = np.minimum(1.0, n_tasks * frame[f"{kind}_p_adjusted"])
        found[f"{kind}_p_adjusted"] = adjusted
    return frame.assign(**found)


def _means(model: Any, task: Task) -> Means:
    """The mean at every position where positions mean the same, else of the template; references are run once."""
    sites = [Site("z", layer) for layer in range(model.cfg.n_layers)]
    made = make_replacement(mean_of_positions(task), model, task, sites=sites)
    assert isinstance(made, Means)
    return made


def _able(excess: UnitTable, ablations: Sequence[SweepResult], asked: HeadsOptions) -> list[Head]:
    """The heads that may attend and be causal, as far as any test might let them."""
    looks = pd.Series(estimates(excess) >= asked.min_attention, index=excess.cells).groupby(level=CELL).any()
    able = looks.to_numpy(copy=True)
    for each in ablations:
        measured = against_base(each.examples, "effect", CELL, asked.min_effect)
        assert isinstance(measured.minimum, UnitTable)
        able &= estimates(measured.values) <= -estimates(measured.minimum)
    return [(int(layer), int(head)) for layer, head in looks.index[able]]


def _listed(counts: Mapping[str, int | float], form: str) -> str:
    return "; ".join(form.format(name=name, value=value) for name, value in counts.items())
