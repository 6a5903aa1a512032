"""Sentences of every shape, so that every word is met in the grammar's ordinary places.

1. A verb, so that rare verbs are not rarer than the kinds they go with.
2. A subject that it takes: a name, a noun with any determiner that fits its number, or a bare plural
   or mass noun; perhaps with a complement (``the story about Spain``) or a subject relative clause.
3. The predicate in any tense: the verb with its object, an infinitive, a clause, a question word.
"""

from typing import NamedTuple

from interp.tasks.grammar.draws import Dice, allowed
from interp.tasks.grammar.lexicon import GENDERS, KINDS, Kind, Noun, Number, Verb, Vocabulary
from interp.tasks.grammar.phrases import (
    AUXILIARIES,
    GENERAL_ADJECTIVES,
    NUMBERS,
    PREVERBAL,
    TENSES,
    Tense,
    Word,
    Words,
    determiner,
    form,
    noun_phrase,
    sentence,
    verb_phrase,
)

BEFORE_OTHERS = frozenset({"not", "so", "too", "very"})
"""Adverbs that do not end a sentence."""
COMPLEMENTS: tuple[Kind, ...] = ("person", "thing", "place")
"""What a thing can be about or of; people are only the relatives of people."""
RELATIVE_SHARE = 0.45
"""Of the nouns without a complement. In no other family does a relative clause have an auxiliary."""
SHOWING_NUMBER: tuple[Tense, ...] = ("present", "present", "present", "be", "have", "do")
"""Drawn in most sentences, because agreement is what they are for; all tenses in the others."""


class Subject(NamedTuple):
    """A subject's words, the number that its verb agrees with, and its lemma under the held-out rule."""

    words: Words
    number: Number
    lemma: str = ""


