"""A chunk: cells that are run together on a batch, and the tokens of their trajectories, packed in one matrix.

Every trajectory holds the positions where its residual stream may differ from the base run's; all others are the base
run's. Trajectories that hold the same positions form a block; blocks lie one behind the other in ``[token ...]``.
All of this is known before anything is computed, and is worked out on the host.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from interp.interventions.engine.plan import STAGE_OF, Classifier, Interventions, RowClass
from interp.interventions.intervention import Intervention
from interp.model.devices import sent
from interp.model.sites import Site


@dataclass(frozen=True)
class Block:
    """Trajectories that hold the same positions."""

    trajectories: Int[np.ndarray, " trajectory"]  # their numbers in the chunk
    positions: tuple[int, ...]  # which they hold, in order
    start: int  # the first position that may differ from the base run and is theirs to compute

    @property
    def n(self) -> int:
        """How many trajectories."""
        return len(self.trajectories)

    @property
    def n_tokens(self) -> int:
        """How many tokens they hold."""
        return self.n * len(self.positions)

    def holding(self, positions: tuple[int, ...]) -> "Block":
        """These trajectories, holding these positions."""
        return replace(self, positions=positions)

    def holds_with(self, other: "Block") -> "Block":
        """These trajectories, holding what the other block's do as well."""
        positions = tuple(sorted({*self.positions, *other.positions}))
        return replace(self, positions=positions, start=min(self.start, other.start))


def merged(blocks: Iterable[Block]) -> list[Block]:
    """Blocks that hold the same positions as one: the fewer there are, the fewer operations attention takes."""
    same: dict[tuple[tuple[int, ...], int], list[Block]] = {}
    for block in blocks:
        if block.n:
            same.setdefault((block.positions, block.start), []).append(block)
    return [
        each[0] if len(each) == 1 else replace(each[0], trajectories=np.concatenate([one.trajectories for one in each]))
        for each in same.values()
    ]


class Numbers:
    """Arrays of whole numbers that go to a device together; each is known by its place among them."""

    def __init__(self) -> None:
        self._arrays, self._n = list[np.ndarray](), 0

    def add(self, array: Int[np.ndarray, " _"]) -> slice:
        """One more array."""
        self._arrays.append(array.astype(np.int64, copy=False))
        self._n += len(array)
        return slice(self._n - len(array), self._n)

    def on(self, device: torch.device) -> Int[Tensor, " number"]:
        """All of them there."""
        return sent(np.concatenate([np.zeros(0, np.int64), *self._arrays]), device)


@dataclass(frozen=True)
class Gather:
    """How tokens that are held come to stand otherwise, and some of the base run's among them; arrays by their places.

    The base run's have ``rows`` in the batch, and ``positions``. ``order`` has, by new place, the number among the
    tokens that were held and, behind them, the base run's; it is None where it is that.
    """

    rows: slice
    positions: slice
    order: slice | None


