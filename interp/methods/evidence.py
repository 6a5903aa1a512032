"""What is known about the heads on one task? Attention, ablation and probes, gathered once and tabulated.

Of heads that look and matter, also: what their values at the related word are worth (``related_effect.py``).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from interp.interventions.preparing import make_replacement
from interp.interventions.replacement import Kind, Means
from interp.interventions.sweep import Progress, SweepResult
from interp.methods.ablation import ablate
from interp.methods.components import Head
from interp.methods.conclusions import against_minimum
from interp.methods.probing import MINIMUM
from interp.methods.progress import part_of
from interp.methods.related_effect import COLUMNS as RELATED
from interp.methods.related_effect import has_values_by_head, related_effects
from interp.methods.representation import COLUMNS, representation
from interp.methods.task_attention import MEASURES, AttentionResult, task_attention
from interp.model.sites import Site
from interp.runs.run import Run
from interp.stats.intervals import cluster_bootstrap
from interp.stats.permutation import FLIPS
from interp.stats.units import UnitTable, estimates, standard_errors
from interp.tasks.task import Task

CELL = ["layer", "head"]
NOT_MEASURED = {"related_absent": False, "n_related_units": 0, "n_related_clusters": 0}


@dataclass(frozen=True)
class TaskEvidence:
    """All kinds of evidence on one task.

    Attributes:
        task: What was asked.
        replacement: What heads were ablated by, for who ablates more of them.
        ablation: Effects of ablating each head.
        attention: Attention from query to related word.
        effects: The effects by unit.
        excess: The excess attention by unit, of heads whose baseline leaves room for one; None where the task is not
            testable.
        related: One row a head that looks and matters, as of ``related_effects``; None where it is not testable.
        representation: One row a head, as of ``representation``; None where probes were left out.
    """

    task: Task
    replacement: Kind | Means
    ablation: SweepResult
    attention: AttentionResult
    effects: UnitTable
    excess: UnitTable | None
    related: pd.DataFrame | None
    representation: pd.DataFrame | None

    def heads(self, minimum_attention: float, minimum_effect: float, minimum_probe: float = MINIMUM) -> pd.DataFrame:
        """One row per head: estimates, intervals, standard errors and counts, untested.

        Args:
            minimum_attention: As a share of all attention.
            minimum_effect: As a share of the base run's mean metric.
            minimum_probe: As a share of the examples.
        """
        base = self.description()
        against = against_minimum(
            self.ablation.frame, "effect", CELL, share=minimum_effect, seed=self.ablation.provenance["seed"]
        )
        done = self.ablation.estimates().drop(columns=["base", "value"])
        done = done.rename(
            columns={"low": "effect_low", "high": "effect_high", "accuracy_intervened": "accuracy_ablated"}
        ).join(against.add_prefix("effect_"), on=CELL)
        seen = self.attention.estimates()
        seen = seen.rename(
            columns={
                "low": "excess_low",
                "high": "excess_high",
                "n": "n_attention_units",
                "n_clusters": "n_attention_clusters",
            }
        ).assign(excess_se=np.nan if self.excess is None else standard_errors(self.excess))
        if self.excess is not None:
            seen = seen.assign(n_attention_units=self.excess.n_units, n_attention_clusters=self.excess.n_clusters)
            # There is no excess where the baseline is the related word itself.
            seen.loc[self.excess.n_units == 0, ["excess", "excess_low", "excess_high"]] = np.nan
        templates = self.attention.templates(minimum_attention)
        carried = self.representation
        if carried is None:
            carried = done[CELL].assign(**dict.fromkeys(COLUMNS, np.nan))
        return (
            done.merge(seen, on=CELL)
            .merge(templates, on=CELL, how="left")
            .merge(carried, on=CELL)
            .merge(self._related(), on=CELL)
            .assign(
                # NaN where nothing was measured.
                probe_absent=lambda rows: rows["probe_absent"].eq(True),
                erasure_absent=lambda rows: rows["erasure_absent"].eq(True),
                task=self.task.name,
                query=self.task.query,
                metric=self.task.metric,
                relation=self._relation(),
                minimum_attention=minimum_attention,
                minimum_effect=minimum_effect * abs(base["base"]),
                minimum_probe=minimum_probe,
                above_chance=not base["base_low"] <= 0,  # an interval that is not known says nothing about it
            )
        )

    def _related(self) -> pd.DataFrame:
        """One row a head; of those whose values were not ablated, nothing but a p of 1 where they could have been."""
        every = self.ablation.frame[CELL].drop_duplicates()
        if self.related is None:
            return every.assign(**dict.fromkeys(RELATED, np.nan)).assign(**NOT_MEASURED)
        found = every.merge(self.related, on=CELL, how="left").astype(dict.fromkeys(RELATED, float))
        filled = found.fillna(dict.fromkeys(NOT_MEASURED, 0.0) | {"related_p": 1.0})
        return filled.astype({name: type(value) for name, value in NOT_MEASURED.items()})

    def _relation(self) -> str:
        """What the task's related words are to their queries: one name, or what can be said of several."""
        relations = (each.example.relation for each in self.task.examples)
        names = {relation.name for relation in relations if relation is not None}
        return names.pop() if len(names) == 1 else "related word"

    def examples(self) -> pd.DataFrame:
        """One row per head and example: effects, and attention where it was scored."""
        effects = self.ablation.frame.copy()
        effects.insert(2, "task", self.task.name)
        scored = self.attention.frame[[*CELL, "example", "baseline", *MEASURES]]
        if scored.empty:
            return effects.assign(baseline=None, **dict.fromkeys(MEASURES, np.nan))
        return effects.merge(scored, on=[*CELL, "example"], how="left")

    def description(self) -> dict[str, Any]:
        """The task's row: what was asked, and how well the unablated model does."""
        frame = self.ablation.frame
        one = frame[(frame["layer"] == frame["layer"].iloc[0]) & (frame["head"] == frame["head"].iloc[0])]
        base = UnitTable.from_frame(one, "base")
        interval = cluster_bootstrap(base, seed=self.ablation.provenance["seed"])
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
            "dropped": _listed(self.task.dropped, "{name}: {value:.0f}"),
            "coverage": _listed(self.task.coverage, "{name}: {value:.0f} %"),
        }

    def provenance(self) -> Mapping[str, Any]:
        """How the numbers were made."""
        counts = {name: self.attention.provenance[name] for name in ("n_untagged", "n_excluded", "n_without_reference")}
        return {
            **self.ablation.provenance,
            **counts,
            "dropped": dict(self.task.dropped),
            "coverage": dict(self.task.coverage),
        }


