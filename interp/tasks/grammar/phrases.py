"""Words with slots, the phrases that they form, and the dice that draw them.

1. Dice are seeded, and use ``random.Random.random`` alone: of the standard library's draws only it is documented to
   give the same sequence in every version of Python. A text seed goes through SHA-512, so ``Dice("agreement", 0, 17)``
   and ``Dice("agreement", 0, 18)`` are unrelated.
2. Every pair of lemmas in a held-out role (a subject and its verb, auxiliary, attractor or stranger; neighbours in a
   string; two first names) belongs to one split, so that the decisive words of an evaluation never stood together in
   training: the two lemmas are sorted and hashed with SHA-256, and the first eight bytes, as a number in [0, 1), fall
   into one split's share.
3. A phrase is a flat list of words, each with the slot that it fills: ``determiner``, ``subject``, ``attractor`` ...
   Slots name the gold labels and, joined, the layout. No tree is needed: a relation only asks for two words.
4. A noun phrase is a determiner that fits the number, perhaps an adjective, and the noun. A predicate is drawn for a
   kind of subject. Its first word has a singular and a plural form; its lemma is what the held-out rule knows it by.
   The complement finishes the sentence: object, adjective or place.
5. Filler sentences vary where the sentence of interest begins. Most contain no count noun, name or gendered word; two
   do (``somewhere``, ``somebody``), so the first noun of a text need not be the one that decides.
"""

import hashlib
import random
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import accumulate, chain
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

from interp.errors import TaskError
from interp.tasks.example import Span
from interp.tasks.grammar import lexicon
from interp.tasks.grammar.lexicon import Kind, Name, Noun, Number, Person, Tense, Verb, Vocabulary

T = TypeVar("T")


class Dice:
    """Draws that depend on nothing but the key."""

    def __init__(self, *key: object) -> None:
        self._random = random.Random("/".join(map(str, key))).random

    def pick(self, options: Sequence[T]) -> T:
        """One of `options`, each with the same probability."""
        return options[int(self._random() * len(options))]

    def sample(self, options: Sequence[T], n: int) -> list[T]:
        """At most `n` of the options, each once, in any order."""
        left = list(options)
        return [left.pop(int(self._random() * len(left))) for _ in range(min(n, len(left)))]

    def chance(self, probability: float) -> bool:
        """True with `probability`."""
        return self._random() < probability

    def between(self, low: int, high: int) -> int:
        """An integer from `low` to `high`, both included."""
        return low + int(self._random() * (high - low + 1))

    def uniform(self) -> float:
        """A number in [0, 1)."""
        return self._random()


Split = Literal["train", "select", "reference", "test"]

SHARES: dict[Split, float] = {"train": 0.70, "select": 0.06, "reference": 0.12, "test": 0.12}
ATTEMPTS = 100_000
"""Draws after which a construction counts as impossible in a split."""


@runtime_checkable
class Drawn(Protocol):
    """A drawn construction that says which of its pairs of lemmas fall under the held-out rule."""

    @property
    def decisive(self) -> Iterable[tuple[str, str]]:
        """The pairs that the construction's task holds out: evaluation draws them from its split."""

    @property
    def pairs(self) -> Iterable[tuple[str, str]]:
        """All pairs in a held-out role, of this task or another: training avoids those held out."""


DrawnT = TypeVar("DrawnT", bound=Drawn)
ProposedT = TypeVar("ProposedT", bound=Drawn | list[Any])


@cache
def split_of(first: str, second: str) -> Split:
    """The split of a pair of lemmas, whatever their order."""
    key = "\t".join(sorted((first, second))).encode()
    share = int.from_bytes(hashlib.sha256(key).digest()[:8], "big") / 2**64
    for split, width in SHARES.items():
        if share < width:
            return split
        share -= width
    return "test"  # rounding left nothing over


def allowed(pairs: Iterable[tuple[str, str]], split: Split) -> bool:
    """Whether every pair is of two different lemmas and belongs to `split`."""
    return all(first != second and split_of(first, second) == split for first, second in pairs)


def draw_within(
    split: Split, propose: Callable[[], ProposedT], *, admit: Callable[[ProposedT], bool] | None = None
) -> ProposedT:
    """Draw until the construction, or each of several that are drawn together, fits `split`."""
    for _ in range(ATTEMPTS):
        drawn = propose()
        several = drawn if isinstance(drawn, list) else [drawn]
        pairs = chain.from_iterable(each.pairs if split == "train" else each.decisive for each in several)
        if allowed(pairs, split) and (admit is None or admit(drawn)):
            return drawn
    raise TaskError(
        f"no construction of split {split!r} found: expected pairs of lemmas of that split, got none "
        f"in {ATTEMPTS} draws; use a larger lexicon"
    )


