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
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, NamedTuple, TypeVar

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


PersonT = TypeVar("PersonT", bound=Person)
AGAIN = 0.1
"""Share of proposals that ask for a person's partner: the more, the faster the draw, and the fewer the couples."""
SELDOM = 0.025
"""The same where not every pair fits, so that the fewer people who are left make as many couples."""


class Couples:
    """The couples of one draw of a task; anybody may stand with anybody in ``reference``, which nobody resamples."""

    def __init__(self, split: Split, fits: Fits | None) -> None:
        self._free = split == "reference"
        self._again = AGAIN if fits is None else SELDOM
        self._partner: dict[str, Any] = {}  # of the sort of people that the task is about
        self._drawn_last: dict[str, Any] = {}

    def partner(self, dice: Writer, one: PersonT, proposed: PersonT) -> PersonT:
        """Who is to stand with `one`: whoever is `proposed`, or now and then the partner, where there is one."""
        return self._partner.get(lemma(one), proposed) if not self._free and dice.chance(self._again) else proposed

    def admit(self, one: Person, two: Person) -> bool:
        """Whether the two are a couple already, or neither has a partner."""
        partners = self._partner.get(lemma(one), two), self._partner.get(lemma(two), one)
        return self._free or partners == (two, one)

    def cluster(self, one: Person, two: Person) -> str:
        """The name of the two, who are a couple from when ``keep`` is called."""
        self._drawn_last = {lemma(one): two, lemma(two): one}
        return " + ".join(sorted(self._drawn_last))

    def keep(self) -> None:
        """Make the two that were named last a couple."""
        self._partner |= self._drawn_last


class Plan(NamedTuple):
    """What is fixed of an item before the words that decide are drawn."""

    split: Split
    dice: Writer
    dice_of_others: Writer  # for word counterfactuals
    couples: Couples  # who stands with whom so far, where the task is about people
    structure: str
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


@dataclass(frozen=True, eq=False)  # each is itself alone: its frames have no hash
class GeneratedTask:
    """A task whose pairs are drawn from the grammar. Its module has the method as a function: ``agreement.pairs``.

    Attributes:
        name: The task's, for ``interp.load_task`` and for the dice.
        description: One sentence, for people.
        frames: Of each structure.
        draw: Draws a pair of the plan; called again with the same plan where the pair does not fit.
        others: Names the dice of word counterfactuals.
        feature: What the related word decides the answer by; None where nothing is probed for.
    """

    name: str
    description: str
    frames: Mapping[str, Sequence[Frame]]
    draw: Callable[[Plan], MinimalPair]
    others: str = ""
    feature: str | None = None

    def pairs(self, n: int, *, seed: int, split: Split = "test", fits: Fits | None = None) -> Iterator[MinimalPair]:
        """Draw `n` minimal pairs, the structures in turn, balanced over frames and directions.

        Args:
            n: How many; the first items are the same for every `n`.
            seed: Names the draw.
            split: Whose pairs of lemmas they use; the task's module says of which words.
            fits: Whether a pair can be used; in the place of one that cannot another is drawn. None if all can.

        Yields:
            The pairs, for ``interp.encode_task``; fewer than `n` where no more fit.

        Raises:
            TaskError: `n` is below 1.

        Examples:
            >>> from interp.tasks import agreement
            >>> len(list(agreement.pairs(4, seed=0)))
            4
        """
        if n < 1:
            raise TaskError(f"{self.name}: expected at least one item, got n={n}; ask for a positive number")
        drawn, in_vain, places = 0, Counter[tuple[int, int]](), sum(map(len, self.frames.values()))
        couples = Couples(split, fits)
        for place, plan in self._schedule(seed, split, couples):
            while in_vain[place] < GIVEN_UP:
                pair = self.draw(plan)
                if fits is None or fits(pair):
                    couples.keep()
                    yield pair
                    drawn, in_vain[place] = drawn + 1, 0
                    break
                in_vain[place] += 1
            if drawn == n or sum(each == GIVEN_UP for each in in_vain.values()) == places:
                return

    def _schedule(self, seed: int, split: Split, couples: Couples) -> Iterator[tuple[tuple[int, int], Plan]]:
        """Plan items without end; of each also the number of its structure and of its frame."""
        structures = list(self.frames)
        for index in count():
            turn, which = divmod(index, len(structures))
            structure = structures[which]
            cycle, step = divmod(turn, len(self.frames[structure]))
            dice, frame = Writer(self.name, seed, split, index), self.frames[structure][step]
            before = dice.filler(frame.opening) if frame.opening else []
            other_dice = Writer(self.name, seed, split, index, self.others)
            said = frozenset(word.text.lower() for word in before)
            flipped = (step + cycle) % 2 == 1
            plan = Plan(split, dice, other_dice, couples, structure, before, said, frame.options, flipped)
            yield (which, step), plan


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
