"""Puts replacements in place among the packed tokens, and notes how often and how far that moved them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from interp.interventions.engine.chunk import Chunk, Edits, Pack
from interp.interventions.intervention import squared_change
from interp.interventions.replacement import Replacement
from interp.interventions.rows import Batch
from interp.model.sites import Site


@dataclass(frozen=True)
class Entries:
    """Where a replacement goes, and its values.

    Attributes:
        trajectories: Whose.
        positions: At which token position.
        tokens: Where that token stands.
        components: The head or neuron; empty for whole activations.
        values: What the new activation is made of.
        replacement: Makes it.
    """

    trajectories: Int[Tensor, " entry"]
    positions: Int[Tensor, " entry"]
    tokens: Int[Tensor, " entry"]
    components: Int[Tensor, " _"]
    values: Float[Tensor, "entry ..."]
    replacement: Replacement

    @property
    def index(self) -> tuple[Int[Tensor, " entry"], ...]:
        """Of a tensor ``[token ...]`` or ``[token component ...]``."""
        return (self.tokens, self.components) if len(self.components) else (self.tokens,)

    def new(self, old: Float[Tensor, "entry ..."]) -> Float[Tensor, "entry ..."]:
        """What `old` becomes."""
        return self.replacement.new(old, self.values)

    def take(self, mine: Bool[Tensor, " entry"]) -> "Entries":
        """Some of them."""
        components = self.components[mine] if len(self.components) else self.components
        return replace(
            self,
            trajectories=self.trajectories[mine],
            positions=self.positions[mine],
            tokens=self.tokens[mine],
            components=components,
            values=self.values[mine],
        )

    def of_head(self, head: int) -> "Entries | None":
        """The entries of a head, if any; an entry for the whole activation is one for every head."""
        if not len(self.components):
            values = self.values[:, head] if self.values.shape[1] > 1 else self.values.squeeze(1)
            return replace(self, values=values)
        mine = self.components == head
        return self.take(mine) if bool(mine.any()) else None


class Editor:
    """Makes the changes of a chunk.

    Attributes:
        squares: By trajectory and position, ``||a' - a||^2``.
        fired: By trajectory, how many interventions have acted.
    """

    def __init__(self, chunk: Chunk, pack: Pack, batch: Batch):
        self._chunk, self._pack, self._batch = chunk, pack, batch
        device = batch.tokens.device
        self.squares = torch.zeros(chunk.n, batch.length, dtype=torch.float64, device=device)
        self.fired = np.zeros(chunk.n, dtype=np.int64)

    def has(self, name: str, layer: int) -> bool:
        """Whether anything is replaced at a site."""
        return Site(name, layer) in self._chunk.edits

    def entries(self, name: str, layer: int, like: Tensor) -> Iterator[Entries]:
        """What is replaced at a site, in the dtype of `like`."""
        for edits in self._chunk.edits.get(Site(name, layer), ()):
            yield self._located(edits, like)

    def by_head(self, name: str, layer: int, like: Tensor, n_heads: int) -> Iterator[tuple[int, list[Entries]]]:
        """What is replaced of each head, in the order of the interventions."""
        changes = list(self.entries(name, layer, like))
        for head in range(n_heads):
            mine = [each for each in (entries.of_head(head) for entries in changes) if each is not None]
            if mine:
                yield head, mine

    def apply_in_order(
        self, changes: Sequence[Entries], tokens: Int[Tensor, " token"], old: Float[Tensor, "token ..."]
    ) -> Float[Tensor, "token ..."]:
        """One head's activation at `tokens` (in order), with one change after the other."""
        current = old.clone()
        for entries in changes:
            places = torch.searchsorted(tokens, entries.tokens)
            before = current[places]
            after = entries.new(before).expand_as(before)
            self.note(entries, before, after)
            current[places] = after
        return current

    def patterns(self, layer: int, like: Tensor) -> Iterator[tuple[Entries, tuple[int, ...] | None]]:
        """What is replaced in a layer's pattern: whole rows of it, or those keys."""
        for edits in self._chunk.edits.get(Site("pattern", layer), ()):
            yield self._located(edits, like), edits.intervention.keys

    def _located(self, edits: Edits, like: Tensor) -> Entries:
        trajectory, row, position, component = edits.entries()
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
        for entries in self.entries(name, layer, tensor):
            old = tensor[entries.index]
            new = entries.new(old)
            self.note(entries, old, new)
            tensor[entries.index] = new
        return tensor
