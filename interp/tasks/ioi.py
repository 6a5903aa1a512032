"""Task: who is the indirect object?

"When Mary and John went to the store, John gave a drink to" Mary (Wang et al., 2022, https://arxiv.org/abs/2211.00593).
Eight structures of different lengths introduce two people; one of them gives, the other receives. In ``apart`` and
``with`` the two names are not neighbours. In the two ``late`` structures the receiver is met after the giver was named
twice, so the giver's second mention cannot know who it is.

The counterfactual has the same introduction, but the other person gives, so ABBA becomes BABA; in the ``late``
structures the two change places throughout. The relation is from the last word to the one mention of the indirect
object; both mentions of the giver are distractors. In a word counterfactual a third person of the same gender is the
indirect object.

No two splits share a pair of names.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from interp.tasks.example import Example, MinimalPair
from interp.tasks.grammar import phrases
from interp.tasks.grammar.items import Frame, GeneratedTask, Plan, example
from interp.tasks.grammar.lexicon import GENDERS, Name, Verb
from interp.tasks.grammar.phrases import Slots, Word, Words, Writer, noun_phrase

TEMPLATES = {
    "subordinate": "subordinator first and second meeting place , giver giving gift to",
    "coordinate": "first and second meeting place , and giver giving gift to",
    "two sentences": "first and second meeting place preposition landmark . then giver giving gift to",
    "beside": "first and second meeting place preposition landmark subordinator giver giving gift to",
    "apart": "first greeting second preposition place , and giver giving gift to",
    "with": "first meeting place with second . then giver giving gift to",
    "late": "subject meeting place . then giver greeting indirect-object and giving gift to",
    "late subordinate": (
        "subordinator subject meeting place , giver greeting indirect-object preposition landmark and giving gift to"
    ),
}
"""The structures, slot by slot; *first* and *second* are the two people as they are introduced."""
STRUCTURES = tuple(TEMPLATES)
LATE = ("late", "late subordinate")
IN_TRAINING = (*STRUCTURES, *LATE, *LATE)
"""Half of what is trained on is late: elsewhere it is enough to look at the giver's second mention, which can know
who the other person is."""
SUBORDINATORS = ("when", "after", "while", "because", "before")


class IndirectObject(NamedTuple):
    """The words drawn for one sentence up to the receiver."""

    structure: str  # which template they fill
    receiver: Name  # the indirect object, which is the answer
    giver: Name  # the subject, which is named twice
    receiver_first: bool  # the order in which the two are introduced: ABBA if so, else BABA
    meeting: Verb  # what the two did, an action on a place
    greeting: Verb  # what the one did to the other, where they are introduced apart
    giving: Verb  # the verb of transfer
    slots: Slots  # what fills the other slots

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
        receiver, giver = self.receiver.text, self.giver.text
        both = [Word(receiver, "indirect-object")], [Word(giver, "subject")]
        first, second = both if self.receiver_first else both[::-1]
        slots: Slots = {"first": first, "second": second, "indirect-object": receiver}
        slots |= dict.fromkeys(("subject", "giver"), giver)
        slots |= {slot: getattr(self, slot).past for slot in ("meeting", "greeting", "giving")}
        return phrases.fill(TEMPLATES[self.structure], slots | self.slots)


def propose(dice: Writer, structure: str, *, receiver_first: bool, adjective: bool) -> IndirectObject:
    """Draw the words of one sentence, without regard to the held-out rule."""
    receiver, giver = (dice.pick(dice.words.names[dice.pick(GENDERS)]) for _ in range(2))
    subordinator = dice.pick(SUBORDINATORS)
    meeting, greeting = (dice.pick(dice.words.transitive["person", other]) for other in ("place", "person"))
    slots: Slots = {
        "subordinator": "before" if structure == "beside" else subordinator,
        "place": noun_phrase("the", dice.noun("place").singular, "place"),
        "preposition": dice.pick(phrases.NEARNESS),
        "landmark": noun_phrase("the", dice.noun("animal").singular, "landmark"),
        "then": "Then",
    }
    giving = dice.pick(dice.words.giving)
    slots["gift"] = noun_phrase("the", dice.noun("thing").singular, "gift", dice.adjective(adjective))
    return IndirectObject(structure, receiver, giver, receiver_first, meeting, greeting, giving, slots)


def training_sentence(dice: Writer) -> Words:
    """A whole sentence of any shape and order."""
    structure, options = dice.pick(IN_TRAINING), {"receiver_first": dice.chance(0.5), "adjective": dice.chance(0.3)}
    drawn = phrases.draw_within("train", partial(propose, dice, structure, **options))
    return [*drawn.before_receiver(), Word(drawn.receiver.text), phrases.FULL_STOP]


FRAMES = (
    Frame(None, adjective=False),
    Frame("short", adjective=True),
    Frame("medium", adjective=False),
    Frame(None, adjective=True),
    Frame("long", adjective=False),
    Frame("medium", adjective=True),
)


def _pair(plan: Plan) -> MinimalPair:
    proposing = partial(_couple, plan)
    drawn = phrases.draw_within(plan.split, proposing, admit=lambda each: plan.couples.admit(each.receiver, each.giver))
    return MinimalPair(
        item=_with_third_people(plan, drawn),
        counterfactual=_with_third_people(plan, drawn.exchanged),
        cluster=plan.couples.cluster(drawn.receiver, drawn.giver),
    )


def _couple(plan: Plan) -> IndirectObject:
    """A proposal, now and then with the receiver's partner for its giver."""
    drawn = propose(plan.dice, plan.structure, receiver_first=not plan.flipped, **plan.options)
    return drawn._replace(giver=plan.couples.partner(plan.dice, drawn.receiver, drawn.giver))


def _with_third_people(plan: Plan, drawn: IndirectObject) -> Example:
    """The example, and it with others of the receiver's gender in the receiver's place."""
    names = (each for each in plan.dice.words.names[drawn.receiver.gender] if each not in (drawn.receiver, drawn.giver))
    return plan.with_others(partial(_example, plan.before), drawn, (drawn._replace(receiver=name) for name in names))


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


TASK = GeneratedTask(
    "ioi",
    "The indirect object is the person who was mentioned but is not the one giving.",
    dict.fromkeys(STRUCTURES, FRAMES),
    _pair,
    others="third person",
)
pairs = TASK.pairs
