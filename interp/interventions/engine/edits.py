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
