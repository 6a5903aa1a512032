"""How is a query compared with a key? The four functions that the field teaches, each a small component.

==============  ==========================================  ==============================================
``scaled_dot``  ``q . k / sqrt(d_head)``                    Vaswani et al. (2017)
``dot``         ``q . k``                                   Luong et al. (2015)
``bilinear``    ``q W k`` with one matrix ``W`` a head      Luong et al. (2015), "general"
``additive``    ``v . tanh(q + k)``, one vector ``v`` a     Bahdanau et al. (2015); the maps of the two states
                head                                        are ``W_Q`` and ``W_K``
==============  ==========================================  ==============================================
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from interp.model.config import ScoreName, TransformerConfig

Queries = Float[Tensor, "batch head query_pos d_head"]
Keys = Float[Tensor, "batch head key_pos d_head"]
AttentionScores = Float[Tensor, "batch head query_pos key_pos"]


class Dot(nn.Module):
    """``q . k * scale``; ``fused`` says that PyTorch's own attention computes it."""

    fused = True

    def __init__(self, scale: float):
        super().__init__()
        self.scale = scale

    def forward(self, q: Queries, k: Keys) -> AttentionScores:
        # Scaled before the product, which in float16 could overflow.
        return q * self.scale @ k.transpose(-1, -2)


class Bilinear(nn.Module):
    """``q W k``; ``w_score`` is ``[head d_head d_head]``, the identity at first."""

    fused, scale = False, 1.0

    def __init__(self, n_heads: int, d_head: int):
        super().__init__()
        self.w_score = nn.Parameter(torch.eye(d_head).repeat(n_heads, 1, 1))

    def forward(self, q: Queries, k: Keys) -> AttentionScores:
        return q @ self.w_score @ k.transpose(-1, -2)


class Additive(nn.Module):
    """``v . tanh(q + k)``; ``w_score`` is ``[head d_head]``, ones at first."""

    fused, scale = False, 1.0

    def __init__(self, n_heads: int, d_head: int):
        super().__init__()
        self.w_score = nn.Parameter(torch.ones(n_heads, d_head))

    def forward(self, q: Queries, k: Keys) -> AttentionScores:
        return torch.einsum("hd,bhqkd->bhqk", self.w_score, (q[:, :, :, None] + k[:, :, None]).tanh())


Scores = Dot | Bilinear | Additive

MAKERS: dict[ScoreName, Callable[[TransformerConfig], Scores]] = {
    "scaled_dot": lambda config: Dot(1 / math.sqrt(config.d_head)),
    "dot": lambda config: Dot(1.0),
    "bilinear": lambda config: Bilinear(config.n_heads, config.d_head),
    "additive": lambda config: Additive(config.n_heads, config.d_head),
}


def make_scores(config: TransformerConfig) -> Scores:
    """The score function of a config."""
    return MAKERS[config.scores](config)
