"""A chunk: cells that are run together on a batch, and the tokens of their trajectories, packed in one matrix.

Every trajectory holds the positions where its residual stream may differ from the base run's; all others are the base
run's. Trajectories that hold the same positions form a block; blocks lie one behind the other in ``[token ...]``.

The editor puts replacements in place among the packed tokens. It notes how often and how far that moved them.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from interp.interventions.engine.plan import STAGE_OF, Classifier, Interventions, RowClass
from interp.interventions.intervention import Intervention, squared_change
from interp.interventions.replacement import Replacement
from interp.interventions.rows import Batch
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
    trajectories = np.concatenate([np.repeat(block.trajectories, len(block.positions)) for block in pack.blocks])
    positions = np.concatenate([np.tile(np.array(block.positions, dtype=int), block.n) for block in pack.blocks])
    place = torch.from_numpy(before[trajectories, positions]).to(tensors[0].device)
    known = torch.nonzero(place >= 0).squeeze(1)
    if len(known) == len(place):
        return [old[place] for old in tensors]
    lengths = np.repeat([len(block.positions) for block in pack.blocks], [block.n for block in pack.blocks])
    rows = torch.cat([block.rows for block in pack.blocks]).repeat_interleave(torch.from_numpy(lengths).to(place))
    found = [give(rows, torch.from_numpy(positions).to(place)) for give in base]
    for tensor, old in zip(found, tensors, strict=True):
        tensor[known] = old[place[known]]
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


@dataclass(frozen=True)
class Entries:
    """Where a replacement goes, and its values."""

    trajectories: Int[Tensor, " entry"]  # whose
    positions: Int[Tensor, " entry"]  # at which token position
    tokens: Int[Tensor, " entry"]  # where that token stands
    components: Int[Tensor, " _"]  # the head or neuron; empty for whole activations
    values: Float[Tensor, "entry ..."]  # what the new activation is made of
    replacement: Replacement  # makes it

    @property
    def index(self) -> tuple[Int[Tensor, " entry"], ...]:
        """Of a tensor ``[token ...]`` or ``[token component ...]``."""
        return (self.tokens, self.components) if len(self.components) else (self.tokens,)

    def take(self, mine: Bool[Tensor, " entry"]) -> "Entries":
        """Some of them."""
        names = ("trajectories", "positions", "tokens", "values", *(["components"] if len(self.components) else []))
        return replace(self, **{name: getattr(self, name)[mine] for name in names})

    def of_head(self, head: int) -> "Entries | None":
        """The entries of a head, if any; an entry for the whole activation is one for every head."""
        if not len(self.components):
            values = self.values[:, head] if self.values.shape[1] > 1 else self.values.squeeze(1)
            return replace(self, values=values)
        mine = self.components == head
        return self.take(mine) if bool(mine.any()) else None


class Editor:
    """Makes the changes of a chunk.

    It notes ``||a' - a||^2`` by trajectory and position, and how often an intervention has acted on each trajectory.
    """

    def __init__(self, chunk: Chunk, pack: Pack, batch: Batch):
        self._chunk, self._pack, self._batch = chunk, pack, batch
        device = batch.tokens.device
        self.squares = torch.zeros(chunk.n, batch.length, dtype=torch.float64, device=device)
        self.fired = np.zeros(chunk.n, dtype=np.int64)

    def has(self, name: str, layer: int) -> bool:
        """Whether anything is replaced at a site."""
        return Site(name, layer) in self._chunk.edits

    def entries(self, name: str, layer: int, like: Tensor) -> Iterator[tuple[Entries, tuple[int, ...] | None]]:
        """What is replaced at a site, in the dtype of `like`; of a pattern, at which keys (None: whole rows)."""
        for edits in self._chunk.edits.get(Site(name, layer), ()):
            yield self._located(edits, like), edits.intervention.keys

    def by_head(self, name: str, layer: int, like: Tensor, n_heads: int) -> Iterator[tuple[int, list[Entries]]]:
        """What is replaced of each head, in the order of the interventions."""
        changes = [entries for entries, _ in self.entries(name, layer, like)]
        for head in range(n_heads):
            if mine := [each for entries in changes if (each := entries.of_head(head)) is not None]:
                yield head, mine

    def apply_in_order(
        self, changes: Sequence[Entries], tokens: Int[Tensor, " token"], old: Float[Tensor, "token ..."]
    ) -> Float[Tensor, "token ..."]:
        """One head's activation at `tokens` (in order), with one change after the other."""
        current = old.clone()
        for entries in changes:
            places = torch.searchsorted(tokens, entries.tokens)
            before = current[places]
            after = entries.replacement.new(before, entries.values).expand_as(before)
            self.note(entries, before, after)
            current[places] = after
        return current

    def _located(self, edits: Edits, like: Tensor) -> Entries:
        trajectory, row, position, component = (np.concatenate(each) for each in zip(*edits.parts, strict=True))
        place = self._pack.place[trajectory, position]
        device = like.device
        to = lambda each: torch.from_numpy(each).to(device)  # noqa: E731
        values = edits.intervention.values(self._batch, edits.draw).to(like)
        if "query_pos" in edits.intervention.site.axes:
            values = values.transpose(1, 2)  # [batch query_pos head key_pos], like all others
        rows, positions, components = to(row), to(position), to(component)
        values = values.expand(len(self._batch.rows), self._batch.length, *values.shape[2:])
        if len(component) and values.shape[2] > 1:
            values = values[rows, positions, components]
        else:
            values = values[rows, positions]
            values = values.squeeze(1) if len(component) else values
        for trajectories in edits.trajectories:
            self.fired[trajectories] += 1
        return Entries(to(trajectory), positions, to(place), components, values, edits.intervention.replacement)

    def note(self, entries: Entries, old: Float[Tensor, "entry ..."], new: Float[Tensor, "entry ..."]) -> None:
        """Write down how far an activation moved."""
        norms = squared_change(old, new.expand_as(old))
        self.squares.index_put_((entries.trajectories, entries.positions), norms.double(), accumulate=True)

    def apply(self, name: str, layer: int, tensor: Float[Tensor, "token ..."]) -> Float[Tensor, "token ..."]:
        """`tensor` with what is replaced there; it is changed in place."""
        for entries, _ in self.entries(name, layer, tensor):
            old = tensor[entries.index]
            new = entries.replacement.new(old, entries.values)
            self.note(entries, old, new)
            tensor[entries.index] = new
        return tensor
