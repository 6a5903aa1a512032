"""The English words of the generated texts, what is known about each, and which can stand where.

1. The tables under ``words/`` list every form; nothing is inflected by rule.
2. ``english()`` reads them into a frozen ``Lexicon``. ``Lexicon.words()`` is the vocabulary: a tokenizer built from it
   has one token for each word of a generated text.
3. ``vocabulary()`` sorts the lexicon by what the constructions ask for, so a draw is one index into a tuple.

The words cover the agreement and anaphor paradigms of BLiMP (Warstadt et al., 2020,
https://aclanthology.org/2020.tacl-1.25), whose own vocabulary has number, gender and selection.
"""

import csv
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import files
from typing import Any, Literal, TypeVar, get_args

Kind = Literal["person", "animal", "thing", "place"]
Gender = Literal["female", "male", ""]
Number = Literal["singular", "plural"]
VerbForm = Literal["base", "third", "past", "participle", "gerund"]

VERB_FORMS: tuple[VerbForm, ...] = get_args(VerbForm)
KINDS: tuple[Kind, ...] = get_args(Kind)
GENDERS = ("female", "male")
NUMBERS: tuple[Number, ...] = get_args(Number)
SUBJECT_KINDS: tuple[Kind, ...] = ("person", "person", "person", "animal", "thing", "thing", "place")
"""How often subjects are of each kind: most verbs want a person, and most nouns are things."""

AUXILIARIES: dict[str, tuple[tuple[str, str], ...]] = {
    "be": (("is", "are"), ("was", "were"), ("isn't", "aren't"), ("wasn't", "weren't")),
    "have": (("has", "have"), ("hasn't", "haven't")),
    "do": (("does", "do"), ("doesn't", "don't")),
}
INVARIANT_AUXILIARIES: dict[str, tuple[str, ...]] = {
    "had": ("had", "hadn't"),
    "did": ("did", "didn't"),
    "modal": (
        "can", "can't", "could", "couldn't", "may", "might", "must", "should", "shouldn't", "will", "won't", "would",
        "wouldn't",
    ),
}  # fmt: skip
Tense = Literal["past", "present", "be", "have", "do", "had", "did", "modal"]
TENSES: tuple[Tense, ...] = get_args(Tense)
AFTER: dict[str, VerbForm] = {
    "be": "gerund", "have": "participle", "do": "base", "had": "participle", "did": "base", "modal": "base",
}  # fmt: skip
"""Form of the lexical verb after each auxiliary."""


@dataclass(frozen=True)
class Noun:
    """A count noun. ``singular`` and ``plural`` may be two words: ``grocery store``."""

    singular: str  # as after ``a``
    plural: str  # as after ``two``; always another form than the singular
    kind: Kind  # what it denotes; verbs select their subjects and objects by it
    gender: Gender  # of the person denoted, or "" where the word does not say
    preposition: str = ""  # what introduces its complement (``sister of``, ``story about``, ``key to``), or ""

    def form(self, number: Number) -> str:
        """The form in `number`."""
        return self.singular if number == "singular" else self.plural


@dataclass(frozen=True)
class Verb:
    """A verb in one use; a verb with two uses has two rows."""

    base: str  # as after ``to``
    third: str  # third person singular of the present
    past: str  # simple past
    participle: str  # as after ``has``
    gerund: str  # the ``-ing`` form
    # what stands between verb and object (``talk about``) or after an intransitive verb (``sit down``), or ""
    particle: str
    subjects: frozenset[Kind]  # kinds of noun that can be its subject
    objects: frozenset[Kind]  # kinds of noun that can be its object; empty when it takes none

    def forms(self) -> tuple[str, ...]:
        """The five forms, in the order of ``VERB_FORMS``."""
        return (self.base, self.third, self.past, self.participle, self.gerund)


@dataclass(frozen=True)
class Name:
    """A first name that tells the gender; where use is mixed (``Dana``, ``Stacy``), as in BLiMP."""

    text: str
    gender: Literal["female", "male"]


@dataclass(frozen=True)
class ProperNoun:
    """A name of a place or of people: ``Spain``, ``the Great Lakes``."""

    text: str  # without its article; may be several words
    number: Number  # what a verb agrees with
    kind: Kind  # what it denotes
    article: Literal["the", ""]  # ``the`` where it has one, else ""


@dataclass(frozen=True)
class Determiner:
    """A determiner or quantifier, and the number of the nouns that it goes with."""

    text: str  # may be several words: ``a lot of``
    number: Literal["singular", "plural", "any"]  # "any" for those, such as ``the``, that go with both


