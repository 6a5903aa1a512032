"""Pronouns and their antecedent, which by this generator's rule is the subject of the clause before them.

English is less strict ("The queen respected the waiter but he ..."): to another model, a pronoun may mean the
other person.

``one person``: "Wendy found the key because" she. ``two people``: "Tom found a key and Wendy lost a
ladder because" she; the other person, of the other gender, stands in an earlier clause, an earlier
sentence or beside the subject ("The queen near the king lost a ladder because" she).
``possessive``: "Wendy lost" her. The two people change places in the counterfactual.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from interp.tasks.grammar.dice import Dice
from interp.tasks.grammar.lexicon import Noun, Number, Verb
from interp.tasks.grammar.phrases import GENERAL_ADJECTIVES, NEARNESS, PREVERBAL, noun_phrase, person, person_phrase
from interp.tasks.grammar.sentence import FULL_STOP, Word, Words, sentence_start
from interp.tasks.grammar.vocabulary import Person, Vocabulary, lemma

Link = Literal["alone", "clause", "sentence", "beside"]
Ending = Literal["because", "that", "possessive"]

CONNECTIVES = ("because", "when", "while", "until", "although", "since", "before", "after", "as")
LINKS = ("and", "but")


class Clause(NamedTuple):
    """What somebody did, in the past: verb, and an object with its modifiers ("" for none)."""

    verb: Verb
    article: str
    adjective: str
    object: Noun
    preposition: str
    place: Noun

    def words(self) -> Words:
        """The clause after its subject."""
        place = noun_phrase("the", self.place.singular, "place")
        modifier = [Word(self.preposition, "preposition"), *place] if self.preposition else []
        object_ = noun_phrase(self.article, self.object.singular, "object", self.adjective)
        return [Word(self.verb.past, "verb"), *object_, *modifier]


class Coreference(NamedTuple):
    """The words drawn for one sentence up to its pronoun.

    Attributes:
        antecedent: Subject of the last clause.
        stranger: A person of the other gender.
        link: Where the stranger stands; "alone" for nowhere.
        ending: What comes before the pronoun: a connective, ``said that``, or a verb.
        clause: What the antecedent did.
        earlier: What the stranger did.
        beside: Preposition between the two people.
        conjunction: Between two clauses.
        connective: Before a pronoun.
        saying: A verb with a clause.
        adverb: Before the antecedent's verb; "" for none.
        number: Of the antecedent.
    """

    antecedent: Person
    stranger: Person
    link: Link
    ending: Ending
    clause: Clause
    earlier: Clause
    beside: str
    conjunction: str
    connective: str
    saying: Verb
    adverb: str
    number: Number = "singular"

    @property
    def exchanged(self) -> "Coreference":
        """The same with the two people in each other's place."""
        return self._replace(antecedent=self.stranger, stranger=self.antecedent)

    @property
    def own_verb(self) -> str:
        """The lemma of the antecedent's verb."""
        return (self.saying if self.ending == "that" else self.clause.verb).base

    @property
    def decisive(self) -> Iterator[tuple[str, str]]:
        """The two people; where only one appears, that one and the verb."""
        yield lemma(self.antecedent), self.own_verb if self.link == "alone" else lemma(self.stranger)

    @property
    def pairs(self) -> Iterator[tuple[str, str]]:
        """The two people, and every verb with its subject."""
        yield lemma(self.antecedent), self.own_verb
        if self.link != "alone":
            yield lemma(self.antecedent), lemma(self.stranger)
        if self.link in ("clause", "sentence"):
            yield lemma(self.stranger), self.earlier.verb.base

    def before_pronoun(self) -> Words:
        """Everything up to the pronoun, beginning with a capital."""
        stranger = person_phrase(self.stranger, "stranger")
        subject = person_phrase(self.antecedent, "antecedent", self.number)
        words = subject + self._predicate()
        if self.link == "beside":
            words = [*subject, Word(self.beside, "beside"), *stranger, *self._predicate()]
        elif self.link == "clause":
            words = [*stranger, *self.earlier.words(), Word(self.conjunction, "conjunction"), *words]
        elif self.link == "sentence":
            before = sentence_start([*stranger, *self.earlier.words()])
            return [*before, FULL_STOP, *sentence_start(words)]
        return sentence_start(words)

    def _predicate(self) -> Words:
        adverb = [Word(self.adverb, "adverb")] if self.adverb else []
        if self.ending == "possessive":
            return [*adverb, Word(self.clause.verb.past, "verb")]
        if self.ending == "that":
            return [*adverb, Word(self.saying.past, "saying"), Word("that", "that")]
        return [*adverb, *self.clause.words(), Word(self.connective, "connective")]


def propose(
    dice: Dice,
    words: Vocabulary,
    link: Link,
    ending: Ending,
    *,
    genders: tuple[str, str],
    named: tuple[bool, bool],
    adjective: bool = False,
    place: bool = False,
    adverb: bool = False,
) -> Coreference:
    """Draw the words of one sentence, without regard to the held-out rule.

    Args:
        dice: Draws the words.
        words: Candidates for them.
        link: Where the stranger stands.
        ending: What comes before the pronoun.
        genders: Of the antecedent and of the stranger.
        named: Whether the antecedent, and the stranger, is a first name rather than a noun.
        adjective: Before the object.
        place: After the object.
        adverb: Before the antecedent's verb.
    """
    return Coreference(
        antecedent=person(dice, words, genders[0], named=named[0]),
        stranger=person(dice, words, genders[1], named=named[1]),
        link=link,
        ending=ending,
        clause=clause(dice, words, adjective=adjective, place=place),
        earlier=clause(dice, words, adjective=False, place=False),
        beside=dice.pick(NEARNESS),
        conjunction=dice.pick(LINKS),
        connective=dice.pick(CONNECTIVES),
        saying=dice.pick(words.saying),
        adverb=dice.pick(PREVERBAL) if adverb else "",
    )


def clause(dice: Dice, words: Vocabulary, *, adjective: bool, place: bool) -> Clause:
    """Something that a person did to a thing, an animal or a place."""
    roles = dice.pick([roles for roles in words.transitive if roles[0] == "person" != roles[1]])
    return Clause(
        verb=dice.pick(words.transitive[roles]),
        article=dice.pick(("the", "the", "a")),
        adjective=dice.pick(GENERAL_ADJECTIVES) if adjective else "",
        object=dice.pick(words.nouns[roles[1]]),
        preposition=dice.pick(NEARNESS) if place else "",
        place=dice.pick(words.nouns["place"]),
    )
