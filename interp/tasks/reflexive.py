"""Task: does a reflexive have the gender of its clause's subject?

Item and counterfactual differ in the subject alone, which has the other gender; the attractor stays, so
that one of the two is congruent (attractor of the subject's gender) and the other is not. In a third of the
items another person stands in the sentence before, so that the subject is not always the first one. The
relation is from the last word before the reflexive to the subject.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from interp.tasks.example import Example, MinimalPair
from interp.tasks.grammar.couples import Couples
from interp.tasks.grammar.dice import Dice
from interp.tasks.grammar.filler import Shape, opening, said
from interp.tasks.grammar.items import Twins, example, schedule
from interp.tasks.grammar.lexicon import Name
from interp.tasks.grammar.phrases import Tense, person
from interp.tasks.grammar.reflexives import REFLEXIVES, STRUCTURES, Reflexive, Structure, propose
from interp.tasks.grammar.sentence import Words
from interp.tasks.grammar.splits import Split, draw_within
from interp.tasks.grammar.vocabulary import GENDERS, Person, lemma, vocabulary

__all__ = ["STRUCTURES", "pairs"]


class Frame(NamedTuple):
    """What surrounds the words that decide; ``named`` is for the subject and the attractor (see ``propose``)."""

    opening: Shape | None
    named: tuple[bool, bool]
    tense: Tense
    particle: bool
    adverb: bool


FRAMES = (
    Frame(None, named=(True, False), tense="modal", particle=False, adverb=False),
    Frame("short", named=(True, True), tense="past", particle=False, adverb=True),
    Frame("somebody", named=(False, False), tense="be", particle=True, adverb=False),
    Frame(None, named=(False, True), tense="past", particle=False, adverb=False),
    Frame("long", named=(True, False), tense="have", particle=False, adverb=True),
    Frame("somebody", named=(True, True), tense="past", particle=True, adverb=False),
)


def pairs(n: int, *, seed: int, split: Split = "test") -> Iterator[MinimalPair]:
    """Draw `n` minimal pairs, the structures in turn.

    Args:
        n: How many.
        seed: Names the draw; the first items are the same for every `n`.
        split: Whose pairs of subject and attractor, or in ``simple`` of subject and verb, they use.

    Raises:
        TaskError: `n` is not positive.
    """
    words = vocabulary()
    couples, frames = Couples[Person](split), dict.fromkeys(STRUCTURES, FRAMES)
    for dice, structure, frame, flipped in schedule("reflexive", n, seed=seed, split=split, frames=frames):
        before = opening(dice, words, frame.opening)
        genders = GENDERS[::-1] if flipped else GENDERS
        proposing = partial(_twins, couples, dice, structure, frame, genders)
        drawn = draw_within(split, proposing, admit=partial(_fits, couples, said(before)))
        yield MinimalPair(
            item=_example(before, drawn.item, genders),
            counterfactual=_example(before, drawn.counterfactual, genders[::-1]),
            cluster=couples.cluster(drawn.item.subject, drawn.counterfactual.subject),
        )


def _twins(
    couples: Couples[Person], dice: Dice, structure: Structure, frame: Frame, genders: tuple[str, str]
) -> Twins[Reflexive]:
    """The same sentence about two people: of one name each, or of one noun each."""
    words = vocabulary()
    surroundings = {name: value for name, value in frame._asdict().items() if name != "opening"}
    drawn = propose(dice, words, structure, gender=genders[0], **surroundings)
    other = person(dice, words, genders[1], named=isinstance(drawn.subject, Name))
    return Twins(drawn, drawn._replace(subject=couples.partner(dice, drawn.subject, other)))


def _fits(couples: Couples[Person], used: frozenset[str], drawn: Twins[Reflexive]) -> bool:
    """Whether the two subjects may stand together, and nobody is in the sentence before."""
    subjects = drawn.item.subject, drawn.counterfactual.subject
    people = {lemma(person).lower() for person in (*subjects, drawn.item.attractor)}
    return couples.admit(*subjects) and used.isdisjoint(people)


def _example(before: Words, drawn: Reflexive, genders: tuple[str, str]) -> Example:
    congruent = "yes" if drawn.attractor.gender == genders[0] else "no"
    return example(
        before + drawn.before_reflexive(),
        (REFLEXIVES[genders[0]], REFLEXIVES[genders[1]]),
        relation="antecedent",
        related="antecedent",
        distractors={"attractor": "attractor", "PERSON": "person of the sentence before"},
        template=drawn.structure,
        features={
            "gender": genders[0],
            "congruent": congruent if drawn.structure != "simple" else "no attractor",
            "subject": lemma(drawn.subject),
            "verb": drawn.verb.base,
        },
    )
