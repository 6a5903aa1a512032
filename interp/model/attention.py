"""Multi-head attention (Vaswani et al. 2017), every quantity of it readable.

1. ``q, k, v = x W_Q + b_Q, x W_K + b_K, x W_V + b_V`` for every head; keys and values may be shared by query heads.
2. ``pattern = softmax(scores(q, k) + offsets + mask)``; rotary positions turn q and k before.
3. ``z = pattern v``; a head writes ``result = z W_O``; the layer writes their sum plus ``b_O``.

Step 2 runs as PyTorch's fused kernel unless somebody listens to the scores or the pattern, or no kernel computes it.
"""

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float
from torch import Tensor, nn

from interp.model.biases import add_bias
from interp.model.cache import LayerCache
from interp.model.config import TransformerConfig
from interp.model.offsets import make_offsets, make_turn
from interp.model.places import Places
from interp.model.points import HookPoint
from interp.model.scores import AttentionScores, Keys, make_scores
from interp.shapes import HeadVectors, Residual

KeyVectors = Float[Tensor, "batch key_pos kv_head d_head"]
HeadInput = Float[Tensor, "batch pos d_model"] | Float[Tensor, "batch pos head d_model"]
KeyInput = Float[Tensor, "batch read_pos d_model"] | Float[Tensor, "batch read_pos kv_head d_model"]


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
    """One layer's heads. Parameters and points carry TransformerLens' names and shapes.

    ``W_K``, ``W_V``, ``hook_k`` and ``hook_v`` have as many heads as there are of keys and values; query head ``h``
    reads number ``h // group``.
    """

    b_Q: Tensor
    b_K: Tensor
    b_V: Tensor
    b_O: Tensor

    def __init__(self, config: TransformerConfig):
        super().__init__()
        queries, keys = config.n_heads, config.kv_heads
        self.group = queries // keys
        self.W_Q, self.W_K, self.W_V = (head_weight(n, config.d_model, config.d_head) for n in (queries, keys, keys))
        self.W_O = nn.Parameter(torch.empty(queries, config.d_head, config.d_model))
        for name, n in (("b_Q", queries), ("b_K", keys), ("b_V", keys)):
            add_bias(self, name, (n, config.d_head), present="qkv" in config.biases)
        add_bias(self, "b_O", (config.d_model,), present="o" in config.biases)
        self.turn, self.score = make_turn(config), make_scores(config)
        self.offsets = make_offsets(config, self.score.scale)
        self.hook_q, self.hook_k, self.hook_v = HookPoint(), HookPoint(), HookPoint()
        rotary = config.positions == "rotary"
        self.hook_rot_q, self.hook_rot_k = ((HookPoint() if rotary else nn.Identity()) for _ in "qk")
        self.hook_attn_scores, self.hook_pattern = HookPoint(), HookPoint()
        self.hook_z, self.hook_result = HookPoint(), HookPoint()

    def forward(
        self,
        inputs: tuple[HeadInput, KeyInput, KeyInput],
        places: Places,
        cache: LayerCache | None = None,
    ) -> Residual:
        """What the heads write together.

        Args:
            inputs: What queries, keys and values are computed from, after the norm.
            places: Where these stand, and who may look where.
            cache: Keys and values of earlier positions, extended in place.
        """
        q = self.hook_q(project(inputs[0], self.W_Q, self.b_Q))
        k = self.hook_k(project(inputs[1], self.W_K, self.b_K))
        v = self.hook_v(project(inputs[2], self.W_V, self.b_V))
        q = self.hook_rot_q(self.turn(q, places.query))
        k = self.hook_rot_k(self.turn(k, places.key[:, -k.shape[1] :]))
        if cache is not None:
            k, v = cache.extend(k, v)
        listened = self.hook_attn_scores.listened or self.hook_pattern.listened
        z = self._explicit(q, k, v, places) if listened or not self.fused else self.mixed(q, k, v, places)
        return self._write(self.hook_z(z))

    @property
    def fused(self) -> bool:
        """Whether PyTorch's own attention computes what this one does."""
        return self.score.fused and self.offsets.fused

    def mixed(self, q: HeadVectors, k: KeyVectors, v: KeyVectors, places: Places) -> HeadVectors:
        """``z`` without its pattern, by PyTorch's own attention where that computes it.

        Args:
            q: Of the queries, turned where positions are rotary.
            k: Of the keys, likewise.
            v: Of the keys.
            places: Where queries and keys stand.
        """
        if not self.fused:
            return self.mix(self.scores(q, k, places).softmax(-1), v, places)
        q, k, v = q.transpose(1, 2), self._by_query_head(k), self._by_query_head(v)
        mask = self.offsets.fused_mask(places, q)
        causal = mask is None and places.causal
        z = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, scale=self.score.scale)
        return z.transpose(1, 2)

    def scores(self, q: HeadVectors, k: KeyVectors, places: Places) -> AttentionScores:
        """What the pattern is the softmax of; minus infinity where a query may not look. `q` and `k` have turned."""
        queries = q.transpose(1, 2)
        scores = self.offsets.to_scores(self.score(queries, self._by_query_head(k)), queries, places)
        return scores.masked_fill(~places.allowed(), -torch.inf)

    def mix(self, pattern: AttentionScores, v: KeyVectors, places: Places) -> HeadVectors:
        """``z``: the values' means, weighted by the pattern."""
        return self.offsets.to_z(pattern @ self._by_query_head(v), pattern, places).transpose(1, 2)

    def _explicit(self, q: HeadVectors, k: KeyVectors, v: KeyVectors, places: Places) -> HeadVectors:
        scores = self.hook_attn_scores(self.scores(q, k, places))
        return self.mix(self.hook_pattern(scores.softmax(-1)), v, places)

    def _by_query_head(self, x: KeyVectors) -> Keys:
        """Keys or values, each as often as there are query heads that read it."""
        x = x.transpose(1, 2)
        return x if self.group == 1 else x.repeat_interleave(self.group, dim=1)

    def _write(self, z: HeadVectors) -> Residual:
        if self.hook_result.listened:
            return self.hook_result(torch.einsum("bphd,hdm->bphm", z, self.W_O)).sum(-2) + self.b_O
        return z.flatten(-2) @ self.W_O.flatten(0, 1) + self.b_O
