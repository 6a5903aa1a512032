"""Task: what followed this word the last time?

Random words, and the beginning of the same words again (Olsson et al., 2022,
https://arxiv.org/abs/2209.11895). In the counterfactual the word that comes next and another word
of the string have exchanged their places. The relation is from the last word to the word after its
previous occurrence; the previous occurrence itself is the distractor.
"""

from collections.abc import Iterator
from functools import partial
from typing import Literal, NamedTuple

from interp.tasks.example import Example, MinimalPair
from interp.tasks.grammar.filler import Shape, opening, said
from interp.tasks.grammar.items import example, schedule
from interp.tasks.grammar.sentence import Words
from interp.tasks.grammar.splits import Split, draw_within
from interp.tasks.grammar.strings import Repetition, propose
from interp.tasks.grammar.vocabulary import vocabulary

Structure = Literal["whole", "part", "gap"]


class Frame(NamedTuple):
    """The filler sentence in front, the length of the string and of the gap, and what is repeated."""

    opening: Shape | None
    length: int
    gap: int
    start: int
    stop: int


FRAMES: dict[Structure, tuple[Frame, ...]] = {
    "whole": (
        Frame(None, 6, 0, 0, 3),
        Frame("short", 9, 0, 0, 5),
        Frame("medium", 7, 0, 0, 2),
        Frame("long", 11, 0, 0, 6),
        Frame("medium", 8, 0, 0, 4),
        Frame(None, 12, 0, 0, 9),
    ),
    "part": (
        Frame(None, 8, 0, 2, 5),
        Frame("short", 10, 0, 4, 7),
        Frame("medium", 9, 0, 3, 6),
        Frame("long", 6, 0, 1, 4),
        Frame(None, 12, 0, 5, 9),
        Frame("short", 7, 0, 2, 4),
    ),
    "gap": (
        Frame(None, 6, 2, 0, 3),
        Frame("short", 8, 3, 1, 4),
        Frame("medium", 5, 1, 0, 2),
        Frame("long", 9, 2, 0, 5),
        Frame("short", 10, 1, 3, 7),
        Frame(None, 7, 3, 0, 4),
    ),
}
STRUCTURES: tuple[Structure, ...] = tuple(FRAMES)


def pairs(n: int, *, seed: int, split: Split = "test") -> Iterator[MinimalPair]:
    """Draw `n` minimal pairs, the structures in turn.

    Args:
        n: How many.
        seed: Names the draw; the first items are the same for every `n`.
        split: Whose pairs of neighbours they use.

    Raises:
        TaskError: `n` is not positive.
    """
    words = vocabulary()
    for dice, structure, frame, flipped in schedule("induction", n, seed=seed, split=split, frames=FRAMES):
        before = opening(dice, words, frame.opening)
        lengths = {name: value for name, value in frame._asdict().items() if name != "opening"}
        drawn = draw_within(split, partial(propose, dice, words, **lengths, used=said(before)))
        item, twin = _example(before, drawn, structure), _example(before, drawn.exchanged, structure)
        yield MinimalPair(
            item=twin if flipped else item,
            counterfactual=item if flipped else twin,
            cluster=drawn.string[drawn.stop - 1],
        )


def _example(before: Words, drawn: Repetition, structure: Structure) -> Example:
    return example(
        before + drawn.words(),
        (drawn.string[drawn.stop], drawn.string[drawn.foil]),
        relation="word after the previous occurrence",
        related="next",
        distractors={"previous-occurrence": "previous occurrence"},
        template=structure,
        features={"query": drawn.string[drawn.stop - 1], "next": drawn.string[drawn.stop]},
    )
