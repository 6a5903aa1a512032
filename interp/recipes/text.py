"""A text as documents: one paragraph a line, each on its own, in an order that a seed decides.

A model of sentences needs no book at a time: each paragraph begins after a BOS, as a prompt does.
"""

import lzma
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from math import ceil, floor
from pathlib import Path

import numpy as np

from interp.errors import InputError
from interp.recipes.tokenizer import BOS
from interp.tasks.readers.sources import read_only_once


@dataclass(frozen=True)
class Paragraphs:
    """The paragraphs of a text.

    Attributes:
        trained: What is trained on.
        held_out: What never is, shuffled, so that its first rows come from the whole text.
    """

    trained: list[str]
    held_out: list[str]

    def shuffled(self, seed: int) -> Iterator[str]:
        """The paragraphs to train on without end, each once before any comes again."""
        for epoch in count():
            order = np.random.default_rng([seed, epoch]).permutation(len(self.trained))
            yield from (self.trained[number] for number in order)


def read_paragraphs(path: Path, held_out: float) -> Paragraphs:
    """Read a text and set some of its paragraphs aside, spread evenly over it.

    Args:
        path: A plain or ``.xz`` file in UTF-8. Empty lines and the mark between texts are left out.
        held_out: The share that is set aside.

    Raises:
        InputError: The file cannot be read, is a pipe (its hash is taken as well), is no such text, or has too few
            paragraphs.
    """
    if read_only_once(path):
        raise InputError(
            f"{path}: expected a text in a file, got a pipe, which can be read only once; write it to a file"
        )
    try:
        with lzma.open(path, "rt", encoding="utf-8") if path.suffix == ".xz" else path.open(encoding="utf-8") as file:
            lines = [line for line in map(str.strip, file) if line and line != BOS]
    except (OSError, lzma.LZMAError, EOFError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: expected a text in UTF-8, plain or .xz, got {error}") from error
    goes = [floor(number * held_out) > floor((number - 1) * held_out) for number in range(1, len(lines) + 1)]
    trained = [line for line, aside in zip(lines, goes, strict=True) if not aside]
    known = set(trained)  # a text may hold a book twice
    unseen = [line for line, aside in zip(lines, goes, strict=True) if aside and line not in known]
    if not trained or (held_out and not unseen):
        least = ceil(1 / held_out) if held_out else 1
        raise InputError(
            f"{path}: expected at least {least} paragraphs, one a line, of which those that are held out come once; "
            f"got {len(lines)}, {len(unseen)} of them to hold out"
        )
    np.random.default_rng(0).shuffle(unseen)
    return Paragraphs(trained, unseen)
