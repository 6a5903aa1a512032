"""What stands in one shard? The model is run over its passages, and each word's activations come to its row."""

from collections.abc import Callable
from typing import Any

import torch

from interp.errors import InputError
from interp.model.devices import resolve_dtype
from interp.residual.collecting import WordActivations, batch_activations
from interp.runs.content import Activations, ShardContent
from interp.runs.manifest import Request
from interp.runs.shards import Piece, Shard
from interp.tasks.passages import Passage

Progress = Callable[[int], None]


def nobody(_done: int) -> None:
    """Who does not want to know how far it is."""


class ShardReader:
    """Computes a store's shards (``executors.Work``), here, or as a copy of its own in another process.

    Args:
        model: Follows TransformerLens' protocol.
        request: Where it is read.
        progress: Called with the number of a shard's words that are done; of a copy nobody is told.
    """

    def __init__(self, model: Any, request: Request, progress: Progress = nobody):
        self._model, self._request, self._progress = model, request, progress
        self._sites = [each.site for each in request.sites]
        self._dtype = resolve_dtype(request.dtype)
        self._last: tuple[Piece, WordActivations[Passage]] | None = None
        # Taken once: the system gives out memory more slowly than a small model fills it.
        self._room = {
            each.site.hook_name: torch.empty(request.shard_rows, *each.shape, dtype=self._dtype)
            for each in request.sites
        }

    def __reduce__(self) -> tuple[type["ShardReader"], tuple[Any, Request]]:
        return ShardReader, (self._model, self._request)

    def run(self, shard: Shard) -> ShardContent:
        """What stands in a shard; valid until the next one.

        Raises:
            InputError: As ``word_activations``, or a number that the dtype cannot hold.
        """
        found = {name: room[: shard.rows] for name, room in self._room.items()}
        done = 0
        for piece in shard.across:
            done += self._put(self._alone(piece), shard, found)
            self._progress(done)
        if shard.inside:
            passages = (piece.passage for piece in shard.inside)
            options: Any = {"pooling": self._request.pooling, "first": shard.inside[0].first}
            for batch in batch_activations(self._model, passages, self._sites, **options):
                done += self._put(batch, shard, found)
                self._progress(done)
        return ShardContent(found)

    def _alone(self, piece: Piece) -> WordActivations[Passage]:
        """A passage with words in several shards, one after the other: run for the first that is computed."""
        if self._last is None or self._last[0] != piece:
            options: Any = {"pooling": self._request.pooling, "first": piece.first}
            (batch,) = batch_activations(self._model, [piece.passage], self._sites, **options)
            self._last = piece, batch
        return self._last[1]

    def _put(self, batch: WordActivations[Passage], shard: Shard, found: Activations) -> int:
        """Copy a batch's activations to their rows, and count these."""
        own = ((batch.numbers >= shard.start) & (batch.numbers < shard.stop)).nonzero()[:, 0]
        at = batch.numbers[own] - shard.start
        for site, values in batch.values.items():
            stored = values.to("cpu", self._dtype)
            if stored.dtype != values.dtype and not bool(torch.isfinite(stored).all()):
                raise InputError(
                    f"{site.hook_name}: expected numbers that {self._request.dtype} can hold, got "
                    f"{float(values.abs().max()):.3g}; store them in float32"
                )
            found[site.hook_name].index_copy_(0, at, stored if len(own) == len(stored) else stored[own])
        return len(at)
