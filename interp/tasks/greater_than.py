"""Task: which years are later than a year, and which are earlier?

"The war lasted from the year 1732 to the year 17" goes on with 33 or more (Hanna et al., 2023,
https://arxiv.org/abs/2305.00586). All answers on the one side are right, all on the other are wrong; the year itself is
neither.

1. In the counterfactual the words of order have changed: "The war lasted to the year 1732 from the year 17". So the
   right and the wrong answers swap, and a preference for some years cannot pass for the comparison.
2. Tokenizers cut figures in different ways. So the last year is begun with two figures or with three, and the answers
   are of two figures or of one: ``17`` with 33, ``17`` with 4, or ``173`` with 3. A tokenizer carries what it reads as
   one token more.
3. The centuries are those of which GPT-2's vocabulary has no year from 10 to 99 as one token.

The relation is from the last word to the year that is compared with. In a word counterfactual another year of the
century stands there. Where a book's year is named before, that is the distractor.

No two splits share a pair of an event and a year.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Literal, NamedTuple

from interp.tasks.example import Example, MinimalPair
from interp.tasks.grammar import phrases
from interp.tasks.grammar.items import OTHER_WORDS, Frame, GeneratedTask, Plan, looking_back
from interp.tasks.grammar.phrases import Slots, Words, Writer, allowed, fill, layout, render

Order = Literal["later", "earlier"]
TEMPLATES = {
    "from and to": "the event lasted order-1 the year compared order-2 the year begun",
    "begun and ended": "the event order-1 in the year compared and order-2 in the year begun",
    "after": "the event came order-1 the year compared , in the year begun",
    "before": "the year compared was order-1 the event , which came in the year begun",
    "told": "the book of the year other says that the event order-1 in the year compared and order-2 in the year begun",
}
ORDERS: dict[str, dict[Order, tuple[str, ...]]] = {
    "from and to": {"later": ("from", "to"), "earlier": ("to", "from")},
    "begun and ended": {"later": ("began", "ended"), "earlier": ("ended", "began")},
    "after": {"later": ("after",), "earlier": ("before",)},
    "before": {"later": ("before",), "earlier": ("after",)},
    "told": {"later": ("began", "ended"), "earlier": ("ended", "began")},
}
"""The words of order, by where the last year lies."""
STRUCTURES = tuple(TEMPLATES)
_EVENTS = (
    "alliance battle blockade boom campaign conflict conquest contest crisis crusade debate dispute drought epidemic "
    "exile expedition famine festival feud fire flood inquiry invasion journey marriage migration mission mutiny "
    "occupation panic plague project quest raid rebellion regime reign revolt revolution siege strike struggle tour "
    "trial truce uprising voyage war"
)
EVENTS = tuple(_EVENTS.split())
CENTURIES = ("13", "15", "16", "17")
FIGURES = ((2, 2), (2, 1), (3, 1))
"""How many figures of the last year are there, and how many an answer has."""
FIRST, LAST = 10, 99
"""Of the years of a century that are answers."""
BOOKS = tuple(str(year) for year in range(1910, 2000))


class Dated(NamedTuple):
    """The words drawn for one prompt."""

    structure: str  # which template they fill
    order: Order  # where the last year lies
    event: str
    year: str  # what is compared with
    book: str  # the year of a book that tells of it
    n_begun: int  # figures of the last year that are there
    n_asked: int  # figures of an answer

    @property
    def decisive(self) -> Iterator[tuple[str, str]]:
        """The event with its year."""
        yield self.event, self.year

    @property
    def pairs(self) -> Iterator[tuple[str, str]]:
        """The decisive one."""
        return self.decisive

    @property
    def exchanged(self) -> "Dated":
        """The same in the other order."""
        return self._replace(order="earlier" if self.order == "later" else "later")

    @property
    def answers(self) -> dict[Order, tuple[str, ...]]:
        """What makes the last year later, and what makes it earlier."""
        ends = _ends(self.n_begun, self.n_asked)
        at = ends.index(self.year[self.n_begun :][: self.n_asked])
        return {"later": ends[at + 1 :], "earlier": ends[:at]}

    def words(self) -> Words:
        """The prompt, beginning with a capital."""
        ordered = enumerate(ORDERS[self.structure][self.order], start=1)
        slots: Slots = {f"order-{number}": word for number, word in ordered}
        slots |= {"event": self.event, "compared": self.year, "other": self.book, "begun": self.year[: self.n_begun]}
        return fill(TEMPLATES[self.structure], slots)


@cache
def _ends(n_begun: int, n_asked: int) -> tuple[str, ...]:
    """All answers behind so many figures, in order."""
    first, last = (FIRST, LAST) if n_begun == 2 else (0, 9)
    ends = (f"{end:0{4 - n_begun}}"[:n_asked] for end in range(first, last + 1))
    return tuple(dict.fromkeys(ends))


def propose(dice: Writer, structure: str, order: Order) -> Dated:
    """Draw the words of one prompt, without regard to the held-out rule."""
    year = f"{dice.pick(CENTURIES)}{dice.between(FIRST, LAST)}"
    return Dated(structure, order, dice.pick(EVENTS), year, dice.pick(BOOKS), *dice.pick(FIGURES))


FRAMES = (Frame(None), Frame("short"), Frame("medium"), Frame(None), Frame("long"), Frame("short"))


def _pair(plan: Plan) -> MinimalPair:
    order: Order = "earlier" if plan.flipped else "later"
    proposing = partial(propose, plan.dice, plan.structure, order)
    drawn = phrases.draw_within(plan.split, proposing, admit=lambda each: _can_be_asked(plan, each))
    item, twin = (_with_other_years(plan, each) for each in (drawn, drawn.exchanged))
    return MinimalPair(item, twin, cluster=drawn.year)


def _can_be_asked(plan: Plan, drawn: Dated) -> bool:
    """Whether there are right and wrong answers, and another year; this is asked last, since it takes longest."""
    if not (allowed(drawn.decisive, plan.split) and all(drawn.answers.values())):
        return False
    return plan.split == "reference" or bool(_other_years(plan, drawn))


def _other_years(plan: Plan, drawn: Dated) -> list[Dated]:
    """It with each other year of the split that the last one begins like, and after which other answers are right."""
    begun, answers = drawn.year[: drawn.n_begun], drawn.answers
    years = (f"{drawn.year[:2]}{end}" for end in range(FIRST, LAST + 1))
    same = (drawn._replace(year=year) for year in years if year.startswith(begun))
    fitting = (each for each in same if allowed(each.decisive, plan.split))
    return [each for each in fitting if all(each.answers.values()) and each.answers != answers]


def _with_other_years(plan: Plan, drawn: Dated) -> Example:
    """The example, and it with some of the other years."""
    others = [] if plan.split == "reference" else plan.dice_of_others.sample(_other_years(plan, drawn), OTHER_WORDS)
    return replace(_example(plan, drawn), word_counterfactuals=tuple(_example(plan, each) for each in others))


def _example(plan: Plan, drawn: Dated) -> Example:
    words = plan.before + drawn.words()
    return Example(
        render(words),
        drawn.answers[drawn.order],
        drawn.answers[drawn.exchanged.order],
        looking_back(words, "year compared with", "compared", {"other": "another year"}),
        plan.structure,
        layout(words),
        {"order": drawn.order, "year": drawn.year, "event": drawn.event, "figures": str(drawn.n_asked)},
    )


TASK = GeneratedTask(
    "greater_than",
    "Years after a year are later, and years before it are earlier.",
    dict.fromkeys(STRUCTURES, FRAMES),
    _pair,
    others="another year",
)
pairs = TASK.pairs
