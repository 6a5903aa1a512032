"""Which directions does one probe after the other need to read a feature? Iterated null-space projection.

1. A probe is fitted; if it reads the feature no better than always saying the commonest class, this is all.
2. What it reads is projected out, orthogonally, and the next probe sees what is left.

Whether a probe reads is decided on a part of the data that it was not fitted to, of other lexical draws: on its own
data a probe of many dimensions is always somewhat above chance, and everything would be taken away. The mean stays
where it is, as it does with LEACE.

Ravfogel et al. (2020), "Null it out: guarding protected attributes by iterative nullspace projection".
"""

import numpy as np
import torch
from jaxtyping import Bool, Float
from sklearn.model_selection import StratifiedGroupKFold
from torch import Tensor

from interp.interventions.erase import Eraser
from interp.methods.erasing.probe import Probe, Standard, majority

MOST = 64
"""Probes after which it stops, whatever is left."""

PARTS = 5
"""One part of so many judges the probes that are fitted on the others."""


def inlp(x: Float[Tensor, "reading d"], labels: np.ndarray, clusters: np.ndarray, *, seed: int = 0) -> Eraser:
    """The eraser after which a new probe does not read the classes of `x`.

    Args:
        x: Activations.
        labels: The class of each.
        clusters: The lexical draw of each.
        seed: Of the split.
    """
    wide, mu = x.double(), x.double().mean(0)
    judging, standard = _judging(labels, clusters, seed), Standard.of(x)
    enough, erased = majority(labels[judging]), wide.new_zeros(0, x.shape[1])
    for _ in range(MOST):
        left = Eraser(mu, erased, erased)(wide)
        probe = Probe.fit(standard, left[~judging], labels[~judging])
        if probe.correct(left[judging], labels[judging]).mean() <= enough:
            break
        erased = _with(erased, probe.directions)
    return Eraser(mu, erased, erased)


def _judging(labels: np.ndarray, clusters: np.ndarray, seed: int) -> Bool[np.ndarray, " reading"]:
    """Which readings judge: whole clusters, unless some class would be missing on one side."""
    fewest = int(np.unique(labels, return_counts=True)[1].min())
    for groups in (clusters, np.arange(len(labels))):
        n = min(PARTS, fewest, len(np.unique(groups)))
        folds = StratifiedGroupKFold(n, shuffle=True, random_state=seed) if n > 1 else None
        for sides in folds.split(labels, labels, groups) if folds is not None else ():
            if all(len(np.unique(labels[side])) == len(np.unique(labels)) for side in sides):
                return np.isin(np.arange(len(labels)), sides[1])
    raise AssertionError("every class has two examples, so that some split leaves one of each on both sides")


def _with(erased: Float[Tensor, "rank d"], directions: Float[Tensor, "row d"]) -> Float[Tensor, "more d"]:
    """An orthonormal basis of both."""
    new = directions - directions @ erased.T @ erased
    _, sizes, basis = torch.linalg.svd(new, full_matrices=False)
    return torch.cat([erased, basis[sizes > 1e-6 * sizes[0]]])