class VariedSentences:
    """Draws sentences of every shape."""

    def __init__(self, dice: Dice, words: Vocabulary) -> None:
        lexicon = words.lexicon
        self.dice, self.words, self.lexicon = dice, words, lexicon
        self.nouns = {kind: words.nouns[kind] + words.compounds.get(kind, ()) for kind in KINDS}
        self.final = tuple(adverb for adverb in lexicon.adverbs if adverb not in BEFORE_OTHERS)

    def sentence(self) -> Words:
        """A whole sentence."""
        adverb = [Word(self.dice.pick(self.final))] if self.dice.chance(0.06) else []
        return sentence([*self.clause(), *adverb])

    def clause(self, *, embedded: bool = False) -> Words:
        """A subject and a predicate."""
        share = self.dice.uniform()
        if share < 0.05:
            return self._with_adjective()
        if share < 0.07:
            return self._with_receiver()
        if share < 0.25 and not embedded:
            return self._with_infinitive() if share < 0.18 else self._with_clause()
        verb = self.dice.pick(self.lexicon.verbs)
        subject = self.subject(self._one_of(verb.subjects), verb.base)
        return subject.words + self.finite(verb, subject) + self.object(verb)

    def subject(self, kind: Kind, verb: str) -> Subject:
        """A subject of `kind` that may stand with the verb."""
        share = self.dice.uniform()
        if kind == "person" and share < 0.35:
            return Subject([Word(self._name(beside=verb))], "singular")
        if kind in self.words.proper_nouns and share > 0.95:
            return self._proper_noun(kind)
        if kind == "thing" and share < 0.06:
            return Subject([Word(self.dice.pick(self.words.mass_nouns))], "singular")
        noun, number = self._noun(kind, beside=verb), self.dice.pick(NUMBERS)
        words = self._noun_phrase(noun, number) + self._modifier(noun, number)
        return Subject(words, number, noun.singular)

    def finite(self, verb: Verb, subject: Subject) -> Words:
        """The verb in any tense, agreeing with the subject."""
        tenses = TENSES if self.dice.chance(0.4) else SHOWING_NUMBER
        tense = self.dice.pick(tenses)
        while subject.lemma and tense in AUXILIARIES and not _together(subject.lemma, tense):
            tense = self.dice.pick(tenses)
        adverb = [Word(self.dice.pick(PREVERBAL))] if self.dice.chance(0.05) else []
        return adverb + verb_phrase(self.dice, verb, tense, subject.number)

    def object(self, verb: Verb) -> Words:
        """What the verb takes as its object, if it takes one."""
        if not verb.objects:
            return []
        kind = self._one_of(verb.objects)
        if self.dice.chance(0.04):
            return self._question("what" if kind == "thing" else "who")
        return self._other(kind)

    def _with_adjective(self) -> Words:
        """``Some students weren't clever``."""
        subject = self.subject(self.dice.pick(KINDS), "be")
        be = self.dice.pick(AUXILIARIES["be"])[subject.number == "plural"]
        return [*subject.words, Word(be), Word(self.dice.pick(self.lexicon.adjectives))]

    def _with_receiver(self) -> Words:
        """``Every teacher has sent some books to Carol``."""
        giving = self.dice.pick(self.lexicon.dative_verbs)
        subject = self.subject("person", giving.base)
        receiver = self._other("person")
        return [*subject.words, *self.finite(giving, subject), *self.object(giving), Word("to"), *receiver]

    def _with_infinitive(self) -> Words:
        """``That guest persuaded Carol to leave``."""
        control = self.dice.pick(self.lexicon.control_verbs)
        subject = self.subject("person", control.base)
        verb = self.dice.pick(self.words.verbs["person"])
        particle = [Word(verb.particle)] if verb.particle else []
        asked = self._other("person") if control.objects else []
        infinitive = [Word("to"), Word(verb.base), *particle, *self.object(verb)]
        return subject.words + self.finite(control, subject) + asked + infinitive

    def _with_clause(self) -> Words:
        """``Most doctors say that Carol left``."""
        saying = self.dice.pick(self.lexicon.clause_verbs)
        subject = self.subject("person", saying.base)
        share = self.dice.uniform()
        that = [Word("that")] if share < 0.4 else []
        said = self._question("who" if share > 0.85 else "what") if share > 0.7 else self.clause(embedded=True)
        return subject.words + self.finite(saying, subject) + that + said

    def _question(self, word: str) -> Words:
        """``who isn't leaving``, ``what vanished``."""
        verb = self.dice.pick(self.words.verbs["person" if word == "who" else "thing"])
        object_ = self._other(self._one_of(verb.objects)) if verb.objects else []
        return [Word(word), *self.finite(verb, Subject([], "singular")), *object_]

    def _modifier(self, noun: Noun, number: Number) -> Words:
        """A complement, a relative clause or, mostly, nothing."""
        head = noun.singular
        if noun.preposition and self.dice.chance(0.4):
            kind = self.dice.pick(COMPLEMENTS if noun.kind == "thing" else COMPLEMENTS[:1])
            return [Word(noun.preposition), *self._other(kind, beside=head)]
        if not self.dice.chance(RELATIVE_SHARE):
            return []
        verb = self.dice.pick(self.words.verbs[noun.kind])
        while not _together(head, verb.base):
            verb = self.dice.pick(self.words.verbs[noun.kind])
        relative = self.dice.pick(("that", "who") if noun.kind == "person" else ("that", "which"))
        object_ = self._other(self._one_of(verb.objects), beside=head) if verb.objects else []
        return [Word(relative), *self.finite(verb, Subject([], number, head)), *object_]

    def _other(self, kind: Kind, beside: str = "") -> Words:
        """Somebody or something that is not the subject, and may stand with the lemma `beside`."""
        share = self.dice.uniform()
        if kind == "person" and share < 0.35:
            return [Word(self._name(beside=beside))]
        if kind in self.words.proper_nouns and share > 0.9:
            return self._proper_noun(kind).words
        if kind == "thing" and share < 0.08:
            return [Word(self.dice.pick(self.lexicon.mass_nouns))]
        return self._noun_phrase(self._noun(kind, beside=beside), self.dice.pick(NUMBERS))

    def _name(self, *, beside: str) -> str:
        names = self.words.names[self.dice.pick(GENDERS)]
        name = self.dice.pick(names).text
        while beside and not _together(name, beside):
            name = self.dice.pick(names).text
        return name

    def _noun(self, kind: Kind, *, beside: str) -> Noun:
        noun = self.dice.pick(self.nouns[kind])
        while beside and not _together(noun.singular, beside):
            noun = self.dice.pick(self.nouns[kind])
        return noun

    def _noun_phrase(self, noun: Noun, number: Number) -> Words:
        if number == "plural" and self.dice.chance(0.15):
            return [Word(noun.plural)]
        adjective = self.dice.pick(GENERAL_ADJECTIVES) if self.dice.chance(0.08) else ""
        return noun_phrase(determiner(self.dice, self.words, number), form(noun, number), adjective=adjective)

    def _proper_noun(self, kind: Kind) -> Subject:
        named = self.dice.pick(self.words.proper_nouns[kind])
        return Subject([Word(f"{named.article} {named.text}".strip())], named.number)

    def _one_of(self, kinds: frozenset[Kind]) -> Kind:
        return self.dice.pick([kind for kind in KINDS if kind in kinds])


def _together(first: str, second: str) -> bool:
    return allowed([(first, second)], "train")
