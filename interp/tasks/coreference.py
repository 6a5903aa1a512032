"""Task: does a pronoun have the gender of the person that it refers to?

By the generator's rule the antecedent is the subject of the clause before the pronoun. English is less strict ("The
queen respected the waiter but he ..."): to another model, a pronoun may mean the other person. The structures are:

* ``one person``: "Wendy found the key because" she. A person of the other gender replaces her in the counterfactual.
* ``two people``: "Tom found a key and Wendy lost a ladder because" she. The other person, of the other gender, stands
  in an earlier clause, an earlier sentence or beside the subject. The two change places in the counterfactual; a word
  counterfactual exchanges the antecedent alone.
* ``possessive``: "Wendy lost" her.

The relation is from the last word before the pronoun to the antecedent.

No two splits share a pair of people, or of a person who is alone and a verb.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from interp.tasks.example import Example, MinimalPair
from interp.tasks.grammar import phrases
from interp.tasks.grammar.items import Frame, GeneratedTask, Plan, example
from interp.tasks.grammar.lexicon import Name, Noun, Number, Person, Verb, lemma, opposite
from interp.tasks.grammar.phrases import Slots, Word, Words, Writer, noun_phrase, person_phrase

TEMPLATES = {
    "alone": "antecedent",
    "clause": "stranger earlier conjunction antecedent",
    "sentence": "stranger earlier . antecedent",
    "beside": "antecedent beside stranger",
}
"""Where the stranger stands, slot by slot up to the antecedent's verb."""
ENDINGS = {"because": "adverb clause connective", "that": "adverb saying that", "possessive": "adverb verb"}
"""What comes before the pronoun: what the antecedent did and a connective, ``said that``, or a verb."""
CONNECTIVES = ("because", "when", "while", "until", "although", "since", "before", "after", "as")
LINKS = ("and", "but")
SUBJECT_PRONOUNS = {"female": "she", "male": "he", "plural": "they"}
POSSESSIVES = {"female": "her", "male": "his", "plural": "their"}


class Clause(NamedTuple):
    """What somebody did, in the past."""

    verb: Verb
    object: Noun
    words: Words  # all of it, after its subject


class Coreference(NamedTuple):
    """The words drawn for one sentence up to its pronoun."""

    antecedent: Person  # subject of the last clause
    stranger: Person  # a person of the other gender
    link: str  # which template they fill
    ending: str  # how it goes on
    clause: Clause  # what the antecedent did
    earlier: Clause  # what the stranger did
    saying: Verb  # a verb with a clause
    slots: Slots  # what fills the other slots
    number: Number = "singular"  # of the antecedent

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
        subject = person_phrase(self.antecedent, "antecedent", self.number)
        slots: Slots = {
            "antecedent": phrases.sentence_start(subject) if self.link == "sentence" else subject,
            "stranger": person_phrase(self.stranger, "stranger"),
            "earlier": self.earlier.words,
            "clause": self.clause.words,
            "verb": self.clause.verb.past,
            "saying": self.saying.past,
        }
        template = f"{TEMPLATES[self.link]} {ENDINGS[self.ending]}"
        return phrases.fill(template, slots | self.slots)


def propose(
    dice: Writer,
    link: str,
    ending: str,
    *,
    genders: tuple[str, str],
    named: tuple[bool, bool],
    adjective: bool = False,
    place: bool = False,
    adverb: bool = False,
) -> Coreference:
    """Draw the words of one sentence, without regard to the held-out rule."""
    one, two = (dice.person(gender, named=by_name) for gender, by_name in zip(genders, named, strict=True))
    clauses = clause(dice, adjective=adjective, place=place), clause(dice)
    options = {"beside": phrases.NEARNESS, "conjunction": LINKS, "connective": CONNECTIVES}
    slots: Slots = {slot: dice.pick(words) for slot, words in options.items()}
    saying = dice.pick(dice.words.saying)
    return Coreference(one, two, link, ending, *clauses, saying, slots | {"adverb": dice.adverb(adverb)})


