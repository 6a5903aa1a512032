"""From labelled words to the examples of a task.

1. Items go through the structures in turn, and within a structure through its frames (filler sentence,
   modifiers), so that every structure and every distance is met equally often.
2. Each item has its own dice: item 17 does not depend on how many were asked for.
3. The slots say where the relation's words are.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from interp.errors import TaskError
from interp.tasks.example import Example, Relation
from interp.tasks.grammar.dice import Dice
from interp.tasks.grammar.sentence import Word, layout, render, spans

StructureT = TypeVar("StructureT", bound=str)
FrameT = TypeVar("FrameT")


class Plan(NamedTuple, Generic[StructureT, FrameT]):
    """What the schedule says about one item.

    Attributes:
        dice: The item's own draws.
        structure: Which structure it has.
        frame: Which fillers and modifiers it has.
        flipped: Alternates within a structure, and against its frames: whether the item and its
            counterfactual change places.
    """

    dice: Dice
    structure: StructureT
    frame: FrameT
    flipped: bool


def schedule(
    name: str, n: int, *, seed: int, split: str, frames: Mapping[StructureT, Sequence[FrameT]]
) -> Iterator[Plan[StructureT, FrameT]]:
    """Plans for `n` items, balanced over structures, frames and directions.

    Args:
        name: Of the task.
        n: How many items.
        seed: Names the draw.
        split: Part of the dice's key, so that splits are unrelated draws.
        frames: The frames of each structure, taken in turn.

    Raises:
        TaskError: `n` is not positive.
    """
    if n < 1:
        raise TaskError(f"{name}: expected at least one item, got n={n}; ask for a positive number")
    structures = list(frames)
    for index in range(n):
        turn, which = divmod(index, len(structures))
        structure = structures[which]
        cycle, step = divmod(turn, len(frames[structure]))
        dice = Dice(name, seed, split, index)
        yield Plan(dice, structure, frames[structure][step], (step + cycle) % 2 == 1)


def example(
    words: Sequence[Word],
    answers: tuple[str, str],
    *,
    relation: str,
    related: str,
    distractors: frozenset[str],
    template: str,
    features: Mapping[str, str],
) -> Example:
    """The example whose prompt is `words`; its last word looks back.

    Args:
        words: The prompt.
        answers: The right and the wrong next word.
        relation: Name of the relation.
        related: Slot of the word that the last word should find; filled once.
        distractors: Slots of the words that could be mistaken for it.
        template: The structure.
        features: Labels for probes.
    """
    located = list(zip(words, spans(words), strict=True))
    (found,) = (span for word, span in located if word.slot == related)
    return Example(
        prompt=render(words),
        right=" " + answers[0],
        wrong=" " + answers[1],
        relation=Relation(
            name=relation,
            query=located[-1][1],
            related=found,
            distractors=tuple(span for word, span in located if word.slot in distractors),
        ),
        template=template,
        layout=layout(words),
        features=dict(features),
    )
