"""Sentences with a word that asks for its partner in a table: a country for its capital, a day for the next one.

1. A template has the slots *person*, *asked* (the word) and perhaps *bystander* (another word of the same table).
2. In the counterfactual another word of the table is asked for its own partner, so the right and the wrong answer swap.
   The two differ in the word asked alone. Neither answer stands in a prompt.
3. The person decides nothing. A person and a word belong to one split, so that no two splits share a prompt.
4. A cluster is the two words that are exchanged. A table holds few words, and often all that there are (days, months,
   letters): clusters share them, and intervals say how findings vary over draws from this table, not over other words.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from interp.tasks.example import Example, MinimalPair
from interp.tasks.grammar import phrases
from interp.tasks.grammar.items import Plan, example
from interp.tasks.grammar.lexicon import GENDERS, Name
from interp.tasks.grammar.phrases import Words, Writer, fill


class Association(NamedTuple):
    """A word and its partner, the answer."""

    word: str
    partner: str


class Asked(NamedTuple):
    """The words drawn for one prompt."""

    template: str
    person: Name
    asked: Association
    other: Association  # what the counterfactual asks for
    bystander: Association  # another one of the same table

    @property
    def exchanged(self) -> "Asked":
        """The same with the other word asked."""
        return self._replace(asked=self.other, other=self.asked)

    @property
    def decisive(self) -> Iterator[tuple[str, str]]:
        """The person with each of the two words."""
        yield self.person.text, self.asked.word
        yield self.person.text, self.other.word

    @property
    def pairs(self) -> Iterator[tuple[str, str]]:
        """The decisive ones."""
        return self.decisive

    @property
    def unclear(self) -> bool:
        """Whether a word stands twice in a prompt, or an answer stands there."""
        words = [self.person.text, self.asked.word, self.other.word, self.bystander.word]
        answers = {self.asked.partner, self.other.partner}
        return len({*words, *answers}) < len(words) + 2

    def words(self) -> Words:
        """The prompt, beginning with a capital."""
        slots: phrases.Slots = {"person": self.person.text, "asked": self.asked.word, "bystander": self.bystander.word}
        return fill(self.template, slots)


def propose(dice: Writer, table: Sequence[Association], template: str) -> Asked:
    """Draw the words of one prompt, without regard to the held-out rule."""
    person = dice.pick(dice.words.names[dice.pick(GENDERS)])
    return Asked(template, person, *(dice.pick(table) for _ in range(3)))


def draw_asked(plan: Plan, tables: Mapping[str, Sequence[Association]], *, relation: str) -> MinimalPair:
    """A pair of a plan whose options are a ``template`` and the name of a ``table``.

    `relation` is what the related word is to the answer.
    """
    table = plan.options["table"]
    proposing = partial(propose, plan.dice, tables[table], plan.options["template"])
    drawn = phrases.draw_within(plan.split, proposing, admit=lambda each: not each.unclear)
    words = sorted((drawn.asked.word, drawn.other.word))
    item, twin = (_example(plan, each, table, relation) for each in (drawn, drawn.exchanged))
    return MinimalPair(item, twin, cluster=" + ".join(words))


def _example(plan: Plan, drawn: Asked, table: str, relation: str) -> Example:
    return example(
        plan.before + drawn.words(),
        (drawn.asked.partner, drawn.other.partner),
        relation=relation,
        related="asked",
        distractors={"bystander": f"another {table}"},
        template=plan.structure,
        features={"asked": drawn.asked.word, "answer": drawn.asked.partner, "kind": table},
    )