class Pack:
    """Blocks, and where every token of every trajectory stands."""

    def __init__(self, rows: Int[np.ndarray, " trajectory"], length: int, numbers: Numbers):
        self._rows, self._numbers = rows, numbers  # in the batch; and where arrays go
        self.blocks: list[Block] = []  # in the order of their tokens
        # by trajectory and position, the token's number; -1 where the trajectory does not hold it
        self.place: Int[np.ndarray, "trajectory pos"] = np.full((len(rows), length), -1, dtype=np.int64)
        self.begun = np.zeros(len(rows), dtype=bool)  # also those that hold nothing of their own

    def spans(self) -> list[tuple[Block, slice]]:
        """Every block with the place of its tokens."""
        stops = accumulate(block.n_tokens for block in self.blocks)
        return [(block, slice(stop - block.n_tokens, stop)) for block, stop in zip(self.blocks, stops, strict=True)]

    def token_positions(self) -> Int[np.ndarray, " token"]:
        """The position of every token."""
        nothing = np.zeros(0, dtype=np.int64)
        return np.concatenate([nothing, *(np.tile(np.array(each.positions, int), each.n) for each in self.blocks)])

    def join(self, wanted: Sequence[Block]) -> Gather | None:
        """Hold what `wanted` holds, too: with the base run's values where nothing was held."""
        blocks = list(self.blocks)
        for block in merged(wanted):
            begun = self.begun[block.trajectories]
            new = block.trajectories[~begun]
            if begun.any():
                chosen = np.zeros(len(self.begun), dtype=bool)
                chosen[block.trajectories] = True
                blocks = [part for each in blocks for part in _with(each, chosen, block)]
            blocks.append(replace(block, trajectories=new))
            self.begun[new] = True
        return self.hold(merged(blocks))

    def keep(self, positions: range) -> Gather | None:
        """Hold only `positions`."""
        held = [tuple(each for each in block.positions if each in positions) for block in self.blocks]
        return self.hold([block.holding(each) for block, each in zip(self.blocks, held, strict=True)])

    def hold(self, blocks: list[Block]) -> Gather | None:
        """Hold these blocks instead; None where nothing moves."""
        before, n_before = self.place.copy(), sum(each.n_tokens for each in self.blocks)
        self.blocks = blocks
        self.place.fill(-1)
        for block, span in self.spans():
            tokens = np.arange(span.start, span.stop).reshape(block.n, len(block.positions))
            self.place[block.trajectories[:, None], np.array(block.positions, dtype=np.int64)] = tokens
        nothing = np.zeros(0, dtype=np.int64)
        trajectories = np.concatenate(
            [nothing, *(np.repeat(each.trajectories, len(each.positions)) for each in blocks)]
        )
        positions = self.token_positions()
        order = before[trajectories, positions]
        new = order < 0
        order[new] = n_before + np.arange(np.count_nonzero(new))
        stays = len(order) == n_before + np.count_nonzero(new) and bool((order == np.arange(len(order))).all())
        if stays and not new.any():
            return None
        add = self._numbers.add
        return Gather(add(self._rows[trajectories[new]]), add(positions[new]), None if stays else add(order))


def _with(block: Block, chosen: np.ndarray, wanted: Block) -> list[Block]:
    """The block's trajectories that are chosen, holding what is wanted, too, and the others."""
    mine = chosen[block.trajectories]
    if not mine.any():
        return [block]
    more = block.holds_with(wanted)
    if mine.all() or (more.positions, more.start) == (block.positions, block.start):
        return [more]
    parts = ((more, mine), (block, ~mine))
    return [replace(each, trajectories=block.trajectories[own]) for each, own in parts]


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

    def entries(self) -> tuple[np.ndarray, ...]:
        """Trajectories, rows, positions, and heads or neurons, of all bundles."""
        return tuple(np.concatenate(each) for each in zip(*self.parts, strict=True))


class Chunk:
    """Strands that are run together, as `n` trajectories."""

    def __init__(self, strands: Sequence[Strand], classifier: Classifier, length: int):
        self.strands, self._length = tuple(strands), length
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
                self._add(strand, each, trajectories)
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

    def _add(self, strand: Strand, rows: RowClass, trajectories: np.ndarray) -> None:
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
            self.wanted.setdefault(stage, []).append(Block(trajectories, stored, max(rows.own, min(held))))

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

    def squares(self, found: Float[np.ndarray, " _"]) -> Float[np.ndarray, " trajectory"]:
        """``||a' - a||^2`` of every trajectory, of those of its positions; with what its owners compute in its stead.

        `found` are those of all trajectories' positions, one behind the other.
        """
        squares = found.reshape(self.n, self._length)
        if self.owner is None:
            return squares.sum(axis=1)
        return squares[self.owner, np.arange(squares.shape[1])].sum(axis=1)

    @property
    def first_layer(self) -> int | None:
        """Where the first trajectory begins; None where nothing is changed."""
        return min((layer for layer, _ in self.wanted), default=None)
