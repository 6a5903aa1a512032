"""Causal multi-head attention (Vaswani et al. 2017), every quantity of it readable.

1. ``q, k, v = x W_Q + b_Q, x W_K + b_K, x W_V + b_V`` for every head.
2. ``pattern = softmax(q k^T / sqrt(d_head) + mask)``.
3. ``z = pattern v``; a head writes ``result = z W_O``; the layer writes their sum plus ``b_O``.

Step 2 runs as PyTorch's fused kernel unless somebody listens to the scores or the pattern.
"""

import math

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Bool, Float
from torch import Tensor, nn

from interp.model.cache import LayerCache
from interp.model.config import TransformerConfig
from interp.model.points import HookPoint
from interp.shapes import HeadVectors, Residual

Mask = Bool[Tensor, "#batch 1 query_pos key_pos"]
HeadInput = Float[Tensor, "batch pos d_model"] | Float[Tensor, "batch pos head d_model"]


def head_weight(n_heads: int, d_model: int, d_head: int) -> nn.Parameter:
    """A ``[head d_model d_head]`` parameter laid out in memory as ``[d_model head d_head]``.

    With this layout all heads' projections are one matrix product, without a copy.
    """
    return nn.Parameter(torch.empty(d_model, n_heads, d_head).permute(1, 0, 2))


def project(
    x: HeadInput, weight: Float[Tensor, "head d_model d_head"], bias: Float[Tensor, "head d_head"]
) -> HeadVectors:
    """``x W + b`` for each head, from a shared input or from one input a head."""
    if x.ndim == 4:
        return torch.einsum("bphm,hmd->bphd", x, weight) + bias
    flat = weight.permute(1, 0, 2).reshape(weight.shape[1], -1)
    return (x @ flat).unflatten(-1, bias.shape) + bias


class Attention(nn.Module):
    """One layer's heads. Parameters and points carry TransformerLens' names and shapes."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        shape = (config.n_heads, config.d_model, config.d_head)
        self.W_Q, self.W_K, self.W_V = head_weight(*shape), head_weight(*shape), head_weight(*shape)
        self.W_O = nn.Parameter(torch.empty(config.n_heads, config.d_head, config.d_model))
        self.b_Q = nn.Parameter(torch.zeros(config.n_heads, config.d_head))
        self.b_K = nn.Parameter(torch.zeros(config.n_heads, config.d_head))
        self.b_V = nn.Parameter(torch.zeros(config.n_heads, config.d_head))
        self.b_O = nn.Parameter(torch.zeros(config.d_model))
        self.hook_q, self.hook_k, self.hook_v = HookPoint(), HookPoint(), HookPoint()
        self.hook_attn_scores, self.hook_pattern = HookPoint(), HookPoint()
        self.hook_z, self.hook_result = HookPoint(), HookPoint()

    def forward(
        self,
        inputs: tuple[HeadInput, HeadInput, HeadInput],
        mask: Mask | None,
        cache: LayerCache | None = None,
    ) -> Residual:
        """What the heads write together.

        Args:
            inputs: What queries, keys and values are computed from, after LayerNorm.
            mask: True where a query may look; None for plain causal attention.
            cache: Keys and values of earlier positions, extended in place.
        """
        q = self.hook_q(project(inputs[0], self.W_Q, self.b_Q))
        k = self.hook_k(project(inputs[1], self.W_K, self.b_K))
        v = self.hook_v(project(inputs[2], self.W_V, self.b_V))
        if cache is not None:
            k, v = cache.extend(k, v)
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        explicit = self.hook_attn_scores.listened or self.hook_pattern.listened
        z = self._explicit(q, k, v, mask) if explicit else self._fused(q, k, v, mask)
        return self._write(self.hook_z(z.transpose(1, 2)))

    def _fused(self, q: Tensor, k: Tensor, v: Tensor, mask: Mask | None) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)

    def _explicit(self, q: Tensor, k: Tensor, v: Tensor, mask: Mask | None) -> Tensor:
        if mask is None:
            mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).tril()
        # Scaled before the product, which in float16 could overflow.
        scores = (q / math.sqrt(q.shape[-1]) @ k.transpose(-1, -2)).masked_fill(~mask, -torch.inf)
        pattern = self.hook_pattern(self.hook_attn_scores(scores).softmax(-1))
        return pattern @ v

    def _write(self, z: HeadVectors) -> Residual:
        if self.hook_result.listened:
            return self.hook_result(torch.einsum("bphd,hdm->bphm", z, self.W_O)).sum(-2) + self.b_O
        return z.flatten(-2) @ self.W_O.flatten(0, 1) + self.b_O
