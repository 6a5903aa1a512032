"""Which words does each shard hold, and which rows of tokens are run for it? A function of the request alone.

1. Words are numbered in order; shard *i* holds the numbers from *i n* to *(i + 1) n - 1*.
2. Passages all of whose words are in one shard are batched with each other.
3. A passage with words in several shards is run by itself. So no batch crosses a shard, and a run that was interrupted
   before any shard computes the same batches as one that was not.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from interp.tasks.passages import Passage


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
    """The words from number `start` to `stop`, that one not included.

    Attributes:
        number: From 0.
        start: The number of its first word.
        stop: That of the first word of the next shard.
        pieces: All passages with words in it, in order.
    """

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
