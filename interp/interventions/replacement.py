"""What is put in a head's place? Nothing, an average, or what it does on another sentence.

- **zero**: ``z`` becomes 0; biases stay.
- **mean**: the mean over all non-padding positions (BOS is one) of a reference set.
- **positional mean**: the same per layout and position; refused where positions do not mean the
  same thing.
- **resample**: the ``z`` of another reference example of the same template and length, never of
  the example itself. With K draws, K forward passes are made and their *effects* are averaged:
  averaging activations would be a positional mean.

The reference set is ``task.references[unit.fold]``: prompts *and* counterfactuals, so that a mean
does not leak the answer, of a split that the unit is not in. It is run once for all layers.

Chan et al. (2022), "Causal scrubbing" (resampling); Wang et al. (2023), "Interpretability in the
wild" (mean ablation per template); Zhang & Nanda (2024), "Towards best practices of activation
patching" (how these differ).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, get_args, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from interp.errors import InputError, suggest
from interp.interventions.reference_set import (
    activations_of,
    check_aligned,
    draw_donors,
    means,
    positional_means,
    reference_rows,
)
from interp.interventions.rows import Batch, task_rows
from interp.tasks.task import Task

Kind = Literal["zero", "mean", "positional_mean", "resample"]
DRAWS = 4


@runtime_checkable
class Replacement(Protocol):
    """Where new values come from.

    Attributes:
        kind: As in ``Kind``.
        draws: How many different replacements there are to average the effects of.
    """

    @property
    def kind(self) -> str: ...  # noqa: D102

    @property
    def draws(self) -> int: ...  # noqa: D102

    def values(self, layer: int, batch: Batch, draw: int) -> Float[Tensor, "#batch #pos #head #d_head"]:
        """New ``z`` of every head of `layer`, as far as it differs by row and position."""
        ...


@dataclass(frozen=True)
class Zero:
    """Every value becomes 0."""

    kind: str = "zero"
    draws: int = 1

    def values(self, layer: int, batch: Batch, draw: int) -> Float[Tensor, "1 1 1 1"]:
        """One 0 for all."""
        return torch.zeros(1, 1, 1, 1, device=batch.tokens.device)


@dataclass(frozen=True)
class Mean:
    """The mean over a reference set.

    Attributes:
        means: By fold and layer, ``[head d_head]``.
    """

    means: Mapping[tuple[int, int], Float[Tensor, "head d_head"]] = field(repr=False)
    kind: str = "mean"
    draws: int = 1

    def values(self, layer: int, batch: Batch, draw: int) -> Float[Tensor, "batch 1 head d_head"]:
        """The mean of each row's fold, the same at all positions."""
        return torch.stack([self.means[row.fold, layer] for row in batch.rows])[:, None]


@dataclass(frozen=True)
class PositionalMean:
    """The mean over the reference examples of the same layout and length, position by position.

    Attributes:
        means: By fold, layout, length and layer, ``[pos head d_head]``.
    """

    means: Mapping[tuple[int, str, int, int], Float[Tensor, "pos head d_head"]] = field(repr=False)
    kind: str = "positional_mean"
    draws: int = 1

    def values(self, layer: int, batch: Batch, draw: int) -> Float[Tensor, "batch pos head d_head"]:
        """The mean of each row's layout."""
        return torch.stack([self.means[row.fold, row.layout, len(row.tokens), layer] for row in batch.rows])


@dataclass(frozen=True)
class Resample:
    """What the heads do on other reference examples of the same template and length.

    Attributes:
        activations: By reference row and layer, ``[pos head d_head]``.
        donors: By example and length, one reference row per draw. The right and the wrong
            sentence of an example get the same donor where they are equally long.
    """

    activations: Mapping[tuple[int, int], Float[Tensor, "pos head d_head"]] = field(repr=False)
    donors: Mapping[tuple[int, int], Sequence[int]] = field(repr=False)
    draws: int
    kind: str = "resample"

    def values(self, layer: int, batch: Batch, draw: int) -> Float[Tensor, "batch pos head d_head"]:
        """The `draw`-th donor's activations, row by row."""
        donors = [self.donors[row.example, len(row.tokens)][draw] for row in batch.rows]
        return torch.stack([self.activations[donor, layer] for donor in donors])


def make_replacement(
    kind: Kind, model: Any, task: Task, *, layers: Sequence[int], draws: int = DRAWS, seed: int = 0
) -> Replacement:
    """Prepare a replacement for `task`'s units from its reference sets.

    Args:
        kind: Which one; see the module's docstring.
        model: The model that is measured.
        task: Its units and references.
        layers: The layers that are going to be replaced.
        draws: How many resamples to average the effects of; the other kinds have one.
        seed: Of the resamples.

    Raises:
        InputError: The kind is unknown, a reference set is empty, or a positional mean or resample
            lacks a matching reference example.
    """
    if kind not in get_args(Kind):
        raise InputError(f"ablation {kind!r} is unknown; {suggest(str(kind), get_args(Kind))}")
    if draws < 1:
        raise InputError(f"draws: expected at least 1, got {draws}")
    if kind == "zero":
        return Zero()
    rows, references = task_rows(task.metric, task.units), reference_rows(task)
    if kind == "mean":
        return Mean(means(model, references, layers))
    if kind == "positional_mean":
        check_aligned(rows, references)
        return PositionalMean(positional_means(model, references, layers))
    donors = draw_donors(rows, references, draws, seed)
    needed = {each for chosen in donors.values() for each in chosen}
    activations = {
        (row.example, layer): z[index].clone()
        for batch, by_layer in activations_of(model, [references[each] for each in sorted(needed)], layers)
        for layer, z in by_layer.items()
        for index, row in enumerate(batch.rows)
    }
    return Resample(activations, donors, draws)
