"""Replacements from a task's reference set, which is run, and averaged or drawn from.

A task's reference set is of a split that its units are not in; ``task.references[unit.fold]`` serves
the unit. Its rows are made like the units' own (prompts, or sentences with both continuations), of
items and counterfactuals alike.

Examples:
    >>> from interp.interventions.reference_set import make_replacement, mean_of_positions
    >>> from interp.model.sites import Site
    >>> model = interp.load_model()
    >>> task = interp.load_task("agreement", tokenizer=model.tokenizer, n=24)
    >>> means = make_replacement(mean_of_positions(task), model, task, sites=[Site("z", 2)])
    >>> result = interp.ablate(model, task, replacement=means, heads=[(2, 2)])
"""

import hashlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from interp.arguments import whole_number
from interp.errors import InputError, suggest
from interp.interventions.engine.plan import activations_of
from interp.interventions.replacement import ALIKE, Erase, Later, Means, Patch, Replacement, Resample, Zero
from interp.interventions.rows import Batch, Row, task_rows
from interp.model.devices import documented, sent
from interp.model.sites import Site
from interp.model.weights import weights_hash
from interp.options import ReplacementName
from interp.tasks.drawing import ALONE
from interp.tasks.task import Task


def reference_hash(task: Task) -> str:
    """SHA-256 of the reference sets' token ids, layouts and templates."""
    return hash_of(reference_rows(task))


def hash_of(rows: Sequence[Row]) -> str:
    """SHA-256 of the folds, token ids, layouts and templates of reference rows."""
    said = [(row.fold, row.tokens, row.layout, row.encoded.example.template) for row in rows]
    return hashlib.sha256(repr(said).encode()).hexdigest()


def reference_rows(task: Task) -> list[Row]:
    """The rows of the reference sets; ``example`` numbers the rows, ``fold`` is the set's own.

    Raises InputError where a set that a unit needs is empty or missing.
    """
    rows: list[Row] = []
    for fold in sorted({unit.fold for unit in task.units}):
        if fold >= len(task.references) or not task.references[fold]:
            missing = f"no reference examples for its fold {fold}"
            if task.references and len(task.units) == 1:  # units serve each other
                missing = "a single unit, so no other to take values from"
            raise InputError(
                f"task {task.name!r} has {missing}",
                "use zero ablation (replacement='zero')",
                "give the task a reference set of examples that are not measured (interp.encode_task)",
                "take more units",
            )
        for row in task_rows(task.metric, task.references[fold]):
            rows.append(Row(row.encoded, len(rows), fold, row.continuation, row.sign))
    return rows


Kept = dict[Any, tuple[frozenset[str | Site], Mapping[Any, Float[Tensor, "..."]]]]
"""Means, with their names and sites, by model and reference set."""
MOST_KEPT = 8
Readers = Mapping[Site, Callable[[Batch, Tensor], None]]
"""By site, what else is done with activations of the reference set."""


def _means(
    model: Any,
    rows: Sequence[Row],
    sites: Sequence[Site],
    memory_budget: int | None,
    names: Sequence[str],
    readers: Readers,
) -> dict[tuple[str, Hashable, Site], Float[Tensor, "..."]]:
    """By name and site, means over the rows that are alike to such a replacement: over all positions, or at each."""
    sums: dict[tuple[str, Hashable, Site], Tensor] = {}
    counts: dict[tuple[str, Hashable, Site], int] = {}
    for batch, by_site in activations_of(model, rows, [*sites, *readers], memory_budget):
        for site, read in readers.items():
            read(batch, by_site.pop(site))
        groups: dict[tuple[str, Hashable], list[int]] = {}
        for name, (number, row) in product(names, enumerate(batch.rows)):
            groups.setdefault((name, ALIKE[name](row)), []).append(number)
        chosen = {key: sent(np.array(numbers), batch.tokens.device) for key, numbers in groups.items()}
        for (site, activation), ((name, alike), numbers) in product(by_site.items(), chosen.items()):
            # At least 32-bit floats: a sum of thousands of 16-bit ones would lose the small ones.
            part = activation[numbers].to(torch.promote_types(activation.dtype, torch.float32))
            key, over = (name, alike, site), 0 if name == "positional_mean" else (0, 1)
            sums[key] = sums.get(key, 0) + part.sum(dim=over)
            counts[key] = counts.get(key, 0) + len(part) * (1 if over == 0 else part.shape[1])
    return {key: total / counts[key] for key, total in sums.items()}


def _named(means: Mapping[Any, Float[Tensor, "..."]], name: str) -> dict[tuple[Hashable, Site], Float[Tensor, "..."]]:
    """Those of one name."""
    return {(alike, site): mean for (own, alike, site), mean in means.items() if own == name}


