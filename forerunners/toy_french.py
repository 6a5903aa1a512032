"""A toy translation task with gold alignments: English into French, in sentences that a small grammar makes.

A sentence is a noun phrase, a verb and a noun phrase, perhaps behind an adverb. What makes it more than a dictionary:

1. **Order**: ``the small red houses`` is ``les petites maisons rouges``: some adjectives stand behind their noun. An
   adverb that begins the English sentence ends the French one.
2. **Agreement**: an English word has up to four French forms, by a noun's gender or number that stands elsewhere.
3. **Number of words**: ``does not see`` is ``ne voit pas``: ``not`` becomes two words, and ``does`` none.

Every French word knows the English one that it translates, so an attention pattern can be held against the truth.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from interp.errors import InputError

PAD, BOS, EOS = "<pad>", "<s>", "</s>"
SPECIAL = (PAD, BOS, EOS)

# English (one, several), French (one, several), gender
NOUNS = (
    (("house", "houses"), ("maison", "maisons"), "f"),
    (("table", "tables"), ("table", "tables"), "f"),
    (("car", "cars"), ("voiture", "voitures"), "f"),
    (("girl", "girls"), ("fille", "filles"), "f"),
    (("flower", "flowers"), ("fleur", "fleurs"), "f"),
    (("door", "doors"), ("porte", "portes"), "f"),
    (("book", "books"), ("livre", "livres"), "m"),
    (("dog", "dogs"), ("chien", "chiens"), "m"),
    (("cat", "cats"), ("chat", "chats"), "m"),
    (("boy", "boys"), ("garçon", "garçons"), "m"),
    (("garden", "gardens"), ("jardin", "jardins"), "m"),
    (("boat", "boats"), ("bateau", "bateaux"), "m"),
)
# English, French (m one, m several, f one, f several)
BEFORE_NOUN = (
    ("small", ("petit", "petits", "petite", "petites")),
    ("big", ("grand", "grands", "grande", "grandes")),
    ("pretty", ("joli", "jolis", "jolie", "jolies")),
)
BEHIND_NOUN = (
    ("red", ("rouge", "rouges", "rouge", "rouges")),
    ("black", ("noir", "noirs", "noire", "noires")),
    ("green", ("vert", "verts", "verte", "vertes")),
    ("white", ("blanc", "blancs", "blanche", "blanches")),
)
DETERMINERS = (
    (("the", "the"), ("le", "les", "la", "les")),
    (("this", "these"), ("ce", "ces", "cette", "ces")),
    (("my", "my"), ("mon", "mes", "ma", "mes")),
)
ADVERBS = (("today", "aujourd'hui"), ("tomorrow", "demain"), ("here", "ici"), ("now", "maintenant"))
NUMBERS = (("two", "deux"), ("three", "trois"), ("four", "quatre"), ("five", "cinq"))
# English (plain, third person), French (one, several)
VERBS = (
    (("see", "sees"), ("voit", "voient")),
    (("find", "finds"), ("trouve", "trouvent")),
    (("seek", "seeks"), ("cherche", "cherchent")),
    (("watch", "watches"), ("regarde", "regardent")),
    (("draw", "draws"), ("dessine", "dessinent")),
)


@dataclass(frozen=True)
class SentencePair:
    """A sentence in both languages.

    Attributes:
        source: Its English words.
        target: Its French words.
        alignment: For each French word, the position of the English one that it translates.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    alignment: tuple[int, ...]


class _Writer:
    """Writes both sentences of a pair."""

    def __init__(self, rng: np.random.Generator):
        self._rng = rng
        self._source: list[str] = []
        self._target: list[tuple[str, int]] = []

    def pair(self) -> SentencePair:
        """One sentence: who does or does not do what to whom."""
        adverb = self._one_of(ADVERBS) if self._rng.random() < 0.5 else None
        if adverb:
            self._source.append(adverb[0])
        several = self._noun_phrase()
        self._verb(several)
        self._noun_phrase()
        if adverb:
            self._target.append((adverb[1], 0))
        words, alignment = zip(*self._target, strict=True)
        return SentencePair(tuple(self._source), words, alignment)

    def _noun_phrase(self) -> bool:
        """Determiner, perhaps a number and adjectives, and noun; whether it means several."""
        several = bool(self._rng.random() < 0.5)
        nouns, french, gender = self._one_of(NOUNS)
        form = 2 * (gender == "f") + several
        determiner, its_forms = self._one_of(DETERMINERS)
        before = self._one_of(BEFORE_NOUN) if self._rng.random() < 0.4 else None
        behind = self._one_of(BEHIND_NOUN) if self._rng.random() < 0.4 else None
        self._say(determiner[several], its_forms[form])
        if several and self._rng.random() < 0.5:
            self._say(*self._one_of(NUMBERS))
        if before:
            self._say(before[0], before[1][form])
        if behind:
            self._source.append(behind[0])
        self._say(nouns[several], french[several])
        if behind:
            self._target.append((behind[1][form], len(self._source) - 2))
        return several

    def _verb(self, several: bool) -> None:
        english, french = self._one_of(VERBS)
        if self._rng.random() < 0.6:
            self._say(english[not several], french[several])
            return
        self._source += ["do" if several else "does", "not"]
        self._target.append(("ne", len(self._source) - 1))
        self._say(english[0], french[several])
        self._target.append(("pas", len(self._source) - 2))

    def _say(self, english: str, french: str) -> None:
        """Write a word in both languages."""
        self._source.append(english)
        self._target.append((french, len(self._source) - 1))

    def _one_of(self, words: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
        return words[int(self._rng.integers(len(words)))]


def sentence_pairs(n: int, seed: int) -> list[SentencePair]:
    """Different sentences, in the order in which the seed makes them; so a cut anywhere leaves two disjoint sets.

    Raises:
        InputError: `n` is below 1.
    """
    if n < 1:
        raise InputError(f"n: expected at least one sentence, got {n}")
    rng = np.random.default_rng(seed)
    pairs: dict[SentencePair, None] = {}
    while len(pairs) < n:
        pairs[_Writer(rng).pair()] = None
    return list(pairs)


def source_words() -> tuple[str, ...]:
    """The English vocabulary, ``SPECIAL`` first."""
    words = {word for english, _, _ in NOUNS for word in english} | {word for english, _ in VERBS for word in english}
    words |= {word for english, _ in DETERMINERS for word in english} | {"do", "does", "not"}
    words |= {english for english, _ in (*BEFORE_NOUN, *BEHIND_NOUN, *NUMBERS, *ADVERBS)}
    return (*SPECIAL, *sorted(words))


def target_words() -> tuple[str, ...]:
    """The French vocabulary, ``SPECIAL`` first."""
    words = {word for _, french, _ in NOUNS for word in french} | {"ne", "pas"}
    words |= {french for _, french in (*NUMBERS, *ADVERBS)}
    words |= {word for _, french in (*BEFORE_NOUN, *BEHIND_NOUN, *DETERMINERS, *VERBS) for word in french}
    return (*SPECIAL, *sorted(words))
