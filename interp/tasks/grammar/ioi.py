"""Indirect objects (Wang et al., 2022): "When Mary and John went to the store, John gave a drink to" Mary.

Two people are introduced, one of them appears again as the giver, and the other one receives. The
order of the introduction (ABBA or BABA) is a parameter. Eight shapes of different lengths. In two of them
the two names stand apart, so that a neighbour of the giver's first mention need not be the receiver. In the
two ``late`` ones the receiver is met after the giver was named twice, so that the giver's second mention cannot know
who it is.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from interp.tasks.grammar.dice import Dice
from interp.tasks.grammar.lexicon import Name, Noun, Verb
from interp.tasks.grammar.phrases import GENERAL_ADJECTIVES, NEARNESS, noun_phrase
from interp.tasks.grammar.sentence import COMMA, FULL_STOP, Word, Words, sentence_start
from interp.tasks.grammar.splits import draw_within
from interp.tasks.grammar.vocabulary import GENDERS, Vocabulary

Structure = Literal["subordinate", "coordinate", "two sentences", "beside", "apart", "with", "late", "late subordinate"]
STRUCTURES: tuple[Structure, ...] = (
    "subordinate",
    "coordinate",
    "two sentences",
    "beside",
    "apart",
    "with",
    "late",
    "late subordinate",
)
LATE: tuple[Structure, ...] = ("late", "late subordinate")
IN_TRAINING = (*STRUCTURES, *LATE, *LATE)
"""Half of what is trained on is late: elsewhere it is enough to look at the giver's second mention, which can know
who the other person is."""
SUBORDINATORS = ("when", "after", "while", "because", "before")


class IndirectObject(NamedTuple):
    """The words drawn for one sentence up to the receiver.

    Attributes:
        structure: Which structure they fill.
        receiver: The indirect object, which is the answer.
        giver: The subject, which is named twice.
        receiver_first: The order in which the two are introduced: ABBA if so, else BABA.
        subordinator: Begins a subordinate clause.
        meeting: What the two did, an action on a place.
        greeting: What the one did to the other, where they are introduced apart.
        place: Where.
        preposition: Before the landmark.
        landmark: An animal there.
        giving: The verb of transfer.
        gift: What is given.
        adjective: Of the gift; "" for none.
    """

    structure: Structure
    receiver: Name
    giver: Name
    receiver_first: bool
    subordinator: str
    meeting: Verb
    greeting: Verb
    place: Noun
    preposition: str
    landmark: Noun
    giving: Verb
    gift: Noun
    adjective: str

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


def propose(
    dice: Dice, words: Vocabulary, structure: Structure, *, receiver_first: bool, adjective: bool
) -> IndirectObject:
    """Draw the words of one sentence, without regard to the held-out rule."""
    return IndirectObject(
        structure=structure,
        receiver=dice.pick(words.names[dice.pick(GENDERS)]),
        giver=dice.pick(words.names[dice.pick(GENDERS)]),
        receiver_first=receiver_first,
        subordinator=dice.pick(SUBORDINATORS),
        meeting=dice.pick(words.transitive["person", "place"]),
        greeting=dice.pick(words.transitive["person", "person"]),
        place=dice.pick(words.nouns["place"]),
        preposition=dice.pick(NEARNESS),
        landmark=dice.pick(words.nouns["animal"]),
        giving=dice.pick(words.giving),
        gift=dice.pick(words.nouns["thing"]),
        adjective=dice.pick(GENERAL_ADJECTIVES) if adjective else "",
    )


def training_sentence(dice: Dice, words: Vocabulary) -> Words:
    """A whole sentence of any shape and order."""
    structure, receiver_first, adjective = dice.pick(IN_TRAINING), dice.chance(0.5), dice.chance(0.3)
    drawn = draw_within(
        "train",
        lambda: propose(dice, words, structure, receiver_first=receiver_first, adjective=adjective),
    )
    return [*drawn.before_receiver(), Word(drawn.receiver.text), FULL_STOP]
