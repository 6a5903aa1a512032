"""Which words can stand in which place?

The lexicon sorted once by what the constructions ask for (kind, gender, the kinds that a verb
selects), so that a draw is one index into a tuple.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeVar

from interp.tasks.grammar.lexicon import Kind, Lexicon, Name, Noun, ProperNoun, Verb, english

KINDS: tuple[Kind, ...] = ("person", "animal", "thing", "place")
GENDERS = ("female", "male")

PLURAL_MASS_NOUNS = frozenset({"fish", "offspring", "pants", "politics", "stairs"})
"""Mass nouns whose verb is not always singular: never subjects here."""

Person = Name | Noun
T = TypeVar("T")
K = TypeVar("K")


@dataclass(frozen=True)
class Vocabulary:
    """Candidates for each place of a construction.

    Attributes:
        nouns: Count nouns of one word, by kind.
        compounds: Count nouns of several words, such as ``grocery store``, by kind.
        mass_nouns: Mass nouns whose verb is always singular.
        proper_nouns: Names of places and peoples, by kind.
        names: First names, by gender.
        gendered: Nouns of one word for people of one gender, by gender.
        verbs: All verbs, by the kind of their subject.
        transitive: Verbs with an object and no particle, by the kinds of subject and object.
        reflexive: Verbs whose object can be their subject, by its kind.
        saying: Verbs with a clause that begins with ``that``.
        giving: Verbs that give a thing to a person.
        singular_determiners: Those that go before a singular noun; ``a`` stands for ``an`` too.
        plural_determiners: Those that go before a plural noun.
        forms: Every word of the lexicon, in alphabetical order.
        lexicon: What all this was sorted from.
    """

    nouns: dict[Kind, tuple[Noun, ...]]
    compounds: dict[Kind, tuple[Noun, ...]]
    mass_nouns: tuple[str, ...]
    proper_nouns: dict[Kind, tuple[ProperNoun, ...]]
    names: dict[str, tuple[Name, ...]]
    gendered: dict[str, tuple[Noun, ...]]
    verbs: dict[Kind, tuple[Verb, ...]]
    transitive: dict[tuple[Kind, Kind], tuple[Verb, ...]]
    reflexive: dict[Kind, tuple[Verb, ...]]
    saying: tuple[Verb, ...]
    giving: tuple[Verb, ...]
    singular_determiners: tuple[str, ...]
    plural_determiners: tuple[str, ...]
    forms: tuple[str, ...]
    lexicon: Lexicon

    @classmethod
    def of(cls, lexicon: Lexicon) -> "Vocabulary":
        """Sort a lexicon."""
        single = [noun for noun in lexicon.nouns if " " not in noun.singular + noun.plural]
        several = [noun for noun in lexicon.nouns if " " in noun.singular + noun.plural]
        verbs = [verb for verb in lexicon.verbs if " " not in verb.base + verb.particle]
        determiners = [each for each in lexicon.determiners if each.text != "an"]
        return cls(
            nouns=_grouped(single, lambda noun: [noun.kind]),
            compounds=_grouped(several, lambda noun: [noun.kind]),
            mass_nouns=tuple(noun for noun in lexicon.mass_nouns if noun not in PLURAL_MASS_NOUNS),
            proper_nouns=_grouped(lexicon.proper_nouns, lambda noun: [noun.kind]),
            names=_grouped(lexicon.names, lambda name: [name.gender]),
            gendered=_grouped(single, lambda noun: [noun.gender] if noun.gender else []),
            verbs=_grouped(verbs, lambda verb: _ordered(verb.subjects)),
            transitive=_grouped(
                [verb for verb in verbs if not verb.particle],
                lambda verb: [(one, two) for one in _ordered(verb.subjects) for two in _ordered(verb.objects)],
            ),
            reflexive=_grouped(verbs, lambda verb: _ordered(verb.subjects & verb.objects)),
            saying=tuple(verb for verb in lexicon.clause_verbs if not verb.particle),
            giving=lexicon.dative_verbs,
            singular_determiners=tuple(each.text for each in determiners if each.number != "plural"),
            plural_determiners=tuple(each.text for each in determiners if each.number != "singular"),
            forms=tuple(sorted(lexicon.words())),
            lexicon=lexicon,
        )

    @cached_property
    def done_to_oneself(self) -> dict[bool, tuple[Verb, ...]]:
        """The reflexive verbs of people, by whether they have a particle."""
        return _grouped(self.reflexive["person"], lambda verb: [bool(verb.particle)])


@lru_cache(maxsize=1)
def vocabulary() -> Vocabulary:
    """The English lexicon, sorted once."""
    return Vocabulary.of(english())


def lemma(word: Person) -> str:
    """What the held-out rule knows a person, an animal or a thing by."""
    return word.text if isinstance(word, Name) else word.singular


def _ordered(kinds: Iterable[Kind]) -> list[Kind]:
    """`kinds` in a fixed order: that of a set of strings differs from process to process."""
    chosen = frozenset(kinds)
    return [kind for kind in KINDS if kind in chosen]


def _grouped(entries: Iterable[T], keys: Callable[[T], Iterable[K]]) -> dict[K, tuple[T, ...]]:
    groups: dict[K, list[T]] = {}
    for entry in entries:
        for key in keys(entry):
            groups.setdefault(key, []).append(entry)
    return {key: tuple(group) for key, group in groups.items()}
