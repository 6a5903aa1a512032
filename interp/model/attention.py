"""Multi-head attention (Vaswani et al. 2017), every quantity of it readable.

1. ``q, k, v = x W_Q + b_Q, x W_K + b_K, x W_V + b_V`` for every head; keys and values may be shared by query heads.
2. ``pattern = softmax(scores(q, k) + offsets + mask)``. Before, q and k may be normalised, and rotary positions turn
   them (``positions.py``); scores may be capped, and a learned score of nothing may take its share of the softmax.
3. ``z = pattern v``; a head writes ``result = z W_O``; the layer writes their sum plus ``b_O``.

Step 2 runs as PyTorch's fused kernel unless somebody listens to the scores or the pattern, or no kernel computes it.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float
from torch import Tensor, nn

from interp.errors import InputError
from interp.model.config import TransformerConfig
from interp.model.hooks import HookPoint
from interp.model.layers import Rows, add_bias, linear, make_qk_norm, soft_cap
from interp.model.positions import AttentionScores, KeyVectors, Places, Queries, SeenMask, make_offsets, make_rotary
from interp.shapes import HeadVectors, PaddingMask, Residual

Keys = Float[Tensor, "batch head key_pos d_head"]
HeadInput = Float[Tensor, "batch pos d_model"] | Float[Tensor, "batch pos head d_model"]
KeyInput = Float[Tensor, "batch read_pos d_model"] | Float[Tensor, "batch read_pos kv_head d_model"]


class Dot(nn.Module):
    """``q . k * scale`` (Vaswani et al. 2017; Luong et al. 2015); ``fused``: PyTorch's own attention computes it."""

    fused = True

    def __init__(self, scale: float):
        super().__init__()
        self.scale = scale

    def forward(self, q: Queries, k: Keys) -> AttentionScores:
        # Scaled before the product, which in float16 could overflow.
        return q * self.scale @ k.transpose(-1, -2)


class Bilinear(nn.Module):
    """``q W k`` (Luong et al. 2015, "general"); ``w_score`` is ``[head d_head d_head]``, the identity at first."""

    fused, scale = False, 1.0

    def __init__(self, n_heads: int, d_head: int):
        super().__init__()
        self.w_score = nn.Parameter(torch.eye(d_head).repeat(n_heads, 1, 1))

    def forward(self, q: Queries, k: Keys) -> AttentionScores:
        return q @ self.w_score.to(q.dtype) @ k.transpose(-1, -2)


class Additive(nn.Module):
    """``v . tanh(q + k)`` (Bahdanau et al. 2015); ``w_score`` is ``[head d_head]``, ones at first.

    The maps of the two states are ``W_Q`` and ``W_K``.
    """

    fused, scale = False, 1.0

    def __init__(self, n_heads: int, d_head: int):
        super().__init__()
        self.w_score = nn.Parameter(torch.ones(n_heads, d_head))

    def forward(self, q: Queries, k: Keys) -> AttentionScores:
        return torch.einsum("hd,bhqkd->bhqk", self.w_score.to(q.dtype), (q[:, :, :, None] + k[:, :, None]).tanh())


def make_scores(config: TransformerConfig) -> Dot | Bilinear | Additive:
    """How queries are compared with keys."""
    if config.scores in ("scaled_dot", "dot"):
        scaled = 1 / math.sqrt(config.d_head) if config.score_scale is None else config.score_scale
        return Dot(scaled if config.scores == "scaled_dot" else 1.0)
    return (Bilinear if config.scores == "bilinear" else Additive)(config.n_heads, config.d_head)


LayerCache = list[Tensor]
"""One layer's keys and values ``[batch pos head d_head]`` of the positions read so far; empty before the first."""


