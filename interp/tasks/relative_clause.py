"""Task: which noun does a verb agree with, across and within a relative clause?

The structures are those of Marvin and Linzen (2018, https://aclanthology.org/D18-1151), the sentences our own. A verb
behind a clause (``across``) agrees with the head noun, the verb of an object relative (``within``) with the noun in the
clause. Object relatives have a ``that`` or none.

* ``across subject relative``: "The author that likes the guards" smiles
* ``across object relative``, ``across reduced relative``: "The author (that) the guards like" smiles
* ``within object relative``, ``within reduced relative``: "The author (that) the guards near the lamps" like

The task ``agreement`` has relative clauses as well, all with ``that``, ``who`` or ``which``, and in the past, which
shows no number. Here the clause's verb is in the present. It shows the number of its own subject, so that in an object
relative the word next to the verb speaks for the wrong number half of the time; and verbs within the clause are asked.

Item and counterfactual differ in the number of the noun that the verb agrees with, and in a subject relative in that of
the clause's verb, too. The other nouns stay, whatever their number. The relation is from the last word before the verb
to the noun that it agrees with; the other nouns are distractors.

No two splits share a pair of a head noun and a noun in its clause.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from interp.tasks.example import Example, MinimalPair
from interp.tasks.grammar import phrases
from interp.tasks.grammar.items import Frame, GeneratedTask, Plan, example
from interp.tasks.grammar.lexicon import NUMBERS, Kind, Noun, Number, Verb, other
from interp.tasks.grammar.phrases import NEARNESS, Slots, Word, Words, Writer, fill, noun_phrase

TEMPLATES = {
    "across subject relative": "head that clause-verb inner place adverb",
    "across object relative": "head that inner place clause-verb adverb",
    "across reduced relative": "head inner place clause-verb adverb",
    "within object relative": "head that inner place adverb",
    "within reduced relative": "head inner place adverb",
}
"""The structures, slot by slot; a place is a preposition with a noun."""
STRUCTURES = tuple(TEMPLATES)
KINDS: tuple[Kind, ...] = ("person", "person", "animal")
"""How often the two nouns are of each kind: both sorts can do most things to each other."""


class RelativeClause(NamedTuple):
    """The words drawn for one sentence up to its verb; the subject's number is chosen when it is spelled out."""

    structure: str  # which template they fill
    head: Noun  # the noun that the clause is about
    inner: Noun  # the noun in the clause
    clause_verb: Verb  # what the one does to the other
    predicate: phrases.Predicate  # what the head does
    other_number: Number  # of the noun that the verb does not agree with
    slots: Slots  # what fills the other slots

    @property
    def within(self) -> bool:
        """Whether the verb of the clause is asked."""
        return self.structure.startswith("within")

    @property
    def subject(self) -> Noun:
        """The noun that the verb agrees with."""
        return self.inner if self.within else self.head

    @property
    def decisive(self) -> Iterator[tuple[str, str]]:
        """The two nouns."""
        yield self.head.singular, self.inner.singular

    @property
    def pairs(self) -> Iterator[tuple[str, str]]:
        """The decisive ones."""
        return self.decisive

    def answer(self, number: Number) -> str:
        """The verb after a subject in `number`."""
        return _present(self.clause_verb, number) if self.within else self.predicate.agreeing(number)

    def before_verb(self, number: Number) -> Words:
        """Everything up to the verb, with a subject in `number`, beginning with a capital."""
        head, inner = (self.other_number, number) if self.within else (number, self.other_number)
        does = head if "subject" in self.structure else inner
        slots: Slots = {
            "head": noun_phrase("the", self.head.form(head), "head"),
            "inner": noun_phrase("the", self.inner.form(inner), "inner"),
            "clause-verb": _present(self.clause_verb, does),
        }
        return fill(TEMPLATES[self.structure], slots | self.slots)


def _present(verb: Verb, number: Number) -> str:
    return verb.third if number == "singular" else verb.base


def propose(dice: Writer, structure: str, *, place: bool, adverb: bool) -> RelativeClause:
    """Draw the words of one sentence, without regard to the held-out rule."""
    does, done_to = dice.pick(KINDS), dice.pick(KINDS)
    head, inner = (does, done_to) if "subject" in structure else (done_to, does)
    near = noun_phrase("the", dice.noun("thing").form(dice.pick(NUMBERS)), "place")
    slots: Slots = {
        "place": [Word(dice.pick(NEARNESS), "preposition"), *near] if place else "",
        "adverb": dice.adverb(adverb),
    }
    verb = dice.pick(dice.words.transitive[does, done_to])
    nouns = dice.noun(head), dice.noun(inner)
    return RelativeClause(structure, *nouns, verb, dice.predicate(head), dice.pick(NUMBERS), slots)


FRAMES = (
    Frame(None, place=True, adverb=False),
    Frame("short", place=False, adverb=True),
    Frame("medium", place=True, adverb=True),
    Frame(None, place=False, adverb=True),
    Frame("long", place=True, adverb=False),
    Frame("short", place=True, adverb=True),
)
DISTRACTORS = {"head": "head noun", "inner": "noun in the clause", "place": "noun of the place"}


def _pair(plan: Plan) -> MinimalPair:
    drawn = phrases.draw_within(plan.split, partial(propose, plan.dice, plan.structure, **plan.options))
    number = NUMBERS[plan.flipped]
    item, twin = (_example(plan.before, drawn, each) for each in (number, other(number)))
    return MinimalPair(item, twin, cluster=drawn.subject.singular)


def _example(before: Words, drawn: RelativeClause, number: Number) -> Example:
    asked = "inner" if drawn.within else "head"
    return example(
        before + drawn.before_verb(number),
        (drawn.answer(number), drawn.answer(other(number))),
        relation="subject",
        related=asked,
        distractors={slot: role for slot, role in DISTRACTORS.items() if slot != asked},
        template=drawn.structure,
        features={
            "number": number,
            "congruent": "yes" if drawn.other_number == number else "no",
            "subject": drawn.subject.singular,
            "verb": drawn.clause_verb.base if drawn.within else drawn.predicate.lemma,
        },
    )


TASK = GeneratedTask(
    "relative_clause",
    "A verb agrees in number with its subject, across a relative clause or within one.",
    dict.fromkeys(STRUCTURES, FRAMES),
    _pair,
    feature="number",
)
pairs = TASK.pairs
