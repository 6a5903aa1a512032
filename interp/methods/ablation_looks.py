"""Ablation of every head in looks: where a task begins, what each look measures, what gradients predict of the rest.

Heads are ablated on the units of one look after the other (``interp.claims.looks``). One backward pass estimates the
effects of all heads, under both replacements, on all units (attribution patching): means take account of it
(``interp.claims.bootstrap``), so that few measured units tell what many would, where the estimates are good.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor

from interp.claims.claim import Measured
from interp.claims.effects import against_base
from interp.claims.looks import order_of, sizes_of
from interp.errors import InputError
from interp.interventions.hooked_runs import differentiable_runs
from interp.interventions.intervention import written_sites
from interp.interventions.metrics import as_numbers
from interp.interventions.reference_set import (
    make_means,
    make_replacement,
    mean_of_positions,
    reference_rows,
    with_donors,
)
from interp.interventions.replacement import Means, Replacement
from interp.interventions.rows import example_labels, task_rows
from interp.interventions.sweep import Progress, SweepResult
from interp.methods.ablation import Head, ablate, check_heads
from interp.methods.behaviour import require_able
from interp.methods.progress import about, complete, named, part_of
from interp.methods.task_attention import AttentionResult, ReferenceAttention, task_attention
from interp.model.sites import Site
from interp.options import HeadsOptions
from interp.runs.run import Run
from interp.tasks.task import Task

CELL = ["layer", "head"]
KINDS = ("effect", "mean_effect")
"""Of ablation: by resampling, and by the mean."""


@dataclass(frozen=True)
class Begun:
    """What is known of a task before any head is ablated, and the units that the looks take."""

    task: Task  # without units that have no other example to resample from
    answers: pd.DataFrame  # the unablated model's, on all units
    means: Means  # at every position where positions mean the same, else of the template; references are run once
    attention: AttentionResult
    order: Int[np.ndarray, " unit"]  # in which units are measured
    sizes: Sequence[int]  # how many of them each look has
    # by head and example of all units, with its labels and ``base``, what gradients say: ``effect_predicted`` and
    # ``mean_effect_predicted``; None where there is no gradient, or all is measured in one look
    predicted: pd.DataFrame | None

    def units(self, look: int, n_looks: int) -> Int[np.ndarray, " unit"]:
        """Those that one of `n_looks` adds, by their numbers; none, where the task has fewer looks."""
        sizes = [0, *self.sizes, *[self.sizes[-1]] * n_looks]
        return np.sort(self.order[sizes[look] : sizes[look + 1]])

    def part(self, numbers: Int[np.ndarray, " unit"] | None = None) -> Task:
        """The task with some of its units; None for those of all looks."""
        chosen = np.sort(self.order[: self.sizes[-1]]) if numbers is None else numbers
        return replace(self.task, units=tuple(self.task.units[each] for each in chosen))


def begin(
    model: Any, task: Task, asked: HeadsOptions, *, run: Run | None = None, progress: Progress | None = None
) -> Begun:
    """Whether the model does the task at all, where every head looks, and what takes a head's place.

    Units that have no other example of their template and length to resample from are left out, and counted. Unless it
    is measured `anyway`, the model has to do the task.
    """
    about(progress, f"{task.name}: attention")
    tell: Progress = progress or (lambda _done, _all: None)
    task, seed = with_donors(task), asked.seed
    own = require_able(model, task, seed=seed, anyway=asked.anyway)
    tell(1, 4)
    name, seen = mean_of_positions(task), ReferenceAttention(model, task, reference_rows(task))
    how: Any = {"memory_budget": asked.memory_budget, "kept": None if run is None else run.means}
    sites = written_sites(model, range(model.cfg.n_layers))
    means = make_means([name], model, task, sites=sites, readers=seen.readers, **how)[name]
    attention = task_attention(model, task, seed=seed, references_seen=seen)
    tell(3, 4)
    begun = Begun(task, own, means, attention, _order(task, seed), look_sizes(task, asked), None)
    begun = replace(begun, predicted=_predicted(model, begun, asked))
    tell(4, 4)
    return begun


def _predicted(model: Any, begun: Begun, asked: HeadsOptions) -> pd.DataFrame | None:
    """As of ``Begun``; units are resampled from the donors that their look draws."""
    ends = sorted({0, *begun.sizes, len(begun.order)})
    if len(ends) == 2:
        return None
    labels = begun.answers[["unit", "example", "cluster", "template", "layout", "base"]]
    values = np.full((len(KINDS), len(labels), model.cfg.n_layers, model.cfg.n_heads), np.nan)
    sites = [Site("z", layer) for layer in range(model.cfg.n_layers)]
    how: Any = {"draws": asked.draws, "memory_budget": asked.memory_budget}
    for look, (start, end) in enumerate(itertools.pairwise(ends)):
        numbers = np.sort(begun.order[start:end])
        part = begun.part(numbers)
        resample = make_replacement("resample", model, part, sites=sites, seed=asked.seed + look, **how)
        try:
            found = predicted_effects(model, part, [resample, begun.means], asked.memory_budget)
        except InputError:
            return None
        values[:, labels["unit"].isin(numbers)] = found
    heads = pd.DataFrame(check_heads(model, None), columns=CELL)
    by_head = values.reshape(*values.shape[:2], -1).transpose(0, 2, 1).reshape(len(KINDS), -1)
    return heads.merge(labels, how="cross").assign(
        **{f"{kind}_predicted": each for kind, each in zip(KINDS, by_head, strict=True)}
    )


def predicted_effects(
    model: Any, task: Task, replacements: Sequence[Replacement], memory_budget: int | None = None
) -> list[Float[np.ndarray, "example layer head"]]:
    """What gradients say that ablating each head would do, by each replacement, in the metric's unit.

    One forward and one backward pass for all. Raises InputError as ``differentiable_runs`` does.
    """
    sites = [Site("z", layer) for layer in range(model.cfg.n_layers)]
    found = [np.zeros((len(task.examples), model.cfg.n_layers, model.cfg.n_heads)) for _ in replacements]
    rows, names = task_rows(task.metric, task.units), [each.hook_name for each in sites]
    for batch, run in differentiable_runs(model, rows, task.metric, names, memory_budget):
        signs = np.array([row.sign for row in batch.rows], dtype=float)[:, None]
        here, steep = ({name: _wide(x) for name, x in each.items()} for each in run.gradients())
        for site, (values, each) in itertools.product(sites, zip(found, replacements, strict=True)):
            there = torch.stack([_wide(each.values(site, batch, draw)) for draw in range(each.draws)]).mean(0)
            by_head = ((there - here[site.hook_name]) * steep[site.hook_name]).sum((1, 3))
            np.add.at(
                values[:, site.layer], batch.examples, signs * as_numbers(by_head.flatten()).reshape(by_head.shape)
            )
    return found


def _wide(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """In at least 32-bit floats."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def effects_of(sweep: SweepResult, kind: str, predicted: pd.DataFrame | None, asked: HeadsOptions) -> Measured:
    """The effects of a kind of ablation, where they were measured and as they are predicted, against the minimum."""
    foretold = None if predicted is None else predicted.rename(columns={f"{kind}_predicted": "predicted"})
    return against_base(sweep.examples, "effect", CELL, asked.min_effect, foretold)


