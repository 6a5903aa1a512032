"""The structural probes as estimators after scikit-learn's conventions, one at a time; ``probes.py`` fits them.

Sentences differ in length, so ``X`` is a list of arrays.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Num
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from analyses.structural_probe.probes import (
    BATCH,
    MOST_EPOCHS,
    PATIENCE,
    RATE,
    fit_structural,
    squared_distances,
    squared_norms,
)
from interp.errors import InputError
from interp.model.devices import ordinary_modes

Sentences = Sequence[Float[np.ndarray, "..."]]
"""Vectors ``[word, feature]`` of each sentence."""
Truths = Sequence[Num[np.ndarray, "..."]]
"""Distances ``[word, word]`` or depths ``[word]`` of each sentence."""


def padded(arrays: Sequence[Num[np.ndarray, "..."]]) -> Num[np.ndarray, "..."]:
    """Arrays of as many axes on top of each other, with zeros after what is shorter."""
    shape = np.max([each.shape for each in arrays], axis=0)
    found = np.zeros((len(arrays), *shape), dtype=np.result_type(*arrays))
    for row, each in zip(found, arrays, strict=True):
        row[tuple(map(slice, each.shape))] = each
    return found


class _StructuralProbe(BaseEstimator):
    """What both have in common."""

    def __init__(
        self,
        rank: int | None = None,
        *,
        max_epochs: int = MOST_EPOCHS,
        patience: int = PATIENCE,
        lr: float = RATE,
        batch_size: int = BATCH,
        validation_fraction: float = 0.1,
        random_state: int | np.random.RandomState | None = 0,
    ):
        self.rank = rank
        self.max_epochs = max_epochs
        self.patience = patience
        self.lr = lr
        self.batch_size = batch_size
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    @ordinary_modes()
    def fit(self, X: Sentences, y: Truths) -> "_StructuralProbe":
        """Fit to the words' vectors of sentences.

        Args:
            X: Of each sentence, its words' vectors ``[word, feature]``.
            y: Of each sentence, the true distances ``[word, word]`` of a ``DistanceProbe``, the depths ``[word]`` of a
                ``DepthProbe``.

        Raises:
            InputError: A sentence's vectors or truth are of the wrong shape or no finite numbers, fewer than two
                sentences have two words, or a parameter is out of range.
        """
        n_features = _check_vectors(X)
        self._check_truth(X, y)
        lengths = np.array([len(each) for each in X])
        generator = check_random_state(self.random_state)
        found = fit_structural(
            torch.from_numpy(padded(X))[None],
            torch.from_numpy(padded(y)).to(torch.float64),
            torch.from_numpy(lengths),
            torch.from_numpy(_held_out(lengths, self.validation_fraction, generator)),
            ranks=None if self.rank is None else [self.rank],
            max_epochs=self.max_epochs,
            patience=self.patience,
            lr=self.lr,
            batch_size=self.batch_size,
            seed=int(generator.randint(2**31 - 1)),
        )
        self.n_features_in_ = n_features
        self.projection_ = found.projection[0].numpy()
        self.dev_loss_ = float(found.dev_loss[0])
        self.n_iter_ = int(found.n_epochs[0])
        return self

    @ordinary_modes()
    def predict(self, X: Sentences) -> list[Float[np.ndarray, "..."]]:
        """Of each sentence, the predicted distances ``[word, word]`` or depths ``[word]``, in edges.

        Raises:
            NotFittedError: Before ``fit``.
            InputError: A sentence's vectors are of another shape than those of ``fit``, or no finite numbers.
        """
        check_is_fitted(self)
        _check_vectors(X, self.n_features_in_)
        return [self._geometry(torch.from_numpy(each @ self.projection_.T)).numpy() for each in X]

    def _check_truth(self, X: Sentences, y: Truths) -> None:
        if len(y) != len(X):
            raise InputError(f"y: expected one array for each of {len(X)} sentences, got {len(y)}")
        for number, (vectors, truth) in enumerate(zip(X, y, strict=True)):
            expected = (len(vectors),) * self._n_axes
            if truth.shape != expected:
                raise InputError(f"y, sentence {number}: expected the shape {expected}, got {truth.shape}")
            if not np.isfinite(truth).all():
                raise InputError(f"y, sentence {number}: expected finite numbers, got others")


class DistanceProbe(_StructuralProbe):
    """``||B (h_i - h_j)||^2``, near to how many edges are between two words.

    Args:
        rank: Rows of B; None for as many as features.
        max_epochs: After which it stops, in either coordinates.
        patience: Epochs without a new least loss on the held-out sentences.
        lr: The first learning rate.
        batch_size: Sentences of a step.
        validation_fraction: Share of the sentences that are held out.
        random_state: Of the held-out sentences, the first weights and the order.

    Attributes:
        projection_: B ``[rank, feature]``.
        dev_loss_: Mean error on the held-out sentences, in edges.
        n_iter_: Epochs taken.
        n_features_in_: Of the vectors.
    """

    _n_axes: ClassVar[int] = 2
    _geometry = staticmethod(squared_distances)


class DepthProbe(_StructuralProbe):
    """``||B h_i||^2``, near to how many edges a word is below the root; everything else as ``DistanceProbe``."""

    _n_axes: ClassVar[int] = 1
    _geometry = staticmethod(squared_norms)


def _check_vectors(X: Sentences, n_features: int | None = None) -> int:
    """How many features all vectors have."""
    if not len(X):
        raise InputError("X: expected sentences, got none")
    for number, each in enumerate(X):
        n_features = each.shape[-1] if n_features is None else n_features
        if each.ndim != 2 or not len(each) or each.shape[1] != n_features:
            raise InputError(
                f"X, sentence {number}: expected one word or more of {n_features} features, got the shape {each.shape}"
            )
        if not np.isfinite(each).all():
            raise InputError(f"X, sentence {number}: expected finite vectors, got others")
    assert n_features is not None
    return n_features


def _held_out(
    lengths: Int[np.ndarray, " sentence"], fraction: float, generator: np.random.RandomState
) -> Bool[np.ndarray, " sentence"]:
    """Some of the sentences of two words or more, at least one."""
    if not 0 < fraction < 1:
        raise InputError(f"validation_fraction: expected a share between 0 and 1, got {fraction}")
    long = generator.permutation(np.flatnonzero(lengths > 1))
    dev = np.zeros(len(lengths), dtype=bool)
    dev[long[: max(1, round(fraction * len(long)))]] = True
    return dev
