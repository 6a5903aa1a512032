"""Which English words do the generated texts use, and what is known about each?

1. The tables under ``words/`` list every form; nothing is inflected by rule, so that ``geese`` and
   ``ran`` are read the same way as ``cats`` and ``walked``.
2. ``english()`` reads them into a frozen ``Lexicon``.
3. ``Lexicon.words()`` adds the capitalised forms of what can begin a sentence. That set is the
   vocabulary: a tokenizer built from it has one token for each word of a generated text.

The words cover the agreement and anaphor paradigms of BLiMP (Warstadt et al., 2020,
https://aclanthology.org/2020.tacl-1.25), whose own vocabulary has number, gender and selection.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import files
from typing import Any, Literal

Kind = Literal["person", "animal", "thing", "place"]
Gender = Literal["female", "male", ""]
Number = Literal["singular", "plural"]
VerbForm = Literal["base", "third", "past", "participle", "gerund"]

VERB_FORMS: tuple[VerbForm, ...] = ("base", "third", "past", "participle", "gerund")


@dataclass(frozen=True)
class Noun:
    """A count noun. ``singular`` and ``plural`` may be two words: ``grocery store``.

    Attributes:
        singular: As after ``a``.
        plural: As after ``two``; always another form than the singular.
        kind: What it denotes; verbs select their subjects and objects by it.
        gender: Of the person denoted, or "" where the word does not say.
        preposition: What introduces its complement (``sister of``, ``story about``, ``key to``), or "".
    """

    singular: str
    plural: str
    kind: Kind
    gender: Gender
    preposition: str = ""

    @property
    def relational(self) -> bool:
        """Whether the noun takes a complement of its own."""
        return bool(self.preposition)


@dataclass(frozen=True)
class Verb:
    """A verb in one use; a verb with two uses has two rows.

    Attributes:
        base: As after ``to``.
        third: Third person singular of the present.
        past: Simple past.
        participle: As after ``has``.
        gerund: The ``-ing`` form.
        particle: What stands between verb and object (``talk about``) or after an intransitive
            verb (``sit down``), or "".
        subjects: Kinds of noun that can be its subject.
        objects: Kinds of noun that can be its object; empty when it takes none.
    """

    base: str
    third: str
    past: str
    participle: str
    gerund: str
    particle: str
    subjects: frozenset[Kind]
    objects: frozenset[Kind]

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
    """A name of a place or of people: ``Spain``, ``the Great Lakes``.

    Attributes:
        text: Without its article; may be several words.
        number: What a verb agrees with.
        kind: What it denotes.
        article: ``the`` where it has one, else "".
    """

    text: str
    number: Number
    kind: Kind
    article: Literal["the", ""]


@dataclass(frozen=True)
class Determiner:
    """A determiner or quantifier, and the number of the nouns that it goes with.

    Attributes:
        text: May be several words: ``a lot of``.
        number: "any" for those, such as ``the``, that go with both.
    """

    text: str
    number: Literal["singular", "plural", "any"]


@dataclass(frozen=True)
class Lexicon:
    """The vocabulary, classified. Made by ``english()``.

    Attributes:
        nouns: Count nouns.
        mass_nouns: Nouns without a plural, such as ``water``.
        plural_nouns: Nouns without a singular, such as ``stairs``.
        verbs: Intransitive and transitive verbs.
        dative_verbs: Verbs of transfer: ``give`` something to a person.
        control_verbs: Verbs with an infinitive: ``hope to leave`` (no objects) or, with objects,
            ``persuade someone to leave``.
        clause_verbs: Verbs with a clause: ``say that someone left``.
        names: First names.
        proper_nouns: Other names.
        adjectives: Before a noun or after ``be``.
        adverbs: Of manner, time and degree.
        determiners: Articles, demonstratives and quantifiers.
        auxiliaries: ``be``, ``have``, ``do`` and the modals, with their contractions.
        prepositions: With the verbs' and nouns' particles.
        conjunctions: Coordinating and subordinating; and the complementiser ``that``.
        relatives: Relative and interrogative words.
        pronouns: Personal and possessive, and words such as ``someone``.
        reflexives: ``herself`` and its like.
        others: Degree words, verb particles and words of fixed phrases.
    """

    nouns: tuple[Noun, ...]
    mass_nouns: tuple[str, ...]
    plural_nouns: tuple[str, ...]
    verbs: tuple[Verb, ...]
    dative_verbs: tuple[Verb, ...]
    control_verbs: tuple[Verb, ...]
    clause_verbs: tuple[Verb, ...]
    names: tuple[Name, ...]
    proper_nouns: tuple[ProperNoun, ...]
    adjectives: tuple[str, ...]
    adverbs: tuple[str, ...]
    determiners: tuple[Determiner, ...]
    auxiliaries: tuple[str, ...]
    prepositions: tuple[str, ...]
    conjunctions: tuple[str, ...]
    relatives: tuple[str, ...]
    pronouns: tuple[str, ...]
    reflexives: tuple[str, ...]
    others: tuple[str, ...]

    def noun_of(self, form: str) -> tuple[Noun, Number] | None:
        """The noun that `form` belongs to, and its number.

        A capitalised plural is found as well, since it can begin a sentence; a capitalised
        singular is a name (``Guy``) or no word of the lexicon.
        """
        return self._nouns_by_form.get(form)

    def verb_of(self, form: str) -> tuple[Verb, VerbForm] | None:
        """The first verb that has `form`, and which form it is.

        Where forms coincide the first in the order of ``VERB_FORMS`` counts: ``hurt`` is a base
        form, ``walked`` a past.
        """
        return self._verbs_by_form.get(form)

    def name_of(self, form: str) -> Name | None:
        """The first name `form`, if it is one."""
        return self._names_by_text.get(form)

    def words(self) -> frozenset[str]:
        """Every word that a text can contain, in each capitalisation that it can have there.

        Entries of several words contribute their parts. Capitalised are names and what can begin
        a sentence: plural and mass nouns, determiners, pronouns, prepositions, conjunctions,
        relatives and adverbs. Punctuation and ``'s`` are not words.
        """
        return self._words

    @cached_property
    def _words(self) -> frozenset[str]:
        inside = {part for text in self._texts() for part in text.split()}
        initial = {text.split()[0] for text in self._initial_texts()}
        return frozenset(inside | {_capitalised(word) for word in initial})

    @cached_property
    def _nouns_by_form(self) -> dict[str, tuple[Noun, Number]]:
        found: dict[str, tuple[Noun, Number]] = {}
        for noun in self.nouns:
            found[noun.singular] = (noun, "singular")
            found[noun.plural] = found[_capitalised(noun.plural)] = (noun, "plural")
        return found

    @cached_property
    def _verbs_by_form(self) -> dict[str, tuple[Verb, VerbForm]]:
        found: dict[str, tuple[Verb, VerbForm]] = {}
        for form in VERB_FORMS:
            for verb in self._all_verbs():
                found.setdefault(getattr(verb, form), (verb, form))
        return found

    @cached_property
    def _names_by_text(self) -> dict[str, Name]:
        return {name.text: name for name in self.names}

    def _all_verbs(self) -> tuple[Verb, ...]:
        return self.verbs + self.dative_verbs + self.control_verbs + self.clause_verbs

    def _texts(self) -> Iterator[str]:
        for noun in self.nouns:
            yield from (noun.singular, noun.plural, noun.preposition)
        for verb in self._all_verbs():
            yield from (*verb.forms(), verb.particle)
        yield from (name.text for name in self.names)
        yield from (name.text for name in self.proper_nouns)
        yield from self.adjectives
        yield from self.auxiliaries
        yield from self.reflexives
        yield from self.others
        yield from self._initial_texts()

    def _initial_texts(self) -> Iterator[str]:
        yield from (noun.plural for noun in self.nouns)
        yield from (determiner.text for determiner in self.determiners)
        yield from self.mass_nouns
        yield from self.plural_nouns
        yield from self.adverbs
        yield from self.prepositions
        yield from self.conjunctions
        yield from self.relatives
        yield from self.pronouns


@lru_cache(maxsize=1)
def english() -> Lexicon:
    """The lexicon of the tables in ``interp/tasks/grammar/words``, read once."""
    other: dict[str, list[str]] = {}
    for row in _rows("other_words"):
        other.setdefault(row["part"], []).append(row["word"])
    return Lexicon(
        nouns=tuple(Noun(**row) for row in _rows("nouns")),
        verbs=_verbs("verbs"),
        dative_verbs=_verbs("dative_verbs"),
        control_verbs=_verbs("control_verbs"),
        clause_verbs=_verbs("clause_verbs"),
        names=tuple(Name(**row) for row in _rows("names")),
        proper_nouns=tuple(ProperNoun(**row) for row in _rows("proper_nouns")),
        determiners=tuple(Determiner(**row) for row in _rows("determiners")),
        **{part: tuple(words) for part, words in other.items()},
    )


def _capitalised(word: str) -> str:
    return word[0].upper() + word[1:]


def _verbs(table: str) -> tuple[Verb, ...]:
    return tuple(
        Verb(**row | {role: frozenset(row[role].split()) for role in ("subjects", "objects")}) for row in _rows(table)
    )


def _rows(table: str) -> list[dict[str, Any]]:
    """The rows of ``words/<table>.tsv``, keyed by its header."""
    text = files("interp.tasks.grammar.words").joinpath(f"{table}.tsv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))