@dataclass
class KeyValueCache:
    """All layers' keys and values, and which of the positions read so far are padding.

    Pass one to the model's forward together with the new tokens only; it is extended when the pass has succeeded.
    """

    layers: list[LayerCache]
    attention_mask: SeenMask | None = None

    @classmethod
    def empty(cls, n_layers: int) -> "KeyValueCache":
        """A cache that has read nothing yet."""
        return cls([[] for _ in range(n_layers)])

    def step(self, new: PaddingMask, n_layers: int) -> tuple["KeyValueCache", SeenMask]:
        """A cache for one pass over `new` positions, and the mask of all; where these are, if the model has moved.

        ``commit`` takes over what the pass has read, so a pass that fails on its way leaves this cache as it was.
        """
        if len(self.layers) != n_layers:
            raise InputError(
                f"cache: it holds {len(self.layers)} layers, the model has {n_layers}; "
                f"start with KeyValueCache.empty({n_layers})"
            )
        before = new[:, :0] if self.attention_mask is None else self.attention_mask.to(new.device)
        if len(new) != len(before):
            raise InputError(f"cache: it holds {len(before)} prompts, got {len(new)}; start an empty one")
        seen = torch.cat([before, new], dim=1)
        return KeyValueCache([[each.to(seen.device) for each in layer] for layer in self.layers], seen), seen

    def commit(self, step: "KeyValueCache") -> None:
        """Take over what a finished pass has read into its `step`."""
        self.layers, self.attention_mask = step.layers, step.attention_mask


def project(
    x: Float[Tensor, "... d_model"], weight: Float[Tensor, "head d_model d_head"], bias: Float[Tensor, "head d_head"]
) -> Float[Tensor, "... head d_head"]:
    """``x W + b`` for each head, from a shared input or, ``[batch pos head d_model]``, from one input a head."""
    if x.ndim == 4:
        return torch.einsum("bphm,hmd->bphd", x, weight) + bias
    flat = weight.permute(1, 0, 2).reshape(weight.shape[1], -1)
    return linear(x, flat, bias.flatten()).unflatten(-1, bias.shape)


