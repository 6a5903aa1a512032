"""Task: what was said of a name, some way back in the context?

Retrieval at a distance: every sentence says what somebody did to a thing, and the last one begins as one of them did,
the needle: "Anna painted the lamp. Tom found the book. ... Anna painted the" lamp. (Copying from a context, as in
Olsson et al., 2022, https://arxiv.org/abs/2209.11895; bound entities, Feng and Steinhardt, 2023,
https://arxiv.org/abs/2310.17191; needles at several depths, Liu et al., 2023, https://arxiv.org/abs/2307.03172.) In
``induction`` the last word tells what followed it. Here all sentences have the same word before their things, so the
words before that one have to be matched.

The structures are the needle's depth among the sentences, of which there are 5 to 17; the feature ``sentences`` says
how many. In the counterfactual the needle's thing and that of another sentence have changed places. The relation is
from the last word to the needle's thing; distractors are the name's first mention and, unless it is the needle's, the
last thing of all. In a word counterfactual a new thing stands in the needle.

No two splits share a pair of a name and a thing.
"""

from collections.abc import Iterator
from functools import cache, partial
from typing import NamedTuple

from interp.tasks.example import Example, MinimalPair
from interp.tasks.grammar.items import Frame, GeneratedTask, Plan, example
from interp.tasks.grammar.lexicon import GENDERS, vocabulary
from interp.tasks.grammar.phrases import FULL_STOP, Word, Words, Writer, draw_within

DEPTHS = {"first": 0.0, "early": 0.25, "middle": 0.5, "late": 0.75, "last": 1.0}
"""Where the needle stands among the sentences: 0 is the first of them, 1 the last."""
STRUCTURES = tuple(DEPTHS)


class Needle(NamedTuple):
    """The words that decide."""

    name: str  # who is asked about
    thing: str  # the right answer
    foil: str  # the thing of another sentence: the wrong one

    @property
    def decisive(self) -> Iterator[tuple[str, str]]:
        """The name with both things."""
        yield self.name, self.thing
        yield self.name, self.foil

    @property
    def pairs(self) -> Iterator[tuple[str, str]]:
        """The decisive ones."""
        return self.decisive


class Context(NamedTuple):
    """Who did what to which thing, one sentence each, and who is asked about."""

    needle: Needle
    at: int  # the needle's sentence
    foil_at: int  # the foil's
    # Name, verb and thing of every sentence; in the place of some stand the needle's name and thing, and the foil.
    sentences: tuple[tuple[str, str, str], ...]

    @property
    def exchanged(self) -> "Context":
        """The same with the needle's thing and the foil in each other's place."""
        name, thing, foil = self.needle
        return self._replace(needle=Needle(name, foil, thing))

    @property
    def decisive(self) -> Iterator[tuple[str, str]]:
        """The needle's."""
        return self.needle.decisive

    @property
    def pairs(self) -> Iterator[tuple[str, str]]:
        """The needle's."""
        return self.needle.pairs

    def words(self) -> Words:
        """All sentences, and the beginning of the needle once more."""
        words: Words = []
        for number, (name, verb, thing) in enumerate(self.sentences):
            place = "last" if number == len(self.sentences) - 1 else f"other-{number}"
            if number == self.at:
                place, name, thing = "needle", self.needle.name, self.needle.thing
            elif number == self.foil_at:
                thing = self.needle.foil
            words += [Word(name, f"{place}-name"), Word(verb, "verb"), Word("the", "determiner")]
            words += [Word(thing, place), FULL_STOP]
        verb = self.sentences[self.at][1]
        return [*words, Word(self.needle.name, "asked"), Word(verb, "verb"), Word("the", "determiner")]


@cache
def _names_and_things() -> tuple[tuple[str, ...], tuple[str, ...]]:
    words = vocabulary()
    names = tuple(each.text for gender in GENDERS for each in words.names[gender])
    return names, tuple(each.singular for each in words.nouns["thing"])


def propose(dice: Writer) -> Needle:
    """Draw the words that decide, without regard to the held-out rule."""
    names, things = _names_and_things()
    return Needle(dice.pick(names), dice.pick(things), dice.pick(things))


def _around(dice: Writer, needle: Needle, depth: str, *, sentences: int) -> Context:
    """The needle among sentences about other names and things."""
    names, things = _names_and_things()
    at = round(DEPTHS[depth] * (sentences - 1))
    foil_at = dice.pick([number for number in range(sentences) if number != at])
    other_names = dice.sample([each for each in names if each != needle.name], sentences)
    other_things = dice.sample([each for each in things if each not in (needle.thing, needle.foil)], sentences)
    verbs = [dice.pick(dice.words.transitive["person", "thing"]).past for _ in range(sentences)]
    return Context(needle, at, foil_at, tuple(zip(other_names, verbs, other_things, strict=True)))


FRAMES = (
    Frame("short", sentences=5),
    Frame("medium", sentences=9),
    Frame("short", sentences=13),
    Frame("medium", sentences=17),
    Frame("long", sentences=5),
    Frame("short", sentences=9),
)
"""All have a sentence in front: at the very beginning of a text a name is another token than behind a space."""


def _pair(plan: Plan) -> MinimalPair:
    needle = draw_within(plan.split, partial(propose, plan.dice), admit=lambda each: each.thing != each.foil)
    drawn = _around(plan.dice, needle, plan.structure, **plan.options)
    item, twin = (_with_new_things(plan, each) for each in (drawn, drawn.exchanged))
    return MinimalPair(item, twin, cluster=needle.name)


def _with_new_things(plan: Plan, drawn: Context) -> Example:
    """The example, and it with things of no sentence in the needle."""
    there = {*drawn.needle, *(thing for _, _, thing in drawn.sentences)}
    new = (drawn.needle._replace(thing=each) for each in _names_and_things()[1] if each not in there)
    return plan.with_others(partial(_example, plan), drawn, (drawn._replace(needle=each) for each in new))


def _example(plan: Plan, drawn: Context) -> Example:
    return example(
        plan.before + drawn.words(),
        (drawn.needle.thing, drawn.needle.foil),
        relation="thing of the name",
        related="needle",
        distractors={"needle-name": "first mention of the name", "last": "last thing"},
        template=plan.structure,
        features={
            "depth": plan.structure,
            "sentences": str(len(drawn.sentences)),
            "name": drawn.needle.name,
            "thing": drawn.needle.thing,
        },
    )


TASK = GeneratedTask(
    "retrieval",
    "What was said of a name some sentences before is said of it again.",
    dict.fromkeys(STRUCTURES, FRAMES),
    _pair,
    others="new thing",
)
pairs = TASK.pairs