def gather(
    model: Any,
    task: Task,
    *,
    kind: Kind,
    draws: int,
    seed: int,
    minimum_attention: float = 0.1,
    minimum_effect: float = 0.1,
    probes: bool = True,
    minimum_probe: float = MINIMUM,
    alpha: float = 0.05,
    flips: int = FLIPS,
    progress: Progress | None = None,
    run: Run | None = None,
) -> TaskEvidence:
    """Run the attention pass and the ablation sweep on `task`, probe it and erase what can be read.

    Where a head looks and matters, its values at the related word are ablated as well.

    Args:
        model: Follows TransformerLens' protocol.
        task: What is measured.
        kind: What replaces an ablated head's ``z``.
        draws: How many resamples to average the effects of.
        seed: Of the resamples and the statistics.
        minimum_attention: Smallest excess attention that counts, as a share of all attention.
        minimum_effect: Smallest effect that counts, as a share of the base run's mean metric.
        probes: Whether the task's feature is probed for.
        minimum_probe: Smallest excess of a probe that counts.
        alpha: Error rate of the verdicts.
        flips: Of signs, in a test.
        progress: Called with (steps done, steps in all).
        run: Where the sweeps are kept; None for nowhere.

    Raises:
        KeyboardInterrupt: The sweep was interrupted: some of the examples are no evidence on the task.
    """
    attention = task_attention(model, task, seed=seed)
    n_heads = model.cfg.n_layers * model.cfg.n_heads
    first, rest = (part_of(progress, number, 2 if probes else 1, n_heads) for number in range(2))
    replacement = _shared(kind, model, task)
    ablation = ablate(model, task, kind=replacement, draws=draws, seed=seed, progress=first, run=run)
    if not ablation.provenance["complete"]:
        raise KeyboardInterrupt
    excess = None
    if attention.testable:
        excess = UnitTable.from_frame(attention.frame, "excess").only(attention.has_room(minimum_attention))
    effects = UnitTable.from_frame(ablation.frame, "effect")
    options: Any = {"seed": seed, "flips": flips, "minimum_effect": minimum_effect, "run": run}
    minimum = minimum_effect * np.abs(estimates(UnitTable.from_frame(ablation.frame, "base")))
    looking = [] if excess is None else _able(excess, effects, minimum_attention, minimum)
    scored = replace(task, units=tuple(task.units[number] for number in attention.frame["unit"].unique()))
    related = related_effects(model, scored, looking, kind=replacement, draws=draws, **options)
    carried = None
    if probes:
        carried = representation(model, task, alpha=alpha, minimum=minimum_probe, **options, progress=rest)
    return TaskEvidence(task, replacement, ablation, attention, effects, excess, related, carried)


def _shared(kind: Kind, model: Any, task: Task) -> Kind | Means:
    """Means of all that may be ablated, for which the reference sets are run once; or else the kind's name."""
    if kind not in ("mean", "positional_mean"):
        return kind
    names = ("z", "v") if has_values_by_head(model) else ("z",)
    sites = [Site(name, layer) for name in names for layer in range(model.cfg.n_layers)]
    made = make_replacement(kind, model, task, sites=sites)
    assert isinstance(made, Means)
    return made


def _able(
    excess: UnitTable, effects: UnitTable, minimum_attention: float, minimum_effect: Float[np.ndarray, " cell"]
) -> list[Head]:
    """The heads that may attend and be causal, as far as any test might let them."""
    able = (estimates(excess) >= minimum_attention) & (estimates(effects) <= -minimum_effect)
    return [(int(layer), int(head)) for layer, head in effects.cells[able]]


def _listed(counts: Mapping[str, int | float], form: str) -> str:
    return "; ".join(form.format(name=name, value=value) for name, value in counts.items())
