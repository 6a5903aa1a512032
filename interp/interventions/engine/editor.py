"""Puts replacements in place among packed tokens, and notes how often and how far that moved them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from interp.interventions.engine.chunk import Chunk, Edits
from interp.interventions.engine.schedule import Change, HeadChanges, LayerSteps
from interp.interventions.intervention import squared_change
from interp.interventions.rows import Batch


class Editor:
    """Makes the changes of a chunk.

    ``squares`` are ``||a' - a||^2`` by trajectory and position; ``fired``, by trajectory, is how often an intervention
    has acted on it.
    """

    def __init__(self, chunk: Chunk, batch: Batch, numbers: Int[Tensor, " number"]):
        self._batch, self._numbers = batch, numbers
        self.squares = torch.zeros(chunk.n * batch.length, dtype=torch.float64, device=batch.tokens.device)
        self.fired = np.zeros(chunk.n, dtype=np.int64)
        self._values = dict[int, Tensor]()

    @contextmanager
    def one_site(self) -> Iterator[None]:
        """Holds the values of replacements that are put in place bit by bit, until all are."""
        yield
        self._values.clear()

    def apply(self, steps: LayerSteps, name: str, tensor: Float[Tensor, "token ..."]) -> Float[Tensor, "token ..."]:
        """`tensor` with what is replaced there; it is changed in place."""
        for change in steps.changes.get(name, ()):
            with self.one_site():
                components = () if change.components is None else (change.components,)
                self._edit(change, tensor, (*change.tokens, *components))
        return tensor

    def of_head(self, mine: HeadChanges, old: Float[Tensor, "token ..."]) -> Float[Tensor, "token ..."]:
        """One head's activation at its tokens, with one change after the other."""
        current = old.clone()
        for change in mine.changes:
            self._edit(change, current, change.tokens)
        return current

    def replace_pattern(self, change: Change, pattern: Float[Tensor, "trajectory head pos key_pos"]) -> None:
        """A block's pattern with what is replaced there; it is changed in place."""
        components = () if change.components is None else (change.components,)
        self._edit(change, pattern.transpose(1, 2), (*change.tokens, *components), n_keys=pattern.shape[-1])

    def _edit(
        self, change: Change, tensor: Float[Tensor, "..."], places: Sequence[slice], *, n_keys: int | None = None
    ) -> None:
        index = tuple(self._numbers[each] for each in places)
        old = tensor[index]
        values = self._of_entries(change, old)
        if n_keys is not None and values.shape[-1] > 1:
            values = values[..., :n_keys]
        new = change.edits.intervention.replacement.new(old, values).expand_as(old)
        if change.keys is not None:
            keys, everywhere = self._numbers[change.keys], new
            new = old.clone()
            new[..., keys] = everywhere[..., keys]
        self.squares.index_put_((self._numbers[change.noted],), squared_change(old, new).double(), accumulate=True)
        tensor[index] = new

    def _of_entries(self, change: Change, like: Float[Tensor, "entry ..."]) -> Float[Tensor, "entry ..."]:
        """What the new activations are made of, entry by entry."""
        rows, positions = self._numbers[change.rows], self._numbers[change.positions]
        values = self._of_batch(change.edits, like)
        if change.components is None:
            return values[rows, positions]
        if values.shape[2] == 1:
            return values[rows, positions].squeeze(1)
        return values[rows, positions, self._numbers[change.components]]

    def _of_batch(self, edits: Edits, like: Tensor) -> Float[Tensor, "batch pos ..."]:
        """The same row by row and position by position, in the dtype of `like`."""
        if id(edits) not in self._values:
            values = edits.intervention.values(self._batch, edits.draw).to(like)
            if "query_pos" in edits.intervention.site.axes:
                values = values.transpose(1, 2)  # [batch query_pos head key_pos], like all others
            self._values[id(edits)] = values.expand(len(self._batch.rows), self._batch.length, *values.shape[2:])
            for trajectories in edits.trajectories:
                self.fired[trajectories] += 1
        return self._values[id(edits)]
