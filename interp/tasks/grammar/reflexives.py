"""Reflexives and the subject that they refer to, with other people in between.

``simple``: "Katherine can't help" herself. ``prepositional``: "The king near the girl saw" himself.
``subject relative``: "The king that met the girl saw". ``object relative``: "The king that the girl
met saw". Verbs come in every tense and with particles ("thought about").
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from interp.tasks.grammar.dice import Dice
from interp.tasks.grammar.lexicon import Kind, Noun, Number, Verb
from interp.tasks.grammar.phrases import (
    AUXILIARIES,
    NEARNESS,
    NUMBERS,
    PREVERBAL,
    TENSES,
    Tense,
    determiner,
    form,
    noun_phrase,
    person,
    person_phrase,
    verb_phrase,
)
from interp.tasks.grammar.sentence import FULL_STOP, Word, Words, sentence, sentence_start
from interp.tasks.grammar.splits import allowed, draw_within
from interp.tasks.grammar.vocabulary import GENDERS, KINDS, Person, Vocabulary, lemma

Structure = Literal["simple", "prepositional", "subject relative", "object relative"]
STRUCTURES: tuple[Structure, ...] = ("simple", "prepositional", "subject relative", "object relative")
REFLEXIVE_KINDS: tuple[Kind, ...] = ("person", "person", "animal", "thing", "place")
REFLEXIVES = {"female": "herself", "male": "himself"}


class Reflexive(NamedTuple):
    """The words drawn for one sentence up to its reflexive.

    Attributes:
        structure: Which structure they fill.
        subject: What the reflexive refers to.
        attractor: The other person of the structures with one.
        preposition: Between the two in ``prepositional``.
        clause_verb: Verb of the relative clause.
        relative: ``that`` or ``who``.
        verb: The verb whose object is the reflexive.
        tense: Of that verb.
        verb_words: The verb as it stands, with auxiliaries and particle, for a singular subject.
        adverb: Before the verb; "" for none.
    """

    structure: Structure
    subject: Person
    attractor: Person
    preposition: str
    clause_verb: Verb
    relative: str
    verb: Verb
    tense: Tense
    verb_words: Words
    adverb: str

    @property
    def decisive(self) -> Iterator[tuple[str, str]]:
        """The subject with the attractor; in ``simple``, with the verb."""
        yield lemma(self.subject), self.verb.base if self.structure == "simple" else lemma(self.attractor)

    @property
    def pairs(self) -> Iterator[tuple[str, str]]:
        """The subject with the attractor, and every verb with its subject."""
        yield lemma(self.subject), self.verb.base
        if isinstance(self.subject, Noun) and self.tense in AUXILIARIES:
            yield lemma(self.subject), self.tense
        if self.structure != "simple":
            yield lemma(self.subject), lemma(self.attractor)
        if "relative" in self.structure:
            does = self.subject if self.structure == "subject relative" else self.attractor
            yield lemma(does), self.clause_verb.base

    def before_reflexive(self) -> Words:
        """Everything up to the reflexive, beginning with a capital."""
        subject = person_phrase(self.subject, "antecedent")
        attractor = person_phrase(self.attractor, "attractor")
        clause_verb = Word(self.clause_verb.past, "clause-verb")
        relative = Word(self.relative, "relative")
        between: dict[Structure, Words] = {
            "simple": [],
            "prepositional": [Word(self.preposition, "preposition"), *attractor],
            "subject relative": [relative, clause_verb, *attractor],
            "object relative": [relative, *attractor, clause_verb],
        }
        adverb = [Word(self.adverb, "adverb")] if self.adverb else []
        return sentence_start([*subject, *between[self.structure], *adverb, *self.verb_words])


def propose(
    dice: Dice,
    words: Vocabulary,
    structure: Structure,
    *,
    gender: str,
    named: tuple[bool, bool],
    tense: Tense,
    particle: bool,
    adverb: bool,
) -> Reflexive:
    """Draw the words of one sentence, without regard to the held-out rule.

    Args:
        dice: Draws the words.
        words: Candidates for them.
        structure: Which structure they fill.
        gender: Of the subject.
        named: Whether the subject, and the attractor, is a first name rather than a noun. The head of a relative
            clause never is: "Tracy that" is no English.
        tense: Of the verb.
        particle: Whether the verb has one.
        adverb: Whether there is one before the verb.
    """
    verb = dice.pick(words.done_to_oneself[particle])
    return Reflexive(
        structure=structure,
        subject=person(dice, words, gender, named=named[0] and "relative" not in structure),
        attractor=person(dice, words, dice.pick(GENDERS), named=named[1]),
        preposition=dice.pick(NEARNESS),
        clause_verb=dice.pick(words.transitive["person", "person"]),
        relative=dice.pick(("that", "who")),
        verb=verb,
        tense=tense,
        verb_words=verb_phrase(dice, verb, tense, "singular"),
        adverb=dice.pick(PREVERBAL) if adverb else "",
    )


def training_sentence(dice: Dice, words: Vocabulary) -> Words:
    """A whole sentence: mostly about one person, else about several or about a thing."""
    if dice.chance(0.35):
        return _of_any_number(dice, words)
    structure = "simple" if dice.chance(0.5) else dice.pick(STRUCTURES)
    gender, adverb = dice.pick(GENDERS), dice.chance(0.3)
    named = (dice.chance(0.65), dice.chance(0.5))
    tense, particle = dice.pick(TENSES), dice.chance(0.15)
    drawn = draw_within(
        "train",
        lambda: propose(
            dice, words, structure, gender=gender, named=named, tense=tense, particle=particle, adverb=adverb
        ),
    )
    return [*drawn.before_reflexive(), Word(REFLEXIVES[gender]), FULL_STOP]


def _of_any_number(dice: Dice, words: Vocabulary) -> Words:
    """A sentence about several people or things, or about one thing: ``Some museum scared itself``."""
    kind = dice.pick(REFLEXIVE_KINDS)
    number: Number = "plural" if kind == "person" or dice.chance(0.5) else "singular"
    attractor = dice.pick(words.nouns[dice.pick(KINDS)])
    while True:
        noun, verb, tense = dice.pick(words.nouns[kind]), dice.pick(words.reflexive[kind]), dice.pick(TENSES)
        agreeing = tense if tense in AUXILIARIES else verb.base
        if allowed(((noun.singular, each) for each in (agreeing, verb.base, attractor.singular)), "train"):
            break
    bare = number == "plural" and dice.chance(0.25)
    article = determiner(dice, words, number)
    subject = [Word(form(noun, number))] if bare else noun_phrase(article, form(noun, number))
    beside = form(attractor, dice.pick(NUMBERS))
    modifier = [Word(dice.pick(NEARNESS)), *noun_phrase("the", beside)] if dice.chance(0.3) else []
    reflexive = "themselves" if number == "plural" else "itself"
    predicate = verb_phrase(dice, verb, tense, number)
    return sentence([*subject, *modifier, *predicate, Word(reflexive)])
