"""Random words, and the same words again (Elhage et al., 2021; Olsson et al., 2022).

What follows a word can only be told from what followed it the last time. Every word of the lexicon
is equally likely, so that this is also where rare words are met. No word of a string comes twice
before its repetition. Neighbours are pairs under the held-out rule.
"""

from collections.abc import Iterator
from typing import NamedTuple

from interp.tasks.grammar.dice import Dice
from interp.tasks.grammar.sentence import Word, Words
from interp.tasks.grammar.splits import split_of
from interp.tasks.grammar.vocabulary import Vocabulary

SHORTEST, LONGEST = 5, 12
LONGEST_GAP = 3


class Repetition(NamedTuple):
    """A string that is repeated from ``start`` up to, but not with, ``stop``.

    Attributes:
        string: Different words.
        gap: Words between the string and its repetition, different from all of it.
        start: Index of the first word repeated.
        stop: Index of the word that would come next; the one before it is the query.
        foil: Index after ``stop`` of a word that is wrong there.
    """

    string: tuple[str, ...]
    gap: tuple[str, ...]
    start: int
    stop: int
    foil: int

    @property
    def exchanged(self) -> "Repetition":
        """The same with the word that comes next and the foil in each other's place."""
        string = list(self.string)
        string[self.stop], string[self.foil] = string[self.foil], string[self.stop]
        return self._replace(string=tuple(string))

    @property
    def decisive(self) -> Iterator[tuple[str, str]]:
        """The query with the word that comes next, and with the foil."""
        yield self.string[self.stop - 1], self.string[self.stop]
        yield self.string[self.stop - 1], self.string[self.foil]

    @property
    def pairs(self) -> Iterator[tuple[str, str]]:
        """All neighbours in the string."""
        return zip(self.string, self.string[1:], strict=False)

    def words(self) -> Words:
        """The string, the gap and the repetition; the query comes last."""
        slots = {self.stop - 1: "previous-occurrence", self.stop: "next"}
        first = [Word(word, slots.get(index, f"string-{index}")) for index, word in enumerate(self.string)]
        between = [Word(word, "gap") for word in self.gap]
        again = range(self.start, self.stop)
        return first + between + [Word(self.string[index], f"repeated-{index}") for index in again]


def propose(
    dice: Dice,
    words: Vocabulary,
    *,
    length: int,
    gap: int,
    start: int,
    stop: int,
    used: frozenset[str] = frozenset(),
) -> Repetition:
    """Draw a string and its gap, without regard to the held-out rule.

    No word is among those `used` (in lower case) or there twice, with or without a capital.
    """
    drawn: dict[str, str] = {}
    while len(drawn) < length + gap:
        word = dice.pick(words.forms)
        if word.lower() not in used:
            drawn.setdefault(word.lower(), word)
    string = tuple(drawn.values())
    return Repetition(string[:length], string[length:], start, stop, dice.between(stop + 1, length - 1))


def training_string(dice: Dice, words: Vocabulary) -> Words:
    """A string of random length, mostly repeated whole; every pair of neighbours is in the training split."""
    while True:
        length = dice.between(SHORTEST, LONGEST)
        gap = dice.between(1, LONGEST_GAP) if dice.chance(0.4) else 0
        start = 0 if dice.chance(0.6) else dice.between(0, length - 3)
        chain = _chain(dice, words, length + gap)
        if split_of(chain[-1], chain[start]) == "train":
            return [Word(word) for word in (*chain, *chain[start:length])]


def _chain(dice: Dice, words: Vocabulary, length: int) -> list[str]:
    """Different words, each of which may follow the one before it in training."""
    chain = [dice.pick(words.forms)]
    while len(chain) < length:
        word = dice.pick(words.forms)
        if word not in chain and split_of(chain[-1], word) == "train":
            chain.append(word)
    return chain
