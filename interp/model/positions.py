"""Positions in attention: where queries and keys stand, who may look at whom, and how distances change the scores.

==============  =============================================================================================
``rotary``      the components of q and k turn, pair by pair, by an angle that grows with the position, so that
                their product depends on the distance alone (Su et al. 2021, equation 34)
``alibi``       each head's scores fall by a slope of its own with the distance (Press et al. 2022)
``relative``    a key, and a value, gets a learned vector for its distance on top, clipped at both ends
                (Shaw et al. 2018, equations 3 and 4)
==============  =============================================================================================
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from interp.model.config import TransformerConfig
from interp.model.devices import sent
from interp.shapes import Tokens

SeenMask = Bool[Tensor, "batch key_pos"]
Mask = Bool[Tensor, "#batch 1 query_pos key_pos"]
Turned = Float[Tensor, "batch pos head d_head"]
KeyVectors = Float[Tensor, "batch key_pos kv_head d_head"]
Queries = Float[Tensor, "batch head query_pos d_head"]
AttentionScores = Float[Tensor, "batch head query_pos key_pos"]


Angles = Float[Tensor, "#batch pos 1 _"]
"""By which vectors turn: a cosine for each component, 1 for those that stay, and then a sine for each pair."""
Attend = Callable[[Turned, KeyVectors, KeyVectors, "Places"], Turned]
"""Gives ``z`` of turned queries and keys, and of values, at their places."""


@dataclass(frozen=True)
class Places:
    """The queries and keys of one attention."""

    # the position of each query in its prompt, padding not counted
    query: Int[Tensor, "#batch query_pos"]
    # the same of each key
    key: Int[Tensor, "#batch key_pos"]
    mask: Mask | None  # true where a query may look; None where `causal` says all
    causal: bool  # without a mask: whether each query looks at itself and those before, or at all
    # What turns vectors there, which is the same in all layers that turn alike.
    _angles: dict[object, Angles] = field(default_factory=dict, kw_only=True, repr=False, compare=False)

    def turned(self, rotary: "Rotary", x: Turned, *, keys: bool = False) -> Turned:
        """Queries, or the last of the keys, turned to their places."""
        own = keys and not (self.key is self.query and x.shape[1] == self.key.shape[1])
        return rotary.by(self.angles(rotary, x, x.shape[1] if own else 0), x) if rotary.dim else x

    def angles(self, rotary: "Rotary", like: Tensor, n_keys: int = 0) -> Angles:
        """By which queries, or so many keys at the end, turn, of such vectors."""
        name = rotary.told, like.dtype, like.shape[-1], n_keys
        if name not in self._angles:
            self._angles[name] = rotary.angles(self.key[:, -n_keys:] if n_keys else self.query, like)
        return self._angles[name]

    def allowed(self) -> Mask:
        """True where a query may look."""
        if self.mask is not None:
            return self.mask
        shape = (1, 1, self.query.shape[1], self.key.shape[1])
        everywhere = torch.ones(shape, dtype=torch.bool, device=self.query.device)
        return everywhere.tril() if self.causal else everywhere

    def part(self, queries: slice, n_keys: int) -> "Places":
        """Those of some queries and of the first keys."""
        mask = None if self.mask is None else self.mask[:, :, queries, :n_keys]
        return Places(self.query[:, queries], self.key[:, :n_keys], mask, self.causal)

    def within(self, window: int | None) -> "Places":
        """The same where a query sees no more than `window` positions, itself included; None for all."""
        if window is None or self.key.shape[1] <= window:
            return self
        return replace(self, mask=self.allowed() & (self.distances() < window)[:, None])

    def distances(self) -> Int[Tensor, "#batch query_pos key_pos"]:
        """How far before its query each key stands; negative for keys behind."""
        return self.query[:, :, None] - self.key[:, None, :]

    def attended(self, attend: Attend, q: Turned, k: KeyVectors, v: KeyVectors) -> Turned:
        """``z`` of the queries, keys and values at these places."""
        return attend(q, k, v, self)


@dataclass(frozen=True)
class SharedPlaces(Places):
    """Places of rows in which tokens after equal beginnings stand once, in one row of all; attention looks along each.

    Only for causal attention, where a token's activations depend on nothing behind it.
    """

    rows: Places
    # where each token of the rows stands in the one row
    at: Int[Tensor, "batch pos"]
    # of each token of the one row, its number among those of the rows
    number: Int[Tensor, " token"]

    @classmethod
    def of(cls, tokens: Tokens) -> "SharedPlaces":
        """Of rows without padding, on the CPU."""
        n_rows, length = tokens.shape
        at, numbers, n = np.empty((n_rows, length), dtype=np.int64), list[np.ndarray](), 0
        same = np.zeros(n_rows, dtype=np.int64)  # equal for rows that are alike up to here
        for pos, column in enumerate(tokens.numpy().T):
            _, first, same = np.unique(same * (column.max() + 1) + column, return_index=True, return_inverse=True)
            at[:, pos] = n + same
            numbers.append(first * length + pos)
            n += len(first)
        number = torch.from_numpy(np.concatenate(numbers))
        stand = (number % length)[None]
        rows = places_of(torch.ones_like(tokens, dtype=torch.bool), length, causal=True)
        return cls(stand, stand, None, True, rows, torch.from_numpy(at), number)

    def once(self, x: Shaped[Tensor, "batch pos ..."]) -> Shaped[Tensor, "1 token ..."]:
        """The rows' activations in the one row."""
        return x.flatten(0, 1).index_select(0, self.number)[None]

    def by_row(self, x: Shaped[Tensor, "_ _ ..."]) -> Shaped[Tensor, "batch _ ..."]:
        """The one row's activations row by row; what has rows already, such as a pattern, is left as it is."""
        if x.shape[:2] != (1, len(self.number)):
            return x
        return x[0].index_select(0, self.at.flatten()).unflatten(0, self.at.shape)

    def attended(self, attend: Attend, q: Turned, k: KeyVectors, v: KeyVectors) -> Turned:
        """``z`` of the one row's tokens."""
        return self.once(attend(self.by_row(q), self.by_row(k), self.by_row(v), self.rows))


