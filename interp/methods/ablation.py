"""Ablation: what happens to a task when one component at a time is replaced.

1. Prepare the replacement (zero, mean, positional mean, resample) from the task's reference set.
2. For every head, set of heads, MLP or neuron, replace what it computes at all positions and measure the task again.
   A head is a part of its layer's ``z``, an MLP its layer's ``mlp_out``, a neuron a part of its layer's ``mlp_post``.
3. The effect is the change of the metric, example by example, paired with the base run.

Michel, Levy & Neubig (2019), "Are sixteen heads really better than one?".
"""

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from typing import Any, TypeGuard

import numpy as np

from interp.arguments import as_list, is_whole, named_arguments, numbers_below, require_different
from interp.errors import InputError
from interp.interventions.intervention import Intervention
from interp.interventions.metrics import as_metric
from interp.interventions.reference_set import make_replacement
from interp.interventions.replacement import Means, Replacement, Resample, Zero
from interp.interventions.sweep import Cell, Progress, Sweep, SweepResult
from interp.methods.grid import Grid, as_grid, grid_cells
from interp.methods.task_arguments import as_predicted
from interp.model.devices import documented
from interp.model.sites import SITES, Site
from interp.options import (
    AblatedHeadsOptions,
    AblateOptions,
    AskedMetric,
    Axis,
    ComponentOptions,
    Components,
    MeasureOptions,
    ReplacementName,
    SweepOptions,
)
from interp.options import Head as Head
from interp.runs.run import Run, as_run
from interp.tasks.task import EncodedExample, Task, Unit


@dataclass(frozen=True)
class Part:
    """What of a site is replaced: `heads` or `units` (neurons) of it, or all."""

    site: Site
    heads: tuple[int, ...] | None = None
    units: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Component:
    """Parts that are ablated together, one for each site in the order of the layers; `labels` are the cell's."""

    labels: Mapping[str, Hashable]
    parts: tuple[Part, ...]

    def cell(self, replacement: Replacement) -> Cell:
        """The cell in which `replacement` takes the place of all parts, at all positions."""
        changes = [Intervention(each.site, replacement, heads=each.heads, units=each.units) for each in self.parts]
        return Cell(self.labels, tuple(changes))


def sites_of(components: Sequence[Component]) -> list[Site]:
    """The sites that they are parts of, each once."""
    return list(dict.fromkeys(part.site for each in components for part in each.parts))


@named_arguments
def choose_components(
    model: Any,
    components: Components = "heads",
    *,
    heads: Sequence[Head] | None = None,
    sets: Sequence[Sequence[Head]] | None = None,
    layers: Sequence[int] | None = None,
) -> list[Component]:
    """The components that are meant; labels are ``layer``, ``head``, or ``heads`` for sets, or ``neuron``.

    Args:
        model: Follows TransformerLens' protocol.
        components: ``heads``, ``mlps`` or ``neurons``.
        heads: These heads one by one; None for all.
        sets: These sets of heads, each as one component; ``heads`` is its label, such as ``1.1+2.2``.
        layers: Only those of these layers; None for all.

    Raises:
        InputError: What the model does not have, or named twice; or a choice that does not go with another one.
    """
    given = [name for name, each in (("heads", heads), ("sets", sets), ("layers", layers)) if each is not None]
    if len(given) > 1 or (components != "heads" and given not in ([], ["layers"])):
        raise InputError(
            f"{' and '.join(given)}: expected at most one of heads, sets and layers, and only layers with "
            f"mlps and neurons; got components={components!r}; leave the others out"
        )
    if sets is not None:
        return [_of_heads({"heads": set_name(each)}, each) for each in check_sets(model, sets)]
    n, wanted = model.cfg.n_layers, "expected different layers, at least one; "
    chosen = list(range(n)) if layers is None else sorted(numbers_below(n, "layers", layers, expected=wanted))
    if components == "heads":
        single = [each for each in check_heads(model, heads) if each[0] in chosen]
        return [_of_heads({"layer": layer, "head": head}, [(layer, head)]) for layer, head in single]
    if getattr(model.cfg, "d_mlp", None) == 0:
        raise InputError(
            f"components: expected 'heads', since the model is of attention alone, got {components!r}; leave it out"
        )
    if components == "mlps":
        return [Component({"layer": layer}, (Part(Site("mlp_out", layer)),)) for layer in chosen]
    return [
        Component({"layer": layer, "neuron": unit}, (Part(Site("mlp_post", layer), units=(unit,)),))
        for layer in chosen
        for unit in range(model.cfg.d_mlp)
    ]