PUNCTUATION = frozenset(".,")
_CONSONANT_SOUNDS = ("uni", "use", "usu", "eu", "one", "once")
_VOWEL_SOUNDS = ("hour", "honest", "heir", "honor")


class Word(NamedTuple):
    """A word, or a punctuation mark, and the slot that it fills."""

    text: str
    slot: str = ""


Words = list[Word]
Slots = dict[str, str | Words]
"""What fills the slots of a template: a text or a phrase; "" is no word."""
FULL_STOP = Word(".", ".")


def fill(template: str, slots: Slots) -> Words:
    """The words of a template, the first one capitalised; a slot that is given nothing is its own word."""
    words: Words = []
    for slot in template.split():
        filled = slots.get(slot, slot)
        words += filled if isinstance(filled, list) else [Word(filled, slot)] if filled else []
    return sentence_start(words)


def render(words: Sequence[Word]) -> str:
    """The text: words separated by spaces, punctuation attached to the word before."""
    return "".join(_pieces(words))[1:]


def spans(words: Sequence[Word]) -> list[Span]:
    """The span of each word in ``render(words)``."""
    stops = accumulate(map(len, _pieces(words)), initial=-1)
    next(stops)
    return [Span(stop - len(word.text), stop) for word, stop in zip(words, stops, strict=True)]


def _pieces(words: Sequence[Word]) -> list[str]:
    return [word.text if word.text in PUNCTUATION else f" {word.text}" for word in words]


def layout(words: Sequence[Word]) -> str:
    """The slots in order: equal where each position means the same."""
    return " ".join(word.slot for word in words)


def sentence_start(words: Words) -> Words:
    """`words` with the first one capitalised."""
    first = words[0]
    return [Word(first.text[0].upper() + first.text[1:], first.slot), *words[1:]]


def sentence(words: Words) -> Words:
    """`words` as a whole sentence: capitalised, with a full stop."""
    return [*sentence_start(words), FULL_STOP]


def indefinite_article(following: str) -> str:
    """``an`` before a vowel sound, ``a`` otherwise."""
    lower = following.lower()
    if lower.startswith(_CONSONANT_SOUNDS):
        return "a"
    return "an" if lower[0] in "aeiou" or lower.startswith(_VOWEL_SOUNDS) else "a"


PREVERBAL = ("often", "always", "still", "also", "now")
"""Adverbs that stand between a subject and any finite verb."""
NEARNESS = ("near", "behind", "beside", "by", "with", "without", "under", "above")
"""Prepositions that relate nouns of every kind."""
GENERAL_ADJECTIVES = ("big", "small", "old", "young", "new", "good", "bad", "strange", "beautiful", "quiet")
"""Adjectives that stand before nouns of every kind."""
LEXICAL_SHARE = 0.5
"""Share of the predicates whose agreeing word is a lexical verb; the rest begin with an auxiliary."""


def noun_phrase(article: str, noun: str, slot: str = "", adjective: str = "") -> Words:
    """Determiner, perhaps an adjective, and the form `noun`, which fills `slot`."""
    if article == "a":
        article = indefinite_article(adjective or noun)
    if adjective:
        return [Word(article, "determiner"), Word(adjective, "adjective"), Word(noun, slot)]
    return [Word(article, "determiner"), Word(noun, slot)]


def person_phrase(person: Person, slot: str, number: Number = "singular") -> Words:
    """A first name, or ``the`` and a noun; the name or noun fills `slot`."""
    if isinstance(person, Name):
        return [Word(person.text, slot)]
    return noun_phrase("the", person.form(number), slot)


class Predicate(NamedTuple):
    """A verb whose first word agrees with the subject."""

    lemma: str  # of the agreeing word
    singular: str  # the agreeing word after a singular subject
    plural: str  # the agreeing word after a plural subject
    rest: str  # form of the lexical verb after an auxiliary, or "" where the verb itself agrees
    verb: Verb  # the lexical verb

    def agreeing(self, number: Number) -> str:
        """The agreeing word after a subject in `number`."""
        return self.singular if number == "singular" else self.plural


Shape = Literal["short", "medium", "long", "mass", "again", "nobody", "somewhere", "somebody"]

