"""What do activations look like on the reference set? Its rows, their activations, and averages of these.

A task's reference set is of a split that its units are not in; ``task.references[unit.fold]`` serves
the unit. Its rows are made like the units' own (prompts, or sentences with both continuations), of
items and counterfactuals alike.
"""

import hashlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from interp.errors import InputError
from interp.interventions.engine.budget import rows_in_one_run
from interp.interventions.rows import Batch, Row, batches, task_rows
from interp.model.sites import Site
from interp.residual.activations import read
from interp.tasks.task import Task


def reference_hash(task: Task) -> str:
    """SHA-256 of the reference sets' token ids, layouts and templates."""
    return hash_of(reference_rows(task))


def hash_of(rows: Sequence[Row]) -> str:
    """SHA-256 of the token ids of reference rows, and of what says which of them stand for which other rows."""
    said = [(row.fold, row.tokens, row.layout, row.encoded.example.template) for row in rows]
    return hashlib.sha256(repr(said).encode()).hexdigest()


def reference_rows(task: Task) -> list[Row]:
    """The rows of the reference sets; ``example`` numbers the rows, ``fold`` is the set's own.

    Raises:
        InputError: A set that a unit needs is empty or missing.
    """
    rows: list[Row] = []
    for fold in sorted({unit.fold for unit in task.units}):
        if fold >= len(task.references) or not task.references[fold]:
            raise InputError(
                f"task {task.name!r} has no reference examples for its fold {fold}",
                "use zero ablation (kind='zero')",
                "give the task a reference set of examples that are not measured (interp.encode_task)",
                "take more units",
            )
        for row in task_rows(task.metric, task.references[fold]):
            rows.append(Row(row.encoded, len(rows), fold, row.continuation, row.sign))
    return rows


def activations_of(
    model: Any, rows: Sequence[Row], sites: Sequence[Site], memory_budget: int | None = None
) -> Iterator[tuple[Batch, dict[Site, Float[Tensor, "batch ..."]]]]:
    """Run the rows once and give the activations at the sites, in batches that the budget holds."""
    names = {site: site.hook_name for site in sites}
    for batch in batches(model, rows, size=rows_in_one_run(model, rows, sites, memory_budget)):
        cache = read(model, batch.tokens, names.values())
        yield batch, {site: cache[name] for site, name in names.items()}


def means(
    model: Any,
    rows: Sequence[Row],
    sites: Sequence[Site],
    memory_budget: int | None = None,
    *,
    of: Callable[[Row], Hashable] = lambda row: row.fold,
) -> dict[tuple[Hashable, Site], Float[Tensor, "..."]]:
    """Mean over all positions of the rows that are alike, by what they are alike in (`of`: their fold) and site."""
    sums: dict[tuple[Hashable, Site], Tensor] = {}
    counts: dict[tuple[Hashable, Site], int] = {}
    for batch, by_site in activations_of(model, rows, sites, memory_budget):
        groups: dict[Hashable, list[int]] = {}
        for number, row in enumerate(batch.rows):
            groups.setdefault(of(row), []).append(number)
        for (site, activation), (each, numbers) in product(by_site.items(), groups.items()):
            key, part = (each, site), _precise(activation[numbers])
            sums[key] = sums.get(key, 0) + part.sum(dim=(0, 1))
            counts[key] = counts.get(key, 0) + part.shape[0] * part.shape[1]
    return {key: total / counts[key] for key, total in sums.items()}


def of_template(row: Row) -> Hashable:
    """What rows are alike in that a template's mean serves."""
    return row.fold, row.template


def positional_means(
    model: Any, rows: Sequence[Row], sites: Sequence[Site], memory_budget: int | None = None
) -> dict[tuple[Hashable, Site], Float[Tensor, "..."]]:
    """Mean at every position, by fold, layout and length, and by site."""
    sums: dict[tuple[Hashable, Site], Tensor] = {}
    counts: dict[tuple[Hashable, Site], int] = {}
    for batch, by_site in activations_of(model, rows, sites, memory_budget):
        for site, activation in by_site.items():
            for row, one in zip(batch.rows, _precise(activation), strict=True):
                key = (row.fold, row.layout, len(row.tokens)), site
                sums[key] = sums.get(key, 0) + one
                counts[key] = counts.get(key, 0) + 1
    return {key: total / counts[key] for key, total in sums.items()}


