"""What if the feature were the other one? The difference of the classes' means is added.

``x + strength * (mean of the other class - mean of its own)``: of two classes the other; of more, the class of the
unit's other example.

Difference-of-means steering: Turner et al. (2023), "Activation addition"; Marks & Tegmark (2023), "The geometry of
truth".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from interp.errors import InputError
from interp.interventions.replacement import Add
from interp.interventions.rows import Batch
from interp.methods.erasing.readings import Readings
from interp.model.sites import Site
from interp.model.weights import hash_of_tensors
from interp.tasks.task import Task

Turn = tuple[str, str]
"""The class that an example has, and the one that it is to have."""


def turns(task: Task, feature: str, classes: list[str]) -> list[Turn]:
    """From which class to which every example of a task is steered.

    Args:
        task: Its examples.
        feature: What is steered.
        classes: The values whose means are known.

    Raises:
        InputError: An example does not have the feature, or one of these values, or there is no other to steer to.
    """
    found = []
    for unit in task.units:
        values = [each.example.features.get(feature) for each in unit.examples]
        for own, other, each in zip(values, values[::-1], unit.examples, strict=True):
            text = f"steer: {each.example.prompt!r} of task {task.name!r}"
            if own not in classes:
                raise InputError(
                    f"{text} has the {feature} {own!r}, expected one of {', '.join(map(repr, classes))}, whose means "
                    "are known; leave steer, or such examples, out"
                )
            target = next(name for name in classes if name != own) if len(classes) == 2 else other
            if target not in classes or target == own:
                raise InputError(
                    f"{text} has the {feature} {own!r}; of {len(classes)} values, its counterfactual has to say to "
                    f"which other it is steered, got {'none' if unit.counterfactual is None else repr(target)}; leave "
                    "steer out"
                )
            found.append((own, target))
    return found


def steered(tasks: Sequence[Task], feature: str, references: Readings, strength: float) -> list[Add]:
    """For every task, what moves its examples from class to class.

    Args:
        tasks: Their units name the reference set that serves them.
        feature: What is steered.
        references: What the classes' means are taken from.
        strength: How many differences of means are added.

    Raises:
        InputError: As ``turns``.
    """
    means = ClassMeans.of(references)
    return [means.steering(turns(task, feature, means.classes), strength) for task in tasks]


@dataclass(frozen=True)
class ClassMeans:
    """Means of activations by fold, site and class, without the axis of readings, in the model's dtype."""

    means: Mapping[tuple[int, Site, str], Float[Tensor, "..."]]

    @classmethod
    def of(cls, readings: Readings) -> "ClassMeans":
        """Those of the reference sets."""
        found = {}
        for fold in readings.folds:
            for label in set(readings.labels[readings.of(fold)].tolist()):
                mine = torch.from_numpy(readings.of(fold) & (readings.labels == label))
                for site, activations in readings.activations.items():
                    found[fold, site, label] = activations[mine].double().mean(0).to(activations.dtype)
        return cls(found)

    @property
    def classes(self) -> list[str]:
        """The values that every fold has a mean of."""
        by_fold: dict[int, set[str]] = {}
        for fold, _, label in self.means:
            by_fold.setdefault(fold, set()).add(label)
        return sorted(set.intersection(*by_fold.values()))

    def steering(self, turns: list[Turn], strength: float) -> Add:
        """What moves the examples of a task from class to class."""
        moved = Steered(self.means, turns, strength)
        return Add(moved, identity=moved.identity)


@dataclass(frozen=True)
class Steered:
    """Differences of the classes' means, to be added.

    Attributes:
        means: As of ``ClassMeans``.
        turns: Of every example, from which class to which.
        strength: How many differences.
    """

    means: Mapping[tuple[int, Site, str], Float[Tensor, "..."]]
    turns: list[Turn]
    strength: float

    def __call__(self, site: Site, batch: Batch) -> Float[Tensor, "batch 1 ..."]:
        """What is added on the rows of a batch."""
        pairs = [(row.fold, *self.turns[row.example]) for row in batch.rows]
        moved = [self.means[fold, site, to] - self.means[fold, site, own] for fold, own, to in pairs]
        return self.strength * torch.stack(moved)[:, None].to(batch.tokens.device)

    @property
    def identity(self) -> str:
        """All of it, hashed."""
        named = {f"{fold} {site.hook_name} {label}": each for (fold, site, label), each in self.means.items()}
        return f"steer {hash_of_tensors(named)} {self.turns} by {self.strength}"
