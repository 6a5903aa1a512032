"""What could a probe find that the head has not put there? The controls that every score stands beside.

- **Control task**: every type of the word that carries the feature gets a random label, always the same, from the
  labels' own distribution. What a probe learns of it, it has memorised. *Selectivity* is what the probe reaches on the
  feature beyond that, on the same folds (Hewitt & Liang 2019, "Designing and interpreting probes with control tasks").
  Where no word carries the feature, as of a word's senses, each example is a type of its own: one type for all would
  have one label, which every probe gets right.
- **Majority**: the most frequent class, or the mean.
- **Embedding**: a probe on the embedding of the token that is read, which has seen no other word.
- **Position**: a probe on the position that is read.
- **Untrained**: the probe at the same place in a model of the same shape with random weights (Zhang & Bowman 2018).
- **Permuted**: a probe on the labels in random order.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from interp.interventions.own_copy import shape_of
from interp.methods.probes.targets import Target
from interp.model.devices import place_of
from interp.model.modes import documented
from interp.model.transformer import HookedTransformer

MOST_POSITIONS = 64
"""That are told apart; of more, neighbours are one."""


def control_labels(carriers: Sequence[str], values: Sequence[str], seed: int = 0) -> list[str]:
    """A random but fixed label for every type, from the labels' distribution.

    Args:
        carriers: The type of each example; empty for one of its own.
        values: Its label.
        seed: Of the draw.
    """
    generator = np.random.default_rng(seed)
    counts = Counter(values)
    classes = sorted(counts)
    shares = np.array([counts[each] for each in classes]) / len(values)
    of_example = [(carrier, 0 if carrier else number) for number, carrier in enumerate(carriers)]
    types = sorted(set(of_example))
    drawn = dict(zip(types, generator.choice(len(classes), size=len(types), p=shares).tolist(), strict=True))
    return [classes[drawn[each]] for each in of_example]


def permuted_labels(values: Sequence[str], seed: int = 0) -> list[str]:
    """The labels in random order."""
    order = np.random.default_rng(seed).permutation(len(values))
    return [values[each] for each in order]


def majority(target: Target) -> Float[Tensor, "1 example"]:
    """Whether who says the most frequent class of all examples is right; of numbers, the squared error of their mean.

    Of the training examples it would be less: where classes are even, what is frequent there is rare among the others.
    """
    if target.n_classes:
        return (target.y == torch.bincount(target.y).argmax()).double()[None]
    return (target.y - target.y.mean()).square().double()[None]


def position_features(tokens: Int[np.ndarray, " example"]) -> Float[Tensor, "1 example feature"]:
    """One axis for every position, or for every run of neighbours where there are many."""
    places, number = np.unique(tokens, return_inverse=True)
    if len(places) > MOST_POSITIONS:
        number = np.searchsorted(np.quantile(tokens, np.linspace(0, 1, MOST_POSITIONS + 1)[1:-1]), tokens, side="right")
    return torch.nn.functional.one_hot(torch.from_numpy(number.reshape(-1).astype(np.int64))).double()[None]


@documented
def untrained(model: Any, seed: int = 0) -> HookedTransformer | None:
    """A model of the same shape with random weights; None where the shape is not known here.

    Args:
        model: Follows TransformerLens' protocol.
        seed: Of the weights.
    """
    config = shape_of(model)
    if config is None:
        return None
    return HookedTransformer(config, getattr(model, "tokenizer", None), seed=seed).to(*place_of(model))
