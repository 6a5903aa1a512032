"""Which sentences must a training text not contain? Published test sentences, known here by their hashes alone.

A generator that shares a benchmark's vocabulary meets some of its short sentences by chance ("The dog hides.").
So that no accuracy rests on a sentence seen in training:

1. ``published.npy`` holds the first 8 bytes of the SHA-256 of each acceptable sentence of the nine BLiMP paradigms
   (Warstadt et al. 2020) that the lexicon was widened towards; the sentences themselves are not in this project.
2. A document with such a sentence is left out of the stream.

``analyses/blimp/hashes.py`` makes the file from the published ones.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib import resources

import numpy as np

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
    with resources.files("interp.recipes").joinpath(HASHES).open("rb") as file:
        return frozenset(np.load(file).tolist())