def looks_back_only(model: Any) -> bool:
    """Whether the attention of `model`, ours or one that follows TransformerLens' protocol, is causal."""
    own = getattr(getattr(model, "config", None), "causal", None)
    return getattr(model.cfg, "attention_dir", "causal") == "causal" if own is None else bool(own)


def sight(model: Any) -> tuple[float, ...]:
    """By layer, how many positions beside its own a query can see: infinity without a window, or where none is known.

    `model` is ours, or follows TransformerLens' protocol.
    """
    is_local = getattr(getattr(model, "config", None), "is_local", lambda _layer: False)
    return tuple(model.config.window - 1.0 if is_local(each) else math.inf for each in range(model.cfg.n_layers))


def positions_of(seen: SeenMask) -> Int[Tensor, "batch key_pos"]:
    """Where each token stands in its prompt, padding not counted."""
    return (seen.long().cumsum(-1) - 1).clamp(min=0)


def places_of(seen: SeenMask, n_new: int, *, causal: bool, whole: bool | None = None) -> Places:
    """The places of the last `n_new` of the tokens that are seen; `whole` is whether none is padding, if that is known.

    A padding position may look at itself, so that its (unused) softmax stays finite.
    """
    key, n = positions_of(seen), seen.shape[1]
    query = key if n == n_new else key[:, n - n_new :]
    if (bool(seen.all()) if whole is None else whole) and (n == n_new or not causal):
        return Places(query, key, None, causal)
    place = torch.arange(n, device=seen.device)
    own = place[n - n_new :, None]
    visible = seen[:, None, :] & (place <= own) if causal else seen[:, None, :].expand(-1, n_new, -1)
    return Places(query, key, (visible | (place == own))[:, None], causal)


