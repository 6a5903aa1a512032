"""Task: who is the indirect object?

"When Mary and John went to the store, John gave a drink to" Mary (Wang et al., 2023,
https://arxiv.org/abs/2211.00593). The counterfactual has the same
introduction, but the other person gives, so that ABBA becomes BABA; in the ``late`` shapes, where the receiver is
introduced last, the two change places throughout. The relation is from the last word to the one mention of the
indirect object; both mentions of the subject are distractors.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from interp.tasks.example import Example, MinimalPair
from interp.tasks.grammar.couples import Couples
from interp.tasks.grammar.dice import Dice
from interp.tasks.grammar.filler import Shape, opening
from interp.tasks.grammar.ioi import STRUCTURES, IndirectObject, propose
from interp.tasks.grammar.items import example, schedule
from interp.tasks.grammar.lexicon import Name
from interp.tasks.grammar.sentence import Words
from interp.tasks.grammar.splits import Split, draw_within
from interp.tasks.grammar.vocabulary import vocabulary

__all__ = ["STRUCTURES", "pairs"]


class Frame(NamedTuple):
    """What surrounds the words that decide."""

    opening: Shape | None
    adjective: bool


FRAMES = (
    Frame(None, adjective=False),
    Frame("short", adjective=True),
    Frame("medium", adjective=False),
    Frame(None, adjective=True),
    Frame("long", adjective=False),
    Frame("medium", adjective=True),
)


def pairs(n: int, *, seed: int, split: Split = "test") -> Iterator[MinimalPair]:
    """Draw `n` minimal pairs, the structures in turn.

    Args:
        n: How many.
        seed: Names the draw; the first items are the same for every `n`.
        split: Whose pairs of names they use.

    Raises:
        TaskError: `n` is not positive.
    """
    words = vocabulary()
    couples, frames = Couples[Name](split), dict.fromkeys(STRUCTURES, FRAMES)
    for dice, structure, frame, flipped in schedule("ioi", n, seed=seed, split=split, frames=frames):
        before = opening(dice, words, frame.opening)
        order = {"receiver_first": not flipped, "adjective": frame.adjective}
        proposing = partial(_couple, couples, dice, partial(propose, dice, words, structure, **order))
        drawn = draw_within(split, proposing, admit=lambda each: couples.admit(each.receiver, each.giver))
        yield MinimalPair(
            item=_example(before, drawn),
            counterfactual=_example(before, drawn.exchanged),
            cluster=couples.cluster(drawn.receiver, drawn.giver),
        )


def _couple(couples: Couples[Name], dice: Dice, proposing: Callable[[], IndirectObject]) -> IndirectObject:
    """A proposal, now and then with the receiver's partner for its giver."""
    drawn = proposing()
    return drawn._replace(giver=couples.partner(dice, drawn.receiver, drawn.giver))


def _example(before: Words, drawn: IndirectObject) -> Example:
    same = drawn.receiver.gender == drawn.giver.gender
    return example(
        before + drawn.before_receiver(),
        (drawn.receiver.text, drawn.giver.text),
        relation="indirect object",
        related="indirect-object",
        distractors={"subject": "giver's first mention", "giver": "giver's second mention"},
        template=drawn.structure,
        features={
            "order": drawn.order,
            "genders": "same" if same else "different",
            "indirect object": drawn.receiver.text,
            "subject": drawn.giver.text,
        },
    )