def check_aligned(rows: Sequence[Row], references: Sequence[Row], ways: Sequence[str] = ()) -> None:
    """Refuse rows whose positions no reference example gives a meaning to; `ways` out are for the message."""
    known = {(row.fold, row.layout) for row in references}
    lengths: dict[str, set[int]] = {}
    for row in [*rows, *references]:
        lengths.setdefault(row.layout, set()).add(len(row.tokens))
    for row in rows:
        text, said = repr(row.encoded.example.text), ""
        if not row.layout:
            said = f"{text} has no layout, so nothing says which positions mean the same thing"
        elif (row.fold, row.layout) not in known:
            said = f"no reference example has the layout {row.layout!r} of {text}"
        elif len(lengths[row.layout]) > 1:
            different = ", ".join(map(str, sorted(lengths[row.layout])))
            said = f"examples of the layout {row.layout!r} have different lengths ({different} tokens), so their "
            said += "positions do not mean the same thing"
        if said:
            raise InputError(f"positional mean: {said}", *ways)


def draw_donors(
    rows: Sequence[Row],
    references: Sequence[Row],
    draws: int,
    seed: int,
    ways: Sequence[str] = (),
    units: Sequence[int] | None = None,
) -> dict[tuple[int, int], list[int]]:
    """For every example and length, the reference rows that stand in for it, one per draw.

    Drawn with replacement among those of the same fold, template and length, never the row itself; a row that has none
    is refused. Examples of one unit, of which `units` has the number, share their donors where they can: what a donor
    says of the answer raises one and lowers its counterfactual, and is not in their mean.
    """
    generator = np.random.default_rng(seed)
    pools, texts = _others(rows, references), {(row.example, len(row.tokens)): row for row in reversed(rows)}
    donors: dict[tuple[int, int], list[int]] = {}
    drawn: dict[tuple[Any, ...], list[int]] = {}
    for key, others in pools.items():
        row = texts[key]
        if not others:
            raise InputError(
                f"resample: no other reference example has the template {row.template!r} and the "
                f"{len(row.tokens)} tokens of {row.encoded.example.text!r}",
                *ways,
            )
        alike = (row.example if units is None else units[row.example], row.fold, row.template, len(row.tokens))
        if alike not in drawn or not set(drawn[alike]) <= set(others):
            drawn[alike] = generator.choice(others, size=draws).tolist()
        donors[key] = drawn[alike]
    return donors


def _others(rows: Sequence[Row], references: Sequence[Row]) -> dict[tuple[int, int], list[int]]:
    """For every example and length, the reference rows of its fold, template and length that are not the row itself."""
    pools: dict[tuple[int, str, int], list[Row]] = {}
    for row in references:
        pools.setdefault((row.fold, row.template, len(row.tokens)), []).append(row)
    own = {(row.example, row.tokens) for row in rows}
    found: dict[tuple[int, int], list[int]] = {}
    for row in rows:
        key, pool = (row.example, len(row.tokens)), pools.get((row.fold, row.template, len(row.tokens)), [])
        if key not in found:
            found[key] = [each.example for each in pool if (row.example, each.tokens) not in own]
    return found


_MORE = "give more reference examples (interp.encode_task)"


@documented
def make_replacement(
    replacement: ReplacementName | Means,
    model: Any,
    task: Task,
    *,
    sites: Sequence[Site],
    draws: int = 4,
    seed: int = 0,
    memory_budget: int | None = None,
) -> Zero | Means | Resample:
    """Prepare a replacement for `task`'s units from its reference sets, which are run when it is first needed.

    Args:
        replacement: Its name; ``replacement.py`` has them. Means that were made before are given back as they are,
            where they have all that is going to be replaced in the task's rows.
        model: The model that is measured.
        task: Its units and references.
        sites: What is going to be replaced.
        draws: How many resamples to average the effects of; the other replacements have one.
        seed: Of the resamples.
        memory_budget: Bytes that are held while the reference set is run; None for the device's default.

    Returns:
        The replacement, for ``interp.ablate(model, task, replacement=...)``.

    Raises:
        InputError: The replacement is unknown, means that were made before lack a site or a row, a reference set is
            empty, or a positional mean or resample lacks a matching reference example.
    """
    if isinstance(replacement, Means):
        advice = "make it of all sites, for this task and metric, or give its name"
        require_made(replacement, task_rows(task.metric, task.units), sites, advice)
        return replacement
    if replacement not in (known := get_args(ReplacementName)):
        raise InputError(f"replacement {replacement!r} is unknown; {suggest(str(replacement), known)}")
    draws = whole_number("draws", draws, expected="a whole number of at least 1")
    if replacement == "zero":
        return Zero()
    rows, references = task_rows(task.metric, task.units), reference_rows(task)
    has_mean = all(site.name != "pattern" for site in sites)
    ways = ["use replacement='mean', which needs no alignment" if has_mean else "use replacement='zero'", _MORE]
    if replacement in ("mean", "template_mean") and any("query_pos" in site.axes for site in sites):
        raise InputError(
            "mean: the pattern of one position says nothing about another's, which has more positions to look at; "
            "use positional_mean, resample or zero"
        )

    if replacement == "template_mean":
        groups = set(map(ALIKE[replacement], references))
        if alone := [row for row in rows if ALIKE[replacement](row) not in groups]:
            said = f"the template {alone[0].template!r} of {alone[0].encoded.example.text!r}"
            raise InputError(f"template mean: no reference example has {said}", *ways)
    if replacement == "positional_mean":
        check_aligned(rows, references, ways)
    if replacement in ALIKE:
        run = _run(model, references, sites, memory_budget, (replacement,), None)
        means = Later(partial(_named, run, replacement), model, memory_budget)
        return Means(means, hash_of(references), replacement)
    units = [number for number, unit in enumerate(task.units) for _ in unit.examples]
    donors = draw_donors(rows, references, draws, seed, ways, units)
    activations = Later(partial(_of_donors, model, references, sites, memory_budget, donors), model, memory_budget)
    return Resample(activations, donors, draws, hash_of(references))


