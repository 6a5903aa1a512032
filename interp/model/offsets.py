"""Positions inside attention: queries and keys that turn, and scores that depend on how far apart two tokens are.

==============  =============================================================================================
``rotary``      the components of q and k turn, pair by pair, by an angle that grows with the position, so that
                their product depends on the distance alone (Su et al. 2021, equation 34)
``alibi``       each head's scores fall by a slope of its own with the distance (Press et al. 2022)
``relative``    a key, and a value, gets a learned vector for its distance on top, clipped at both ends
                (Shaw et al. 2018, equations 3 and 4)
==============  =============================================================================================
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from interp.model.config import TransformerConfig
from interp.model.places import Places
from interp.model.scores import AttentionScores, Queries

Turned = Float[Tensor, "batch pos head d_head"]
HeadsFirst = Float[Tensor, "batch head query_pos d_head"]


class Rotary(nn.Module):
    """Turns component ``i`` with component ``i + rotary_dim / 2`` by ``position * base ** (-2 i / rotary_dim)``.

    This pairing is GPT-NeoX' and Hugging Face's; the components from ``rotary_dim`` on stay.
    """

    def __init__(self, dim: int, base: float):
        super().__init__()
        self.dim, self.base = dim, base

    def forward(self, x: Turned, positions: Int[Tensor, "#batch pos"]) -> Turned:
        # In 32 bits as in transformers, where the weights were trained; in 64 for models in 64.
        wide = torch.promote_types(x.dtype, torch.float32)
        exponents = torch.arange(0, self.dim, 2, device=x.device).to(wide) / self.dim
        angles = positions.to(wide)[..., None] * (1.0 / self.base**exponents)
        cos, sin = (each.to(x.dtype)[:, :, None] for each in (angles.cos(), angles.sin()))
        first, second, rest = x.split([self.dim // 2, self.dim // 2, x.shape[-1] - self.dim], dim=-1)
        return torch.cat([first * cos - second * sin, second * cos + first * sin, rest], dim=-1)


class NoTurn(nn.Module):
    """Leaves queries and keys as they are."""

    def forward(self, x: Turned, positions: Int[Tensor, "#batch pos"]) -> Turned:
        return x


class NoOffsets(nn.Module):
    """Scores do not know of distances. ``fused`` says that PyTorch's own attention can do the rest."""

    fused = True

    def fused_mask(self, places: Places, like: Tensor) -> Tensor | None:
        """The mask for PyTorch's own attention; None where its ``is_causal`` says the same."""
        return places.mask

    def to_scores(self, scores: AttentionScores, q: Queries, places: Places) -> AttentionScores:
        """The scores with what the distances add."""
        return scores

    def to_z(self, z: HeadsFirst, pattern: AttentionScores, places: Places) -> HeadsFirst:
        """The values' means with what the distances add."""
        return z


class Alibi(NoOffsets):
    """``score - slope * distance``, the slopes ``2 ** (-8 h / n_heads)`` for h from 1.

    For numbers of heads that are no power of 2, the slopes of the next lower power, then every other one of the next
    higher (Press et al. 2022, their code). In a bidirectional model the distance is taken without its sign.
    """

    def __init__(self, n_heads: int):
        super().__init__()
        self.n_heads = n_heads

    def slopes(self) -> Float[Tensor, " head"]:
        """By head, how fast its scores fall; in 64 bits."""
        power = 2 ** math.floor(math.log2(self.n_heads))
        return torch.cat([_slopes(power), _slopes(2 * power)[::2][: self.n_heads - power]])

    def _bias(self, places: Places, like: Tensor) -> AttentionScores:
        slopes = self.slopes().to(like.device)[:, None, None]
        return -(slopes * places.distances().abs()[:, None]).to(like.dtype)

    def fused_mask(self, places: Places, like: Tensor) -> Tensor:
        """The offsets where a query may look, else minus infinity."""
        return self._bias(places, like).masked_fill(~places.allowed(), -torch.inf)

    def to_scores(self, scores: AttentionScores, q: Queries, places: Places) -> AttentionScores:
        """The scores with what the distances add."""
        return scores + self._bias(places, scores)


class Relative(NoOffsets):
    """``q . (k + rel_K[distance]) * scale`` and ``pattern (v + rel_V[distance])``; the vectors are shared by the heads.

    ``rel_K`` and ``rel_V`` are ``[2 relative_distance + 1, d_head]``, from the farthest behind to the farthest before.
    """

    fused = False

    def __init__(self, config: TransformerConfig, scale: float):
        super().__init__()
        self.most, self.scale = config.relative_distance, scale
        shape = (2 * self.most + 1, config.d_head)
        self.rel_K, self.rel_V = nn.Parameter(torch.empty(shape)), nn.Parameter(torch.empty(shape))

    def _index(self, places: Places) -> Int[Tensor, "#batch query_pos key_pos"]:
        return places.distances().clamp(-self.most, self.most) + self.most

    def to_scores(self, scores: AttentionScores, q: Queries, places: Places) -> AttentionScores:
        """The scores with what the distances add."""
        index = self._index(places)[:, None].expand(len(scores), scores.shape[1], -1, -1)
        return scores + (q * self.scale @ self.rel_K.T).gather(-1, index)

    def to_z(self, z: HeadsFirst, pattern: AttentionScores, places: Places) -> HeadsFirst:
        """The values' means with what the distances add."""
        index = self._index(places)[:, None].expand(len(pattern), pattern.shape[1], -1, -1)
        by_distance = pattern.new_zeros(*pattern.shape[:-1], len(self.rel_V)).scatter_add(-1, index, pattern)
        return z + by_distance @ self.rel_V


def _slopes(n: int) -> Float[Tensor, " head"]:
    return 2 ** (-8 * torch.arange(1, n + 1, dtype=torch.float64, device="cpu") / n)


def make_turn(config: TransformerConfig) -> Rotary | NoTurn:
    """What is done to queries and keys before they are compared."""
    if config.positions != "rotary":
        return NoTurn()
    return Rotary(config.d_head if config.rotary_dim is None else config.rotary_dim, config.rotary_base)


def make_offsets(config: TransformerConfig, scale: float) -> NoOffsets:
    """What distances add to scores that are products times `scale`."""
    if config.positions == "relative":
        return Relative(config, scale)
    return Alibi(config.n_heads) if config.positions == "alibi" else NoOffsets()
