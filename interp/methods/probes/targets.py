"""What is to be predicted? Classes or numbers, and how wrong scores are about them."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

Scores = Float[Tensor, "cell example column problem"]
"""Columns before probes: a softmax over neighbours is several times slower."""


@dataclass(frozen=True)
class Target:
    """Classes from 0, or, where there are none, numbers.

    Attributes:
        y: By example.
        n_classes: How many classes there are; 0 for numbers.
    """

    y: Int[Tensor, " example"] | Float[Tensor, " example"]
    n_classes: int

    def to(self, device: torch.device) -> "Target":
        """The same on a device."""
        return Target(self.y.to(device), self.n_classes)

    @property
    def n_columns(self) -> int:
        """Of the scores: one for numbers and for two classes, else one a class."""
        return self.n_classes if self.n_classes > 2 else 1

    def indicators(self) -> Float[Tensor, "example column"]:
        """1 where an example is of the column's class, and 0; numbers as they are."""
        if not self.n_classes:
            return self.y.double()[:, None]
        return self.members()[:, -self.n_columns :]

    def members(self) -> Float[Tensor, "example class"]:
        """1 where an example is of a class, with two columns for two classes."""
        return (self.y[:, None] == torch.arange(self.n_classes, device=self.y.device)).double()

    def signs(self) -> Float[Tensor, "example column"]:
        """1 and -1 in place of 1 and 0; numbers as they are."""
        return 2 * self.indicators() - 1 if self.n_classes else self.indicators()

    def hits(self, scores: Scores) -> Bool[Tensor, "cell example problem"]:
        """Whether the class with the highest score is the example's."""
        found = (scores[:, :, 0] > 0).long() if self.n_columns == 1 else scores.argmax(dim=2)
        return found == self.y[None, :, None]

    def log_loss(self, scores: Scores, n_trained: Float[Tensor, " problem"]) -> Float[Tensor, "cell example problem"]:
        """``-log p`` of the example's class, in nats.

        p is mixed with the uniform distribution, which gets as many votes as there are classes beside the `n_trained`
        examples: what a probe has never seen costs much, not infinitely much (Laplace's rule).
        """
        share = self.n_classes / (n_trained + self.n_classes)
        return -torch.logaddexp(self._log_p(scores) + (-share).log1p(), (share / self.n_classes).log())

    def _log_p(self, scores: Scores) -> Float[Tensor, "cell example problem"]:
        if self.n_columns == 1:
            return torch.nn.functional.logsigmoid(self.signs()[None, :, 0, None] * scores[:, :, 0])
        own = self.y[None, :, None, None].expand(len(scores), -1, 1, scores.shape[3])
        return scores.gather(2, own)[:, :, 0] - scores.logsumexp(dim=2)

    def squared_error(self, scores: Scores) -> Float[Tensor, "cell example problem"]:
        """Of the scores as numbers: summed over the columns."""
        return (scores - self.signs()[None, :, :, None]).square().sum(dim=2)
