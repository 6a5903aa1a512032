"""Does the model need this component? Ablate one at a time and see what happens to a task.

1. Prepare the replacement (zero, mean, positional mean, resample) from the task's reference set.
2. For every head, set of heads, MLP or neuron, replace what it computes at all positions and measure the task again.
3. The effect is the change of the metric, example by example, paired with the base run.

Michel, Levy & Neubig (2019), "Are sixteen heads really better than one?"; replacements as in
``interventions/replacement.py``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any

from interp.errors import InputError
from interp.interventions.metrics import MetricName, check_metric
from interp.interventions.preparing import make_replacement
from interp.interventions.replacement import DRAWS, Kind, Means
from interp.interventions.sweep import Progress, Sweep, SweepResult
from interp.methods.components import Components, Head, choose_components, sites_of
from interp.methods.given_task import as_predicted
from interp.methods.grid import Axis, Grid, as_grid, grid_cells
from interp.model.modes import documented
from interp.model.sites import SITES
from interp.runs.run import Run, as_run
from interp.tasks.task import EncodedExample, Task, Unit


@documented
def ablate(
    model: Any,
    task: Task | str,
    *,
    components: Components = "heads",
    kind: Kind | Means = "mean",
    heads: Sequence[Head] | None = None,
    sets: Sequence[Sequence[Head]] | None = None,
    layers: Sequence[int] | None = None,
    site: str | None = None,
    by: Sequence[Axis] | None = None,
    metric: MetricName | None = None,
    n: int | None = None,
    seed: int = 0,
    draws: int = DRAWS,
    memory_budget: int | None = None,
    progress: Progress | None = None,
    run: Run | str | PathLike[str] | None = None,
) -> SweepResult:
    """Ablate components one at a time, or sets of heads together, at all positions.

    Args:
        model: Follows TransformerLens' protocol; our own runs several times faster, as does a bridge that we know.
        task: A task, or the name of one.
        components: What is ablated one by one: ``heads`` (their ``z``), ``mlps`` (all that they write, with their
            bias) or ``neurons`` (after the activation).
        kind: What takes their place: ``zero``, ``mean``, ``positional_mean``, ``template_mean`` or ``resample``; or
            means that ``make_replacement`` has made, for who measures several times.
        heads: ``(layer, head)`` pairs, one by one; None for all of the model's.
        sets: Sets of such pairs; those of a set are ablated together.
        layers: Layers whose heads, MLPs or neurons are ablated; None for all. A sweep over neurons has one cell for
            each, so give the layers where the model is large.
        site: In place of components, any site that ``patch`` knows, such as ``attn_out``; ``z`` where only `by` is
            given.
        by: What makes a cell at this site, as for ``patch``: ``("layer", "head", "pos")``. What is left out is ablated
            all at once; None for one cell a layer, and head where the site has heads.
        metric: What is measured; None for the task's own. A KL divergence rises where all others fall.
        n: Units to draw where `task` is a name; None for the task's own default.
        seed: Of the task's draw, the resamples and the statistics.
        draws: How many resamples to average the effects of.
        memory_budget: Bytes that the sweep holds beside the model's weights, what the replacement keeps of the
            reference set, and the results; None for the device's default.
        progress: Called with (components done, components in all).
        run: Where what is measured is kept at once, and found again: a folder of runs; or an ``interp.Run``, which also
            says who measures. None to keep nothing.

    Returns:
        One row per component and example, labelled ``layer`` and ``head``; ``heads`` (such as ``1.1+2.2``) for sets;
        ``layer`` for MLPs; ``layer`` and ``neuron``; or by the axes of `by`. ``summary()`` has one row per component.
        Interrupted (Ctrl-C), it holds the examples that are complete, and ``provenance["complete"]`` is False.

    Raises:
        InputError: A component that the model does not have, a replacement that the task cannot
            provide, rows that the model cannot carry, or a budget too small for one cell.
        AuditError: The engine's numbers are not those of the plain way.
        OutputError: What is measured cannot be kept.
    """
    given = as_predicted(task, model, n=n, seed=seed, metric=metric)
    measured = as_measured(given, metric)
    prepared = partial(make_replacement, kind, model, measured, draws=draws, seed=seed, memory_budget=memory_budget)
    if site is None and by is None:
        chosen = choose_components(model, components, heads=heads, sets=sets, layers=layers)
        replacement = prepared(sites=sites_of(chosen))
        cells = [each.cell(replacement) for each in chosen]
    else:
        grid = _grid(site or "z", by, layers, components, {"heads": heads, "sets": sets})
        replacement = prepared(sites=grid.sites(model))
        cells = grid_cells(model, given, grid, replacement, given.examples)
    options: Any = {"metric": metric, "seed": seed, "memory_budget": memory_budget, "progress": progress}
    result = Sweep(cells).run(model, given, run=as_run(run), **options)
    how = {
        "components": components if site is None and by is None else None,
        "replacement": replacement.kind,
        "reference_hash": replacement.reference_hash,
    }
    return SweepResult(result.frame, {**result.provenance, **how}, result.labels)


def _grid(
    site: str, by: Sequence[Axis] | None, layers: Sequence[int] | None, components: str, others: Mapping[str, Any]
) -> Grid:
    """The grid that is asked for in place of components."""
    twice = [name for name, each in others.items() if each is not None]
    if twice or components != "heads":
        raise InputError(
            f"{' and '.join(twice) or 'components'}: expected none of these beside site or by, which say what is "
            "ablated; leave one or the other out"
        )
    axes: tuple[Axis, ...] = ("layer", "head") if "head" in SITES.get(site, ("", ()))[1] else ("layer",)
    return as_grid(site, axes if by is None else by, layers)


def as_measured(task: Task, metric: MetricName | None) -> Task:
    """`task` with the rows that `metric` runs, for whoever prepares replacements for it.

    A sentence's log-probability runs the prompts with their continuations, all else the prompts alone, whose answers
    then play no role and are cut to one token. Accuracy is that of the task's own metric.

    Raises:
        InputError: No such metric.
    """
    if metric is not None:
        check_metric(metric)
    if metric in (None, "accuracy", task.metric):
        return task
    if metric == "sentence_log_probability":
        return replace(task, metric=metric)
    references = tuple(tuple(_prompts_alone(unit) for unit in units) for units in task.references)
    units = tuple(_prompts_alone(unit) for unit in task.units)
    return replace(task, metric="logit_difference", units=units, references=references)


def _prompts_alone(unit: Unit) -> Unit:
    def short(each: EncodedExample) -> EncodedExample:
        return replace(each, right=each.right[:1], wrong=each.wrong[:1])

    other = None if unit.counterfactual is None else short(unit.counterfactual)
    return replace(unit, item=short(unit.item), counterfactual=other)
