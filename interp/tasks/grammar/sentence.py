"""How do words with labels become text with character spans?

A phrase is a flat list of words, each with the slot that it fills: ``determiner``, ``subject``,
``attractor`` ... Slots name the gold labels and, joined, the layout. No tree is needed, because
a relation only asks for two words.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from interp.tasks.example import Span

PUNCTUATION = frozenset(".,")
_CONSONANT_SOUNDS = ("uni", "use", "usu", "eu", "one", "once")
_VOWEL_SOUNDS = ("hour", "honest", "heir", "honor")


class Word(NamedTuple):
    """A word, or a punctuation mark, and the slot that it fills."""

    text: str
    slot: str = ""


Words = list[Word]
FULL_STOP = Word(".", ".")
COMMA = Word(",", ",")


def render(words: Sequence[Word]) -> str:
    """The text: words separated by spaces, punctuation attached to the word before."""
    pieces = [word[0] if word[0] in PUNCTUATION else " " + word[0] for word in words]
    return "".join(pieces)[1:]


def spans(words: Sequence[Word]) -> list[Span]:
    """The span of each word in ``render(words)``."""
    pieces = [word.text if word.text in PUNCTUATION else " " + word.text for word in words]
    stops = [stop - 1 for stop in accumulate(len(piece) for piece in pieces)]
    return [Span(stop - len(word.text), stop) for word, stop in zip(words, stops, strict=True)]


def layout(words: Sequence[Word]) -> str:
    """The slots in order: equal where each position means the same."""
    return " ".join(word.slot for word in words)


def sentence_start(words: Words) -> Words:
    """`words` with the first one capitalised."""
    first = words[0]
    return [Word(first.text[0].upper() + first.text[1:], first.slot), *words[1:]]


def sentence(words: Words) -> Words:
    """`words` as a whole sentence: capitalised, with a full stop."""
    return [*sentence_start(words), FULL_STOP]


def indefinite_article(following: str) -> str:
    """``an`` before a vowel sound, ``a`` otherwise."""
    lower = following.lower()
    if lower.startswith(_CONSONANT_SOUNDS):
        return "a"
    return "an" if lower[0] in "aeiou" or lower.startswith(_VOWEL_SOUNDS) else "a"
