"""What is fitted together? Many probes on the same examples, which differ in what they train on and in their penalty.

Examples belong to *atoms*, such as the block of one fold of documents and one of lemmas. A probe trains on some of the
atoms, whole. So what the probes need of the examples is summed once for each atom: adding up is cheaper than reading.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

Examples = Float[Tensor, "cell example feature"]
"""Activations of the same examples at many cells (heads, layers), in float64."""
ROUNDING = 1e-12
"""Of a variance, relative to the mean square: activations have 32 bits."""


@dataclass(frozen=True)
class Problems:
    """Probes to be fitted at every cell.

    Attributes:
        atom: Of each example, from 0.
        trains_on: The atoms that each probe trains on.
        penalty: Of each probe; what it multiplies is the solver's to say. By cell where it differs.
    """

    atom: Int[Tensor, " example"]
    trains_on: Bool[Tensor, "problem atom"]
    penalty: Float[Tensor, "#cell problem"]

    @property
    def n(self) -> int:
        """Probes at each cell."""
        return len(self.trains_on)

    def take(self, chosen: slice) -> "Problems":
        """Some of the probes."""
        return Problems(self.atom, self.trains_on[chosen], self.penalty[:, chosen])

    def mask(self) -> Float[Tensor, "example problem"]:
        """1 where an example is trained on."""
        return self.trains_on.T[self.atom].double()


@dataclass(frozen=True)
class Moments:
    """Number, mean and scatter of what each probe trains on.

    Attributes:
        n: Examples.
        mean: Of each feature.
        scatter: Sums of products of deviations from the mean; 0 of features that are the same in all it trains on.
    """

    n: Float[Tensor, " problem"]
    mean: Float[Tensor, "cell problem feature"]
    scatter: Float[Tensor, "cell problem feature feature"]

    @classmethod
    def of(cls, x: Examples, problems: Problems) -> "Moments":
        """Sum by atom, then add up; deviations are from the mean of all, so that little cancels.

        Of a feature that does not vary, rounding is left, which is of either sign: that is taken away.
        """
        centre = x.mean(dim=1, keepdim=True)
        away = x - centre
        atoms = range(problems.trains_on.shape[1])
        members = [(problems.atom == each).nonzero()[:, 0] for each in atoms]
        parts = [away[:, each] for each in members]
        counts = torch.tensor([float(len(each)) for each in members], dtype=x.dtype, device=x.device)
        sums = torch.stack([part.sum(dim=1) for part in parts], dim=1)
        products = torch.stack([part.mT @ part for part in parts], dim=1)
        used = problems.trains_on.to(x.dtype)
        n = used @ counts
        mean = (used @ sums) / n[:, None]
        squares = (used @ products.flatten(2)).unflatten(2, products.shape[2:])
        scatter = squares - n[:, None, None] * mean[..., :, None] * mean[..., None, :]
        size = torch.diagonal(squares, dim1=-2, dim2=-1) + n[:, None] * centre.square()
        varies = torch.diagonal(scatter, dim1=-2, dim2=-1) > ROUNDING * size
        return cls(n, mean + centre, scatter * (varies[..., :, None] & varies[..., None, :]))

    @property
    def varies(self) -> Bool[Tensor, "cell problem feature"]:
        """Whether a feature varies in what a probe trains on; the weight of one that does not is 0."""
        return torch.diagonal(self.scatter, dim1=-2, dim2=-1) > 0

    @property
    def variance(self) -> Float[Tensor, "cell problem"]:
        """Mean variance of a feature."""
        return torch.diagonal(self.scatter, dim1=-2, dim2=-1).mean(-1) / self.n


@dataclass(frozen=True)
class LinearProbes:
    """What was fitted: scores are ``x @ weight + bias``, one column a class (a single one where there are two).

    Attributes:
        weight: By cell, probe, feature and column.
        bias: By cell, probe and column.
        converged: Whether each probe came to its optimum; closed forms do.
        n_steps: How many it took, of the probe that took most.
    """

    weight: Float[Tensor, "cell problem feature column"]
    bias: Float[Tensor, "cell problem column"]
    converged: Bool[Tensor, "cell problem"]
    n_steps: int = 1

    def scores(self, x: Examples) -> Float[Tensor, "cell example column problem"]:
        """Of every example, by every probe of its cell."""
        by_column = self.weight.permute(0, 2, 3, 1)
        found = (x @ by_column.flatten(2)).unflatten(2, by_column.shape[2:])
        return found + self.bias.transpose(1, 2)[:, None]
