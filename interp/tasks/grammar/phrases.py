"""Words with slots, the phrases that they form, and filler sentences.

A phrase is a flat list of words, each with the slot that it fills: ``determiner``, ``subject``, ``attractor`` ... Slots
name the gold labels and, joined, the layout. No tree is needed, because a relation only asks for two words.

1. A noun phrase is a determiner that fits the number, perhaps an adjective, and the noun.
2. A predicate is drawn for a kind of subject. Its first word has a singular and a plural form; its lemma is what the
   held-out rule knows it by. The complement finishes the sentence: object, adjective or place.
3. Filler sentences vary where the sentence of interest begins. Most contain no count noun, name or gendered word; two
   do (``somewhere``, ``somebody``), so the first noun of a text need not be the one that decides.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Literal, NamedTuple

from interp.tasks.example import Span
from interp.tasks.grammar.draws import Dice
from interp.tasks.grammar.lexicon import GENDERS, KINDS, Kind, Name, Noun, Number, Person, Verb, VerbForm, Vocabulary

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


NUMBERS: tuple[Number, ...] = ("singular", "plural")

PREVERBAL = ("often", "always", "still", "also", "now")
"""Adverbs that stand between a subject and any finite verb."""

NEARNESS = ("near", "behind", "beside", "by", "with", "without", "under", "above")
"""Prepositions that relate nouns of every kind."""

GENERAL_ADJECTIVES = ("big", "small", "old", "young", "new", "good", "bad", "strange", "beautiful", "quiet")
"""Adjectives that stand before nouns of every kind."""

SUBJECT_KINDS: tuple[Kind, ...] = ("person", "person", "person", "animal", "thing", "thing", "place")
"""How often subjects are of each kind: most verbs want a person, and most nouns are things."""

AUXILIARIES: dict[str, tuple[tuple[str, str], ...]] = {
    "be": (("is", "are"), ("was", "were"), ("isn't", "aren't"), ("wasn't", "weren't")),
    "have": (("has", "have"), ("hasn't", "haven't")),
    "do": (("does", "do"), ("doesn't", "don't")),
}
INVARIANT_AUXILIARIES: dict[str, tuple[str, ...]] = {
    "had": ("had", "hadn't"),
    "did": ("did", "didn't"),
    "modal": (
        "can", "can't", "could", "couldn't", "may", "might", "must", "should", "shouldn't", "will", "won't", "would",
        "wouldn't",
    ),
}  # fmt: skip
Tense = Literal["past", "present", "be", "have", "do", "had", "did", "modal"]
TENSES: tuple[Tense, ...] = ("past", "present", "be", "have", "do", "had", "did", "modal")
AFTER: dict[str, VerbForm] = {
    "be": "gerund", "have": "participle", "do": "base", "had": "participle", "did": "base", "modal": "base",
}  # fmt: skip
"""Form of the lexical verb after each auxiliary."""

LEXICAL_SHARE = 0.5
"""Share of the predicates whose agreeing word is a lexical verb; the rest begin with an auxiliary."""


def determiner(dice: Dice, words: Vocabulary, number: Number) -> str:
    """A determiner for a noun in `number`; ``a`` may have to become ``an``."""
    return dice.pick(words.singular_determiners if number == "singular" else words.plural_determiners)


def form(noun: Noun, number: Number) -> str:
    """The noun's form in `number`."""
    return noun.singular if number == "singular" else noun.plural


def other(number: Number) -> Number:
    """The other number."""
    return "plural" if number == "singular" else "singular"


def noun_phrase(article: str, noun: str, slot: str = "", adjective: str = "") -> Words:
    """Determiner, perhaps an adjective, and the form `noun`, which fills `slot`."""
    if article == "a":
        article = indefinite_article(adjective or noun)
    if adjective:
        return [Word(article, "determiner"), Word(adjective, "adjective"), Word(noun, slot)]
    return [Word(article, "determiner"), Word(noun, slot)]


def person_phrase(person: Person, slot: str, number: Number = "singular") -> Words:
    """A first name, or ``the`` and a noun; the name or noun fills `slot`."""
    if isinstance(person, Name):
        return [Word(person.text, slot)]
    return noun_phrase("the", form(person, number), slot)


def person(dice: Dice, words: Vocabulary, gender: str, *, named: bool) -> Person:
    """A first name, or a noun for people of one gender."""
    return dice.pick(words.names[gender]) if named else dice.pick(words.gendered[gender])


def some_object(dice: Dice, words: Vocabulary, verb: Verb) -> Words:
    """Any phrase that the verb takes as its object; none where it takes none."""
    if not verb.objects:
        return []
    kind = dice.pick([each for each in KINDS if each in verb.objects])
    if kind == "person" and dice.chance(0.4):
        return [Word(dice.pick(words.names[dice.pick(GENDERS)]).text)]
    number = dice.pick(NUMBERS)
    adjective = dice.pick(GENERAL_ADJECTIVES) if dice.chance(0.15) else ""
    noun = form(dice.pick(words.nouns[kind]), number)
    return noun_phrase(determiner(dice, words, number), noun, adjective=adjective)


class Predicate(NamedTuple):
    """A verb whose first word agrees with the subject."""

    lemma: str  # of the agreeing word
    singular: str  # the agreeing word after a singular subject
    plural: str  # the agreeing word after a plural subject
    rest: str  # form of the lexical verb after an auxiliary, or "" where the verb itself agrees
    verb: Verb  # the lexical verb

    def agreeing(self, number: Number) -> str:
        """The agreeing word after a subject in `number`."""
        return self.singular if number == "singular" else self.plural


def predicate(dice: Dice, words: Vocabulary, kind: Kind) -> Predicate:
    """A predicate for a subject of `kind`, in a tense that shows the subject's number."""
    verb = dice.pick(words.verbs[kind])
    if dice.chance(LEXICAL_SHARE):
        return Predicate(verb.base, verb.third, verb.base, "", verb)
    lemma = dice.pick(("be", "be", "have", "do"))
    singular, plural = dice.pick(AUXILIARIES[lemma])
    return Predicate(lemma, singular, plural, getattr(verb, AFTER[lemma]), verb)


def complement(dice: Dice, words: Vocabulary, drawn: Predicate) -> Words:
    """What follows the agreeing word, to the end of the sentence."""
    if drawn.lemma == "be" and dice.chance(0.4):
        if dice.chance(0.6):
            return [Word(dice.pick(GENERAL_ADJECTIVES))]
        place = form(dice.pick(words.nouns["place"]), "singular")
        return [Word(dice.pick(NEARNESS)), *noun_phrase("the", place)]
    words_so_far = [Word(drawn.rest)] if drawn.rest else []
    if drawn.verb.particle:
        words_so_far.append(Word(drawn.verb.particle))
    return words_so_far + some_object(dice, words, drawn.verb)


def verb_phrase(dice: Dice, verb: Verb, tense: Tense, number: Number) -> Words:
    """The verb in a tense, with its auxiliary and particle, for a subject in `number`."""
    particle = [Word(verb.particle, "particle")] if verb.particle else []
    if tense == "past":
        return [Word(verb.past, "verb"), *particle]
    if tense == "present":
        return [Word(verb.third if number == "singular" else verb.base, "verb"), *particle]
    if tense in AUXILIARIES:
        auxiliary = dice.pick(AUXILIARIES[tense])[number == "plural"]
    else:
        auxiliary = dice.pick(INVARIANT_AUXILIARIES[tense])
    return [Word(auxiliary, "auxiliary"), Word(getattr(verb, AFTER[tense]), "verb"), *particle]


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
