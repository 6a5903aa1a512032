"""From labelled words to the examples of a task.

1. Items go through the structures in turn, and within a structure through its frames (filler sentence,
   modifiers), so that every structure and every distance is met equally often.
2. Each item has its own dice: item 17 does not depend on how many were asked for.
3. The slots say where the relation's words are.
4. Word counterfactuals are drawn with dice of their own, so that they change no item; none for references, of which
   nobody asks them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Generic, TypeVar

from interp.errors import TaskError
from interp.tasks.example import Example, Relation
from interp.tasks.grammar.dice import Dice
from interp.tasks.grammar.sentence import Word, layout, render, spans
from interp.tasks.grammar.splits import DrawnT

StructureT = TypeVar("StructureT", bound=str)
FrameT = TypeVar("FrameT")

OTHER_WORDS = 8
"""Word counterfactuals of an example at most: a tokenizer has to carry one of them."""


@dataclass(frozen=True)
class Twins(Generic[DrawnT]):
    """An item's construction and its counterfactual's, which fit a split if both do."""

    item: DrawnT
    counterfactual: DrawnT

    @property
    def decisive(self) -> Iterator[tuple[str, str]]:
        """The decisive pairs of both."""
        return chain(self.item.decisive, self.counterfactual.decisive)

    @property
    def pairs(self) -> Iterator[tuple[str, str]]:
        """All pairs of both."""
        return chain(self.item.pairs, self.counterfactual.pairs)


def schedule(
    name: str, n: int, *, seed: int, split: str, frames: Mapping[StructureT, Sequence[FrameT]]
) -> Iterator[tuple[Dice, StructureT, FrameT, bool]]:
    """Plan `n` items, balanced over structures, frames and directions.

    Args:
        name: Of the task.
        n: How many items.
        seed: Names the draw.
        split: Part of the dice's key, so that splits are unrelated draws.
        frames: The frames of each structure, taken in turn.

    Yields:
        The item's own dice, its structure, its frame, and whether item and counterfactual change places;
        this alternates within a structure, and against its frames.

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
        yield dice, structure, frames[structure][step], (step + cycle) % 2 == 1


def example(
    words: Sequence[Word],
    answers: tuple[str, str],
    *,
    relation: str,
    related: str,
    distractors: Mapping[str, str],
    template: str,
    features: Mapping[str, str],
) -> Example:
    """The example whose prompt is `words`; its last word looks back.

    Args:
        words: The prompt.
        answers: The right and the wrong next word.
        relation: Name of the relation.
        related: Slot of the word that the last word should find; filled once.
        distractors: Slots of the words that could be mistaken for it, and the role of each.
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
            distractors={distractors[word.slot]: span for word, span in located if word.slot in distractors},
        ),
        template=template,
        layout=layout(words),
        features=dict(features),
    )


def with_other_words(item: Example, others: Iterable[Example]) -> Example:
    """`item` with `others` for its word counterfactuals, in which what was right is wrong."""
    return replace(item, word_counterfactuals=tuple(replace(each, wrong=item.right) for each in others))
