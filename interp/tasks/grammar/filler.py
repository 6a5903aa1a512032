"""Sentences about nobody, which vary where the sentence of interest begins.

Most contain no count noun, no name and no gendered word, so that they add neither an attractor nor an
antecedent. Two do (``somewhere``, ``somebody``), so that the first noun of a text need not be the one that
decides. A shape's own words are its slots: sentences of one shape are aligned word by word.
"""

from typing import Literal

from interp.tasks.grammar.dice import Dice
from interp.tasks.grammar.phrases import GENERAL_ADJECTIVES, NUMBERS, form
from interp.tasks.grammar.sentence import Word, Words, sentence
from interp.tasks.grammar.vocabulary import GENDERS, KINDS, Vocabulary

Shape = Literal["short", "medium", "long", "mass", "again", "nobody", "somewhere", "somebody"]

SHAPES: dict[Shape, str] = {
    "short": "it was ADJECTIVE",
    "medium": "everything there was very ADJECTIVE",
    "long": "yesterday it was ADJECTIVE and ADJECTIVE , but nobody was ADJECTIVE",
    "mass": "there was MASS",
    "again": "now it is ADJECTIVE again",
    "nobody": "nobody was ADJECTIVE , but MASS was ADJECTIVE there",
    "somewhere": "it was ADJECTIVE near the NOUN",
    "somebody": "it was ADJECTIVE near the PERSON",
}
ALL: tuple[Shape, ...] = tuple(SHAPES)


def filler(dice: Dice, words: Vocabulary, shape: Shape | None = None) -> Words:
    """A filler sentence of `shape`, or of any shape."""
    template = SHAPES[dice.pick(ALL) if shape is None else shape]
    return sentence([Word(_fill(dice, words, slot), slot) for slot in template.split()])


def opening(dice: Dice, words: Vocabulary, shape: Shape | None) -> Words:
    """A filler sentence of `shape`, or nothing."""
    return filler(dice, words, shape) if shape else []


def said(before: Words) -> frozenset[str]:
    """The words of an opening, in lower case: none of them is to decide the sentence after it."""
    return frozenset(word.text.lower() for word in before)


def _fill(dice: Dice, words: Vocabulary, slot: str) -> str:
    if slot == "ADJECTIVE":
        return dice.pick(GENERAL_ADJECTIVES)
    if slot == "MASS":
        return dice.pick(words.mass_nouns)
    if slot == "NOUN":
        return form(dice.pick(words.nouns[dice.pick(KINDS)]), dice.pick(NUMBERS))
    return dice.pick(words.gendered[dice.pick(GENDERS)]).singular if slot == "PERSON" else slot
