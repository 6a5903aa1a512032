"""Task: does the verb agree with its subject, whatever stands between them?

Six structures (Linzen et al., 2016, https://aclanthology.org/Q16-1037; Marvin and Linzen, 2018): ``simple``,
``prepositional`` (the key to the cabinets), ``two prepositional``, ``subject relative`` (the boy that saw the girls),
``object relative`` (the keys that the man liked) and ``object relative prepositional``. Verbs of relative clauses are
in the past, which shows no number: only the subject tells the answer.

Item and counterfactual differ in the number of the subject alone. The attractors stay, so one of the two is congruent
(attractors in the subject's number) and the other is not. In a third of the items another noun stands in the sentence
before, so the subject is not always the first noun. The relation is from the last word before the verb to the subject's
head noun.
"""

from collections.abc import Iterator
from functools import partial
from typing import Literal, NamedTuple, get_args

from interp.tasks.example import Example, MinimalPair
from interp.tasks.grammar.items import Frame, example, schedule
from interp.tasks.grammar.lexicon import KINDS, NUMBERS, SUBJECT_KINDS, Noun, Number, Verb, other
from interp.tasks.grammar.phrases import (
    NEARNESS,
    Predicate,
    Split,
    Word,
    Words,
    Writer,
    draw_within,
    noun_phrase,
    said,
    sentence,
    sentence_start,
)

Structure = Literal[
    "simple",
    "prepositional",
    "two prepositional",
    "subject relative",
    "object relative",
    "object relative prepositional",
]
STRUCTURES: tuple[Structure, ...] = get_args(Structure)
ATTRACTORS: dict[Structure, int] = dict(zip(STRUCTURES, (0, 1, 2, 1, 1, 2), strict=True))
ATTRACTOR_SLOTS = ("attractor-1", "attractor-2")
DETERMINERS = ("the", "the", "the", "some")
"""They go with both numbers, so that only nouns show number."""


class Agreement(NamedTuple):
    """The words drawn for one sentence up to its verb; numbers are chosen when it is spelled out."""

    structure: Structure  # which structure they fill
    subject: Noun  # head of the subject
    attractors: tuple[Noun, ...]  # nouns between the head and the verb, in order
    prepositions: tuple[str, ...]  # one for each prepositional phrase, in order
    clause_verb: Verb | None  # verb of the relative clause, if there is one
    relative: str  # ``that``, ``who`` or ``which``
    predicate: Predicate  # the verb that agrees with the subject
    determiners: tuple[str, ...]  # one for the subject and one for each attractor
    adjective: str  # of the first attractor, or of the subject in ``simple``; "" for none
    adverb: str  # between the subject and its verb; "" for none

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
        head = noun_phrase(self.determiners[0], self.subject.form(number), "subject", head_adjective)
        phrases = [
            noun_phrase(article, noun.form(attractor_number), slot, adjective)
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


def propose(dice: Writer, structure: Structure, *, adjective: bool, adverb: bool) -> Agreement:
    """Draw the words of one sentence, without regard to the held-out rule."""
    clause_verb = None
    subject_kind, attractor_kind = dice.pick(SUBJECT_KINDS), dice.pick(KINDS)
    if "relative" in structure:
        roles = dice.pick(tuple(dice.words.transitive))
        clause_verb = dice.pick(dice.words.transitive[roles])
        subject_kind, attractor_kind = roles if structure == "subject relative" else roles[::-1]
    subject = dice.noun(subject_kind)
    count = ATTRACTORS[structure]
    attractors = tuple(dice.noun(kind) for kind in (attractor_kind, dice.pick(KINDS))[:count])
    return Agreement(
        structure=structure,
        subject=subject,
        attractors=attractors,
        prepositions=_prepositions(dice, subject, structure),
        clause_verb=clause_verb,
        relative=dice.pick(("that", "who") if subject_kind == "person" else ("that", "which")),
        predicate=dice.predicate(subject_kind),
        determiners=tuple(dice.pick(DETERMINERS) for _ in range(1 + count)),
        adjective=dice.adjective(adjective),
        adverb=dice.adverb(adverb),
    )


def _prepositions(dice: Writer, subject: Noun, structure: Structure) -> tuple[str, ...]:
    """``of`` or ``to`` where the noun takes a complement; otherwise where it is."""
    count = {"prepositional": 1, "two prepositional": 2, "object relative prepositional": 1}.get(structure, 0)
    steps = [dice.pick(NEARNESS) for _ in range(count)]
    if "relative" not in structure and count and subject.preposition and dice.chance(0.6):
        steps[0] = subject.preposition
    return tuple(steps)


def training_sentence(dice: Writer) -> Words:
    """A whole sentence of any structure, the attractors' number independent of the subject's."""
    structure = dice.pick(STRUCTURES)
    adjective, adverb = dice.chance(0.3), dice.chance(0.3)
    drawn = draw_within("train", lambda: propose(dice, structure, adjective=adjective, adverb=adverb))
    number = dice.pick(NUMBERS)
    verb = Word(drawn.predicate.agreeing(number), "verb")
    rest = dice.complement(drawn.predicate)
    return sentence([*drawn.before_verb(number, dice.pick(NUMBERS)), verb, *rest])


FRAMES = (
    Frame(None, adjective=False, adverb=False),
    Frame("somewhere", adjective=False, adverb=True),
    Frame("medium", adjective=True, adverb=False),
    Frame(None, adjective=True, adverb=True),
    Frame("long", adjective=False, adverb=True),
    Frame("somewhere", adjective=False, adverb=False),
)
DISTRACTORS = {
    "attractor-1": "first attractor",
    "attractor-2": "second attractor",
    "NOUN": "noun of the sentence before",
}


def pairs(n: int, *, seed: int, split: Split = "test") -> Iterator[MinimalPair]:
    """Draw `n` minimal pairs, the structures in turn; `n` below 1 raises ``TaskError``.

    Args:
        n: How many; the first items are the same for every `n`.
        seed: Names the draw.
        split: Whose pairs of subject and attractor, or in ``simple`` of subject and verb, they use.
    """
    frames = dict.fromkeys(STRUCTURES, FRAMES)
    for plan in schedule("agreement", n, seed=seed, split=split, frames=frames):
        dice, before = plan.dice, plan.before
        proposing = partial(propose, dice, plan.structure, **plan.options)
        drawn = draw_within(split, proposing, admit=partial(_unsaid, said(before)))
        number, attractors = NUMBERS[plan.flipped], dice.pick(NUMBERS)
        yield MinimalPair(
            item=_example(before, drawn, number, attractors),
            counterfactual=_example(before, drawn, other(number), attractors),
            cluster=drawn.subject.singular,
        )


def _unsaid(used: frozenset[str], drawn: Agreement) -> bool:
    """Whether neither subject nor attractor stands in the sentence before, in either number."""
    nouns = drawn.subject, *drawn.attractors
    return used.isdisjoint(noun.form(number).lower() for noun in nouns for number in NUMBERS)


def _example(before: Words, drawn: Agreement, number: Number, attractors: Number) -> Example:
    verb = drawn.predicate
    congruent = "yes" if attractors == number else "no"
    return example(
        before + sentence_start(drawn.before_verb(number, attractors)),
        (verb.agreeing(number), verb.agreeing(other(number))),
        relation="subject",
        related="subject",
        distractors=DISTRACTORS,
        template=drawn.structure,
        features={
            "number": number,
            "congruent": congruent if drawn.attractors else "no attractor",
            "subject": drawn.subject.singular,
            "verb": verb.lemma,
        },
    )