class Rotary(nn.Module):
    """Turns component ``i`` with component ``i + rotary_dim / 2`` by ``position * base ** (-2 i / rotary_dim)``.

    This pairing is GPT-NeoX' and Hugging Face's; the components from ``rotary_dim`` on stay: all of
    them, where it is 0. Other `frequencies`, radians a position by pair, may be given; what turns is multiplied by
    `magnitude`.
    """

    def __init__(self, dim: int, base: float, frequencies: tuple[float, ...] | None = None, magnitude: float = 1.0):
        super().__init__()
        self.dim, self.base, self.frequencies, self.magnitude = dim, base, frequencies, magnitude

    @property
    def told(self) -> tuple[object, ...]:
        """Equal for those that turn alike."""
        return self.dim, self.base, self.frequencies, self.magnitude

    def forward(self, x: Turned, positions: Int[Tensor, "#batch pos"]) -> Turned:
        return self.by(self.angles(positions, x), x) if self.dim else x

    def angles(self, positions: Int[Tensor, "#batch pos"], like: Tensor) -> Angles:
        """By which such vectors turn at these positions."""
        # In 32 bits as in transformers, where the weights were trained; in 64 for models in 64.
        wide, device = torch.promote_types(like.dtype, torch.float32), positions.device
        if self.frequencies is None:
            frequencies = 1.0 / self.base ** (torch.arange(0, self.dim, 2, device=device).to(wide) / self.dim)
        else:
            frequencies = torch.tensor(self.frequencies, dtype=wide, device=device)
        angles = positions.to(wide)[..., None] * frequencies
        cos, sin = angles.cos() * self.magnitude, angles.sin() * self.magnitude
        stays = cos.new_ones(*cos.shape[:2], like.shape[-1] - self.dim)
        return torch.cat([cos, cos, stays, sin], dim=-1).to(like.dtype)[:, :, None]

    def by(self, angles: Angles, x: Turned) -> Turned:
        """`x`, turned by these angles."""
        half, sin = self.dim // 2, angles[..., x.shape[-1] :]
        # In place, of what was just made: to touch new memory takes longer than to multiply. Products are rounded
        # before they are added, as in transformers.
        turned = x * angles[..., : x.shape[-1]]
        turned[..., :half].sub_(x[..., half : self.dim] * sin)
        turned[..., half : self.dim].add_(x[..., :half] * sin)
        return turned


class NoOffsets(nn.Module):
    """Scores do not depend on distances. ``fused`` says that PyTorch's own attention can do the rest."""

    fused = True

    def fused_mask(self, places: Places, like: Tensor) -> Tensor | None:
        """The mask for PyTorch's own attention; None where its ``is_causal`` says the same."""
        return places.mask

    def to_scores(self, scores: AttentionScores, q: Queries, places: Places) -> AttentionScores:
        """The scores with what the distances add."""
        return scores

    def to_z(self, z: Queries, pattern: AttentionScores, places: Places) -> Queries:
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
        slopes = sent(self.slopes().numpy(), like.device)[:, None, None]
        return -(slopes * places.distances().abs()[:, None]).to(like.dtype)

    def fused_mask(self, places: Places, like: Tensor) -> Tensor:
        """The offsets where a query may look, else minus infinity."""
        return self._bias(places, like).masked_fill(~places.allowed(), -torch.inf)

    def to_scores(self, scores: AttentionScores, q: Queries, places: Places) -> AttentionScores:
        """The scores less the slope times the distance."""
        return scores + self._bias(places, scores)


def _slopes(n: int) -> Float[Tensor, " head"]:
    return 2 ** (-8 * torch.arange(1, n + 1, dtype=torch.float64, device="cpu") / n)


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

    def _index(self, places: Places, like: AttentionScores) -> Int[Tensor, "batch head query_pos key_pos"]:
        index = places.distances().clamp(-self.most, self.most) + self.most
        return index[:, None].expand(len(like), like.shape[1], -1, -1)

    def to_scores(self, scores: AttentionScores, q: Queries, places: Places) -> AttentionScores:
        """The scores with the queries' products with the distances' vectors."""
        return scores + (q * self.scale @ self.rel_K.T.to(q.dtype)).gather(-1, self._index(places, scores))

    def to_z(self, z: Queries, pattern: AttentionScores, places: Places) -> Queries:
        """The values' means with those of the distances' vectors."""
        by_distance = pattern.new_zeros(*pattern.shape[:-1], len(self.rel_V))
        return z + by_distance.scatter_add(-1, self._index(places, pattern), pattern) @ self.rel_V


def make_rotary(config: TransformerConfig, layer: int) -> Rotary:
    """How a layer's queries and keys turn; of 0 components, where positions are known otherwise."""
    if config.positions != "rotary":
        return Rotary(0, config.rotary_base)
    turned = config.rotary_dim or config.d_head
    if config.is_local(layer) and config.local_rotary_base is not None:
        return Rotary(turned, config.local_rotary_base)
    return Rotary(turned, config.rotary_base, config.rotary_frequencies, config.rotary_magnitude)


def make_offsets(config: TransformerConfig, scale: float) -> NoOffsets:
    """What distances add to scores that are products times `scale`."""
    if config.positions == "relative":
        return Relative(config, scale)
    return Alibi(config.n_heads) if config.positions == "alibi" else NoOffsets()
