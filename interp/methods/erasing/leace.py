"""Which map of activations keeps every linear probe from reading a feature, and changes them least? LEACE's.

1. The activations are whitened; in these coordinates the means of the classes span a subspace of at most
   ``classes - 1`` dimensions.
2. The projection that takes this subspace away leaves the classes with one mean, so that no linear probe, and no probe
   with a convex loss, does better than a constant on the data that it was fitted to; of all affine maps with this
   property it moves the activations least.
3. Its control is the same projection along a random subspace of as many dimensions.

Belrose et al. (2023), "LEACE: perfect linear concept erasure in closed form".
"""

import numpy as np
import torch
from concept_erasure import LeaceFitter
from jaxtyping import Float
from torch import Tensor

from interp.interventions.erase import Eraser
from interp.methods.erasing.whitening import Whitening

SMALLEST = 1e-12
"""Covariances of whitened activations with classes (1/2 for two that are told apart) below which there is none."""


def leace(x: Float[Tensor, "reading d"], labels: np.ndarray) -> Eraser:
    """The eraser after which all classes of `x` have the same mean.

    Args:
        x: Activations, in the dtype that they were computed in.
        labels: The class of each.
    """
    white = Whitening.of(x)
    classes = torch.from_numpy(labels[:, None] == np.unique(labels)).double()
    if not white.n:
        return _between(white, classes.new_zeros(0, 0))
    # Shrinkage and a bound on the trace would leave the means apart; the threshold is for the last class, which the
    # others determine.
    options = {"shrinkage": False, "constrain_cov_trace": False, "svd_tol": SMALLEST}
    found = LeaceFitter.fit(white(x), classes, **options).eraser
    erased = found.proj_right.norm(dim=1) > 0
    right, left = found.proj_right[erased], found.proj_left.T[erased]
    return Eraser(white.mu, right @ white.forward.T, left @ white.back)


def random_subspace(white: Whitening, rank: int, generator: np.random.Generator) -> Eraser:
    """The eraser of a random subspace of whitened activations."""
    directions = torch.from_numpy(generator.normal(size=(white.n, rank)))
    return _between(white, torch.linalg.qr(directions).Q.T)


def _between(white: Whitening, directions: Float[Tensor, "rank white"]) -> Eraser:
    """The eraser that projects on what is orthogonal to some directions of whitened activations."""
    return Eraser(white.mu, directions @ white.forward.T, directions @ white.back)