def _order(task: Task, seed: int) -> Int[np.ndarray, " unit"]:
    return order_of([f"{unit.item.example.template} {unit.item.example.layout}" for unit in task.units], seed)


def look_sizes(task: Task, asked: HeadsOptions) -> list[int]:
    """How many units each look has, with those before."""
    clusters = [task.units[each].cluster for each in _order(task, asked.seed)]
    return sizes_of(clusters, asked.first_look, asked.max_clusters)


Pieces = Mapping[str, Sequence[SweepResult]]
"""By kind of ablation, ``effect`` (by resampling) and ``mean_effect``, what was measured at every look."""


def ablated(
    model: Any,
    begun: Begun,
    look: int,
    n_looks: int,
    stay: Mapping[str, Sequence[Head]],
    asked: HeadsOptions,
    run: Run | None = None,
    progress: Progress | None = None,
) -> dict[str, SweepResult]:
    """By kind of ablation, its effects on the units that a look adds, of the heads that `stay`.

    An interrupted sweep is no evidence on the task.
    """
    numbers, found = begun.units(look, n_looks), dict[str, SweepResult]()
    part = begun.part(numbers)
    # Every look draws other resamples.
    how: Any = {"seed": asked.seed + look, "draws": asked.draws, "memory_budget": asked.memory_budget, "run": run}
    for number, (kind, heads) in enumerate(stay.items()):
        step = part_of(progress, number, len(stay), model.cfg.n_layers * model.cfg.n_heads)
        if heads:
            step = named(step, f"{begun.task.name}: ablation", "heads")
            replacement: Any = "resample" if kind == "effect" else begun.means
            done = complete(ablate(model, part, replacement=replacement, heads=heads, **how, progress=step))
            found[kind] = _renumbered(done, begun.task, numbers)
    return found


def _renumbered(done: SweepResult, task: Task, numbers: Int[np.ndarray, " unit"]) -> SweepResult:
    """The units of a part, their examples and layouts, by their numbers in the whole task."""
    whole, frame = example_labels(task), done.examples
    at = np.flatnonzero(np.isin(whole["unit"], numbers))[frame["example"]]
    return replace(done, examples=frame.assign(**{name: whole[name][at] for name in ("unit", "example", "layout")}))


def joined(pieces: Sequence[SweepResult]) -> SweepResult:
    """The sweeps of all looks as one; its audit is that of all of them."""
    if len(pieces) == 1:
        return pieces[0]
    frame = pd.concat([each.examples for each in pieces]).sort_values([*CELL, "example"], ignore_index=True)
    audits = [each.provenance["audit"] for each in pieces if each.provenance["audit"] is not None]
    audit = None
    if audits:
        worst = max(audits, key=lambda each: float(each["largest_difference"]))
        audit = {**worst, **{name: sum(each[name] for each in audits) for name in ("cells", "rows")}}
    return replace(pieces[0], examples=frame, provenance={**pieces[0].provenance, "audit": audit})
