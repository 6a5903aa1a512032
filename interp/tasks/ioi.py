"""Task: who is the indirect object?

"When Mary and John went to the store, John gave a drink to" Mary (Wang et al., 2022, https://arxiv.org/abs/2211.00593).
Eight structures of different lengths introduce two people; one of them gives, the other receives. In ``apart`` and
``with`` the two names are not neighbours. In the two ``late`` structures the receiver is met after the giver was named
twice, so the giver's second mention cannot know who it is.

The counterfactual has the same introduction, but the other person gives, so ABBA becomes BABA; in the ``late``
structures the two change places throughout. The relation is from the last word to the one mention of the indirect
object; both mentions of the giver are distractors. In a word counterfactual a third person of the same gender is the
indirect object.
"""

from collections.abc import Iterator
from functools import partial
from typing import Literal, NamedTuple, get_args

from interp.tasks.example import Example, MinimalPair
from interp.tasks.grammar.items import Couples, Frame, Plan, example, schedule, with_other_words
from interp.tasks.grammar.lexicon import GENDERS, Name, Noun, Verb
from interp.tasks.grammar.phrases import (
    COMMA,
    FULL_STOP,
    NEARNESS,
    Split,
    Word,
    Words,
    Writer,
    draw_within,
    noun_phrase,
    sentence_start,
)

Structure = Literal["subordinate", "coordinate", "two sentences", "beside", "apart", "with", "late", "late subordinate"]
STRUCTURES: tuple[Structure, ...] = get_args(Structure)
LATE: tuple[Structure, ...] = ("late", "late subordinate")
IN_TRAINING = (*STRUCTURES, *LATE, *LATE)
"""Half of what is trained on is late: elsewhere it is enough to look at the giver's second mention, which can know
who the other person is."""
SUBORDINATORS = ("when", "after", "while", "because", "before")


class IndirectObject(NamedTuple):
    """The words drawn for one sentence up to the receiver."""

    structure: Structure  # which structure they fill
    receiver: Name  # the indirect object, which is the answer
    giver: Name  # the subject, which is named twice
    receiver_first: bool  # the order in which the two are introduced: ABBA if so, else BABA
    subordinator: str  # begins a subordinate clause
    meeting: Verb  # what the two did, an action on a place
    greeting: Verb  # what the one did to the other, where they are introduced apart
    place: Noun  # where
    preposition: str  # before the landmark
    landmark: Noun  # an animal there
    giving: Verb  # the verb of transfer
    gift: Noun  # what is given
    adjective: str  # of the gift; "" for none

    @property
    def exchanged(self) -> "IndirectObject":
        """The same introduction, but the other person gives."""
        return self._replace(receiver=self.giver, giver=self.receiver, receiver_first=not self.receiver_first)

    @property
    def order(self) -> str:
        """How the two are introduced: ``ABBA`` if the receiver (A) comes first, ``BABA``, or ``late``."""
        if self.structure in LATE:
            return "late"
        return "ABBA" if self.receiver_first else "BABA"

    @property
    def decisive(self) -> Iterator[tuple[str, str]]:
        """The two names."""
        yield self.receiver.text, self.giver.text

    @property
    def pairs(self) -> Iterator[tuple[str, str]]:
        """The two names, and the verbs with their subjects."""
        yield from self.decisive
        for person in (self.receiver, self.giver):
            yield person.text, self.greeting.base if self.structure == "apart" else self.meeting.base
        if self.structure in LATE:
            yield self.giver.text, self.greeting.base
        yield self.giver.text, self.giving.base

    def before_receiver(self) -> Words:
        """Everything up to the receiver, beginning with a capital."""
        place = noun_phrase("the", self.place.singular, "place")
        landmark = noun_phrase("the", self.landmark.singular, "landmark")
        beside = [Word(self.preposition, "preposition"), *landmark]
        first, second = self._people()
        met = Word(self.meeting.past, "meeting")
        both = [first, Word("and", "and"), second, met, *place]
        apart = [first, Word(self.greeting.past, "greeting"), second, Word(self.preposition, "preposition"), *place]
        gives, then = self._gives(), Word("Then", "then")
        giver, receiver = Word(self.giver.text, "subject"), Word(self.receiver.text, "indirect-object")
        came = [giver, met, *place]
        meets = [Word(self.giver.text, "giver"), Word(self.greeting.past, "greeting"), receiver]
        hands = [Word("and", "and"), *gives[1:]]
        words: dict[Structure, Words] = {
            "subordinate": [Word(self.subordinator, "subordinator"), *both, COMMA, *gives],
            "coordinate": [*both, COMMA, Word("and", "and"), *gives],
            "two sentences": [*both, *beside, FULL_STOP, then, *gives],
            "beside": [*both, *beside, Word("before", "subordinator"), *gives],
            "apart": [*apart, COMMA, Word("and", "and"), *gives],
            "late": [*came, FULL_STOP, then, *meets, *hands],
            "late subordinate": [Word(self.subordinator, "subordinator"), *came, COMMA, *meets, *beside, *hands],
            "with": [first, met, *place, Word("with", "with"), second, FULL_STOP, then, *gives],
        }
        return sentence_start(words[self.structure])

    def _people(self) -> tuple[Word, Word]:
        """The two as they are introduced."""
        receiver, giver = Word(self.receiver.text, "indirect-object"), Word(self.giver.text, "subject")
        return (receiver, giver) if self.receiver_first else (giver, receiver)

    def _gives(self) -> Words:
        gift = noun_phrase("the", self.gift.singular, "gift", self.adjective)
        return [Word(self.giver.text, "giver"), Word(self.giving.past, "giving"), *gift, Word("to", "to")]


