"""From labelled words to the examples of a task.

1. Items go through the structures in turn, and within a structure through its frames (filler sentence, modifiers), so
   every structure and every distance is met equally often.
2. Each item has its own dice: item 17 does not depend on how many were asked for.
3. The slots say where the relation's words are.
4. Word counterfactuals are drawn with dice of their own, so they change no item; references have none.
5. Each person has one partner within a draw of a task, so different clusters share nobody. Statistics resample clusters
   as if they were independent; "Mary + John" and "Mary + Paul" would not be. As an attractor, anybody may be there.
6. In the place of a pair that cannot be used, as by a tokenizer, another is drawn, with the same structure and frame:
   so these stay balanced.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, Generic, NamedTuple, TypeVar

from interp.errors import TaskError
from interp.tasks.example import Example, MinimalPair, Relation
from interp.tasks.grammar.lexicon import GENDERS, Person, lemma
from interp.tasks.grammar.phrases import DrawnT, Shape, Split, Word, Words, Writer, allowed, layout, render, spans

OTHER_WORDS = 8
"""Word counterfactuals of an example at most: a tokenizer has to carry one of them."""
GIVEN_UP = 100
"""Pairs in a row that do not fit, of a structure within a frame, after which no more of it are drawn."""

Fits = Callable[[MinimalPair], bool]
"""Whether a pair can be used."""


class Frame:
    """What surrounds the words that decide: the filler sentence in front, and options of the task's ``propose``."""

    def __init__(self, opening: Shape | None, **options: Any) -> None:
        self.opening, self.options = opening, options


class Plan(NamedTuple):
    """What is fixed of an item before the words that decide are drawn."""

    split: Split
    dice: Writer
    dice_of_others: Writer  # for word counterfactuals
    structure: Any
    before: Words  # the filler sentence in front
    said: frozenset[str]  # its words in lower case: none of them is to decide the sentence after it
    options: Mapping[str, Any]
    flipped: bool  # item and counterfactual change places: in turn within a structure, and against its frames

    @property
    def genders(self) -> tuple[str, str]:
        """That of the item's person, and that of its counterfactual's."""
        return GENDERS[::-1] if self.flipped else GENDERS

    def with_others(self, spell: Callable[[DrawnT], Example], drawn: DrawnT, others: Iterable[DrawnT]) -> Example:
        """A construction's example with word counterfactuals: some of the others that fit the split."""
        others = () if self.split == "reference" else others
        fitting = [each for each in others if allowed(each.decisive, self.split)]
        return with_other_words(spell(drawn), map(spell, self.dice_of_others.sample(fitting, OTHER_WORDS)))


def draw_pairs(
    name: str,
    n: int,
    draw: Callable[[Plan], MinimalPair],
    *,
    seed: int,
    split: Split,
    frames: Mapping[Any, Sequence[Frame]],
    others: str = "",
    fits: Fits | None = None,
    keep: Callable[[], None] = lambda: None,
) -> Iterator[MinimalPair]:
    """Draw `n` pairs, balanced over structures, frames and directions.

    Args:
        name: The task's, for the dice.
        n: How many; fewer come where no more fit.
        draw: Draws a pair of the plan; called again with the same plan where the pair does not fit.
        seed: Names the draw.
        split: Whose pairs of lemmas are drawn.
        frames: Of each structure.
        others: Names the second dice.
        fits: Whether a pair can be used; None if all can.
        keep: Called when the pair drawn last is to be yielded.

    Yields:
        The pairs.

    Raises:
        TaskError: `n` is below 1.
    """
    if n < 1:
        raise TaskError(f"{name}: expected at least one item, got n={n}; ask for a positive number")
    drawn, in_vain, places = 0, Counter[tuple[int, int]](), sum(map(len, frames.values()))
    for place, plan in _schedule(name, seed=seed, split=split, frames=frames, others=others):
        while in_vain[place] < GIVEN_UP:
            pair = draw(plan)
            if fits is None or fits(pair):
                keep()
                yield pair
                drawn, in_vain[place] = drawn + 1, 0
                break
            in_vain[place] += 1
        if drawn == n or sum(each == GIVEN_UP for each in in_vain.values()) == places:
            return


def _schedule(
    name: str, *, seed: int, split: Split, frames: Mapping[Any, Sequence[Frame]], others: str
) -> Iterator[tuple[tuple[int, int], Plan]]:
    """Plan items without end; of each also the number of its structure and of its frame."""
    structures = list(frames)
    for index in count():
        turn, which = divmod(index, len(structures))
        of_structure = frames[structures[which]]
        cycle, step = divmod(turn, len(of_structure))
        dice, frame = Writer(name, seed, split, index), of_structure[step]
        before = dice.filler(frame.opening) if frame.opening else []
        other_dice = Writer(name, seed, split, index, others)
        said = frozenset(word.text.lower() for word in before)
        flipped = (step + cycle) % 2 == 1
        yield (which, step), Plan(split, dice, other_dice, structures[which], before, said, frame.options, flipped)


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
    """The example whose prompt is `words`; its last word looks back."""
    gold = looking_back(words, relation, related, distractors)
    right, wrong = (f" {answer}" for answer in answers)
    return Example(render(words), right, wrong, gold, template, layout(words), dict(features))


def looking_back(words: Sequence[Word], relation: str, related: str, distractors: Mapping[str, str]) -> Relation:
    """The relation of the last word of a prompt to that in the slot `related`; `distractors` are roles by slot."""
    located = list(zip(words, spans(words), strict=True))
    (found,) = (span for word, span in located if word.slot == related)
    others = {distractors[word.slot]: span for word, span in located if word.slot in distractors}
    return Relation(relation, located[-1][1], found, others)


def with_other_words(item: Example, others: Iterable[Example]) -> Example:
    """`item` with `others` for its word counterfactuals, in which what was right is wrong."""
    return replace(item, word_counterfactuals=tuple(replace(each, wrong=item.right) for each in others))


PersonT = TypeVar("PersonT", bound=Person)
AGAIN = 0.1
"""Share of proposals that ask for a person's partner: the more, the faster the draw, and the fewer the couples."""
SELDOM = 0.025
"""The same where not every pair fits, so that the fewer people who are left make as many couples."""


class Couples(Generic[PersonT]):
    """The couples of one draw of a task; anybody may stand with anybody in ``reference``, which nobody resamples."""

    def __init__(self, split: Split, fits: Fits | None) -> None:
        self._free = split == "reference"
        self._again = AGAIN if fits is None else SELDOM
        self._partner: dict[str, PersonT] = {}
        self._drawn_last: dict[str, PersonT] = {}

    def partner(self, dice: Writer, one: PersonT, proposed: PersonT) -> PersonT:
        """Who is to stand with `one`: whoever is `proposed`, or now and then the partner, where there is one."""
        return self._partner.get(lemma(one), proposed) if not self._free and dice.chance(self._again) else proposed

    def admit(self, one: PersonT, two: PersonT) -> bool:
        """Whether the two are a couple already, or neither has a partner."""
        partners = self._partner.get(lemma(one), two), self._partner.get(lemma(two), one)
        return self._free or partners == (two, one)

    def cluster(self, one: PersonT, two: PersonT) -> str:
        """The name of the two, who are a couple from when ``keep`` is called."""
        self._drawn_last = {lemma(one): two, lemma(two): one}
        return " + ".join(sorted(self._drawn_last))

    def keep(self) -> None:
        """Make the two that were named last a couple."""
        self._partner |= self._drawn_last
