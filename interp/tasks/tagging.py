"""The nouns and names of an English sentence, as far as the lexicon knows them.

1. The sentence is split at white space; punctuation at a word's edges and ``'s`` are not part of it.
2. From left to right, the longest entry of the lexicon that begins at a word is taken: a proper noun, a first name, a
   count noun or a mass noun, of up to three words. Of several words, the last is the head.
3. A form that is also a verb (``sketch``, ``tours``) counts as a noun only at the beginning of the sentence or after a
   determiner, an adjective or a preposition.

This tags simple sentences. What it cannot tell it leaves untagged; it never guesses at unknown words.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from interp.tasks.example import Span
from interp.tasks.grammar.lexicon import AUXILIARIES, NUMBERS, Gender, Noun, Number, VerbForm, english

LONGEST_ENTRY = 3
_AUXILIARY_NUMBER: dict[str, Number] = {
    form: number for pairs in AUXILIARIES.values() for pair in pairs for form, number in zip(pair, NUMBERS, strict=True)
}
_VERB_FORM_NUMBER: dict[VerbForm, Number] = {"third": "singular", "base": "plural"}


@dataclass(frozen=True)
class Word:
    """A word of a sentence without the punctuation around it, and where it stands."""

    text: str  # without ``'s``
    span: Span  # of the text
    possessive: bool = False  # whether ``'s`` follows: then the word is a determiner of what comes next


@dataclass(frozen=True)
class Nominal:
    """A noun or name in a sentence."""

    words: tuple[int, int]  # indices of its first and last word; the last is its head
    lemma: str  # the singular of a count noun; otherwise the name or noun itself
    number: Number | Literal[""]  # what a verb agrees with, or "" where the form does not say
    gender: Gender  # of the person denoted, or "" where the word does not say
    noun: Noun | None = None  # the lexicon's entry of a count noun, else None
    name: bool = False  # whether it is a first name


def words_of(sentence: str) -> list[Word]:
    """The words of `sentence` in order, without punctuation at their edges and without ``'s``."""
    words = []
    for match in re.finditer(r"[^\s.,;:?!\"()]+", sentence):
        text = match.group().removesuffix("'s")
        if text:
            span = Span(match.start(), match.start() + len(text))
            words.append(Word(text, span, possessive=text != match.group()))
    return words


def all_known(*sentences: str) -> bool:
    """Whether every word of the sentences is one that generated texts contain."""
    known = english().words()
    return all(word.text in known for sentence in sentences for word in words_of(sentence))


def nominals_of(words: Sequence[Word]) -> list[Nominal]:
    """The nouns and names among `words`, in order, without overlap.

    Of nouns in a row, as in ``college campus guard``, only the last counts: the others modify it.
    """
    found: list[Nominal] = []
    index = 0
    while index < len(words):
        nominal = _nominal_at(words, index)
        if nominal is not None and not words[nominal.words[1]].possessive:
            if found and found[-1].words[1] == index - 1 and not (found[-1].name or nominal.name):
                found.pop()
            found.append(nominal)
        index = index + 1 if nominal is None else nominal.words[1] + 1
    return found


def leading_nominal(words: Sequence[Word]) -> Nominal | None:
    """The head of the noun phrase that begins the sentence, where that can be told.

    Only determiners and adjectives may stand before it, and the word after it must be known:
    an unknown one may be the true head (``newspaper`` is none in ``newspaper zork``).
    """
    nominals = nominals_of(words)
    if not nominals:
        return None
    first, last = nominals[0].words
    before, after = words[:first], words[last + 1 : last + 2]
    told = all(word.text.lower() in _modifiers() for word in before)
    return nominals[0] if told and all(word.text in english().words() for word in after) else None


def verb_number(form: str) -> Number | None:
    """The number of the subject that the verb `form` asks for; None if any, or if it is unknown."""
    if form in _AUXILIARY_NUMBER:
        return _AUXILIARY_NUMBER[form]
    verb = english().verb_of(form)
    return None if verb is None else _VERB_FORM_NUMBER.get(verb[1])


def _nominal_at(words: Sequence[Word], index: int) -> Nominal | None:
    for length in range(min(LONGEST_ENTRY, len(words) - index), 0, -1):
        form = " ".join(word.text for word in words[index : index + length])
        nominal = _look_up(form, (index, index + length - 1))
        if nominal is not None and (nominal.name or _may_be_noun(words, index, length)):
            return nominal
    return None


def _look_up(form: str, place: tuple[int, int]) -> Nominal | None:
    lexicon = english()
    name, proper, noun = lexicon.name_of(form), lexicon.proper_noun_of(form), lexicon.noun_of(form)
    if name is not None:
        return Nominal(place, form, "singular", name.gender, name=True)
    if proper is not None:
        return Nominal(place, form, proper.number, "")
    if noun is not None:
        return Nominal(place, noun[0].singular, noun[1], noun[0].gender, noun=noun[0])
    return Nominal(place, form.lower(), "", "") if form.lower() in lexicon.mass_nouns else None


def _may_be_noun(words: Sequence[Word], index: int, length: int) -> bool:
    """Whether a form of the lexicon's nouns is not more likely a verb here."""
    ambiguous = length == 1 and english().verb_of(words[index].text.lower()) is not None
    if not ambiguous or index == 0:
        return True
    # Only the first "that" of a sentence is sure to be a determiner: "boys that sketch".
    before = words[index - 1].text
    return before == "That" or before.lower() in _before_nouns()


@lru_cache(maxsize=1)
def _modifiers() -> frozenset[str]:
    """The words that stand between the beginning of a noun phrase and its head."""
    lexicon = english()
    determiners = {part for determiner in lexicon.determiners for part in determiner.text.split()}
    return frozenset(determiners | set(lexicon.adjectives))


@lru_cache(maxsize=1)
def _before_nouns() -> frozenset[str]:
    """The words after which a form is a noun; not ``to`` ("to sketch"), nor ``that``."""
    return (_modifiers() | frozenset(english().prepositions)) - {"to", "that"}
