"""A chunk: cells that are run together on a batch, and the tokens of their trajectories, packed in one matrix.

Every trajectory holds the positions where its residual stream may differ from the base run's; all others are the base
run's. Trajectories that hold the same positions form a block; blocks lie one behind the other in ``[token ...]``.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from interp.interventions.engine.plan import STAGE_OF, Classifier, Interventions, RowClass
from interp.interventions.intervention import Intervention
from interp.model.sites import Site

BaseTokens = Callable[[Tensor, Tensor], Float[Tensor, "_ ..."]]
"""Gives the base run's activations for rows and positions."""


@dataclass(frozen=True)
class Block:
    """Trajectories that hold the same positions."""

    trajectories: Int[np.ndarray, " trajectory"]  # their numbers in the chunk
    rows: Int[Tensor, " trajectory"]  # their rows in the batch
    positions: tuple[int, ...]  # which they hold, in order
    own: int  # the first position that is theirs to compute
    first: int  # the first position that may differ from the base run, be it their own or their owner's

    @property
    def n(self) -> int:
        """How many trajectories."""
        return len(self.trajectories)

    @property
    def n_tokens(self) -> int:
        """How many tokens they hold."""
        return self.n * len(self.positions)


@dataclass
class Pack:
    """Blocks, and where every token of every trajectory stands."""

    blocks: list[Block]  # in the order of their tokens
    # by trajectory and position, the token's number; -1 where the trajectory does not hold it
    place: Int[np.ndarray, "trajectory pos"]

    def spans(self) -> list[tuple[Block, slice]]:
        """Every block with the place of its tokens."""
        stops = accumulate(block.n_tokens for block in self.blocks)
        return [(block, slice(stop - block.n_tokens, stop)) for block, stop in zip(self.blocks, stops, strict=True)]

    def arrange(self, blocks: Sequence[Block]) -> None:
        """Hold these blocks, in this order."""
        self.blocks = [block for block in blocks if block.n]
        self.place.fill(-1)
        for block, span in self.spans():
            tokens = np.arange(span.start, span.stop).reshape(block.n, len(block.positions))
            self.place[block.trajectories[:, None], np.array(block.positions, dtype=np.int64)] = tokens


def hold(
    pack: Pack, blocks: Sequence[Block], tensors: Sequence[Tensor], base: Sequence[BaseTokens] = ()
) -> list[Float[Tensor, "_ ..."]]:
    """Hold these blocks instead: of their tokens what is held already, and else the base run's values."""
    if [(each.n, each.positions) for each in blocks] == [(each.n, each.positions) for each in pack.blocks]:
        pack.blocks = list(blocks)
        return list(tensors)
    before = pack.place.copy()
    pack.arrange(blocks)
    device = tensors[0].device
    held = [before[block.trajectories][:, np.array(block.positions, dtype=int)].ravel() for block in pack.blocks]
    place = torch.from_numpy(np.concatenate([np.zeros(0, dtype=int), *held])).to(device)
    known, new = torch.nonzero(place >= 0).squeeze(1), torch.nonzero(place < 0).squeeze(1)
    if not len(new):
        return [old[place] for old in tensors]
    rows = torch.cat([block.rows.repeat_interleave(len(block.positions)) for block in pack.blocks])[new]
    at = [torch.tensor(block.positions, dtype=torch.long, device=device).repeat(block.n) for block in pack.blocks]
    positions = torch.cat(at)[new]
    found = []
    for old, give in zip(tensors, base, strict=True):
        tensor = old.new_empty(len(place), *old.shape[1:])
        tensor[known], tensor[new] = old[place[known]], give(rows, positions)
        found.append(tensor)
    return found


def join(
    pack: Pack, wanted: Sequence[Block], tensors: Sequence[Tensor], base: Sequence[BaseTokens]
) -> list[Float[Tensor, "_ ..."]]:
    """Hold what `wanted` holds, too: with the base run's values where nothing was held."""
    blocks, new = list(pack.blocks), dict[tuple[tuple[int, ...], int, int], list[Block]]()
    begun = {int(each) for block in blocks for each in block.trajectories}  # also those that hold nothing of their own
    for block in wanted:
        if int(block.trajectories[0]) not in begun:
            new.setdefault((block.positions, block.own, block.first), []).append(block)
            continue
        chosen = set(block.trajectories.tolist())
        for number, each in enumerate(blocks):
            if not chosen.isdisjoint(each.trajectories.tolist()):
                positions = tuple(sorted({*each.positions, *block.positions}))
                blocks[number] = replace(each, positions=positions, first=min(each.first, block.first))
    for same in new.values():
        trajectories = np.concatenate([each.trajectories for each in same])
        blocks.append(replace(same[0], trajectories=trajectories, rows=torch.cat([each.rows for each in same])))
    return hold(pack, blocks, tensors, base)


