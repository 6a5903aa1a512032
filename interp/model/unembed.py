"""From the residual stream to logits: the unembedding, tied or not, and BERT's head before it."""

from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float
from torch import Tensor, nn

from interp.model.biases import add_bias
from interp.model.config import TransformerConfig
from interp.model.mlp import ACTIVATIONS
from interp.model.norm import make_norm
from interp.model.positional import Embed
from interp.shapes import Logits, Residual


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