def head_name(head: Head) -> str:
    """``2.1`` for head 1 of layer 2."""
    return f"{head[0]}.{head[1]}"


@named_arguments
def as_head(model: Any, head: Head | str) -> Head:
    """The head that is meant, as layer and head, where it is ``(2, 1)`` or ``"2.1"``.

    Raises:
        InputError: Neither of these, or a head that the model does not have.
    """
    return check_heads(model, [parse_head(head) if isinstance(head, str) else head])[0]


def parse_head(name: str) -> Head:
    """Layer and head of a name such as ``2.1``, whichever model it is of."""
    found = re.fullmatch(r"(\d{1,6})\.(\d{1,6})", name)
    if found is None:
        raise InputError(f"head {name!r}: expected a layer and a head, both from 0, such as 2.1 for head 1 of layer 2")
    return int(found[1]), int(found[2])


def set_name(heads: Sequence[Head]) -> str:
    """``1.1+2.2`` for these two heads, whatever their order."""
    return "+".join(head_name(each) for each in sorted(heads))


@named_arguments
def check_heads(model: Any, heads: Sequence[Head] | None) -> list[Head]:
    """The heads in the model's order, or all of them; refuses no head, one twice, or one that the model lacks."""
    if heads is None:
        return [(layer, head) for layer in range(model.cfg.n_layers) for head in range(model.cfg.n_heads)]
    return _known_heads(model, heads)


def _known_heads(model: Any, heads: object) -> list[Head]:
    n_layers, n_heads = model.cfg.n_layers, model.cfg.n_heads
    given = as_list(heads)
    if given is None or not all(map(_is_pair, given)):
        raise InputError(f"heads: expected (layer, head) pairs, got {heads!r}; give a list such as [(2, 1)]")
    pairs = [(int(layer), int(head)) for layer, head in given]
    for layer, head in pairs:
        if not (0 <= layer < n_layers and 0 <= head < n_heads):
            raise InputError(
                f"head {layer}.{head}: the model has {n_layers} layers (0 to {n_layers - 1}) of {n_heads} heads "
                f"(0 to {n_heads - 1}); choose one of these"
            )
    require_different("heads", pairs, "(layer, head) pairs")
    return sorted(pairs)


@named_arguments
def check_sets(model: Any, sets: Sequence[Sequence[Head]]) -> list[list[Head]]:
    """The sets in the order given, their heads in the model's; refuses no set, or one twice."""
    given = as_list(sets)
    if given is None:
        raise InputError(f"sets: expected sets of (layer, head) pairs, got {sets!r}; give a list such as [[(2, 1)]]")
    checked = [_known_heads(model, each) for each in given]
    require_different("sets", [set_name(each) for each in checked], "sets of heads")
    return checked


def _is_pair(given: object) -> TypeGuard[Head]:
    pair = as_list(given) if isinstance(given, tuple | list | np.ndarray) else None  # a set has no first
    return pair is not None and len(pair) == 2 and all(map(is_whole, pair))


def _of_heads(labels: Mapping[str, Hashable], heads: Sequence[Head]) -> Component:
    by_layer: dict[int, tuple[int, ...]] = {}
    for layer, head in heads:
        by_layer[layer] = (*by_layer.get(layer, ()), head)
    return Component(labels, tuple(Part(Site("z", layer), heads=chosen) for layer, chosen in by_layer.items()))