def keep(pack: Pack, positions: range, tensors: Sequence[Tensor]) -> list[Float[Tensor, "_ ..."]]:
    """Hold only `positions`."""
    held = [tuple(each for each in block.positions if each in positions) for block in pack.blocks]
    return hold(pack, [replace(block, positions=each) for block, each in zip(pack.blocks, held, strict=True)], tensors)


@dataclass(frozen=True)
class Strand:
    """One cell, by its number, with one draw of its replacements."""

    cell: int
    draw: int
    interventions: Interventions

    @property
    def first_layer(self) -> int:
        """Where it begins."""
        return min(each.site.layer or 0 for each in self.interventions)


@dataclass
class Edits:
    """What is replaced at one site with values of one replacement and draw, entry by entry."""

    rank: int  # how many interventions of the same cells come before, at the same site
    intervention: Intervention  # one of those that are made; its replacement gives the values of all
    draw: int  # which of the replacement's draws
    # by bundle: trajectories, rows, positions, and heads or neurons (none: the whole activation)
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = field(default_factory=list)
    # by bundle, those that are changed, also where another one computes it
    trajectories: list[np.ndarray] = field(default_factory=list)


class Chunk:
    """Strands that are run together, as `n` trajectories."""

    def __init__(self, strands: Sequence[Strand], classifier: Classifier, length: int, device: torch.device):
        self.strands = tuple(strands)
        self.spans: list[slice] = []  # by strand, of its trajectories
        self.wanted: dict[tuple[int, int], list[Block]] = {}  # by layer and stage, the blocks that are held there
        self.edits: dict[Site, list[Edits]] = {}  # by site, what is replaced
        self._by_values: dict[tuple[object, ...], Edits] = {}
        nothing = np.zeros(0, int)
        rows, idle, owners = [nothing], [nothing], [np.zeros((0, length), int)]
        self.n, any_shared = 0, False
        for strand in strands:
            found = classifier.classes(strand.interventions, strand.draw)
            begin = self.n
            for each in found.classes:
                trajectories = np.arange(self.n, self.n + len(each.rows))
                self._add(strand, each, trajectories, device)
                rows.append(each.rows)
                idle.append(np.full(len(each.rows), sum(not positions for positions in each.positions)))
                self.n += len(each.rows)
            own = np.arange(begin, self.n)
            if found.owner is None:
                owners.append(np.repeat(own[:, None], length, axis=1))
            else:
                chosen = np.concatenate([nothing, *(each.rows for each in found.classes)])
                of_row = np.full(len(found.owner), -1)
                of_row[chosen] = own
                owners.append(of_row[found.owner[chosen]])
                any_shared = True
            self.spans.append(slice(begin, self.n))
        self.rows: Int[np.ndarray, " trajectory"] = np.concatenate(rows)  # in the batch
        self.idle = np.concatenate(idle)  # how many of a trajectory's interventions find nothing to change
        # By trajectory and position, the trajectory that computes it; None where nothing is shared.
        self.owner = np.concatenate(owners) if any_shared else None

    def _add(self, strand: Strand, rows: RowClass, trajectories: np.ndarray, device: torch.device) -> None:
        begins: dict[tuple[int, int], set[int]] = {}
        ranks: Counter[Site] = Counter()
        for intervention, positions in zip(strand.interventions, rows.positions, strict=True):
            if not positions:
                continue
            stage = (intervention.site.layer or 0, STAGE_OF[intervention.site.name])
            begins.setdefault(stage, set()).update(positions)
            own = np.array([each for each in positions if each >= rows.own], dtype=int)
            self._edit(strand, intervention, ranks[intervention.site], (rows.rows, trajectories, own))
            ranks[intervention.site] += 1
        for stage, held in begins.items():
            stored = tuple(sorted(each for each in held if each >= rows.own))
            block = Block(trajectories, torch.from_numpy(rows.rows).to(device), stored, rows.own, min(held))
            self.wanted.setdefault(stage, []).append(block)

    def _edit(
        self, strand: Strand, each: Intervention, rank: int, where: tuple[np.ndarray, np.ndarray, np.ndarray]
    ) -> None:
        chosen = each.heads if each.heads is not None else each.units
        draw = strand.draw % each.replacement.draws
        key = (rank, id(each.replacement), each.site, draw, chosen is None, each.keys)
        edits = self._by_values.get(key)
        if edits is None:
            edits = self._by_values[key] = Edits(rank, each, draw)
            self.edits.setdefault(each.site, []).append(edits)
            self.edits[each.site].sort(key=lambda each: each.rank)
        rows, trajectories, own = where
        edits.trajectories.append(trajectories)
        n, p, c = len(rows), len(own), 1 if chosen is None else len(chosen)
        components = np.zeros(0, dtype=int) if chosen is None else np.tile(np.array(chosen), n * p)
        positions = np.tile(np.repeat(own, c), n)
        edits.parts.append((np.repeat(trajectories, p * c), np.repeat(rows, p * c), positions, components))

    @property
    def first_layer(self) -> int | None:
        """Where the first trajectory begins; None where nothing is changed."""
        return min((layer for layer, _ in self.wanted), default=None)
