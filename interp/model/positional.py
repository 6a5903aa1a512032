"""What enters the first block: the embedding of the token, of its position, of its kind; together the input."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from interp.model.config import TransformerConfig
from interp.model.points import HookPoint
from interp.shapes import Residual, Tokens

PositionsOfTokens = Int[Tensor, "batch pos"]


class Embed(nn.Module):
    """``W_E[token]``; ``W_E`` is ``[d_vocab d_model]``."""

    def __init__(self, d_vocab: int, d_model: int):
        super().__init__()
        self.W_E = nn.Parameter(torch.empty(d_vocab, d_model))

    def forward(self, tokens: Tokens) -> Residual:
        return self.W_E[tokens]


class PosEmbed(nn.Module):
    """``W_pos[position]``, learned; ``W_pos`` is ``[n_ctx d_model]``."""

    W_pos: Tensor

    def __init__(self, n_ctx: int, d_model: int):
        super().__init__()
        self.W_pos = nn.Parameter(torch.empty(n_ctx, d_model))

    def forward(self, positions: PositionsOfTokens) -> Residual:
        return self.W_pos[positions]


class SinusoidalPosEmbed(nn.Module):
    """``W_pos[position]`` with sine in the even and cosine in the odd components (Vaswani et al. 2017, section 3.5).

    Component ``2 i`` has the wavelength ``2 pi 10000 ** (2 i / d_model)``, so a shift of the position is a linear map.
    """

    W_pos: Tensor

    def __init__(self, n_ctx: int, d_model: int):
        super().__init__()
        self.register_buffer("W_pos", sinusoids(n_ctx, d_model).float(), persistent=False)

    def _apply(self, *given: Any, **named: Any) -> Any:
        """Move to another device or dtype: there, the table is as exact as the dtype is."""
        super()._apply(*given, **named)
        self.W_pos = sinusoids(*self.W_pos.shape).to(self.W_pos)
        return self

    def forward(self, positions: PositionsOfTokens) -> Residual:
        return self.W_pos[positions]


def sinusoids(n_ctx: int, d_model: int) -> Float[Tensor, "n_ctx d_model"]:
    """The table of ``SinusoidalPosEmbed``, in 64 bits."""
    position = torch.arange(n_ctx, dtype=torch.float64)[:, None]
    angle = position / 10_000 ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :d_model]


class TokenTypeEmbed(nn.Module):
    """``W_token_type[0]`` for every token (BERT's segments, of which one prompt has one)."""

    def __init__(self, n_types: int, d_model: int):
        super().__init__()
        self.W_token_type = nn.Parameter(torch.empty(n_types, d_model))

    def forward(self, positions: PositionsOfTokens) -> Residual:
        return self.W_token_type[torch.zeros_like(positions)]


class AddedEmbedding(nn.Module):
    """Adds an embedding to the input, at a point where it can be read."""

    def __init__(self, embed: nn.Module, hook: HookPoint):
        super().__init__()
        self._parts = (embed, hook)  # in a tuple, since both are the model's own and have their names there

    def forward(self, x: Residual, positions: PositionsOfTokens) -> Residual:
        embed, hook = self._parts
        return x + hook(embed(positions))


def make_pos_embed(config: TransformerConfig) -> PosEmbed | SinusoidalPosEmbed | None:
    """The embedding of positions; None where order is known otherwise, or not."""
    if config.positions == "learned":
        return PosEmbed(config.n_ctx, config.d_model)
    return SinusoidalPosEmbed(config.n_ctx, config.d_model) if config.positions == "sinusoidal" else None
