"""Which tokens are being computed, and where do they stand? The ragged rest of many trajectories, packed in one matrix.

Every trajectory holds the positions where its residual stream may differ from the base run's; all others are the base
run's. Trajectories that hold the same positions form a block; blocks lie one behind the other in ``[token ...]``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

BaseTokens = Callable[[Tensor, Tensor], Float[Tensor, "_ ..."]]
"""Gives the base run's activations for rows and positions."""


@dataclass(frozen=True)
class Block:
    """Trajectories that hold the same positions.

    Attributes:
        trajectories: Their numbers in the chunk.
        rows: Their rows in the batch.
        positions: Which they hold, in order.
        own: The first position that is theirs to compute.
        first: The first position that may differ from the base run, be it their own or their owner's.
    """

    trajectories: Int[np.ndarray, " trajectory"]
    rows: Int[Tensor, " trajectory"]
    positions: tuple[int, ...]
    own: int
    first: int

    @property
    def n(self) -> int:
        """How many trajectories."""
        return len(self.trajectories)

    @property
    def n_tokens(self) -> int:
        """How many tokens they hold."""
        return self.n * len(self.positions)

    def index(self) -> tuple[Int[Tensor, " _"], Int[Tensor, " _"]]:
        """Row and position of every token."""
        positions = torch.tensor(self.positions, dtype=torch.long, device=self.rows.device)
        return self.rows.repeat_interleave(len(positions)), positions.repeat(self.n)


@dataclass
class Pack:
    """Blocks, and where every token of every trajectory stands.

    Attributes:
        blocks: In the order of their tokens.
        place: By trajectory and position, the token's number; -1 where the trajectory does not hold it.
    """

    blocks: list[Block]
    place: Int[np.ndarray, "trajectory pos"]

    @classmethod
    def empty(cls, n_trajectories: int, length: int) -> "Pack":
        """Nothing is held."""
        return cls([], np.full((n_trajectories, length), -1, dtype=np.int64))

    def spans(self) -> list[tuple[Block, slice]]:
        """Every block with the place of its tokens."""
        found, start = [], 0
        for block in self.blocks:
            found.append((block, slice(start, start + block.n_tokens)))
            start += block.n_tokens
        return found

    def arrange(self, blocks: Sequence[Block]) -> None:
        """Hold these blocks, in this order."""
        self.blocks = [block for block in blocks if block.n]
        self.place.fill(-1)
        for block, span in self.spans():
            tokens = np.arange(span.start, span.stop).reshape(block.n, len(block.positions))
            self.place[block.trajectories[:, None], np.array(block.positions, dtype=np.int64)] = tokens


def join(
    pack: Pack, wanted: Sequence[Block], tensors: Sequence[Tensor], base: Sequence[BaseTokens]
) -> list[Float[Tensor, "_ ..."]]:
    """Hold what `wanted` holds, too: with the base run's values where nothing was held.

    Args:
        pack: Changed in place.
        wanted: Blocks of trajectories that hold nothing yet, or are held and need more positions.
        tensors: ``[token ...]``, one or several that belong together.
        base: For each, the base run's values.

    Returns:
        The tensors with the new tokens.
    """
    held = {int(each) for block in pack.blocks for each in block.trajectories} if pack.blocks else set()
    new = [block for block in wanted if int(block.trajectories[0]) not in held]
    for block in wanted:
        if int(block.trajectories[0]) in held:
            tensors = _extend(pack, block, tensors, base)
    blocks = [*pack.blocks, *_merged(new)]
    index = [block.index() for block in blocks[len(pack.blocks) :]]
    if index:
        rows, positions = (torch.cat(each) for each in zip(*index, strict=True))
        tensors = [torch.cat([old, give(rows, positions)]) for old, give in zip(tensors, base, strict=True)]
    pack.arrange(blocks)
    return list(tensors)


def _merged(blocks: Sequence[Block]) -> list[Block]:
    """Blocks that hold the same positions as one."""
    alike: dict[tuple[tuple[int, ...], int, int], list[Block]] = {}
    for block in blocks:
        alike.setdefault((block.positions, block.own, block.first), []).append(block)
    return [
        replace(
            same[0],
            trajectories=np.concatenate([each.trajectories for each in same]),
            rows=torch.cat([each.rows for each in same]),
        )
        for same in alike.values()
    ]


def _extend(pack: Pack, wanted: Block, tensors: Sequence[Tensor], base: Sequence[BaseTokens]) -> list[Tensor]:
    """Let the blocks that `wanted`'s trajectories stand in hold its positions, too."""
    chosen = set(wanted.trajectories.tolist())
    blocks: list[Block] = []
    index: list[tuple[Block, slice, list[int] | None]] = []
    for block, span in pack.spans():
        missing = set(wanted.positions) - set(block.positions)
        touched = not chosen.isdisjoint(block.trajectories.tolist())
        if not touched or (not missing and wanted.first >= block.first):
            blocks.append(block)
            index.append((block, span, None))
            continue
        larger = replace(
            block,
            positions=tuple(sorted({*block.positions, *wanted.positions})),
            first=min(block.first, wanted.first),
        )
        blocks.append(larger)
        index.append((larger, span, [larger.positions.index(each) for each in block.positions]))
    grown = [
        torch.cat([_grown(old[span], block, places, give) for block, span, places in index])
        for old, give in zip(tensors, base, strict=True)
    ]
    pack.arrange(blocks)
    return grown


def _grown(old: Tensor, block: Block, places: list[int] | None, base: BaseTokens) -> Tensor:
    if places is None:
        return old
    new = base(*block.index()).clone().unflatten(0, (block.n, len(block.positions)))
    new[:, places] = old.unflatten(0, (block.n, len(places)))
    return new.flatten(0, 1)


def keep(pack: Pack, positions: range, tensors: Sequence[Tensor]) -> list[Float[Tensor, "_ ..."]]:
    """Hold only `positions`."""
    blocks, chosen = [], []
    for block, span in pack.spans():
        inside = [number for number, each in enumerate(block.positions) if each in positions]
        tokens = torch.arange(span.start, span.stop).reshape(block.n, len(block.positions))[:, inside]
        chosen.append(tokens.flatten())
        blocks.append(replace(block, positions=tuple(block.positions[each] for each in inside)))
    if all(len(each.positions) == len(before.positions) for each, before in zip(blocks, pack.blocks, strict=True)):
        return list(tensors)
    pack.arrange(blocks)
    index = torch.cat(chosen)
    return [each[index.to(each.device)] for each in tensors]