@dataclass(frozen=True)
class Lexicon:
    """The vocabulary, classified. Made by ``english()``."""

    nouns: tuple[Noun, ...]  # count nouns
    mass_nouns: tuple[str, ...]  # nouns without a plural, such as ``water``
    plural_nouns: tuple[str, ...]  # nouns without a singular, such as ``stairs``
    verbs: tuple[Verb, ...]  # intransitive and transitive verbs
    dative_verbs: tuple[Verb, ...]  # verbs of transfer: ``give`` something to a person
    # verbs with an infinitive: ``hope to leave`` (no objects) or, with objects, ``persuade someone to leave``
    control_verbs: tuple[Verb, ...]
    clause_verbs: tuple[Verb, ...]  # verbs with a clause: ``say that someone left``
    names: tuple[Name, ...]  # first names
    proper_nouns: tuple[ProperNoun, ...]  # other names
    adjectives: tuple[str, ...]  # before a noun or after ``be``
    adverbs: tuple[str, ...]  # of manner, time and degree
    determiners: tuple[Determiner, ...]  # articles, demonstratives and quantifiers
    auxiliaries: tuple[str, ...]  # ``be``, ``have``, ``do`` and the modals, with their contractions
    prepositions: tuple[str, ...]  # with the verbs' and nouns' particles
    conjunctions: tuple[str, ...]  # coordinating and subordinating; and the complementiser ``that``
    relatives: tuple[str, ...]  # relative and interrogative words
    pronouns: tuple[str, ...]  # personal and possessive, and words such as ``someone``
    reflexives: tuple[str, ...]  # ``herself`` and its like
    others: tuple[str, ...]  # degree words, verb particles and words of fixed phrases

    @cached_property
    def noun_of(self) -> Callable[[str], tuple[Noun, Number] | None]:
        """The noun that a form belongs to, and its number.

        A capitalised plural is found as well, since it can begin a sentence; a capitalised singular is a name.
        """
        found: dict[str, tuple[Noun, Number]] = {}
        for noun in self.nouns:
            found[noun.singular] = (noun, "singular")
            found[noun.plural] = found[_capitalised(noun.plural)] = (noun, "plural")
        return found.get

    @cached_property
    def verb_of(self) -> Callable[[str], tuple[Verb, VerbForm] | None]:
        """The first verb that has a form, and which form it is.

        Where forms coincide the first in the order of ``VERB_FORMS`` counts: ``hurt`` is a base form.
        """
        found: dict[str, tuple[Verb, VerbForm]] = {}
        for form in VERB_FORMS:
            for verb in self._all_verbs():
                found.setdefault(getattr(verb, form), (verb, form))
        return found.get

    @cached_property
    def name_of(self) -> Callable[[str], Name | None]:
        """The first name that is spelled so."""
        return {name.text: name for name in self.names}.get

    @cached_property
    def proper_noun_of(self) -> Callable[[str], ProperNoun | None]:
        """The name of a place or of people that is spelled so."""
        return {name.text: name for name in self.proper_nouns}.get

    def words(self) -> frozenset[str]:
        """Every word that a text can contain, in each capitalisation that it can have there.

        Entries of several words contribute their parts. Capitalised are names and what can begin a sentence: plural and
        mass nouns, determiners, pronouns, prepositions, conjunctions, relatives and adverbs. Punctuation and ``'s`` are
        not words.
        """
        return self._words

    @cached_property
    def _words(self) -> frozenset[str]:
        begins = {
            *(noun.plural for noun in self.nouns),
            *(determiner.text for determiner in self.determiners),
            *(self.mass_nouns + self.plural_nouns + self.adverbs + self.prepositions),
            *(self.conjunctions + self.relatives + self.pronouns),
        }
        inside = {
            *(text for noun in self.nouns for text in (noun.singular, noun.preposition)),
            *(text for verb in self._all_verbs() for text in (*verb.forms(), verb.particle)),
            *(name.text for name in self.names),
            *(name.text for name in self.proper_nouns),
            *(self.adjectives + self.auxiliaries + self.reflexives + self.others),
        }
        parts = {part for text in begins | inside for part in text.split()}
        return frozenset(parts | {_capitalised(text.split()[0]) for text in begins})

    def _all_verbs(self) -> tuple[Verb, ...]:
        return self.verbs + self.dative_verbs + self.control_verbs + self.clause_verbs


