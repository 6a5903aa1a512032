"""A text as documents: one paragraph a line, each on its own, in an order that a seed decides.

A model of sentences needs no book at a time: each paragraph begins after a BOS, as a prompt does.

Documents with published test sentences are left out (``without_published``), so that no accuracy rests on a sentence
seen in training; a generator that shares a benchmark's vocabulary meets some of its short sentences by chance ("The dog
hides."). ``published.npy`` holds the first 8 bytes of the SHA-256 of each acceptable sentence of nine BLiMP paradigms
(Warstadt et al. 2020) that the lexicon was widened towards; the sentences themselves are not in this project.
``analyses/blimp/hashes.py`` makes the file from the published ones.
"""

import hashlib
import lzma
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from itertools import count
from math import ceil, floor
from pathlib import Path

import numpy as np

from interp.errors import InputError
from interp.tasks.readers.sources import read_only_once
from recipes.tokenizer import BOS


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


PARADIGMS = (
    "regular_plural_subject_verb_agreement_1",
    "regular_plural_subject_verb_agreement_2",
    "irregular_plural_subject_verb_agreement_1",
    "irregular_plural_subject_verb_agreement_2",
    "distractor_agreement_relational_noun",
    "distractor_agreement_relative_clause",
    "determiner_noun_agreement_1",
    "anaphor_gender_agreement",
    "anaphor_number_agreement",
)
"""The BLiMP paradigms whose vocabulary the lexicon was widened towards."""

HASHES = "published.npy"
_BETWEEN_SENTENCES = re.compile(r"(?<=\.) ")


def without_published(documents: Iterable[str]) -> Iterator[str]:
    """The documents that hold no published sentence, in their order."""
    known = published_hashes()
    for document in documents:
        if known.isdisjoint(map(sentence_hash, _BETWEEN_SENTENCES.split(document))):
            yield document


def sentence_hash(sentence: str) -> int:
    """The first 8 bytes of the sentence's SHA-256, as a number."""
    return int.from_bytes(hashlib.sha256(sentence.encode()).digest()[:8], "big")


@lru_cache(maxsize=1)
def published_hashes() -> frozenset[int]:
    """The hashes of the published sentences."""
    with resources.files("recipes").joinpath(HASHES).open("rb") as file:
        return frozenset(np.load(file).tolist())