def check_aligned(rows: Sequence[Row], references: Sequence[Row], ways: Sequence[str] = ()) -> None:
    """Refuse rows whose positions no reference example gives a meaning to.

    Args:
        rows: What is measured.
        references: What is averaged.
        ways: What else can be done, for the message.

    Raises:
        InputError: A row has no layout, no reference example has it, or a layout has several lengths.
    """
    known = {(row.fold, row.layout) for row in references}
    lengths: dict[str, set[int]] = {}
    for row in [*rows, *references]:
        lengths.setdefault(row.layout, set()).add(len(row.tokens))
    for row in rows:
        if not row.layout:
            raise InputError(
                f"positional mean: {row.encoded.example.text!r} has no layout, so nothing says which positions "
                "mean the same thing",
                *ways,
            )
        if (row.fold, row.layout) not in known:
            raise InputError(
                f"positional mean: no reference example has the layout {row.layout!r} of {row.encoded.example.text!r}",
                *ways,
            )
        if len(lengths[row.layout]) > 1:
            raise InputError(
                f"positional mean: examples of the layout {row.layout!r} have different lengths "
                f"({', '.join(map(str, sorted(lengths[row.layout])))} tokens), so their positions do not "
                "mean the same thing",
                *ways,
            )


def check_templates(rows: Sequence[Row], references: Sequence[Row], ways: Sequence[str] = ()) -> None:
    """Refuse rows whose template no reference example has; the arguments are those of ``check_aligned``.

    Raises:
        InputError: It names one.
    """
    known = {of_template(row) for row in references}
    for row in rows:
        if of_template(row) not in known:
            raise InputError(
                f"template mean: no reference example has the template {row.template!r} of "
                f"{row.encoded.example.text!r}",
                *ways,
            )


def draw_donors(
    rows: Sequence[Row], references: Sequence[Row], draws: int, seed: int, ways: Sequence[str] = ()
) -> dict[tuple[int, int], list[int]]:
    """For every example and length, the reference rows that stand in for it, one per draw.

    Drawn with replacement among those of the same fold, template and length, never the row itself.

    Raises:
        InputError: A row has no such reference row.
    """
    others = _others(rows, references)
    generator = np.random.default_rng(seed)
    donors: dict[tuple[int, int], list[int]] = {}
    for row in rows:
        key = (row.example, len(row.tokens))
        if key in donors:
            continue
        if not others[key]:
            raise InputError(
                f"resample: no other reference example has the template {row.template!r} and the "
                f"{len(row.tokens)} tokens of {row.encoded.example.text!r}",
                *ways,
            )
        donors[key] = generator.choice(others[key], size=draws).tolist()
    return donors


def without_donors(rows: Sequence[Row], references: Sequence[Row]) -> set[int]:
    """The examples that have no other reference example of their template and length."""
    return {example for (example, _), others in _others(rows, references).items() if not others}


def _others(rows: Sequence[Row], references: Sequence[Row]) -> dict[tuple[int, int], list[int]]:
    """For every example and length, the reference rows of its fold, template and length that are not the row itself."""
    pools: dict[tuple[int, str, int], list[Row]] = {}
    for row in references:
        pools.setdefault((row.fold, row.template, len(row.tokens)), []).append(row)
    own = {(row.example, row.tokens) for row in rows}
    found: dict[tuple[int, int], list[int]] = {}
    for row in rows:
        pool = pools.get((row.fold, row.template, len(row.tokens)), [])
        key = (row.example, len(row.tokens))
        if key not in found:
            found[key] = [each.example for each in pool if (row.example, each.tokens) not in own]
    return found


def _precise(activation: Tensor) -> Tensor:
    """At least 32-bit floats: a sum of thousands of 16-bit ones would lose the small ones."""
    return activation.to(torch.promote_types(activation.dtype, torch.float32))