def clause(dice: Writer, *, adjective: bool = False, place: bool = False) -> Clause:
    """Something that a person did to a thing, an animal or a place."""
    roles = dice.pick([roles for roles in dice.words.transitive if roles[0] == "person" != roles[1]])
    verb, article = dice.pick(dice.words.transitive[roles]), dice.pick(("the", "the", "a"))
    before_noun, object_ = dice.adjective(adjective), dice.noun(roles[1])
    words = [Word(verb.past, "verb"), *noun_phrase(article, object_.singular, "object", before_noun)]
    words += [Word(dice.pick(phrases.NEARNESS), "preposition")] if place else []
    beside = dice.noun("place").singular
    return Clause(verb, object_, words + (noun_phrase("the", beside, "place") if place else []))


NAMES, NOUNS = (True, True), (False, False)
FRAMES = {
    "one person": (
        Frame(None, link="alone", ending="because", named=NAMES),
        Frame("short", link="alone", ending="because", named=NAMES, place=True),
        Frame("medium", link="alone", ending="because", named=NOUNS, adjective=True),
        Frame("long", link="alone", ending="that", named=NAMES, adverb=True),
        Frame(None, link="alone", ending="because", named=NOUNS, place=True, adverb=True),
        Frame("medium", link="alone", ending="that", named=NAMES),
    ),
    "two people": (
        Frame(None, link="clause", ending="because", named=NAMES),
        Frame("short", link="beside", ending="because", named=NAMES, adjective=True),
        Frame("medium", link="sentence", ending="because", named=NAMES, place=True),
        Frame("long", link="beside", ending="that", named=NOUNS),
        Frame(None, link="beside", ending="because", named=NOUNS, adverb=True),
        Frame("short", link="clause", ending="that", named=NAMES, adverb=True),
    ),
    "possessive": (
        Frame(None, link="alone", ending="possessive", named=NAMES, adverb=True),
        Frame("short", link="beside", ending="possessive", named=NAMES),
        Frame("medium", link="clause", ending="possessive", named=NOUNS, adverb=True),
        Frame("long", link="beside", ending="possessive", named=NAMES, adverb=True),
        Frame(None, link="sentence", ending="possessive", named=NAMES),
        Frame("medium", link="alone", ending="possessive", named=NOUNS, adverb=True),
    ),
}
STRUCTURES = tuple(FRAMES)


def _pair(plan: Plan) -> MinimalPair:
    drawn, exchanged = phrases.draw_within(
        plan.split,
        partial(_twins, plan),
        admit=lambda twins: plan.couples.admit(twins[0].antecedent, twins[0].stranger),
    )
    return MinimalPair(
        item=_with_others(plan, drawn),
        counterfactual=_with_others(plan, exchanged),
        cluster=plan.couples.cluster(drawn.antecedent, drawn.stranger),
    )


def _twins(plan: Plan) -> list[Coreference]:
    """The same sentence with its two people exchanged, whether or not both appear in it."""
    drawn = propose(plan.dice, genders=plan.genders, **plan.options)
    drawn = drawn._replace(stranger=plan.couples.partner(plan.dice, drawn.antecedent, drawn.stranger))
    return [drawn, drawn.exchanged]


def _with_others(plan: Plan, drawn: Coreference) -> Example:
    """The example, and where it has two people it with others of the other gender for its antecedent alone."""
    words = plan.dice.words
    people = words.names if isinstance(drawn.antecedent, Name) else words.gendered
    found = (each for each in people[drawn.stranger.gender] if each != drawn.stranger and drawn.link != "alone")
    return plan.with_others(partial(_example, plan), drawn, (drawn._replace(antecedent=each) for each in found))


def _example(plan: Plan, drawn: Coreference) -> Example:
    pronouns = POSSESSIVES if drawn.ending == "possessive" else SUBJECT_PRONOUNS
    gender = drawn.antecedent.gender
    return example(
        plan.before + drawn.before_pronoun(),
        (pronouns[gender], pronouns[opposite(gender)]),
        relation="antecedent",
        related="antecedent",
        distractors={"stranger": "other person"},
        template=plan.structure,
        features={
            "gender": gender,
            "antecedent": lemma(drawn.antecedent),
            "verb": drawn.own_verb,
            "other person": drawn.link,
        },
    )


TASK = GeneratedTask(
    "coreference",
    "A pronoun has the gender of the person that it stands for: the subject of the clause before it.",
    FRAMES,
    _pair,
    others="somebody else",
    feature="gender",
)
pairs = TASK.pairs
