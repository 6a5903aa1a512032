"""What do activations look like where a feature is to be erased? Of the reference sets, and of the scored units.

A *reading* is the activation at one position of one prompt. Its label is the example's value of the feature.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from interp.errors import InputError, suggest
from interp.interventions.reference_set import activations_of, reference_rows
from interp.interventions.rows import Row, task_rows
from interp.methods.erasing.place import At, Place, positions_at
from interp.model.sites import Site
from interp.tasks.task import Task


@dataclass(frozen=True)
class Readings:
    """Activations, and what they are to be told apart by.

    Attributes:
        activations: By site, in the model's dtype, on the CPU.
        labels: Of every reading, the value of the feature.
        example: Of every reading, the number of its example.
        fold: Of every reading, the reference set that it is in, or that serves it.
    """

    activations: Mapping[Site, Float[Tensor, "reading ..."]]
    labels: np.ndarray
    example: Int[np.ndarray, " reading"]
    fold: Int[np.ndarray, " reading"]

    @property
    def folds(self) -> list[int]:
        """All folds."""
        return sorted(set(self.fold.tolist()))

    def of(self, fold: int) -> Bool[np.ndarray, " reading"]:
        """Which readings are of a fold."""
        return self.fold == fold

    def at(self, place: Place, fold: int) -> Float[Tensor, "_ d"]:
        """The vectors of a fold's readings, as the model computed them."""
        return place.of(self.activations[place.site])[torch.from_numpy(self.of(fold))]


def reference_readings(
    model: Any, task: Task, feature: str, at: At, sites: Sequence[Site], memory_budget: int | None = None
) -> Readings:
    """Readings of the reference sets: of the examples that have the feature and the position.

    Args:
        model: Follows TransformerLens' protocol.
        task: Whose reference sets; of prompts alone (``as_measured``).
        feature: A key of ``Example.features``.
        at: The kind of position.
        sites: What is read.
        memory_budget: Bytes that are held while the prompts are run; None for the device's default.

    Raises:
        InputError: No example has the feature, or it has one value only, or one that a single example has; or an
            activation is NaN or infinite.
    """
    rows = reference_rows(task)
    known = sorted({name for row in rows for name in row.encoded.example.features})
    if feature not in known:
        listed = f"these have {', '.join(map(repr, known))}" if known else "these have none; give them features"
        near = f"; {suggest(str(feature), known)}" if known else ""
        raise InputError(f"feature {feature!r}: no reference example of task {task.name!r} has it; {listed}{near}")
    chosen = [row for row in rows if feature in row.encoded.example.features and positions_at(at, row.encoded)]
    for fold in sorted({row.fold for row in rows}):
        _require_classes([row for row in chosen if row.fold == fold], feature, task.name)
    return _read(model, chosen, feature, at, sites, memory_budget)


def scored_readings(
    model: Any, task: Task, feature: str, at: At, sites: Sequence[Site], memory_budget: int | None = None
) -> Readings | None:
    """Readings of the scored units, as far as they have the feature and the position; None where none has.

    The arguments, and what is refused of activations, are those of ``reference_readings``.
    """
    rows = task_rows(task.metric, task.units)
    chosen = [row for row in rows if feature in row.encoded.example.features and positions_at(at, row.encoded)]
    return _read(model, chosen, feature, at, sites, memory_budget) if chosen else None


def reference_clusters(task: Task) -> list[str]:
    """The lexical draw of every reference example, by its number among those of prompts alone."""
    folds = sorted({unit.fold for unit in task.units})
    return [unit.cluster for fold in folds for unit in task.references[fold] for _ in unit.examples]


def _require_classes(rows: Sequence[Row], feature: str, task: str) -> None:
    counts = Counter(row.encoded.example.features[feature] for row in rows)
    if len(counts) < 2:
        raise InputError(
            f"feature {feature!r}: expected at least two values among the reference examples of task {task!r}, got "
            f"{', '.join(map(repr, counts)) or 'none'} in {len(rows)} of them; there is nothing to tell apart"
        )
    value, fewest = min(counts.items(), key=lambda each: each[1])
    if fewest < 2:
        raise InputError(
            f"feature {feature!r}: {value!r} has a single reference example in task {task!r}, expected at least two of "
            "each value; give the task more references, or leave out examples with rare values"
        )


def _read(
    model: Any, rows: Sequence[Row], feature: str, at: At, sites: Sequence[Site], memory_budget: int | None
) -> Readings:
    parts: dict[Site, list[Tensor]] = {site: [] for site in sites}
    read: list[Row] = []
    for batch, by_site in activations_of(model, rows, sites, memory_budget):
        places = [(number, position) for number, row in enumerate(batch.rows) for position in positions_at(at, row.run)]
        number, position = torch.tensor(places, device=batch.tokens.device).T
        here = [batch.rows[each] for each, _ in places]
        for site, activation in by_site.items():
            found = activation[number, position].cpu()
            _require_finite(site, found, here)
            parts[site].append(found)
        read += here
    return Readings(
        {site: torch.cat(each) for site, each in parts.items()},
        np.array([row.encoded.example.features[feature] for row in read]),
        np.array([row.example for row in read]),
        np.array([row.fold for row in read]),
    )


def _require_finite(site: Site, activations: Float[Tensor, "reading ..."], rows: Sequence[Row]) -> None:
    failed = ~activations.isfinite().flatten(1).all(1)
    if bool(failed.any()):
        first = rows[int(failed.nonzero()[0])]
        raise InputError(
            f"{site.hook_name}: the activation is NaN or infinite on {first.run.example.prompt!r}, so that nothing can "
            "be read or erased there; check the weights, or use float32"
        )
