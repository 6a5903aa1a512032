"""Subjects and verbs, with nouns in between that must not decide.

Six structures (Linzen et al., 2016; Marvin and Linzen, 2018): ``simple``, ``prepositional`` (the key
to the cabinets), ``two prepositional``, ``subject relative`` (the boy that saw the girls),
``object relative`` (the keys that the man liked) and ``object relative prepositional``. The number
of the attractors is a parameter, independent of the subject's. Verbs inside relative clauses are in the
past, which shows no number: only the subject tells the answer.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from interp.tasks.grammar.dice import Dice
from interp.tasks.grammar.lexicon import Noun, Number, Verb
from interp.tasks.grammar.phrases import (
    GENERAL_ADJECTIVES,
    NEARNESS,
    NUMBERS,
    PREVERBAL,
    SUBJECT_KINDS,
    Predicate,
    complement,
    form,
    noun_phrase,
    predicate,
)
from interp.tasks.grammar.sentence import Word, Words, sentence
from interp.tasks.grammar.splits import draw_within
from interp.tasks.grammar.vocabulary import KINDS, Vocabulary

Structure = Literal[
    "simple",
    "prepositional",
    "two prepositional",
    "subject relative",
    "object relative",
    "object relative prepositional",
]
STRUCTURES: tuple[Structure, ...] = (
    "simple",
    "prepositional",
    "two prepositional",
    "subject relative",
    "object relative",
    "object relative prepositional",
)
ATTRACTORS: dict[Structure, int] = dict(zip(STRUCTURES, (0, 1, 2, 1, 1, 2), strict=True))
ATTRACTOR_SLOTS = ("attractor-1", "attractor-2")
DETERMINERS = ("the", "the", "the", "some")
"""They go with both numbers, so that only nouns show number."""


class Agreement(NamedTuple):
    """The words drawn for one sentence up to its verb; numbers are chosen when it is spelled out.

    Attributes:
        structure: Which structure they fill.
        subject: Head of the subject.
        attractors: Nouns between the head and the verb, in order.
        prepositions: One for each prepositional phrase, in order.
        clause_verb: Verb of the relative clause, if there is one.
        relative: ``that``, ``who`` or ``which``.
        predicate: The verb that agrees with the subject.
        determiners: One for the subject and one for each attractor.
        adjective: Of the first attractor, or of the subject in ``simple``; "" for none.
        adverb: Between the subject and its verb; "" for none.
    """

    structure: Structure
    subject: Noun
    attractors: tuple[Noun, ...]
    prepositions: tuple[str, ...]
    clause_verb: Verb | None
    relative: str
    predicate: Predicate
    determiners: tuple[str, ...]
    adjective: str
    adverb: str

    @property
    def decisive(self) -> Iterator[tuple[str, str]]:
        """Subject and attractors; in ``simple``, subject and verb."""
        if not self.attractors:
            yield self.subject.singular, self.predicate.lemma
        for attractor in self.attractors:
            yield self.subject.singular, attractor.singular

    @property
    def pairs(self) -> Iterator[tuple[str, str]]:
        """The decisive ones, and every verb and auxiliary with its subject."""
        yield from self.decisive
        yield self.subject.singular, self.predicate.lemma
        yield self.subject.singular, self.predicate.verb.base
        if self.clause_verb is not None:
            does = self.subject if self.structure == "subject relative" else self.attractors[0]
            yield does.singular, self.clause_verb.base

    def before_verb(self, number: Number, attractor_number: Number) -> Words:
        """Everything up to the verb, not capitalised."""
        adverb = [Word(self.adverb, "adverb")] if self.adverb else []
        head_adjective = "" if self.attractors else self.adjective
        head = noun_phrase(self.determiners[0], form(self.subject, number), "subject", head_adjective)
        phrases = [
            noun_phrase(article, form(noun, attractor_number), slot, adjective)
            for article, noun, slot, adjective in zip(
                self.determiners[1:], self.attractors, ATTRACTOR_SLOTS, (self.adjective, ""), strict=False
            )
        ]
        return [*head, *self._modifier(phrases), *adverb]

    def _modifier(self, phrases: list[Words]) -> Words:
        """What stands between the head and the verb."""
        steps = [Word(each, "preposition") for each in self.prepositions]
        if self.clause_verb is None:
            return [word for step, phrase in zip(steps, phrases, strict=True) for word in (step, *phrase)]
        verb, relative = Word(self.clause_verb.past, "clause-verb"), Word(self.relative, "relative")
        if self.structure == "subject relative":
            return [relative, verb, *phrases[0]]
        if self.structure == "object relative":
            return [relative, *phrases[0], verb]
        return [relative, *phrases[0], steps[0], *phrases[1], verb]


def propose(dice: Dice, words: Vocabulary, structure: Structure, *, adjective: bool, adverb: bool) -> Agreement:
    """Draw the words of one sentence, without regard to the held-out rule."""
    clause_verb = None
    subject_kind, attractor_kind = dice.pick(SUBJECT_KINDS), dice.pick(KINDS)
    if "relative" in structure:
        roles = dice.pick(tuple(words.transitive))
        clause_verb = dice.pick(words.transitive[roles])
        subject_kind, attractor_kind = roles if structure == "subject relative" else roles[::-1]
    subject = dice.pick(words.nouns[subject_kind])
    count = ATTRACTORS[structure]
    attractors = tuple(dice.pick(words.nouns[kind]) for kind in (attractor_kind, dice.pick(KINDS))[:count])
    return Agreement(
        structure=structure,
        subject=subject,
        attractors=attractors,
        prepositions=_prepositions(dice, subject, structure),
        clause_verb=clause_verb,
        relative=dice.pick(("that", "who") if subject_kind == "person" else ("that", "which")),
        predicate=predicate(dice, words, subject_kind),
        determiners=tuple(dice.pick(DETERMINERS) for _ in range(1 + count)),
        adjective=dice.pick(GENERAL_ADJECTIVES) if adjective else "",
        adverb=dice.pick(PREVERBAL) if adverb else "",
    )


def _prepositions(dice: Dice, subject: Noun, structure: Structure) -> tuple[str, ...]:
    """``of`` or ``to`` where the noun takes a complement; otherwise where it is."""
    count = {"prepositional": 1, "two prepositional": 2, "object relative prepositional": 1}.get(structure, 0)
    steps = [dice.pick(NEARNESS) for _ in range(count)]
    if "relative" not in structure and count and subject.preposition and dice.chance(0.6):
        steps[0] = subject.preposition
    return tuple(steps)


def training_sentence(dice: Dice, words: Vocabulary) -> Words:
    """A whole sentence of any structure, the attractors' number independent of the subject's."""
    structure = dice.pick(STRUCTURES)
    adjective, adverb = dice.chance(0.3), dice.chance(0.3)
    drawn = draw_within("train", lambda: propose(dice, words, structure, adjective=adjective, adverb=adverb))
    number = dice.pick(NUMBERS)
    verb = Word(drawn.predicate.agreeing(number), "verb")
    rest = complement(dice, words, drawn.predicate)
    return sentence([*drawn.before_verb(number, dice.pick(NUMBERS)), verb, *rest])
