"""What enters the first block, and what turns the last stream into logits.

In: the embedding of the token, of its position, of its kind. Out: BERT's head, and the unembedding, tied or not.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float, Int
from torch import Tensor, nn

from interp.model.config import TransformerConfig
from interp.model.layers import ACTIVATIONS, add_bias, make_norm
from interp.shapes import Logits, Residual, Tokens

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


def make_pos_embed(config: TransformerConfig) -> PosEmbed | SinusoidalPosEmbed | None:
    """The embedding of positions; None where order is known otherwise, or not."""
    if config.positions == "learned":
        return PosEmbed(config.n_ctx, config.d_model)
    return SinusoidalPosEmbed(config.n_ctx, config.d_model) if config.positions == "sinusoidal" else None


class Unembed(nn.Module):
    """``x @ W_U + b_U``; ``W_U`` is ``[d_model d_vocab]``."""

    W_U: Tensor
    b_U: Tensor

    def __init__(self, d_model: int, d_vocab: int, *, bias: bool = True):
        super().__init__()
        self.W_U = nn.Parameter(torch.empty(d_model, d_vocab))
        add_bias(self, "b_U", (d_vocab,), present=bias)

    def forward(self, x: Residual) -> Logits:
        return F.linear(x, self.W_U.T, self.b_U)


class TiedUnembed(nn.Module):
    """``x @ W_E.T + b_U``: the embedding read backwards, with no weights of its own but ``b_U``."""

    b_U: Tensor

    def __init__(self, embed: Embed, *, bias: bool = True):
        super().__init__()
        self._embed = (embed,)  # in a tuple, so that its parameters are not registered twice
        add_bias(self, "b_U", (embed.W_E.shape[0],), present=bias)

    @property
    def W_U(self) -> Float[Tensor, "d_model d_vocab"]:  # noqa: N802
        """The embedding's transpose, a view."""
        return self._embed[0].W_E.T

    def forward(self, x: Residual) -> Logits:
        return F.linear(x, self.W_U.T, self.b_U)


class PredictionHead(nn.Module):
    """``norm(act(x W + b))``: what BERT puts before its unembedding."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.W = nn.Parameter(torch.empty(config.d_model, config.d_model))
        self.b = nn.Parameter(torch.zeros(config.d_model))
        self.ln = make_norm(config)
        self.act: Callable[[Tensor], Tensor] = ACTIVATIONS[config.act_fn]

    def forward(self, x: Residual) -> Residual:
        return self.ln(self.act(x @ self.W + self.b))


def make_unembed(config: TransformerConfig, embed: Embed) -> Unembed | TiedUnembed:
    """The unembedding of a config."""
    bias = "unembed" in config.biases
    return TiedUnembed(embed, bias=bias) if config.tied else Unembed(config.d_model, config.d_vocab, bias=bias)
