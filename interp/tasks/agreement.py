"""Task: does the verb agree with its subject, whatever stands between them?

Six structures (Linzen et al., 2016, https://aclanthology.org/Q16-1037; Marvin and Linzen, 2018): ``simple``,
``prepositional`` (the key to the cabinets), ``two prepositional``, ``subject relative`` (the boy that saw the girls),
``object relative`` (the keys that the man liked) and ``object relative prepositional``. Verbs of relative clauses are
in the past, which shows no number: only the subject tells the answer.

Item and counterfactual differ in the number of the subject alone. The attractors stay, so one of the two is congruent
(attractors in the subject's number) and the other is not. In a third of the items another noun stands in the sentence
before, so the subject is not always the first noun. The relation is from the last word before the verb to the subject's
head noun.

No two splits share a pair of subject and attractor, or in ``simple`` of subject and verb.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from interp.tasks.example import Example, MinimalPair
from interp.tasks.grammar import phrases
from interp.tasks.grammar.items import Frame, GeneratedTask, Plan, example
from interp.tasks.grammar.lexicon import KINDS, NUMBERS, SUBJECT_KINDS, Noun, Number, Verb, other
from interp.tasks.grammar.phrases import Slots, Word, Words, Writer, fill, noun_phrase

TEMPLATES = {
    "simple": "subject adverb",
    "prepositional": "subject step-1 attractor-1 adverb",
    "two prepositional": "subject step-1 attractor-1 step-2 attractor-2 adverb",
    "subject relative": "subject relative clause-verb attractor-1 adverb",
    "object relative": "subject relative attractor-1 clause-verb adverb",
    "object relative prepositional": "subject relative attractor-1 step-1 attractor-2 clause-verb adverb",
}
"""The structures, slot by slot; a step is a preposition."""
STRUCTURES = tuple(TEMPLATES)
ATTRACTORS = {structure: template.count("attractor") for structure, template in TEMPLATES.items()}
DETERMINERS = ("the", "the", "the", "some")
"""They go with both numbers, so that only nouns show number."""


class Agreement(NamedTuple):
    """The words drawn for one sentence up to its verb; numbers are chosen when it is spelled out."""

    structure: str  # which template they fill
    subject: Noun  # head of the subject
    attractors: tuple[Noun, ...]  # nouns between the head and the verb, in order
    clause_verb: Verb | None  # verb of the relative clause, if there is one
    predicate: phrases.Predicate  # the verb that agrees with the subject
    determiners: tuple[str, ...]  # one for the subject and one for each attractor
    adjective: str  # of the first attractor, or of the subject in ``simple``; "" for none
    slots: Slots  # what fills the other slots

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
        """Everything up to the verb, beginning with a capital."""
        adjectives = ("", self.adjective, "") if self.attractors else (self.adjective,)
        forms = self.subject.form(number), *(noun.form(attractor_number) for noun in self.attractors)
        slots = ("subject", "attractor-1", "attractor-2")
        nouns = zip(self.determiners, forms, slots, adjectives, strict=False)
        found: Slots = {slot: noun_phrase(article, form, slot, adjective) for article, form, slot, adjective in nouns}
        return fill(TEMPLATES[self.structure], found | self.slots)


def propose(dice: Writer, structure: str, *, adjective: bool, adverb: bool) -> Agreement:
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
    steps = [dice.pick(phrases.NEARNESS) for _ in range(TEMPLATES[structure].count("step"))]
    if "relative" not in structure and steps and subject.preposition and dice.chance(0.6):
        steps[0] = subject.preposition  # ``of`` or ``to``, where the noun takes a complement
    slots: Slots = {
        **{f"step-{number}": [Word(step, "preposition")] for number, step in enumerate(steps, start=1)},
        "relative": dice.pick(("that", "who") if subject_kind == "person" else ("that", "which")),
        "clause-verb": clause_verb.past if clause_verb else "",
    }
    predicate = dice.predicate(subject_kind)
    determiners = tuple(dice.pick(DETERMINERS) for _ in range(1 + count))
    adjective_ = dice.adjective(adjective)
    slots["adverb"] = dice.adverb(adverb)
    return Agreement(structure, subject, attractors, clause_verb, predicate, determiners, adjective_, slots)


def training_sentence(dice: Writer) -> Words:
    """A whole sentence of any structure, the attractors' number independent of the subject's."""
    structure = dice.pick(STRUCTURES)
    adjective, adverb = dice.chance(0.3), dice.chance(0.3)
    drawn = phrases.draw_within("train", lambda: propose(dice, structure, adjective=adjective, adverb=adverb))
    number = dice.pick(NUMBERS)
    verb = Word(drawn.predicate.agreeing(number), "verb")
    rest = dice.complement(drawn.predicate)
    return phrases.sentence([*drawn.before_verb(number, dice.pick(NUMBERS)), verb, *rest])


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


def _pair(plan: Plan) -> MinimalPair:
    proposing = partial(propose, plan.dice, plan.structure, **plan.options)
    drawn = phrases.draw_within(plan.split, proposing, admit=partial(_unsaid, plan.said))
    number, attractors = NUMBERS[plan.flipped], plan.dice.pick(NUMBERS)
    return MinimalPair(
        item=_example(plan.before, drawn, number, attractors),
        counterfactual=_example(plan.before, drawn, other(number), attractors),
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
        before + drawn.before_verb(number, attractors),
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


TASK = GeneratedTask(
    "agreement",
    "The verb agrees in number with its subject, whatever nouns stand between them.",
    dict.fromkeys(STRUCTURES, FRAMES),
    _pair,
    feature="number",
)
pairs = TASK.pairs
