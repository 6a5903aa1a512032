"""Task: does a pronoun have the gender of the person that it refers to?

The antecedent is the subject of the clause before the pronoun. In the counterfactual of ``one person``
and ``possessive`` a person of the other gender stands in its place; in ``two people`` the two
exchange their places, and a word counterfactual has somebody else of the other gender for the antecedent alone.
The relation is from the last word before the pronoun to the antecedent.
"""

from collections.abc import Iterator
from functools import partial
from typing import Literal, NamedTuple

from interp.tasks.example import Example, MinimalPair
from interp.tasks.grammar.coreference import Coreference, Ending, Link, propose
from interp.tasks.grammar.couples import Couples
from interp.tasks.grammar.dice import Dice
from interp.tasks.grammar.filler import Shape, opening
from interp.tasks.grammar.items import OTHER_WORDS, Twins, example, schedule, with_other_words
from interp.tasks.grammar.lexicon import Name
from interp.tasks.grammar.narrative import POSSESSIVES, SUBJECT_PRONOUNS
from interp.tasks.grammar.sentence import Words
from interp.tasks.grammar.splits import Split, allowed, draw_within
from interp.tasks.grammar.vocabulary import GENDERS, Person, lemma, vocabulary

Structure = Literal["one person", "two people", "possessive"]


class Frame(NamedTuple):
    """What surrounds the words that decide.

    Attributes:
        opening: The filler sentence in front.
        link: Where the other person stands.
        ending: What comes before the pronoun.
        named: People are first names rather than nouns.
        extra: Which modifiers there are, of ``adjective``, ``place`` and ``adverb``.
    """

    opening: Shape | None
    link: Link
    ending: Ending
    named: bool
    extra: frozenset[str] = frozenset()


PLACE, ADJECTIVE, ADVERB = frozenset({"place"}), frozenset({"adjective"}), frozenset({"adverb"})
FRAMES: dict[Structure, tuple[Frame, ...]] = {
    "one person": (
        Frame(None, "alone", "because", True),
        Frame("short", "alone", "because", True, PLACE),
        Frame("medium", "alone", "because", False, ADJECTIVE),
        Frame("long", "alone", "that", True, ADVERB),
        Frame(None, "alone", "because", False, PLACE | ADVERB),
        Frame("medium", "alone", "that", True),
    ),
    "two people": (
        Frame(None, "clause", "because", True),
        Frame("short", "beside", "because", True, ADJECTIVE),
        Frame("medium", "sentence", "because", True, PLACE),
        Frame("long", "beside", "that", False),
        Frame(None, "beside", "because", False, ADVERB),
        Frame("short", "clause", "that", True, ADVERB),
    ),
    "possessive": (
        Frame(None, "alone", "possessive", True, ADVERB),
        Frame("short", "beside", "possessive", True),
        Frame("medium", "clause", "possessive", False, ADVERB),
        Frame("long", "beside", "possessive", True, ADVERB),
        Frame(None, "sentence", "possessive", True),
        Frame("medium", "alone", "possessive", False, ADVERB),
    ),
}
STRUCTURES: tuple[Structure, ...] = tuple(FRAMES)


def pairs(n: int, *, seed: int, split: Split = "test") -> Iterator[MinimalPair]:
    """Draw `n` minimal pairs, the structures in turn.

    Args:
        n: How many.
        seed: Names the draw; the first items are the same for every `n`.
        split: Whose pairs of people, or of one person and a verb, they use.

    Raises:
        TaskError: `n` is not positive.
    """
    words, couples = vocabulary(), Couples[Person](split)
    planned = schedule("coreference", n, seed=seed, split=split, frames=FRAMES)
    for index, (dice, structure, frame, flipped) in enumerate(planned):
        before = opening(dice, words, frame.opening)
        genders = GENDERS[::-1] if flipped else GENDERS
        drawn = draw_within(
            split,
            partial(_twins, couples, dice, frame, genders),
            admit=lambda each: couples.admit(each.item.antecedent, each.item.stranger),
        )
        somebody = Dice("coreference", seed, split, index, "somebody else")
        yield MinimalPair(
            item=_with_others(before, drawn.item, structure, genders, dice=somebody, split=split),
            counterfactual=_with_others(
                before, drawn.counterfactual, structure, genders[::-1], dice=somebody, split=split
            ),
            cluster=couples.cluster(drawn.item.antecedent, drawn.item.stranger),
        )


def _twins(couples: Couples[Person], dice: Dice, frame: Frame, genders: tuple[str, str]) -> Twins[Coreference]:
    """The same sentence with its two people exchanged, whether or not both appear in it."""
    drawn = propose(
        dice,
        vocabulary(),
        frame.link,
        frame.ending,
        genders=genders,
        named=(frame.named, frame.named),
        **dict.fromkeys(frame.extra, True),
    )
    drawn = drawn._replace(stranger=couples.partner(dice, drawn.antecedent, drawn.stranger))
    return Twins(drawn, drawn.exchanged)


def _with_others(
    before: Words, drawn: Coreference, structure: Structure, genders: tuple[str, str], *, dice: Dice, split: Split
) -> Example:
    """The example, and where it has two people it with others of the other gender for its antecedent alone."""
    item = _example(before, drawn, structure, genders)
    if drawn.link == "alone" or split == "reference":
        return item
    people = vocabulary().names if isinstance(drawn.antecedent, Name) else vocabulary().gendered
    others = [drawn._replace(antecedent=each) for each in people[genders[1]] if each != drawn.stranger]
    chosen = dice.sample([each for each in others if allowed(each.decisive, split)], OTHER_WORDS)
    return with_other_words(item, (_example(before, each, structure, genders[::-1]) for each in chosen))


def _example(before: Words, drawn: Coreference, structure: Structure, genders: tuple[str, str]) -> Example:
    pronouns = POSSESSIVES if drawn.ending == "possessive" else SUBJECT_PRONOUNS
    return example(
        before + drawn.before_pronoun(),
        (pronouns[genders[0]], pronouns[genders[1]]),
        relation="antecedent",
        related="antecedent",
        distractors={"stranger": "other person"},
        template=structure,
        features={
            "gender": genders[0],
            "antecedent": lemma(drawn.antecedent),
            "verb": drawn.own_verb,
            "other person": drawn.link,
        },
    )
