"""Shards of a store: which words each holds, which rows of tokens are run for it, and the activations themselves.

1. Words are numbered in order; shard *i* holds the numbers from *i n* to *(i + 1) n - 1*.
2. Passages all of whose words are in one shard are batched with each other.
3. A passage with words in several shards is run by itself. So no batch crosses a shard, and a run that was interrupted
   before any shard computes the same batches as one that was not.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from safetensors.torch import save, save_file
from torch import Tensor

from interp.errors import InputError
from interp.model.devices import resolve_dtype
from interp.residual.collecting import WordActivations, batch_activations
from interp.runs.executors import nobody
from interp.runs.store_manifest import Request
from interp.tasks.passages import Passage

Activations = dict[str, Float[Tensor, "row ..."]]


@dataclass(frozen=True)
class ShardContent:
    """A shard's activations by the sites' hook names or, from another process, the bytes of its file."""

    content: Activations | bytes

    def write(self, path: Path) -> None:
        """Write the file; activations are not copied."""
        if isinstance(self.content, bytes):
            path.write_bytes(self.content)
        else:
            save_file(self.content, path)

    def __reduce__(self) -> tuple[type["ShardContent"], tuple[bytes]]:
        return ShardContent, (self.content if isinstance(self.content, bytes) else save(self.content),)


@dataclass(frozen=True)
class Piece:
    """A passage and the number of its first word."""

    passage: Passage
    first: int

    @property
    def stop(self) -> int:
        """One more than the number of its last word."""
        return self.first + len(self.passage.words)


@dataclass(frozen=True)
class Shard:
    """The words from number `start` to `stop` (exclusive), and all passages with words among them, in order."""

    number: int
    start: int
    stop: int
    pieces: tuple[Piece, ...]

    def __str__(self) -> str:
        return f"shard {self.number}, of the words {self.start} to {self.stop - 1}"

    @property
    def file(self) -> str:
        """What its file is called."""
        return f"shard-{self.number:05d}.safetensors"

    @property
    def rows(self) -> int:
        """Words in it."""
        return self.stop - self.start

    @property
    def inside(self) -> tuple[Piece, ...]:
        """Passages all of whose words are in it; they follow each other."""
        return tuple(each for each in self.pieces if each.first >= self.start and each.stop <= self.stop)

    @property
    def across(self) -> tuple[Piece, ...]:
        """Passages that have words in another shard, too."""
        return tuple(each for each in self.pieces if each.first < self.start or each.stop > self.stop)

    def passages(self) -> Iterator[Passage]:
        """Its passages in order, of their words those in the shard."""
        for piece in self.pieces:
            before, beyond = max(self.start - piece.first, 0), min(self.stop, piece.stop) - piece.first
            yield replace(piece.passage, words=piece.passage.words[before:beyond])

    @cached_property
    def read(self) -> str:
        """SHA-256 of the token ids of its passages, and the positions that are read in each."""
        digest = hashlib.sha256()
        for piece in self.pieces:
            places = [word.tokens for word in piece.passage.words]
            digest.update(repr((piece.first, piece.passage.ids, places)).encode())
        return digest.hexdigest()


def shards_of(passages: Iterable[Passage], n_rows: int) -> Iterator[Shard]:
    """The shards of `n_rows` words each; the last one has what is left."""
    held: list[Piece] = []
    number = first = 0
    for passage in passages:
        held.append(Piece(passage, first))
        first = held[-1].stop
        while first >= (number + 1) * n_rows:
            stop = (number + 1) * n_rows
            yield Shard(number, number * n_rows, stop, tuple(held))
            held = [each for each in held if each.stop > stop]
            number += 1
    if held:
        yield Shard(number, number * n_rows, first, tuple(held))


Progress = Callable[[int], None]


class ShardReader:
    """Computes a store's shards (``executors.Work``).

    `progress` is called with the number of a shard's words that are done; a copy in another process has none.
    """

    def __init__(self, model: Any, request: Request, progress: Progress = nobody):
        self._model, self._request, self._progress = model, request, progress
        self._sites = [each.site for each in request.sites]
        self._dtype = resolve_dtype(request.dtype)
        self._last: tuple[Piece, WordActivations] | None = None
        # Taken once: the system gives out memory more slowly than a small model fills it.
        self._room = {
            each.site.hook_name: torch.empty(request.shard_rows, *each.shape, dtype=self._dtype)
            for each in request.sites
        }

    def __reduce__(self) -> tuple[type["ShardReader"], tuple[Any, Request]]:
        return ShardReader, (self._model, self._request)

    def run(self, shard: Shard) -> ShardContent:
        """A shard's activations; valid until the next one is computed."""
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

    def _alone(self, piece: Piece) -> WordActivations:
        """A passage with words in several shards, one after the other: run for the first that is computed."""
        if self._last is None or self._last[0] != piece:
            options: Any = {"pooling": self._request.pooling, "first": piece.first}
            (batch,) = batch_activations(self._model, [piece.passage], self._sites, **options)
            self._last = piece, batch
        return self._last[1]

    def _put(self, batch: WordActivations, shard: Shard, found: Activations) -> int:
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
