"""Token and position embeddings, and the unembedding."""

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float, Int
from torch import Tensor, nn

from interp.shapes import Logits, Residual, Tokens


class Embed(nn.Module):
    """``W_E[token]``; ``W_E`` is ``[d_vocab d_model]``."""

    def __init__(self, d_vocab: int, d_model: int):
        super().__init__()
        self.W_E = nn.Parameter(torch.empty(d_vocab, d_model))

    def forward(self, tokens: Tokens) -> Residual:
        return self.W_E[tokens]


class PosEmbed(nn.Module):
    """``W_pos[position]``, learned; ``W_pos`` is ``[n_ctx d_model]``."""

    def __init__(self, n_ctx: int, d_model: int):
        super().__init__()
        self.W_pos = nn.Parameter(torch.empty(n_ctx, d_model))

    def forward(self, positions: Int[Tensor, "batch pos"]) -> Residual:
        return self.W_pos[positions]


class Unembed(nn.Module):
    """``x @ W_U + b_U``; ``W_U`` is ``[d_model d_vocab]``."""

    def __init__(self, d_model: int, d_vocab: int):
        super().__init__()
        self.W_U = nn.Parameter(torch.empty(d_model, d_vocab))
        self.b_U = nn.Parameter(torch.zeros(d_vocab))

    def forward(self, x: Residual) -> Logits:
        return F.linear(x, self.W_U.T, self.b_U)


class TiedUnembed(nn.Module):
    """``x @ W_E.T + b_U``: the embedding read backwards, with no weights of its own but ``b_U``."""

    def __init__(self, embed: Embed):
        super().__init__()
        self._embed = (embed,)  # in a tuple, so that its parameters are not registered twice
        self.b_U = nn.Parameter(torch.zeros(embed.W_E.shape[0]))

    @property
    def W_U(self) -> Float[Tensor, "d_model d_vocab"]:  # noqa: N802
        """The embedding's transpose, a view."""
        return self._embed[0].W_E.T

    def forward(self, x: Residual) -> Logits:
        return F.linear(x, self.W_U.T, self.b_U)