@documented
def ablate(
    model: Any,
    task: Task | str,
    options: AblateOptions | None = None,
    *,
    progress: Progress | None = None,
    run: Run | str | PathLike[str] | None = None,
    **fields: Any,
) -> SweepResult:
    """Ablate components one at a time, or sets of heads together, at all positions.

    An effect is the metric with the component replaced minus the metric without: in logits for ``logit_difference``,
    in nats for log-probabilities. A drop is negative.

    Source: Michel, Levy & Neubig (2019), "Are sixteen heads really better than one?"; Wang et al. (2022),
    "Interpretability in the wild" (means); Chan et al. (2022), "Causal scrubbing" (resampling).

    Args:
        model: Follows TransformerLens' protocol; our own runs several times faster, as does a bridge that we know.
        task: A task, or the name of one.
        options: What is asked; or its fields by name: see ``AblateOptions``.
        progress: Called with (components done, components in all).
        run: Where what is measured is kept at once, and found again: a folder of runs; or an ``interp.Run``, which also
            says who measures. None to keep nothing.
        fields: Those of `options` that are given by name.

    Returns:
        One row per component and example, labelled ``layer`` and ``head``; ``heads`` (such as ``1.1+2.2``) for sets;
        ``layer`` for MLPs; ``layer`` and ``neuron``; or by the axes of `by`. ``summary()`` has one row per component.
        Interrupted (Ctrl-C), it holds the examples that are complete, and ``provenance["complete"]`` is False.

    Raises:
        InputError: A component that the model does not have, a replacement that the task cannot
            provide, rows that the model cannot carry, or a budget too small for one cell.
        AuditError: The engine's numbers are not those of the plain way.
        OutputError: What is measured cannot be kept.

    Examples:
        >>> result = interp.ablate(interp.load_model(), "agreement", replacement="zero", n=24)
        >>> list(result.summary().columns[:3])
        ['layer', 'head', 'effect']
    """
    asked = AblateOptions.of(options, fields)
    given = as_predicted(task, model, n=asked.n, seed=asked.seed, metric=asked.metric)
    prepared = partial(as_replacement, asked.replacement, model, given, asked)
    at_a_site = asked.site is not None or asked.by is not None
    if at_a_site:
        grid = _grid(asked)
        replacement = prepared(grid.sites(model))
        cells = grid_cells(model, given, grid, replacement, given.examples)
    else:
        chosen = choose_components(model, asked.components, heads=asked.heads, sets=asked.sets, layers=asked.layers)
        replacement = prepared(sites_of(chosen))
        cells = [each.cell(replacement) for each in chosen]
    how = {"replacement": replacement.name, "reference_hash": replacement.reference_hash}
    result = measure(model, given, cells, asked, progress=progress, run=run)
    return result.with_provenance(components=None if at_a_site else asked.components, **how)


@documented
def as_replacement(
    replacement: ReplacementName | Means,
    model: Any,
    task: Task,
    asked: ComponentOptions | AblatedHeadsOptions,
    sites: Sequence[Site],
) -> Zero | Means | Resample:
    """The replacement at these sites, made from the task's reference set."""
    measured = as_measured(task, asked.metric if isinstance(asked, SweepOptions) else "logit_difference")
    how: dict[str, Any] = {"draws": asked.draws, "seed": asked.seed, "memory_budget": asked.memory_budget}
    return make_replacement(replacement, model, measured, sites=sites, **how)


@documented
def measure(
    model: Any,
    task: Task,
    cells: Sequence[Cell],
    asked: MeasureOptions,
    *,
    progress: Progress | None = None,
    run: Run | str | PathLike[str] | None = None,
    **how: Any,
) -> SweepResult:
    """The sweep over `cells` with what is asked of every sweep; `how` goes to ``Sweep.run`` as well."""
    if isinstance(asked, SweepOptions):
        how["metric"] = asked.metric
    how |= {"seed": asked.seed, "memory_budget": asked.memory_budget}
    return Sweep(cells).run(model, task, progress=progress, run=as_run(run), **how)


def _grid(asked: AblateOptions) -> Grid:
    """The grid that is asked for in place of components."""
    twice = [name for name in ("heads", "sets") if getattr(asked, name) is not None]
    if twice or asked.components != "heads":
        raise InputError(
            f"{' and '.join(twice) or 'components'}: expected none of these beside site or by, which say what is "
            "ablated; leave one or the other out"
        )
    site = asked.site or "z"
    axes: tuple[Axis, ...] = ("layer", "head") if "head" in SITES.get(site, ("", ()))[1] else ("layer",)
    return as_grid(site, axes if asked.by is None else asked.by, asked.layers)


def as_measured(task: Task, metric: AskedMetric | None) -> Task:
    """`task` with the rows that `metric` runs, for whoever prepares replacements for it.

    A sentence's log-probability runs the prompts with their continuations, all else the prompts alone, whose answers
    then play no role and are cut to one token. Accuracy is that of the task's own metric.
    """
    if metric is not None:
        as_metric(metric)
    if metric in (None, "accuracy", task.metric):
        return task
    if metric == "sentence_log_probability":
        return replace(task, metric=metric)
    references = tuple(tuple(_prompts_alone(unit) for unit in units) for units in task.references)
    units = tuple(_prompts_alone(unit) for unit in task.units)
    return replace(task, metric="logit_difference", units=units, references=references)


def _prompts_alone(unit: Unit) -> Unit:
    def short(each: EncodedExample) -> EncodedExample:
        return each.with_answers([each.right[:1]], [each.wrong[:1]])

    other = None if unit.counterfactual is None else short(unit.counterfactual)
    return replace(unit, item=short(unit.item), counterfactual=other)
