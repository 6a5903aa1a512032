"""Task: what followed this word the last time?

Random words, and the beginning of the same words again (Olsson et al., 2022,
https://arxiv.org/abs/2209.11895). In the counterfactual the word that comes next and another word
of the string have exchanged their places. The relation is from the last word to the word after its
previous occurrence; the previous occurrence itself is the distractor. In a word counterfactual a new word stands
in the place of the word that comes next.
"""

from collections.abc import Iterator
from functools import partial
from typing import Literal, NamedTuple

from interp.tasks.example import Example, MinimalPair
from interp.tasks.grammar.dice import Dice
from interp.tasks.grammar.filler import Shape, opening, said
from interp.tasks.grammar.items import OTHER_WORDS, example, schedule, with_other_words
from interp.tasks.grammar.sentence import Words
from interp.tasks.grammar.splits import Split, draw_within, split_of
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
    planned = schedule("induction", n, seed=seed, split=split, frames=FRAMES)
    for index, (dice, structure, frame, flipped) in enumerate(planned):
        before = opening(dice, words, frame.opening)
        lengths = {name: value for name, value in frame._asdict().items() if name != "opening"}
        drawn = draw_within(split, partial(propose, dice, words, **lengths, used=said(before)))
        new = Dice("induction", seed, split, index, "new word")
        item, twin = (_with_new_words(before, each, structure, new, split) for each in (drawn, drawn.exchanged))
        yield MinimalPair(
            item=twin if flipped else item,
            counterfactual=item if flipped else twin,
            cluster=drawn.string[drawn.stop - 1],
        )


def _with_new_words(before: Words, drawn: Repetition, structure: Structure, dice: Dice, split: Split) -> Example:
    """The example, and it with words that are nowhere else in the place of the one that comes next."""
    used, found = {*said(before), *(word.lower() for word in drawn.string + drawn.gap)}, list[Repetition]()
    while split != "reference" and len(found) < OTHER_WORDS:
        word = dice.pick(vocabulary().forms)
        if word.lower() not in used and split_of(drawn.string[drawn.stop - 1], word) == split:
            used.add(word.lower())
            string = (*drawn.string[: drawn.stop], word, *drawn.string[drawn.stop + 1 :])
            found.append(drawn._replace(string=string))
    item = _example(before, drawn, structure)
    return with_other_words(item, (_example(before, each, structure) for each in found))


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
