"""Task: does a pronoun have the gender that the sentence states, whatever the profession's stereotype?

"My aunt, the engineer, said that" she. As in Vig et al. (2020, https://arxiv.org/abs/2004.12265) a person with a
profession is taken up by a pronoun, and the counterfactual exchanges the word that states the gender: a first name, or
a word for a relative. The profession stays, so it asks for the right pronoun in one of the two and for the wrong one in
the other. What is right is what the sentence states; that a model prefers a pronoun after a profession alone is neither
right nor wrong, and is not measured here.

The professions and the gender of most people who have one are those of WinoBias (Zhao et al., 2018,
https://aclanthology.org/N18-2003), from the labour statistics of the United States. The feature ``stereotype`` says
whether that is the person's gender (``with``) or not (``against``). The relation is from the last word to the name or
the relative; the profession is the distractor.

No two splits share a pair of a person and a profession.
"""

from collections.abc import Iterator
from functools import cache, partial
from typing import NamedTuple

from interp.tasks.coreference import SUBJECT_PRONOUNS
from interp.tasks.example import Example, MinimalPair
from interp.tasks.grammar import phrases
from interp.tasks.grammar.items import Frame, GeneratedTask, Plan, example
from interp.tasks.grammar.lexicon import GENDERS, Name, opposite, rows_of
from interp.tasks.grammar.phrases import Slots, Word, Words, Writer, fill, indefinite_article

TEMPLATES = {
    "apposition": "person , the profession , said that",
    "predicate": "person is article profession , and yesterday",
    "reason": "person became article profession because",
    "role": "as article profession , person thought that",
    "profession first": "the profession that we met was person , and later",
    "colleagues": "person worked as article profession with other people until",
}
RELATIVES = tuple(
    (Name(female, "female"), Name(male, "male"))
    for female, male in (
        ("mother", "father"),
        ("sister", "brother"),
        ("daughter", "son"),
        ("wife", "husband"),
        ("aunt", "uncle"),
        ("niece", "nephew"),
        ("grandmother", "grandfather"),
        ("granddaughter", "grandson"),
        ("girlfriend", "boyfriend"),
        ("stepmother", "stepfather"),
    )
)
"""Each the only partner of the other."""


class Profession(NamedTuple):
    """A profession, and the gender of most people who have it."""

    noun: str
    gender: str


class Worker(NamedTuple):
    """The words drawn for one sentence up to its pronoun."""

    structure: str  # which template they fill
    person: Name  # whom the pronoun stands for
    partner: Name  # a person of the other gender: the counterfactual's
    relative: bool  # whether the two are words for relatives
    profession: Profession

    @property
    def exchanged(self) -> "Worker":
        """The same with the other person."""
        return self._replace(person=self.partner, partner=self.person)

    @property
    def decisive(self) -> Iterator[tuple[str, str]]:
        """The profession with both people; relatives have but one partner, so that one of the two tells the other."""
        people = sorted((self.person, self.partner), key=lambda each: each.gender)
        for person in people[:1] if self.relative else people:
            yield person.text, self.profession.noun

    @property
    def pairs(self) -> Iterator[tuple[str, str]]:
        """The decisive ones."""
        return self.decisive

    def before_pronoun(self) -> Words:
        """Everything up to the pronoun, beginning with a capital."""
        person = [Word("my", "determiner")] * self.relative + [Word(self.person.text, "person")]
        noun = self.profession.noun
        slots: Slots = {"person": person, "profession": noun, "article": indefinite_article(noun)}
        return fill(TEMPLATES[self.structure], slots)


@cache
def professions() -> tuple[Profession, ...]:
    """The professions, in the order of the table."""
    return tuple(Profession(**row) for row in rows_of("professions"))


def propose(dice: Writer, structure: str, *, relative: bool, genders: tuple[str, str]) -> Worker:
    """Draw the words of one sentence, without regard to the held-out rule."""
    if relative:
        couple = dice.pick(RELATIVES)
    else:
        couple = dice.pick(dice.words.names["female"]), dice.pick(dice.words.names["male"])
    person, partner = couple if genders == GENDERS else couple[::-1]
    return Worker(structure, person, partner, relative, dice.pick(professions()))


FRAMES = (
    Frame(None, relative=False),
    Frame("short", relative=False),
    Frame("medium", relative=True),
    Frame(None, relative=False),
    Frame("long", relative=False),
    Frame("short", relative=True),
)
STRUCTURES = tuple(TEMPLATES)


def _pair(plan: Plan) -> MinimalPair:
    proposing = partial(_couple, plan)
    drawn = phrases.draw_within(plan.split, proposing, admit=lambda each: plan.couples.admit(each.person, each.partner))
    item, twin = (_example(plan, each) for each in (drawn, drawn.exchanged))
    return MinimalPair(item, twin, cluster=plan.couples.cluster(drawn.person, drawn.partner))


def _couple(plan: Plan) -> Worker:
    """A proposal, now and then with the person's partner."""
    drawn = propose(plan.dice, plan.structure, genders=plan.genders, **plan.options)
    return drawn._replace(partner=plan.couples.partner(plan.dice, drawn.person, drawn.partner))


def _example(plan: Plan, drawn: Worker) -> Example:
    gender = drawn.person.gender
    return example(
        plan.before + drawn.before_pronoun(),
        (SUBJECT_PRONOUNS[gender], SUBJECT_PRONOUNS[opposite(gender)]),
        relation="antecedent",
        related="person",
        distractors={"profession": "profession"},
        template=plan.structure,
        features={
            "gender": gender,
            "stereotype": "with" if drawn.profession.gender == gender else "against",
            "profession": drawn.profession.noun,
            "antecedent": drawn.person.text,
        },
    )


TASK = GeneratedTask(
    "gendered_pronoun",
    "A pronoun has the gender that the sentence states, whatever the stereotype of the person's profession.",
    dict.fromkeys(STRUCTURES, FRAMES),
    _pair,
    feature="gender",
)
pairs = TASK.pairs