def propose(dice: Writer, structure: Structure, *, receiver_first: bool, adjective: bool) -> IndirectObject:
    """Draw the words of one sentence, without regard to the held-out rule."""
    words = dice.words
    return IndirectObject(
        structure=structure,
        receiver=dice.pick(words.names[dice.pick(GENDERS)]),
        giver=dice.pick(words.names[dice.pick(GENDERS)]),
        receiver_first=receiver_first,
        subordinator=dice.pick(SUBORDINATORS),
        meeting=dice.pick(words.transitive["person", "place"]),
        greeting=dice.pick(words.transitive["person", "person"]),
        place=dice.noun("place"),
        preposition=dice.pick(NEARNESS),
        landmark=dice.noun("animal"),
        giving=dice.pick(words.giving),
        gift=dice.noun("thing"),
        adjective=dice.adjective(adjective),
    )


def training_sentence(dice: Writer) -> Words:
    """A whole sentence of any shape and order."""
    structure, receiver_first, adjective = dice.pick(IN_TRAINING), dice.chance(0.5), dice.chance(0.3)
    drawn = draw_within("train", lambda: propose(dice, structure, receiver_first=receiver_first, adjective=adjective))
    return [*drawn.before_receiver(), Word(drawn.receiver.text), FULL_STOP]


FRAMES = (
    Frame(None, adjective=False),
    Frame("short", adjective=True),
    Frame("medium", adjective=False),
    Frame(None, adjective=True),
    Frame("long", adjective=False),
    Frame("medium", adjective=True),
)


def pairs(n: int, *, seed: int, split: Split = "test") -> Iterator[MinimalPair]:
    """Draw `n` minimal pairs, the structures in turn; `n` below 1 raises ``TaskError``.

    Args:
        n: How many; the first items are the same for every `n`.
        seed: Names the draw.
        split: Whose pairs of names they use.
    """
    couples, frames = Couples[Name](split), dict.fromkeys(STRUCTURES, FRAMES)
    for plan in schedule("ioi", n, seed=seed, split=split, frames=frames, others="third person"):
        drawn = draw_within(
            split, partial(_couple, couples, plan), admit=lambda each: couples.admit(each.receiver, each.giver)
        )
        yield MinimalPair(
            item=_with_third_people(plan, drawn, split),
            counterfactual=_with_third_people(plan, drawn.exchanged, split),
            cluster=couples.cluster(drawn.receiver, drawn.giver),
        )


def _couple(couples: Couples[Name], plan: Plan) -> IndirectObject:
    """A proposal, now and then with the receiver's partner for its giver."""
    drawn = propose(plan.dice, plan.structure, receiver_first=not plan.flipped, **plan.options)
    return drawn._replace(giver=couples.partner(plan.dice, drawn.receiver, drawn.giver))


def _with_third_people(plan: Plan, drawn: IndirectObject, split: Split) -> Example:
    """The example, and it with others of the receiver's gender in the receiver's place."""
    names = [] if split == "reference" else plan.dice.words.names[drawn.receiver.gender]
    others = [drawn._replace(receiver=name) for name in names if name not in (drawn.receiver, drawn.giver)]
    examples = [_example(plan.before, each) for each in plan.others(others, split)]
    return with_other_words(_example(plan.before, drawn), examples)


def _example(before: Words, drawn: IndirectObject) -> Example:
    same = drawn.receiver.gender == drawn.giver.gender
    return example(
        before + drawn.before_receiver(),
        (drawn.receiver.text, drawn.giver.text),
        relation="indirect object",
        related="indirect-object",
        distractors={"subject": "giver's first mention", "giver": "giver's second mention"},
        template=drawn.structure,
        features={
            "order": drawn.order,
            "genders": "same" if same else "different",
            "indirect object": drawn.receiver.text,
            "subject": drawn.giver.text,
        },
    )
