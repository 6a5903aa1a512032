"""Task: does a reflexive have the gender of its clause's subject?

``simple``: "Katherine can't help" herself. ``prepositional``: "The king near the girl saw" himself. ``subject
relative``: "The king that met the girl saw". ``object relative``: "The king that the girl met saw". Verbs come in every
tense and with particles ("thought about").

Item and counterfactual differ in the subject alone, which has the other gender. The attractor stays, so one of the two
is congruent (attractor of the subject's gender) and the other is not. In a third of the items another person stands in
the sentence before, so the subject is not always the first one. The relation is from the last word before the reflexive
to the subject.

No two splits share a pair of subject and attractor, or in ``simple`` of subject and verb.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from interp.tasks.example import Example, MinimalPair
from interp.tasks.grammar import lexicon, phrases
from interp.tasks.grammar.items import Frame, GeneratedTask, Plan, example
from interp.tasks.grammar.lexicon import GENDERS, Name, Noun, Number, Person, Tense, Verb, lemma, opposite
from interp.tasks.grammar.phrases import Slots, Word, Words, Writer, noun_phrase, person_phrase, sentence

TEMPLATES = {
    "simple": "antecedent adverb reflexive-verb",
    "prepositional": "antecedent preposition attractor adverb reflexive-verb",
    "subject relative": "antecedent relative clause-verb attractor adverb reflexive-verb",
    "object relative": "antecedent relative attractor clause-verb adverb reflexive-verb",
}
"""The structures, slot by slot."""
STRUCTURES = tuple(TEMPLATES)
REFLEXIVE_KINDS: tuple[lexicon.Kind, ...] = ("person", "person", "animal", "thing", "place")
REFLEXIVES = {"female": "herself", "male": "himself"}


class Reflexive(NamedTuple):
    """The words drawn for one sentence up to its reflexive."""

    structure: str  # which template they fill
    subject: Person  # what the reflexive refers to
    attractor: Person  # the other person of the structures with one
    clause_verb: Verb  # verb of the relative clause
    verb: Verb  # the verb whose object is the reflexive
    tense: Tense  # of that verb
    slots: Slots  # what fills the other slots; the verb as it stands, for a singular subject

    @property
    def decisive(self) -> Iterator[tuple[str, str]]:
        """The subject with the attractor; in ``simple``, with the verb."""
        yield lemma(self.subject), self.verb.base if self.structure == "simple" else lemma(self.attractor)

    @property
    def pairs(self) -> Iterator[tuple[str, str]]:
        """The subject with the attractor, and every verb with its subject."""
        yield lemma(self.subject), self.verb.base
        if isinstance(self.subject, Noun) and self.tense in lexicon.AUXILIARIES:
            yield lemma(self.subject), self.tense
        if self.structure != "simple":
            yield lemma(self.subject), lemma(self.attractor)
        if "relative" in self.structure:
            does = self.subject if self.structure == "subject relative" else self.attractor
            yield lemma(does), self.clause_verb.base

    def before_reflexive(self) -> Words:
        """Everything up to the reflexive, beginning with a capital."""
        slots: Slots = {
            "antecedent": person_phrase(self.subject, "antecedent"),
            "attractor": person_phrase(self.attractor, "attractor"),
            "clause-verb": self.clause_verb.past,
        }
        return phrases.fill(TEMPLATES[self.structure], slots | self.slots)


def propose(
    dice: Writer, structure: str, *, gender: str, named: tuple[bool, bool], tense: Tense, particle: bool, adverb: bool
) -> Reflexive:
    """Draw the words of one sentence, without regard to the held-out rule."""
    verb = dice.pick(dice.words.done_to_oneself[particle])
    subject = dice.person(gender, named=named[0] and "relative" not in structure)
    attractor = dice.person(dice.pick(GENDERS), named=named[1])
    preposition, clause_verb = dice.pick(phrases.NEARNESS), dice.pick(dice.words.transitive["person", "person"])
    slots: Slots = {
        "preposition": preposition,
        "relative": dice.pick(("that", "who")),
        "reflexive-verb": dice.verb_phrase(verb, tense, "singular"),
        "adverb": dice.adverb(adverb),
    }
    return Reflexive(structure, subject, attractor, clause_verb, verb, tense, slots)


def training_sentence(dice: Writer) -> Words:
    """A whole sentence: mostly about one person, else about several or about a thing."""
    if dice.chance(0.35):
        return _of_any_number(dice)
    structure = "simple" if dice.chance(0.5) else dice.pick(STRUCTURES)
    gender, adverb = dice.pick(GENDERS), dice.chance(0.3)
    named = (dice.chance(0.65), dice.chance(0.5))
    tense, particle = dice.pick(lexicon.TENSES), dice.chance(0.15)
    options: Any = {"gender": gender, "named": named, "tense": tense, "particle": particle, "adverb": adverb}
    drawn = phrases.draw_within("train", partial(propose, dice, structure, **options))
    return sentence([*drawn.before_reflexive(), Word(REFLEXIVES[gender])])


def _of_any_number(dice: Writer) -> Words:
    """A sentence about several people or things, or about one thing: ``Some museum scared itself``."""
    kind = dice.pick(REFLEXIVE_KINDS)
    number: Number = "plural" if kind == "person" or dice.chance(0.5) else "singular"
    attractor = dice.noun(dice.pick(lexicon.KINDS))
    while True:
        noun, verb, tense = dice.noun(kind), dice.pick(dice.words.reflexive[kind]), dice.pick(lexicon.TENSES)
        agreeing = tense if tense in lexicon.AUXILIARIES else verb.base
        if phrases.allowed(((noun.singular, each) for each in (agreeing, verb.base, attractor.singular)), "train"):
            break
    bare = number == "plural" and dice.chance(0.25)
    article = dice.determiner(number)
    subject = [Word(noun.form(number))] if bare else noun_phrase(article, noun.form(number))
    beside = attractor.form(dice.pick(lexicon.NUMBERS))
    modifier = [Word(dice.pick(phrases.NEARNESS)), *noun_phrase("the", beside)] if dice.chance(0.3) else []
    reflexive = "themselves" if number == "plural" else "itself"
    return sentence([*subject, *modifier, *dice.verb_phrase(verb, tense, number), Word(reflexive)])


FRAMES = (
    Frame(None, named=(True, False), tense="modal", particle=False, adverb=False),
    Frame("short", named=(True, True), tense="past", particle=False, adverb=True),
    Frame("somebody", named=(False, False), tense="be", particle=True, adverb=False),
    Frame(None, named=(False, True), tense="past", particle=False, adverb=False),
    Frame("long", named=(True, False), tense="have", particle=False, adverb=True),
    Frame("somebody", named=(True, True), tense="past", particle=True, adverb=False),
)


def _pair(plan: Plan) -> MinimalPair:
    drawn = phrases.draw_within(plan.split, partial(_twins, plan), admit=partial(_admit, plan))
    item, counterfactual = (_example(plan.before, each) for each in drawn)
    return MinimalPair(item, counterfactual, cluster=plan.couples.cluster(*(each.subject for each in drawn)))


def _twins(plan: Plan) -> list[Reflexive]:
    """The same sentence about two people: of one name each, or of one noun each."""
    drawn = propose(plan.dice, plan.structure, gender=plan.genders[0], **plan.options)
    other = plan.dice.person(plan.genders[1], named=isinstance(drawn.subject, Name))
    return [drawn, drawn._replace(subject=plan.couples.partner(plan.dice, drawn.subject, other))]


def _admit(plan: Plan, twins: list[Reflexive]) -> bool:
    """Whether the two subjects may stand together, and nobody is in the sentence before."""
    one, two = (each.subject for each in twins)
    people = {lemma(person).lower() for person in (one, two, twins[0].attractor)}
    return plan.couples.admit(one, two) and plan.said.isdisjoint(people)


def _example(before: Words, drawn: Reflexive) -> Example:
    gender = drawn.subject.gender
    congruent = "yes" if drawn.attractor.gender == gender else "no"
    return example(
        before + drawn.before_reflexive(),
        (REFLEXIVES[gender], REFLEXIVES[opposite(gender)]),
        relation="antecedent",
        related="antecedent",
        distractors={"attractor": "attractor", "PERSON": "person of the sentence before"},
        template=drawn.structure,
        features={
            "gender": gender,
            "congruent": congruent if drawn.structure != "simple" else "no attractor",
            "subject": lemma(drawn.subject),
            "verb": drawn.verb.base,
        },
    )


TASK = GeneratedTask(
    "reflexive",
    "A reflexive pronoun has the gender of the subject of its clause.",
    dict.fromkeys(STRUCTURES, FRAMES),
    _pair,
    feature="gender",
)
pairs = TASK.pairs
