"""Attention of packed tokens: a block's queries look at the base run's keys and values, its own, and its owners'.

1. Queries, keys and values of the tokens that are held; of all others the base run's.
2. What is held can change every later position, in a bidirectional model every position: from here on a block holds all
   of them.
3. One fused attention a block; where a pattern is replaced, the explicit one.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from interp.interventions.engine.base import BaseRun
from interp.interventions.engine.edits import Editor
from interp.interventions.engine.pack import Block, Pack
from interp.interventions.engine.products import linear
from interp.model.attention import Attention
from interp.model.positions import Places
from interp.shapes import HeadVectors

HeadTokens = Float[Tensor, "_ head d_head"]


class Projected(NamedTuple):
    """Queries, keys and values of the tokens that are held."""

    q: HeadTokens
    k: HeadTokens
    v: HeadTokens


def project(attention: Attention, y: Float[Tensor, "_ d_model"]) -> Projected:
    """Queries, keys and values of normalised tokens."""
    weights = ((attention.W_Q, attention.b_Q), (attention.W_K, attention.b_K), (attention.W_V, attention.b_V))
    flat = ((weight.permute(1, 0, 2).reshape(weight.shape[1], -1), bias) for weight, bias in weights)
    return Projected(*(linear(y, weight, bias.flatten()).unflatten(1, bias.shape) for weight, bias in flat))


class BlockAttention:
    """Attention of one layer, block by block."""

    def __init__(self, base: BaseRun, layer: int, pack: Pack, editor: Editor, owner: np.ndarray | None):
        self._base, self._layer, self._pack, self._editor, self._owner = base, layer, pack, editor, owner
        like = base.at("q", layer)
        self._attention, self._causal = list(base.model.blocks)[layer].attn, base.model.config.causal
        self._everywhere = torch.arange(like.shape[1], device=like.device)[None]
        self._mask = torch.ones(2 * (like.shape[1],), dtype=torch.bool, device=like.device).tril()[None, None]
        self._patterns = [(each, keys) for each, keys in editor.patterns(layer, like)]
        self._replaced = {one for each, _ in self._patterns for one in each.trajectories.tolist()}

    def run(
        self, x: Float[Tensor, "_ d_model"], projected: Projected, queries: range
    ) -> tuple[Float[Tensor, "_ d_model"], HeadTokens]:
        """The residual stream before, and ``z`` of, all positions among `queries` that can change.

        The pack then holds these positions.
        """
        streams, zs, blocks = [], [], []
        for block, span in self._pack.spans():
            # Where attention looks forward, too, every position can change.
            start = max(block.first, block.own) if self._causal else 0
            positions = tuple(each for each in queries if each >= start)
            own = (replace(block, positions=positions), block, span)
            if positions:
                streams.append(self._filled("resid_pre", x[span], *own[:2]).flatten(0, 1))
                zs.append(self._attend(*own, projected).flatten(0, 1))
            blocks.append(own[0])
        self._pack.arrange(blocks)
        if not streams:
            return x[:0], projected.q[:0]
        return torch.cat(streams), torch.cat(zs)

    def _filled(self, name: str, held: Float[Tensor, "_ ..."], wanted: Block, block: Block) -> Tensor:
        """``[trajectory pos ...]`` at the wanted positions: what is held, and else the base run's."""
        held = held.unflatten(0, (block.n, len(block.positions)))
        if wanted.positions == block.positions:
            return held
        # Both the wanted positions and most held ones follow one another: slices, far cheaper than index lists.
        first, stop = wanted.positions[0], wanted.positions[-1] + 1
        full = self._base.at(name, self._layer)[:, first:stop].index_select(0, wanted.rows)
        kept = [number for number, each in enumerate(block.positions) if first <= each < stop]
        full[:, _slice([block.positions[each] - first for each in kept])] = held[:, _slice(kept)]
        return full

    def _attend(self, wanted: Block, block: Block, span: slice, projected: Projected) -> HeadVectors:
        attention, q = self._attention, self._filled("q", projected.q[span], wanted, block)
        n_keys = wanted.positions[-1] + 1 if self._causal else self._everywhere.shape[1]
        everywhere = replace(block, positions=tuple(range(n_keys)))
        k, v = (
            self._with_owners(self._filled(name, new[span], everywhere, block), new, block, n_keys)
            for name, new in (("k", projected.k), ("v", projected.v))
        )
        places = self._places(wanted, n_keys)
        q, k = attention.turn(q, places.query), attention.turn(k, places.key)
        if self._replaced.isdisjoint(block.trajectories.tolist()):
            return attention.mixed(q, k, v, places)
        pattern = self._replace_pattern(attention.scores(q, k, places).softmax(-1), wanted)
        return attention.mix(pattern, v, places)

    def _places(self, wanted: Block, n_keys: int) -> Places:
        """Where the wanted queries and all keys stand."""
        queries = slice(wanted.positions[0], wanted.positions[-1] + 1)
        mask = self._mask[:, :, queries, :n_keys] if self._causal else None
        return Places(self._everywhere[:, queries], self._everywhere[:, :n_keys], mask, causal=False)

    def _with_owners(self, full: Tensor, new: HeadTokens, block: Block, n_keys: int) -> Tensor:
        """`full` with what other trajectories hold in this block's stead."""
        shared = range(block.first, min(block.own, n_keys))
        if self._owner is None or not shared:
            return full
        trajectories = self._owner[block.trajectories][:, shared.start : shared.stop]
        places = self._pack.place[trajectories, np.arange(shared.start, shared.stop)]
        held = np.nonzero(places >= 0)
        if not len(held[0]):
            return full
        index = tuple(torch.from_numpy(each).to(full.device) for each in (held[0], held[1] + shared.start))
        full[index] = new[torch.from_numpy(places[held]).to(full.device)]
        return full

    def _replace_pattern(self, pattern: Float[Tensor, "trajectory head pos key_pos"], wanted: Block) -> Tensor:
        local = {int(each): number for number, each in enumerate(wanted.trajectories)}
        places = {position: number for number, position in enumerate(wanted.positions)}
        by_token = pattern.transpose(1, 2)  # a view
        for entries, keys in self._patterns:
            mine = _among(entries.trajectories, local) & _among(entries.positions, places)
            if not bool(mine.any()):
                continue
            chosen = entries.take(mine)
            index: tuple[Tensor, ...] = (
                _numbers(chosen.trajectories, local),
                _numbers(chosen.positions, places),
                *((chosen.components,) if len(chosen.components) else ()),
            )
            old = by_token[index]
            seen = slice(None, old.shape[-1])
            new = old.clone()
            put = slice(None) if keys is None else [each for each in keys if each < old.shape[-1]]
            values = chosen.values[..., seen] if chosen.values.shape[-1] > 1 else chosen.values
            changed = chosen.replacement.new(old, values).expand_as(old)
            new[..., put] = changed[..., put]
            self._editor.note(chosen, old, new)
            by_token[index] = new
        return pattern


def _slice(numbers: list[int]) -> slice | list[int]:
    """The numbers as a slice, where they follow one another."""
    first, stop = (numbers[0], numbers[-1] + 1) if numbers else (0, 0)
    return slice(first, stop) if stop - first == len(numbers) else numbers


def _among(numbers: Tensor, known: dict[int, int]) -> Bool[Tensor, " entry"]:
    return torch.isin(numbers, torch.tensor(list(known), device=numbers.device))


def _numbers(numbers: Tensor, known: dict[int, int]) -> Tensor:
    return torch.tensor([known[each] for each in numbers.tolist()], device=numbers.device)