class Attention(nn.Module):
    """One layer's heads. Parameters and points carry TransformerLens' names and shapes.

    ``W_K``, ``W_V``, ``hook_k`` and ``hook_v`` have as many heads as there are of keys and values; query head ``h``
    reads number ``h // group``.
    """

    b_Q: Tensor
    b_K: Tensor
    b_V: Tensor
    b_O: Tensor
    sinks: Tensor | None

    def __init__(self, config: TransformerConfig, layer: int = 0):
        super().__init__()
        queries, keys = config.n_heads, config.kv_heads
        self.group = queries // keys
        # In memory as [d_model head d_head], so that all heads' projections are one matrix product, without a copy.
        self.W_Q, self.W_K, self.W_V = (
            nn.Parameter(torch.empty(config.d_model, n, config.d_head).permute(1, 0, 2)) for n in (queries, keys, keys)
        )
        self.W_O = nn.Parameter(torch.empty(queries, config.d_head, config.d_model))
        for name, n in (("b_Q", queries), ("b_K", keys), ("b_V", keys)):
            add_bias(self, name, (n, config.d_head), present="qkv" in config.biases)
        add_bias(self, "b_O", (config.d_model,), present="o" in config.biases)
        rotary = config.positions == "rotary"
        self.q_norm, self.k_norm = make_qk_norm(config, queries), make_qk_norm(config, keys)
        self.turn, self.cap = make_rotary(config, layer), config.score_cap
        self.window = config.window if config.is_local(layer) else None
        self.register_parameter("sinks", nn.Parameter(torch.zeros(queries)) if config.sinks else None)
        self.score = make_scores(config)
        self.offsets = make_offsets(config, self.score.scale)
        self.hook_q, self.hook_k, self.hook_v = HookPoint(), HookPoint(), HookPoint()
        self.hook_rot_q, self.hook_rot_k = ((HookPoint() if rotary else nn.Identity()) for _ in "qk")
        self.hook_attn_scores, self.hook_pattern = HookPoint(), HookPoint()
        self.hook_z, self.hook_result = HookPoint(), HookPoint()

    def forward(
        self, inputs: tuple[HeadInput, KeyInput, KeyInput], places: Places, cache: LayerCache | None = None
    ) -> Residual:
        """What the heads write together, from what queries, keys and values read; `cache` is extended in place."""
        q = self.hook_q(project(inputs[0], self.W_Q, self.b_Q))
        k = self.hook_k(project(inputs[1], self.W_K, self.b_K))
        v = self.hook_v(project(inputs[2], self.W_V, self.b_V))
        q = self.hook_rot_q(places.turned(self.turn, self.q_norm(q)))
        k = self.hook_rot_k(places.turned(self.turn, self.k_norm(k), keys=True))
        if cache is not None:
            if cache:
                k, v = (torch.cat(each, dim=1) for each in zip(cache, (k, v), strict=True))
            cache[:] = k, v
        listened = self.hook_attn_scores.listened or self.hook_pattern.listened
        attend = self._explicit if listened or not self.fused else self.mixed
        return self._write(self.hook_z(places.attended(attend, q, k, v)))

    @property
    def fused(self) -> bool:
        """Whether PyTorch's own attention computes what this one does."""
        return self.score.fused and self.offsets.fused and self.cap is None and self.sinks is None

    def mixed(self, q: HeadVectors, k: KeyVectors, v: KeyVectors, places: Places) -> HeadVectors:
        """``z`` without its pattern, by PyTorch's own attention where that computes it. `q` and `k` are turned."""
        if not self.fused:
            return self.mix(self.pattern(self.scores(q, k, places)), v, places)
        places = places.within(self.window)
        # Other devices' fastest kernels may not know groups; in 16 bits, gradients would be summed over a group.
        grouped = self.group > 1 and q.device.type == "cpu" and q.dtype in (torch.float32, torch.float64)
        each = (lambda x: x.transpose(1, 2)) if grouped else self._by_query_head
        q, k, v = q.transpose(1, 2), each(k), each(v)
        mask = self.offsets.fused_mask(places, q)
        causal = mask is None and places.causal
        z = F.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=causal, scale=self.score.scale, enable_gqa=grouped
        )
        return z.transpose(1, 2)

    def scores(self, q: HeadVectors, k: KeyVectors, places: Places) -> AttentionScores:
        """What the pattern is the softmax of; minus infinity where a query may not look. `q` and `k` are turned.

        In at least 32 bits, as in TransformerLens: in bfloat16, a score of 60 is off by up to an eighth.
        """
        wide = torch.promote_types(q.dtype, torch.float32)
        queries, keys = q.transpose(1, 2).to(wide), self._by_query_head(k).to(wide)
        scores = self.offsets.to_scores(self.score(queries, keys), queries, places)
        return soft_cap(scores, self.cap).masked_fill(~places.within(self.window).allowed(), -torch.inf)

    def pattern(self, scores: AttentionScores) -> AttentionScores:
        """The softmax of the scores, in the model's dtype; with sinks, less their share."""
        if self.sinks is None:
            return scores.softmax(-1).to(self.W_O.dtype)
        sinks = self.sinks[:, None, None].expand(len(scores), -1, scores.shape[2], 1)
        return torch.cat([scores, sinks], dim=-1).softmax(-1)[..., :-1].to(self.W_O.dtype)

    def mix(self, pattern: AttentionScores, v: KeyVectors, places: Places) -> HeadVectors:
        """``z``: the values' means, weighted by the pattern."""
        return self.offsets.to_z(pattern @ self._by_query_head(v), pattern, places).transpose(1, 2)

    def _explicit(self, q: HeadVectors, k: KeyVectors, v: KeyVectors, places: Places) -> HeadVectors:
        scores = self.hook_attn_scores(self.scores(q, k, places))
        return self.mix(self.hook_pattern(self.pattern(scores)), v, places)

    def _by_query_head(self, x: KeyVectors) -> Keys:
        """Keys or values, each as often as there are query heads that read it."""
        x = x.transpose(1, 2)
        return x if self.group == 1 else x.repeat_interleave(self.group, dim=1)

    def _write(self, z: HeadVectors) -> Residual:
        if self.hook_result.listened:
            return self.hook_result(torch.einsum("bphd,hdm->bphm", z, self.W_O)).sum(-2) + self.b_O
        return self.written(z)

    def written(self, z: Float[Tensor, "*rows head d_head"]) -> Rows:
        """What the heads write together of `z`."""
        return linear(z.flatten(-2), self.W_O.flatten(0, 1), self.b_O)