@lru_cache(maxsize=1)
def english() -> Lexicon:
    """The lexicon of the tables in ``interp/tasks/grammar/words``, read once."""
    kinds = {"nouns": Noun, "names": Name, "proper_nouns": ProperNoun, "determiners": Determiner}
    entries: dict[str, Any] = {table: tuple(kind(**row) for row in rows_of(table)) for table, kind in kinds.items()}
    entries |= {table: _verbs(table) for table in ("verbs", "dative_verbs", "control_verbs", "clause_verbs")}
    others = _grouped(rows_of("other_words"), lambda row: [row["part"]])
    return Lexicon(**entries, **{part: tuple(row["word"] for row in rows) for part, rows in others.items()})


def _capitalised(word: str) -> str:
    return word[0].upper() + word[1:]


def _verbs(table: str) -> tuple[Verb, ...]:
    return tuple(
        Verb(**row | {role: frozenset(row[role].split()) for role in ("subjects", "objects")}) for row in rows_of(table)
    )


def rows_of(table: str) -> list[dict[str, Any]]:
    """The rows of ``words/<table>.tsv``, keyed by its header."""
    text = (files("interp.tasks.grammar") / "words" / f"{table}.tsv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))


PLURAL_MASS_NOUNS = frozenset({"fish", "offspring", "pants", "politics", "stairs"})
"""Mass nouns whose verb is not always singular: never subjects here."""

Person = Name | Noun
T = TypeVar("T")
K = TypeVar("K")


class Vocabulary:
    """Candidates for each place of a construction, sorted from a lexicon."""

    def __init__(self, lexicon: Lexicon) -> None:
        single = [noun for noun in lexicon.nouns if " " not in noun.singular + noun.plural]
        several = [noun for noun in lexicon.nouns if " " in noun.singular + noun.plural]
        verbs = [verb for verb in lexicon.verbs if " " not in verb.base + verb.particle]
        determiners = [each for each in lexicon.determiners if each.text != "an"]  # for which ``a`` stands
        # Count nouns of one word and of several (``grocery store``), other names, and first names.
        self.nouns = _grouped(single, lambda noun: [noun.kind])
        self.compounds = _grouped(several, lambda noun: [noun.kind])
        self.proper_nouns = _grouped(lexicon.proper_nouns, lambda noun: [noun.kind])
        self.names = _grouped(lexicon.names, lambda name: [str(name.gender)])
        # Nouns of one word for people of one gender, and mass nouns whose verb is always singular.
        self.gendered = _grouped(single, lambda noun: [str(noun.gender)] if noun.gender else [])
        self.mass_nouns = tuple(noun for noun in lexicon.mass_nouns if noun not in PLURAL_MASS_NOUNS)
        # Verbs by the kind of their subject; with an object and no particle, by the kinds of subject and object; those
        # whose object can be their subject, by its kind; with a clause that begins with ``that``; of transfer.
        self.verbs = _grouped(verbs, lambda verb: ordered(verb.subjects))
        self.transitive = _grouped(
            [verb for verb in verbs if not verb.particle],
            lambda verb: [(one, two) for one in ordered(verb.subjects) for two in ordered(verb.objects)],
        )
        self.reflexive = _grouped(verbs, lambda verb: ordered(verb.subjects & verb.objects))
        # The reflexive verbs of people, by whether they have a particle.
        self.done_to_oneself = _grouped(self.reflexive["person"], lambda verb: [bool(verb.particle)])
        self.saying = tuple(verb for verb in lexicon.clause_verbs if not verb.particle)
        self.giving = lexicon.dative_verbs
        self.determiners = {
            number: tuple(each.text for each in determiners if each.number in (number, "any")) for number in NUMBERS
        }
        self.forms = tuple(sorted(lexicon.words()))  # every word, in alphabetical order


@lru_cache(maxsize=1)
def vocabulary() -> Vocabulary:
    """The English lexicon, sorted once."""
    return Vocabulary(english())


def other(number: Number) -> Number:
    """The other number."""
    return "plural" if number == "singular" else "singular"


def opposite(gender: str) -> str:
    """The other gender."""
    return GENDERS[1 - GENDERS.index(gender)]


def lemma(word: Person) -> str:
    """What the held-out rule knows a person, an animal or a thing by."""
    return word.text if isinstance(word, Name) else word.singular


def ordered(kinds: frozenset[Kind]) -> list[Kind]:
    """`kinds` in a fixed order: that of a set of strings differs from process to process."""
    return [kind for kind in KINDS if kind in kinds]


def _grouped(entries: Iterable[T], keys: Callable[[T], Iterable[K]]) -> dict[K, tuple[T, ...]]:
    groups: dict[K, list[T]] = {}
    for entry in entries:
        for key in keys(entry):
            groups.setdefault(key, []).append(entry)
    return {key: tuple(group) for key, group in groups.items()}
