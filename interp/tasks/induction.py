"""Task: what followed this word the last time?

Random words, and the beginning of the same words again (Elhage et al., 2021; Olsson et al., 2022,
https://arxiv.org/abs/2209.11895). Every word of the lexicon is equally likely, so rare words are met here too. No word
of a string comes twice before its repetition. Neighbours are pairs under the held-out rule.

In the counterfactual the next word and another word of the string have changed places. The relation is from the last
word to the word after its previous occurrence; the previous occurrence itself is the distractor. In a word
counterfactual a new word stands in the place of the next one.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from interp.tasks.example import Example, MinimalPair
from interp.tasks.grammar.items import OTHER_WORDS, Frame, GeneratedTask, Plan, example, with_other_words
from interp.tasks.grammar.phrases import Word, Words, Writer, draw_within, split_of

SHORTEST, LONGEST = 5, 12
LONGEST_GAP = 3


class Repetition(NamedTuple):
    """A string that is repeated from ``start`` up to, but not with, ``stop``."""

    string: tuple[str, ...]  # different words
    gap: tuple[str, ...]  # words between the string and its repetition, different from all of it
    start: int  # index of the first word repeated
    stop: int  # index of the word that would come next; the one before it is the query
    foil: int  # index after ``stop`` of a word that is wrong there

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
    dice: Writer, *, length: int, gap: int, start: int, stop: int, used: frozenset[str] = frozenset()
) -> Repetition:
    """Draw a string and its gap, without regard to the held-out rule.

    No word is among those `used` (in lower case) or there twice, with or without a capital.
    """
    drawn: dict[str, str] = {}
    while len(drawn) < length + gap:
        word = dice.pick(dice.words.forms)
        if word.lower() not in used:
            drawn.setdefault(word.lower(), word)
    string = tuple(drawn.values())
    return Repetition(string[:length], string[length:], start, stop, dice.between(stop + 1, length - 1))


def training_string(dice: Writer) -> Words:
    """A string of random length, mostly repeated whole; every pair of neighbours is in the training split."""
    while True:
        length = dice.between(SHORTEST, LONGEST)
        gap = dice.between(1, LONGEST_GAP) if dice.chance(0.4) else 0
        start = 0 if dice.chance(0.6) else dice.between(0, length - 3)
        chain = _chain(dice, length + gap)
        if split_of(chain[-1], chain[start]) == "train":
            return [Word(word) for word in (*chain, *chain[start:length])]


def _chain(dice: Writer, length: int) -> list[str]:
    """Different words, each of which may follow the one before it in training."""
    chain = [dice.pick(dice.words.forms)]
    while len(chain) < length:
        word = dice.pick(dice.words.forms)
        if word not in chain and split_of(chain[-1], word) == "train":
            chain.append(word)
    return chain


FRAMES = {
    "whole": (
        Frame(None, length=6, gap=0, start=0, stop=3),
        Frame("short", length=9, gap=0, start=0, stop=5),
        Frame("medium", length=7, gap=0, start=0, stop=2),
        Frame("long", length=11, gap=0, start=0, stop=6),
        Frame("medium", length=8, gap=0, start=0, stop=4),
        Frame(None, length=12, gap=0, start=0, stop=9),
    ),
    "part": (
        Frame(None, length=8, gap=0, start=2, stop=5),
        Frame("short", length=10, gap=0, start=4, stop=7),
        Frame("medium", length=9, gap=0, start=3, stop=6),
        Frame("long", length=6, gap=0, start=1, stop=4),
        Frame(None, length=12, gap=0, start=5, stop=9),
        Frame("short", length=7, gap=0, start=2, stop=4),
    ),
    "gap": (
        Frame(None, length=6, gap=2, start=0, stop=3),
        Frame("short", length=8, gap=3, start=1, stop=4),
        Frame("medium", length=5, gap=1, start=0, stop=2),
        Frame("long", length=9, gap=2, start=0, stop=5),
        Frame("short", length=10, gap=1, start=3, stop=7),
        Frame(None, length=7, gap=3, start=0, stop=4),
    ),
}
STRUCTURES = tuple(FRAMES)


def _pair(plan: Plan) -> MinimalPair:
    drawn = draw_within(plan.split, partial(propose, plan.dice, **plan.options, used=plan.said))
    item, twin = (_with_new_words(plan, each) for each in (drawn, drawn.exchanged))
    return MinimalPair(
        item=twin if plan.flipped else item,
        counterfactual=item if plan.flipped else twin,
        cluster=drawn.string[drawn.stop - 1],
    )


def _with_new_words(plan: Plan, drawn: Repetition) -> Example:
    """The example, and it with words that are nowhere else in the place of the one that comes next."""
    used, found = {*plan.said, *(word.lower() for word in drawn.string + drawn.gap)}, list[Repetition]()
    while plan.split != "reference" and len(found) < OTHER_WORDS:
        word = plan.dice_of_others.pick(plan.dice.words.forms)
        if word.lower() not in used and split_of(drawn.string[drawn.stop - 1], word) == plan.split:
            used.add(word.lower())
            string = (*drawn.string[: drawn.stop], word, *drawn.string[drawn.stop + 1 :])
            found.append(drawn._replace(string=string))
    return with_other_words(_example(plan, drawn), (_example(plan, each) for each in found))


def _example(plan: Plan, drawn: Repetition) -> Example:
    return example(
        plan.before + drawn.words(),
        (drawn.string[drawn.stop], drawn.string[drawn.foil]),
        relation="word after the previous occurrence",
        related="next",
        distractors={"previous-occurrence": "previous occurrence"},
        template=plan.structure,
        features={"query": drawn.string[drawn.stop - 1], "next": drawn.string[drawn.stop]},
    )


TASK = GeneratedTask(
    "induction",
    "A sequence seen before goes on as it did the first time.",
    FRAMES,
    _pair,
    others="new word",
)
pairs = TASK.pairs
