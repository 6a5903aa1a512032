"""What a chunk does in each layer, as numbers of tokens: worked out on the host, and sent to the device in one copy.

A device runs behind the host, which only tells it what to do next. Whenever an index went over, or a value came back,
the host would wait until the device has caught up.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from interp.interventions.engine.chunk import Block, Chunk, Edits, Gather, Numbers, Pack
from interp.interventions.engine.plan import STAGES
from interp.interventions.intervention import heads_at
from interp.model.sites import Site
from interp.model.transformer import HookedTransformer

BEFORE_ATTENTION, BEFORE_WRITING, BEFORE_MLP, AFTER_MLP = range(len(STAGES))
BY_HEAD = ("q_input", "k_input", "v_input", "result")
"""Sites that are read head by head."""


@dataclass(frozen=True)
class Change:
    """Some entries of an activation, and what they become; arrays by their places."""

    edits: Edits  # whose values
    rows: slice  # by entry, the row in the batch
    positions: slice  # by entry, the token position
    components: slice | None  # by entry, the head or neuron; None for whole activations
    noted: slice  # by entry, its number among all trajectories' positions
    tokens: tuple[slice, ...]  # by entry, where it stands in the activation
    keys: slice | None = None  # of a pattern, the keys that are replaced; None for all


@dataclass(frozen=True)
class HeadChanges:
    """What is replaced of one head, in the order of the interventions."""

    head: int
    tokens: slice  # that are changed, in order; the changes' own are places among these
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Attended:
    """The queries of one block, and the keys that they look at."""

    n: int  # trajectories
    queries: range  # positions
    place: slice  # of the queries' tokens
    n_keys: int
    span: slice  # of the keys' tokens that the block holds
    n_held: int  # positions for each trajectory
    inside: slice  # of the keys, those that are held; an array, where `scattered`
    scattered: bool
    rows: slice | None  # array: the base run's rows that have the other keys; None where all are held
    # arrays: trajectories, positions and tokens of what other trajectories hold in the block's stead
    owned: tuple[slice, slice, slice] | None
    patterns: tuple[Change, ...]


@dataclass
class LayerSteps:
    """What happens in one layer."""

    narrow: bool = False  # whether the answers' positions suffice
    joins: dict[int, Gather | None] = field(default_factory=dict)  # by stage, what joins there
    changes: dict[str, list[Change]] = field(default_factory=dict)  # by site
    by_head: dict[str, list[HeadChanges]] = field(default_factory=dict)
    attention: Gather | None = None  # the queries' tokens
    key_positions: slice | None = None  # arrays, where positions turn keys and queries: of each token
    query_positions: slice | None = None
    attended: list[Attended] = field(default_factory=list)
    kept: list[Gather | None] = field(default_factory=list)  # before the MLP and behind it


class Schedule:
    """All layers' steps, and the arrays of numbers that they name.

    ``rows`` are every trajectory's in the batch; ``final`` says where the answers' positions stand at the end:
    trajectories, positions and tokens.
    """

    def __init__(self, chunk: Chunk, model: HookedTransformer, length: int, answers: range):
        self._chunk, self._model, self._length, self._answers = chunk, model, length, answers
        self.numbers = Numbers()
        self._pack = Pack(chunk.rows, length, self.numbers)
        self.rows = self.numbers.add(chunk.rows)
        n_layers, first = model.config.n_layers, chunk.first_layer
        begin = n_layers if first is None else first
        self.layers = {layer: self._layer(layer) for layer in range(begin, n_layers)}
        columns, trajectories = np.arange(answers.start, answers.stop), np.arange(chunk.n)[:, None]
        place = self._pack.place[trajectories if chunk.owner is None else chunk.owner[:, columns], columns]
        held = np.nonzero(place >= 0)
        self.final = tuple(map(self.numbers.add, (*held, place[held])))

    def _layer(self, layer: int) -> LayerSteps:
        steps = LayerSteps(self._answers_suffice(layer))
        for stage, names in enumerate(STAGES):
            if stage == BEFORE_WRITING:
                self._attend(layer, steps)
            if stage == (BEFORE_MLP if self._model.config.d_mlp else AFTER_MLP):
                steps.kept.append(self._pack.keep(self._answers) if steps.narrow else None)
            if wanted := self._chunk.wanted.get((layer, stage)):
                steps.joins[stage] = self._pack.join(wanted)
            edited = {name: self._chunk.edits.get(Site(name, layer), ()) for name in names}
            for name, edits in edited.items():
                if name in BY_HEAD:
                    steps.by_head[name] = list(self._by_head(name, edits))
                elif edits and name != "pattern":  # which belongs to the blocks that attend
                    steps.changes[name] = [self._change(each) for each in edits]
        steps.kept.append(self._pack.keep(self._answers) if steps.narrow else None)
        return steps

    def _answers_suffice(self, layer: int) -> bool:
        """Whether this is the last layer, and nothing has to be measured in it away from the answers' positions."""
        last = layer == self._model.config.n_layers - 1
        return last and not self._changed_again(layer) and Site("pattern", layer) not in self._chunk.edits

    def _changed_again(self, layer: int) -> bool:
        """Whether a trajectory that has begun is changed after the attention of this layer."""
        begun: np.ndarray = np.any(self._pack.place >= 0, axis=1)
        for stage in range(len(STAGES)):
            for block in self._chunk.wanted.get((layer, stage), ()):
                if stage > BEFORE_ATTENTION and begun[block.trajectories].any():
                    return True
                begun[block.trajectories] = True
        return False

    def _change(self, edits: Edits) -> Change:
        entries = edits.entries()
        return self._entries(edits, entries, (self._pack.place[entries[0], entries[2]],))

    def _entries(self, edits: Edits, entries: tuple[np.ndarray, ...], tokens: tuple[np.ndarray, ...]) -> Change:
        trajectory, row, position, component = entries
        add = self.numbers.add
        components = add(component) if len(component) else None
        noted = add(trajectory * self._length + position)
        return Change(edits, add(row), add(position), components, noted, tuple(map(add, tokens)))

    def _by_head(self, name: str, edited: Sequence[Edits]) -> Iterator[HeadChanges]:
        """What is replaced of each head; an entry for the whole activation is one for every head."""
        every = [(edits, edits.entries()) for edits in edited]
        for head in range(heads_at(name, self._model)):
            own = list[tuple[Edits, tuple[np.ndarray, ...], np.ndarray]]()
            for edits, (trajectory, row, position, component) in every:
                mine = component == head if len(component) else np.ones(len(row), dtype=bool)
                if mine.any():
                    entries = (trajectory[mine], row[mine], position[mine], np.full(np.count_nonzero(mine), head))
                    own.append((edits, entries, self._pack.place[entries[0], entries[2]]))
            if own:
                tokens = np.unique(np.concatenate([places for _, _, places in own]))
                changes = [self._entries(edits, at, (np.searchsorted(tokens, places),)) for edits, at, places in own]
                yield HeadChanges(head, self.numbers.add(tokens), tuple(changes))

    def _attend(self, layer: int, steps: LayerSteps) -> None:
        """Have the queries at all positions that can change look; the pack then holds these."""
        held, read_at = self._pack.spans(), self._pack.place.copy()  # keys and values stay where they are
        causal = self._model.config.causal
        queries = self._answers if steps.narrow else range(self._length)
        turned = list(self._model.blocks)[layer].attn.turn.dim
        steps.key_positions = self.numbers.add(self._pack.token_positions()) if turned else None
        wanted = []
        for block, _ in held:
            # Where attention looks forward, too, every position can change.
            start = block.start if causal else 0
            wanted.append(block.holding(tuple(each for each in queries if each >= start)))
        steps.attention = self._pack.hold(wanted)
        steps.query_positions = self.numbers.add(self._pack.token_positions()) if turned else None
        patterns = self._chunk.edits.get(Site("pattern", layer), [])
        for (new, place), (block, span) in zip(self._pack.spans(), held, strict=True):
            if new.positions:
                n_keys = new.positions[-1] + 1 if causal else self._length
                steps.attended.append(self._attended(new, place, block, span, n_keys, read_at, patterns))

    def _attended(
        self,
        wanted: Block,
        place: slice,
        block: Block,
        span: slice,
        n_keys: int,
        read_at: np.ndarray,
        patterns: list[Edits],
    ) -> Attended:
        held = [each for each in block.positions if each < n_keys]
        inside = slice(held[0], held[-1] + 1) if held else slice(0, 0)
        if scattered := inside.stop - inside.start > len(held):
            inside = self.numbers.add(np.array(held))
        whole = block.positions == tuple(range(n_keys))
        return Attended(
            block.n,
            range(wanted.positions[0], wanted.positions[-1] + 1),
            place,
            n_keys,
            span,
            len(block.positions),
            inside,
            scattered,
            None if whole else self.numbers.add(self._chunk.rows[block.trajectories]),
            None if whole else self._owned(block, n_keys, read_at),
            tuple(each for edits in patterns for each in self._pattern(edits, wanted, n_keys)),
        )

    def _owned(self, block: Block, n_keys: int, read_at: np.ndarray) -> tuple[slice, slice, slice] | None:
        if self._chunk.owner is None:
            return None
        before = np.arange(min(block.start, n_keys))
        places = read_at[self._chunk.owner[block.trajectories][:, before], before]
        held = np.nonzero(places >= 0)
        if not len(held[0]):
            return None
        add = self.numbers.add
        return add(held[0]), add(held[1]), add(places[held])

    def _pattern(self, edits: Edits, wanted: Block, n_keys: int) -> Iterator[Change]:
        """What is replaced in the pattern of a block, by trajectory and query of it."""
        entries = edits.entries()
        of, at = (np.full(size, -1) for size in self._pack.place.shape)
        of[wanted.trajectories], at[list(wanted.positions)] = np.arange(wanted.n), np.arange(len(wanted.positions))
        tokens = of[entries[0]], at[entries[2]]
        mine = (tokens[0] >= 0) & (tokens[1] >= 0)
        if mine.any():
            chosen = tuple(each[mine] if len(each) else each for each in entries)
            change = self._entries(edits, chosen, (tokens[0][mine], tokens[1][mine]))
            keys = edits.intervention.keys
            within = None if keys is None else self.numbers.add(np.array([each for each in keys if each < n_keys], int))
            yield replace(change, keys=within)
