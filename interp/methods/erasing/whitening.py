"""In which coordinates is every direction alike? Those in which activations have mean 0 and covariance 1.

1. Coordinates are divided by their spread, so that outliers among them (GPT-2 has some that are a thousand times the
   others) do not hide the rest behind rounding.
2. The eigenvectors of their covariance are divided by the roots of its eigenvalues. Directions without spread, but for
   little more than rounding, are left out: a map that read them would write noise as large as all else.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from interp.interventions.intervention import ROUNDING

ABOVE_ROUNDING = 0.75
"""A direction is known where its spread, as a share of the largest, is above rounding to this power."""


@dataclass(frozen=True)
class Whitening:
    """``y = (x - mu) F``, and back: ``x = mu + y B``; ``B F = 1``. In 64-bit floats.

    Attributes:
        mu: The mean.
        forward: F.
        back: B.
    """

    mu: Float[Tensor, " d"]
    forward: Float[Tensor, "d white"]
    back: Float[Tensor, "white d"]

    @classmethod
    def of(cls, x: Float[Tensor, "reading d"]) -> "Whitening":
        """That of some activations, in the dtype that they were computed in."""
        wide, d = x.double(), x.shape[1]
        mu = wide.mean(0)
        spread = (wide - mu).square().mean(0).sqrt()
        moves = spread > ROUNDING[x.dtype] * mu.abs()
        scale = torch.where(moves, spread, 1.0)
        standard = (wide - mu) / scale * moves
        values, vectors = torch.linalg.eigh(standard.T @ standard / max(len(x) - 1, 1))
        least = max(d * torch.finfo(torch.float64).eps, ROUNDING[x.dtype] ** (2 * ABOVE_ROUNDING))
        kept = values > least * values[-1]
        roots, vectors = values[kept].sqrt(), vectors[:, kept]
        return cls(mu, vectors / roots / scale[:, None], (vectors * roots).T * scale)

    def __call__(self, x: Float[Tensor, "reading d"]) -> Float[Tensor, "reading white"]:
        """`x`, whitened."""
        return (x.double() - self.mu) @ self.forward

    @property
    def n(self) -> int:
        """How many directions have any spread."""
        return self.forward.shape[1]
