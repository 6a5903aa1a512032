"""Can a feature be read out of activations? By scikit-learn's logistic regression, against always saying the same."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits
from torch import Tensor

ITERATIONS = 1000


@dataclass(frozen=True)
class Standard:
    """The units in which a probe reads: the spread of each number of the activations before anything is erased.

    A number that an eraser has made constant but for rounding would be read again if it were divided by what is left.
    """

    mu: Float[Tensor, " d"]
    scale: Float[Tensor, " d"]

    @classmethod
    def of(cls, x: Float[Tensor, "reading d"]) -> "Standard":
        """Those of some activations."""
        spread = x.double().std(0, correction=0)
        return cls(x.double().mean(0), torch.where(spread > 0, spread, 1.0))

    def __call__(self, x: Float[Tensor, "reading d"]) -> np.ndarray:
        """`x` in these units."""
        return ((x.double() - self.mu) / self.scale).numpy()


@dataclass(frozen=True)
class Probe:
    """Reads classes out of activations.

    Attributes:
        standard: In which units.
        regression: How.
    """

    standard: Standard
    regression: LogisticRegression

    @classmethod
    def fit(cls, standard: Standard, x: Float[Tensor, "reading d"], labels: np.ndarray) -> "Probe":
        """A probe of the activations `x`."""
        seen = standard(x)
        with threadpool_limits(1, user_api="blas"):  # so small a problem that threads wait for each other
            return cls(standard, LogisticRegression(max_iter=ITERATIONS).fit(seen, labels))

    def correct(self, x: Float[Tensor, "reading d"], labels: np.ndarray) -> Bool[np.ndarray, " reading"]:
        """Whether it reads each class right."""
        found: np.ndarray = self.regression.predict(self.standard(x)) == labels
        return found

    @property
    def directions(self) -> Float[Tensor, "row d"]:
        """What it reads, as directions of the activations: one for two classes, else one for each."""
        return torch.from_numpy(self.regression.coef_) / self.standard.scale


def majority(labels: np.ndarray) -> float:
    """The share of the commonest class."""
    return max(Counter(labels.tolist()).values()) / len(labels)