SHAPES: dict[Shape, str] = {
    "short": "it was ADJECTIVE",
    "medium": "everything there was very ADJECTIVE",
    "long": "yesterday it was ADJECTIVE and ADJECTIVE , but nobody was ADJECTIVE",
    "mass": "there was MASS",
    "again": "now it is ADJECTIVE again",
    "nobody": "nobody was ADJECTIVE , but MASS was ADJECTIVE there",
    "somewhere": "it was ADJECTIVE near the NOUN",
    "somebody": "it was ADJECTIVE near the PERSON",
}


class Writer(Dice):
    """Dice that draw words and phrases of the English vocabulary."""

    @property
    def words(self) -> Vocabulary:
        """What is drawn from."""
        return lexicon.vocabulary()

    def adjective(self, wanted: bool = True) -> str:
        """An adjective for nouns of every kind; "", and no draw, where none is `wanted`."""
        return self.pick(GENERAL_ADJECTIVES) if wanted else ""

    def adverb(self, wanted: bool) -> str:
        """An adverb before a finite verb; "", and no draw, where none is `wanted`."""
        return self.pick(PREVERBAL) if wanted else ""

    def noun(self, kind: Kind) -> Noun:
        """A count noun of one word."""
        return self.pick(self.words.nouns[kind])

    def determiner(self, number: Number) -> str:
        """A determiner for a noun in `number`; ``a`` may have to become ``an``."""
        return self.pick(self.words.determiners[number])

    def person(self, gender: str, *, named: bool) -> Person:
        """A first name, or a noun for people of one gender."""
        return self.pick(self.words.names[gender]) if named else self.pick(self.words.gendered[gender])

    def some_object(self, verb: Verb) -> Words:
        """Any phrase that the verb takes as its object; none where it takes none."""
        if not verb.objects:
            return []
        kind = self.pick(lexicon.ordered(verb.objects))
        if kind == "person" and self.chance(0.4):
            return [Word(self.pick(self.words.names[self.pick(lexicon.GENDERS)]).text)]
        number = self.pick(lexicon.NUMBERS)
        adjective = self.adjective(self.chance(0.15))
        noun = self.noun(kind).form(number)
        return noun_phrase(self.determiner(number), noun, adjective=adjective)

    def predicate(self, kind: Kind) -> Predicate:
        """A predicate for a subject of `kind`, in a tense that shows the subject's number."""
        verb = self.pick(self.words.verbs[kind])
        if self.chance(LEXICAL_SHARE):
            return Predicate(verb.base, verb.third, verb.base, "", verb)
        lemma = self.pick(("be", "be", "have", "do"))
        singular, plural = self.pick(lexicon.AUXILIARIES[lemma])
        return Predicate(lemma, singular, plural, getattr(verb, lexicon.AFTER[lemma]), verb)

    def complement(self, drawn: Predicate) -> Words:
        """What follows the agreeing word, to the end of the sentence."""
        if drawn.lemma == "be" and self.chance(0.4):
            if self.chance(0.6):
                return [Word(self.adjective())]
            place = self.noun("place").singular
            return [Word(self.pick(NEARNESS)), *noun_phrase("the", place)]
        return [Word(text) for text in (drawn.rest, drawn.verb.particle) if text] + self.some_object(drawn.verb)

    def verb_phrase(self, verb: Verb, tense: Tense, number: Number) -> Words:
        """The verb in a tense, with its auxiliary and particle, for a subject in `number`."""
        particle = [Word(verb.particle, "particle")] if verb.particle else []
        if tense == "past":
            return [Word(verb.past, "verb"), *particle]
        if tense == "present":
            return [Word(verb.third if number == "singular" else verb.base, "verb"), *particle]
        if tense in lexicon.AUXILIARIES:
            auxiliary = self.pick(lexicon.AUXILIARIES[tense])[number == "plural"]
        else:
            auxiliary = self.pick(lexicon.INVARIANT_AUXILIARIES[tense])
        return [Word(auxiliary, "auxiliary"), Word(getattr(verb, lexicon.AFTER[tense]), "verb"), *particle]

    def filler(self, shape: Shape | None = None) -> Words:
        """A filler sentence of `shape`, or of any shape."""
        template = SHAPES[self.pick(tuple(SHAPES)) if shape is None else shape]
        return sentence([Word(self._fill(slot), slot) for slot in template.split()])

    def _fill(self, slot: str) -> str:
        if slot == "ADJECTIVE":
            return self.adjective()
        if slot == "MASS":
            return self.pick(self.words.mass_nouns)
        if slot == "NOUN":
            return self.noun(self.pick(lexicon.KINDS)).form(self.pick(lexicon.NUMBERS))
        return self.pick(self.words.gendered[self.pick(lexicon.GENDERS)]).singular if slot == "PERSON" else slot