@documented
def make_means(
    names: Sequence[ReplacementName],
    model: Any,
    task: Task,
    *,
    sites: Sequence[Site],
    memory_budget: int | None = None,
    readers: Readers | None = None,
    kept: Kept | None = None,
) -> dict[ReplacementName, Means]:
    """Several means, as of ``make_replacement``, whose reference sets are run once for all of them.

    Args:
        names: Of means.
        model: The model that is measured.
        task: Its units and references.
        sites: What is going to be replaced.
        memory_budget: Bytes that are held while the reference set is run; None for the device's default.
        readers: By other sites, what is given the rows of each batch and their activations there; then the reference
            set is run now.
        kept: Of other calls, where their means are found again: those of the last few reference sets.

    Returns:
        The means by their names.

    Raises:
        InputError: As ``make_replacement``.

    Examples:
        >>> from interp.interventions.reference_set import make_means
        >>> from interp.model.sites import Site
        >>> model = interp.load_model()
        >>> task = interp.load_task("agreement", tokenizer=model.tokenizer, n=24)
        >>> sorted(make_means(["mean", "template_mean"], model, task, sites=[Site("z", 2)]))
        ['mean', 'template_mean']
    """
    made = {name: make_replacement(name, model, task, sites=sites, memory_budget=memory_budget) for name in names}
    rows = reference_rows(task)
    if kept is None or not isinstance(model, nn.Module):
        run = _run(model, rows, sites, memory_budget, names, readers)
    else:
        key = weights_hash(model), hash_of(rows)
        known, run = kept.get(key, (frozenset(), {}))
        if readers or not known >= {*names, *sites}:
            names = tuple(dict.fromkeys([*names, "mean", "template_mean"]))  # which are small
            run = _run(model, rows, sites, memory_budget, names, readers)
            kept[key] = frozenset([*names, *sites]), run
            for old in list(kept)[:-MOST_KEPT]:
                del kept[old]
    return {
        name: replace(each, means=Later(partial(_named, run, name), model, memory_budget))
        for name, each in made.items()
        if isinstance(each, Means)
    }


def _run(
    model: Any,
    rows: Sequence[Row],
    sites: Sequence[Site],
    memory_budget: int | None,
    names: Sequence[str],
    readers: Readers | None,
) -> Mapping[Any, Float[Tensor, "..."]]:
    """Means, computed now where others read along, or else when one of them is asked for."""
    found = Later(partial(_means, model, rows, sites, memory_budget, names, readers or {}), model, memory_budget)
    return dict(found) if readers else found


def mean_of_positions(task: Task) -> ReplacementName:
    """The mean that keeps what a head writes by position or, where positions differ, by template.

    Args:
        task: Its units and references.

    Returns:
        ``positional_mean``, or ``template_mean`` where some unit has no reference example of its layout.
    """
    try:
        check_aligned(task_rows(task.metric, task.units), reference_rows(task))
    except InputError:
        return "template_mean"
    return "positional_mean"


def with_donors(task: Task) -> Task:
    """The task without the units that have no other reference example to resample from.

    Args:
        task: Its units and references.

    Returns:
        A task, whose ``dropped`` counts these units.

    Raises:
        InputError: No unit is left.
    """
    rows = task_rows(task.metric, task.units)
    others = _others(rows, reference_rows(task))
    missing = {example for (example, _), found in others.items() if not found}
    numbers = iter(range(len(task.examples)))
    units = tuple(unit for unit in task.units if not missing & {next(numbers) for _ in unit.examples})
    if not units:
        raise InputError(
            f"task {task.name!r}: expected reference examples of the template and length of some unit, to resample "
            "heads from, got none",
            _MORE,
        )
    if len(units) == len(task.units):
        return task
    dropped = {**task.dropped, ALONE: len(task.units) - len(units)}
    return replace(task, units=units, dropped=dropped)


def _of_donors(
    model: Any,
    references: Sequence[Row],
    sites: Sequence[Site],
    memory_budget: int | None,
    donors: Mapping[tuple[int, int], Sequence[int]],
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
    """Refuse sites, and rows that are going to be run, that a replacement of ours was not made for."""
    for site, row in product(sites, rows):
        if not _has_values(made, row, site):
            raise InputError(
                f"{made.name}: nothing was made for {site.hook_name} of rows such as {row.encoded.example.text!r} "
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
