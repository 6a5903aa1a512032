"""Noun phrases and the two parts of a predicate: the word that agrees, and what follows it.

1. A noun phrase is a determiner that fits the number, perhaps an adjective, and the noun.
2. A predicate is drawn for a kind of subject. Its first word comes in a singular and a plural form
   (``is`` and ``are``, ``likes`` and ``like``); its lemma is what the held-out rule knows it by.
3. The complement finishes the sentence: object, adjective or place.
"""

from typing import Literal, NamedTuple

from interp.tasks.grammar.dice import Dice
from interp.tasks.grammar.lexicon import Kind, Name, Noun, Number, Verb, VerbForm
from interp.tasks.grammar.sentence import Word, Words, indefinite_article
from interp.tasks.grammar.vocabulary import GENDERS, KINDS, Person, Vocabulary

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
    """A verb whose first word agrees with the subject.

    Attributes:
        lemma: Of the agreeing word.
        singular: The agreeing word after a singular subject.
        plural: The agreeing word after a plural subject.
        rest: Form of the lexical verb after an auxiliary, or "" where the verb itself agrees.
        verb: The lexical verb.
    """

    lemma: str
    singular: str
    plural: str
    rest: str
    verb: Verb

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
