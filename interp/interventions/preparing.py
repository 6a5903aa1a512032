"""From a kind of ablation to a replacement: the reference set is run, and averaged or drawn from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, get_args

from jaxtyping import Float
from torch import Tensor

from interp.errors import InputError, suggest
from interp.interventions.erase import Erase
from interp.interventions.given_numbers import whole_number
from interp.interventions.later import Later
from interp.interventions.reference_set import (
    activations_of,
    check_aligned,
    check_templates,
    draw_donors,
    hash_of,
    means,
    of_template,
    positional_means,
    reference_rows,
    without_donors,
)
from interp.interventions.replacement import (
    DRAWS,
    Kind,
    Mean,
    Means,
    Patch,
    PositionalMean,
    Replacement,
    Resample,
    TemplateMean,
    Zero,
)
from interp.interventions.rows import Row, task_rows
from interp.model.devices import documented
from interp.model.sites import Site
from interp.tasks.task import Task

_MORE = "give more reference examples (interp.encode_task)"


@documented
def make_replacement(
    kind: Kind | Means,
    model: Any,
    task: Task,
    *,
    sites: Sequence[Site],
    draws: int = DRAWS,
    seed: int = 0,
    memory_budget: int | None = None,
) -> Zero | Means | Resample:
    """Prepare a replacement for `task`'s units from its reference sets, which are run when it is first needed.

    Args:
        kind: Which one; ``replacement.py`` has them. Means that were made before are given back as they are, where they
            have all that is going to be replaced in the task's rows.
        model: The model that is measured.
        task: Its units and references.
        sites: What is going to be replaced.
        draws: How many resamples to average the effects of; the other kinds have one.
        seed: Of the resamples.
        memory_budget: Bytes that are held while the reference set is run; None for the device's default.

    Raises:
        InputError: The kind is unknown, means that were made before lack a site or a row, a reference set is empty, or
            a positional mean or resample lacks a matching reference example.
    """
    if isinstance(kind, Means):
        advice = "make it of all sites, for this task and metric, or give its name"
        require_made(kind, task_rows(task.metric, task.units), sites, advice)
        return kind
    if kind not in get_args(Kind):
        raise InputError(f"ablation {kind!r} is unknown; {suggest(str(kind), get_args(Kind))}")
    draws = whole_number("draws", draws, expected="a whole number of at least 1")
    if kind == "zero":
        return Zero()
    rows, references = task_rows(task.metric, task.units), reference_rows(task)
    has_mean = all(site.name != "pattern" for site in sites)
    ways = ["use kind='mean', which needs no alignment" if has_mean else "use kind='zero'", _MORE]
    if kind == "mean":
        _require_positions_alike(sites)
        return Mean(
            Later(partial(means, model, references, sites, memory_budget), model, memory_budget), hash_of(references)
        )
    if kind == "template_mean":
        _require_positions_alike(sites)
        check_templates(rows, references, ways)
        of_templates = partial(means, model, references, sites, memory_budget, of=of_template)
        return TemplateMean(Later(of_templates, model, memory_budget), hash_of(references))
    if kind == "positional_mean":
        check_aligned(rows, references, ways)
        made = Later(partial(positional_means, model, references, sites, memory_budget), model, memory_budget)
        return PositionalMean(made, hash_of(references))
    donors = draw_donors(rows, references, draws, seed, ways)
    drawn = Later(partial(_of_donors, model, references, donors, sites, memory_budget), model, memory_budget)
    return Resample(drawn, donors, draws, hash_of(references))


def mean_of_positions(task: Task) -> Kind:
    """The kind of mean that keeps what a head writes by position or, where positions differ, by template."""
    try:
        check_aligned(task_rows(task.metric, task.units), reference_rows(task))
    except InputError:
        return "template_mean"
    return "positional_mean"


def with_donors(task: Task) -> Task:
    """The task without the units that have no other reference example to resample from; ``dropped`` counts these.

    Raises:
        InputError: No unit is left.
    """
    rows = task_rows(task.metric, task.units)
    numbers, missing = iter(range(len(task.examples))), without_donors(rows, reference_rows(task))
    units = tuple(unit for unit in task.units if not missing & {next(numbers) for _ in unit.examples})
    if not units:
        raise InputError(
            f"task {task.name!r}: expected reference examples of the template and length of some unit, to resample "
            "heads from, got none",
            _MORE,
        )
    if len(units) == len(task.units):
        return task
    dropped = {**task.dropped, "no reference example of its template and length": len(task.units) - len(units)}
    return replace(task, units=units, dropped=dropped)


def _of_donors(
    model: Any,
    references: Sequence[Row],
    donors: Mapping[tuple[int, int], Sequence[int]],
    sites: Sequence[Site],
    memory_budget: int | None,
) -> dict[tuple[int, Site], Float[Tensor, "..."]]:
    """The activations of the rows that stand in for others."""
    needed = sorted({each for chosen in donors.values() for each in chosen})
    return {
        (row.example, site): activation[index].clone()
        for batch, by_site in activations_of(model, [references[each] for each in needed], sites, memory_budget)
        for site, activation in by_site.items()
        for index, row in enumerate(batch.rows)
    }


def require_made(made: Replacement, rows: Iterable[Row], sites: Iterable[Site], advice: str) -> None:
    """Refuse sites, and rows that are going to be run, that a replacement of ours was not made for.

    Args:
        made: The replacement.
        rows: What is going to be run.
        sites: Where it takes the place of what is there.
        advice: What to do, for the message.

    Raises:
        InputError: It says which site and which text.
    """
    for site, row in product(sites, rows):
        if not _has_values(made, row, site):
            raise InputError(
                f"{made.kind}: nothing was made for {site.hook_name} of rows such as {row.encoded.example.text!r} "
                f"({len(row.tokens)} tokens are run); {advice}"
            )


def _has_values(made: Replacement, row: Row, site: Site) -> bool:
    """Whether a replacement has values for a row at a site; of somebody's own nothing is known."""
    if isinstance(made, Means):
        return (made.group(row, 0), site) in made.means
    if isinstance(made, Resample):
        donors = made.donors.get((row.example, len(row.tokens)), ())
        return bool(donors) and all((donor, site) in made.activations for donor in donors)
    if isinstance(made, Erase):
        return (row.fold, site) in made.maps
    return not isinstance(made, Patch) or site in made.sites


def _require_positions_alike(sites: Sequence[Site]) -> None:
    """Refuse a mean over positions where they are of different kinds."""
    if any("query_pos" in site.axes for site in sites):
        raise InputError(
            "mean: the pattern of one position says nothing about another's, which has more positions to look at; "
            "use positional_mean, resample or zero"
        )
