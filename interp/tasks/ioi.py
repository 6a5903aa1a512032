"""Task: who is the indirect object?

"When Mary and John went to the store, John gave a drink to" Mary (Wang et al., 2022,
https://arxiv.org/abs/2211.00593). The counterfactual has the same
introduction, but the other person gives, so that ABBA becomes BABA; in the ``late`` shapes, where the receiver is
introduced last, the two change places throughout. The relation is from the last word to the one mention of the
indirect object; both mentions of the subject are distractors. In a word counterfactual a third person of the
same gender is the indirect object.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from interp.tasks.example import Example, MinimalPair
from interp.tasks.grammar.couples import Couples
from interp.tasks.grammar.dice import Dice
from interp.tasks.grammar.filler import Shape, opening
from interp.tasks.grammar.ioi import STRUCTURES, IndirectObject, propose
from interp.tasks.grammar.items import OTHER_WORDS, example, schedule, with_other_words
from interp.tasks.grammar.lexicon import Name
from interp.tasks.grammar.sentence import Words
from interp.tasks.grammar.splits import Split, allowed, draw_within
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
    planned = schedule("ioi", n, seed=seed, split=split, frames=frames)
    for index, (dice, structure, frame, flipped) in enumerate(planned):
        before = opening(dice, words, frame.opening)
        order = {"receiver_first": not flipped, "adjective": frame.adjective}
        proposing = partial(_couple, couples, dice, partial(propose, dice, words, structure, **order))
        drawn = draw_within(split, proposing, admit=lambda each: couples.admit(each.receiver, each.giver))
        third = Dice("ioi", seed, split, index, "third person")
        yield MinimalPair(
            item=_with_third_people(before, drawn, third, split),
            counterfactual=_with_third_people(before, drawn.exchanged, third, split),
            cluster=couples.cluster(drawn.receiver, drawn.giver),
        )


def _couple(couples: Couples[Name], dice: Dice, proposing: Callable[[], IndirectObject]) -> IndirectObject:
    """A proposal, now and then with the receiver's partner for its giver."""
    drawn = proposing()
    return drawn._replace(giver=couples.partner(dice, drawn.receiver, drawn.giver))


def _with_third_people(before: Words, drawn: IndirectObject, dice: Dice, split: Split) -> Example:
    """The example, and it with others of the receiver's gender in the receiver's place."""
    names = [] if split == "reference" else vocabulary().names[drawn.receiver.gender]
    others = [drawn._replace(receiver=name) for name in names if name not in (drawn.receiver, drawn.giver)]
    chosen = dice.sample([each for each in others if allowed(each.decisive, split)], OTHER_WORDS)
    return with_other_words(_example(before, drawn), (_example(before, each) for each in chosen))


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
