"""Task: does the verb agree with its subject, whatever stands between them?

Item and counterfactual differ in the number of the subject alone; the attractors stay, so that one of
the two is congruent (attractors in the subject's number) and the other is not. In a third of the items
another noun stands in the sentence before, so that the subject is not always the first noun. The relation is
from the last word before the verb to the subject's head noun. (Linzen et al., 2016,
https://aclanthology.org/Q16-1037)
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from interp.tasks.example import Example, MinimalPair
from interp.tasks.grammar.agreement import STRUCTURES, Agreement, propose
from interp.tasks.grammar.filler import Shape, opening, said
from interp.tasks.grammar.items import example, schedule
from interp.tasks.grammar.lexicon import Number
from interp.tasks.grammar.phrases import NUMBERS, form, other
from interp.tasks.grammar.sentence import Words, sentence_start
from interp.tasks.grammar.splits import Split, draw_within
from interp.tasks.grammar.vocabulary import vocabulary

__all__ = ["STRUCTURES", "pairs"]


class Frame(NamedTuple):
    """What surrounds the words that decide."""

    opening: Shape | None
    adjective: bool
    adverb: bool


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
    """Draw `n` minimal pairs, the structures in turn.

    Args:
        n: How many.
        seed: Names the draw; the first items are the same for every `n`.
        split: Whose pairs of subject and attractor, or in ``simple`` of subject and verb, they use.

    Raises:
        TaskError: `n` is not positive.
    """
    words = vocabulary()
    frames = dict.fromkeys(STRUCTURES, FRAMES)
    for dice, structure, frame, flipped in schedule("agreement", n, seed=seed, split=split, frames=frames):
        before = opening(dice, words, frame.opening)
        modifiers = {"adjective": frame.adjective, "adverb": frame.adverb}
        drawn = draw_within(
            split,
            partial(propose, dice, words, structure, **modifiers),
            admit=partial(_unsaid, said(before)),
        )
        number, attractors = NUMBERS[flipped], dice.pick(NUMBERS)
        yield MinimalPair(
            item=_example(before, drawn, number, attractors),
            counterfactual=_example(before, drawn, other(number), attractors),
            cluster=drawn.subject.singular,
        )


def _unsaid(used: frozenset[str], drawn: Agreement) -> bool:
    """Whether neither subject nor attractor stands in the sentence before, in either number."""
    nouns = drawn.subject, *drawn.attractors
    return used.isdisjoint(form(noun, number).lower() for noun in nouns for number in NUMBERS)


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
