"""The text that the embedded model is trained on: an endless stream that depends on nothing but the seed.

1. Draw a family of constructions, so that each has its share of the words (``MIX``).
2. Draw one document of it from the training split: one to three sentences, sometimes after a filler sentence.
3. The coreference family is short stories with many pronouns, whose antecedents follow one rule: a sentence of
   ``coreference.py`` up to its pronoun, the pronoun and what the antecedent did, and perhaps more sentences about the
   same subject. Or two people did something to different things, and one sentence can only mean one of the two: "Wendy
   found a ladder and the father found a key. She took the ladder."
4. The wide family has sentences of every shape, so that every word is met in the grammar's ordinary places. The verb
   is drawn first, so that rare verbs are not rarer than the kinds they go with.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache, partial
from itertools import accumulate, combinations
from typing import Any, NamedTuple, TypeVar

from interp.tasks import agreement, induction, ioi, reflexive
from interp.tasks.coreference import POSSESSIVES, SUBJECT_PRONOUNS, Coreference, propose
from interp.tasks.grammar import lexicon, phrases
from interp.tasks.grammar.lexicon import GENDERS, KINDS, Kind, Noun, Number, Verb, english
from interp.tasks.grammar.phrases import Word, Words, Writer, noun_phrase, sentence

T = TypeVar("T")

BEFORE_OTHERS = frozenset({"not", "so", "too", "very"})
"""Adverbs that do not end a sentence."""
COMPLEMENTS: tuple[Kind, ...] = ("person", "thing", "place")
"""What a thing can be about or of; people are only the relatives of people."""
RELATIVE_SHARE = 0.45
"""Of the nouns without a complement. In no other family does a relative clause have an auxiliary."""
SHOWING_NUMBER: tuple[lexicon.Tense, ...] = ("present", "present", "present", "be", "have", "do")
"""Drawn in most sentences, because agreement is what they are for; all tenses in the others."""


class Subject(NamedTuple):
    """A subject's words, the number that its verb agrees with, and the count noun that it is about, if any."""

    words: Words
    number: Number
    noun: Noun | None = None


class VariedSentences(Writer):
    """Draws sentences of every shape."""

    @cached_property
    def nouns(self) -> dict[Kind, tuple[Noun, ...]]:
        """All count nouns, of one word or several."""
        return {kind: self.words.nouns[kind] + self.words.compounds.get(kind, ()) for kind in KINDS}

    @cached_property
    def final(self) -> tuple[str, ...]:
        """Adverbs that may end a sentence."""
        return tuple(adverb for adverb in english().adverbs if adverb not in BEFORE_OTHERS)

    def sentence(self) -> Words:
        """A whole sentence."""
        adverb = [Word(self.pick(self.final))] if self.chance(0.06) else []
        return sentence([*self.clause(), *adverb])

    def clause(self, *, embedded: bool = False) -> Words:
        """A subject and a predicate."""
        share = self.uniform()
        if share < 0.05:
            return self._with_adjective()
        if share < 0.07:
            return self._with_receiver()
        if share < 0.25 and not embedded:
            return self._with_infinitive() if share < 0.18 else self._with_clause()
        verb = self.pick(english().verbs)
        subject = self.subject(self.pick(lexicon.ordered(verb.subjects)), verb.base)
        return subject.words + self.finite(verb, subject) + self.object(verb)

    def subject(self, kind: Kind, verb: str) -> Subject:
        """A subject of `kind` that may stand with the verb."""
        subject = self._phrase(kind, verb, (0.06, self.words.mass_nouns), proper=0.05)
        if subject.noun is None:
            return subject
        return subject._replace(words=subject.words + self._modifier(subject.noun, subject.number))

    def finite(self, verb: Verb, subject: Subject) -> Words:
        """The verb in any tense, agreeing with the subject."""
        tenses = lexicon.TENSES if self.chance(0.4) else SHOWING_NUMBER
        tense = self.pick(tenses)
        while subject.noun and tense in lexicon.AUXILIARIES and not _together(subject.noun.singular, tense):
            tense = self.pick(tenses)
        adverb = [Word(self.adverb(True))] if self.chance(0.05) else []
        return adverb + self.verb_phrase(verb, tense, subject.number)

    def object(self, verb: Verb) -> Words:
        """What the verb takes as its object, if it takes one."""
        if not verb.objects:
            return []
        kind = self.pick(lexicon.ordered(verb.objects))
        if self.chance(0.04):
            return self._question("what" if kind == "thing" else "who")
        return self._other(kind)

    def _with_adjective(self) -> Words:
        """``Some students weren't clever``."""
        subject = self.subject(self.pick(KINDS), "be")
        be = self.pick(lexicon.AUXILIARIES["be"])[subject.number == "plural"]
        return [*subject.words, Word(be), Word(self.pick(english().adjectives))]

    def _with_receiver(self) -> Words:
        """``Every teacher has sent some books to Carol``."""
        giving = self.pick(english().dative_verbs)
        subject = self.subject("person", giving.base)
        receiver = self._other("person")
        return [*subject.words, *self.finite(giving, subject), *self.object(giving), Word("to"), *receiver]

    def _with_infinitive(self) -> Words:
        """``That guest persuaded Carol to leave``."""
        control = self.pick(english().control_verbs)
        subject = self.subject("person", control.base)
        verb = self.pick(self.words.verbs["person"])
        particle = [Word(verb.particle)] if verb.particle else []
        asked = self._other("person") if control.objects else []
        infinitive = [Word("to"), Word(verb.base), *particle, *self.object(verb)]
        return subject.words + self.finite(control, subject) + asked + infinitive

    def _with_clause(self) -> Words:
        """``Most doctors say that Carol left``."""
        saying = self.pick(english().clause_verbs)
        subject = self.subject("person", saying.base)
        share = self.uniform()
        that = [Word("that")] if share < 0.4 else []
        said = self._question("who" if share > 0.85 else "what") if share > 0.7 else self.clause(embedded=True)
        return subject.words + self.finite(saying, subject) + that + said

    def _question(self, word: str) -> Words:
        """``who isn't leaving``, ``what vanished``."""
        verb = self.pick(self.words.verbs["person" if word == "who" else "thing"])
        object_ = self._other(self.pick(lexicon.ordered(verb.objects))) if verb.objects else []
        return [Word(word), *self.finite(verb, Subject([], "singular")), *object_]

    def _modifier(self, noun: Noun, number: Number) -> Words:
        """A complement, a relative clause or, mostly, nothing."""
        head = noun.singular
        if noun.preposition and self.chance(0.4):
            kind = self.pick(COMPLEMENTS if noun.kind == "thing" else COMPLEMENTS[:1])
            return [Word(noun.preposition), *self._other(kind, beside=head)]
        if not self.chance(RELATIVE_SHARE):
            return []
        verb = self._fitting(self.words.verbs[noun.kind], head, lambda verb: verb.base)
        relative = self.pick(("that", "who") if noun.kind == "person" else ("that", "which"))
        object_ = self._other(self.pick(lexicon.ordered(verb.objects)), beside=head) if verb.objects else []
        return [Word(relative), *self.finite(verb, Subject([], number, noun)), *object_]

    def _other(self, kind: Kind, beside: str = "") -> Words:
        """Somebody or something that is not the subject, and may stand with the lemma `beside`."""
        return self._phrase(kind, beside, (0.08, english().mass_nouns), proper=0.1).words

    def _phrase(self, kind: Kind, beside: str, mass: tuple[float, Sequence[str]], proper: float) -> Subject:
        """A name, a mass noun or, mostly, a count noun; with the shares of mass nouns and of other names."""
        share = self.uniform()
        if kind == "person" and share < 0.35:
            return Subject([Word(self._fitting(self.words.names[self.pick(GENDERS)], beside).text)], "singular")
        if kind in self.words.proper_nouns and share > 1 - proper:
            named = self.pick(self.words.proper_nouns[kind])
            return Subject([Word(f"{named.article} {named.text}".strip())], named.number)
        if kind == "thing" and share < mass[0]:
            return Subject([Word(self.pick(mass[1]))], "singular")
        noun, number = self._fitting(self.nouns[kind], beside), self.pick(lexicon.NUMBERS)
        if number == "plural" and self.chance(0.15):
            return Subject([Word(noun.plural)], number, noun)
        adjective = self.adjective(self.chance(0.08))
        return Subject(noun_phrase(self.determiner(number), noun.form(number), adjective=adjective), number, noun)

    def _fitting(self, options: Sequence[T], beside: str, known_by: Callable[[Any], str] = lexicon.lemma) -> T:
        """One of the options that may stand with the lemma `beside`, if it stands with any."""
        drawn = self.pick(options)
        while beside and not _together(known_by(drawn), beside):
            drawn = self.pick(options)
        return drawn


def _together(first: str, second: str) -> bool:
    return phrases.allowed([(first, second)], "train")


NARRATIVE_TENSES: tuple[lexicon.Tense, ...] = ("past", "past", "past", "had", "did", "modal")

LINKS = ("alone", "alone", "clause", "clause", "sentence", "beside")
ENDINGS = ("because", "because", "because", "possessive", "possessive", "that")
POSSESSED: tuple[Kind, ...] = ("thing", "thing", "thing", "animal", "person")
PLURAL_SHARE, BINDING_SHARE = 0.12, 0.12


def narrative(dice: VariedSentences) -> Words:
    """One to three sentences about people."""
    if dice.chance(BINDING_SHARE):
        return _binding(dice)
    link, ending, group = dice.pick(LINKS), dice.pick(ENDINGS), dice.pick(GENDERS)
    if dice.chance(PLURAL_SHARE):
        drawn, group = _draw_several(dice, link, ending), "plural"
    else:
        drawn = _draw(dice, link, ending, group)
    story = drawn.before_pronoun()
    if drawn.ending == "possessive":
        story += _possession(dice, group)
        if dice.chance(0.5):
            story += [Word(str(drawn.slots["connective"])), Word(SUBJECT_PRONOUNS[group]), *_did(dice, group)]
    else:
        story += [Word(SUBJECT_PRONOUNS[group]), *_did(dice, group)]
    story.append(phrases.FULL_STOP)
    while dice.chance(0.4):
        story += sentence([Word(SUBJECT_PRONOUNS[group]), *_did(dice, group)])
    return story


def _draw(dice: VariedSentences, link: str, ending: str, gender: str) -> Coreference:
    """A sentence up to its pronoun, about one or two single people."""
    genders = (gender, lexicon.opposite(gender))
    named = (dice.chance(0.7), dice.chance(0.7))
    extra = {place: dice.chance(0.25) for place in ("adjective", "place", "adverb")}
    return phrases.draw_within("train", lambda: propose(dice, link, ending, genders=genders, named=named, **extra))


def _draw_several(dice: VariedSentences, link: str, ending: str) -> Coreference:
    """A sentence up to its pronoun, about several people and perhaps a single one."""
    genders = (GENDERS[0], dice.pick(GENDERS))

    def several() -> Coreference:
        drawn = propose(dice, link, ending, genders=genders, named=(False, True))
        return drawn._replace(antecedent=dice.noun("person"), number="plural")

    return phrases.draw_within("train", several)


def _binding(dice: VariedSentences) -> Words:
    """Two people and two things, then one of the people, known by the pronoun, and that one's thing."""
    gender = dice.pick(GENDERS)
    while (drawn := _draw(dice, "clause", "because", gender)).clause.object == drawn.earlier.object:
        pass
    both = drawn.before_pronoun()[:-1]  # without the connective
    group, clause = gender, drawn.clause
    if dice.chance(0.5):
        group, clause = lexicon.opposite(gender), drawn.earlier
    verb = dice.pick(dice.words.transitive["person", clause.object.kind])
    act = [Word(SUBJECT_PRONOUNS[group]), Word(verb.past), *noun_phrase("the", clause.object.singular)]
    return [*both, phrases.FULL_STOP, *sentence(act)]


def _did(dice: VariedSentences, group: str) -> Words:
    """What somebody did, after the pronoun: an action or a state, in the past."""
    share = dice.uniform()
    if share < 0.15:
        return [Word("were" if group == "plural" else "was"), Word(dice.adjective())]
    if share < 0.60:
        verb = dice.pick(dice.words.transitive["person", "thing"])
        thing = _possession(dice, group)
        return [*dice.verb_phrase(verb, dice.pick(NARRATIVE_TENSES), "singular"), *thing]
    verb = dice.pick(dice.words.verbs["person"])
    phrase = dice.verb_phrase(verb, dice.pick(NARRATIVE_TENSES), "singular")
    return phrase + dice.some_object(verb)


def _possession(dice: VariedSentences, group: str) -> Words:
    """``her old keys``."""
    thing = dice.noun(dice.pick(POSSESSED))
    adjective = dice.adjective(dice.chance(0.25))
    return noun_phrase(POSSESSIVES[group], thing.form(dice.pick(lexicon.NUMBERS)), adjective=adjective)


MIX = {"agreement": 0.20, "coreference": 0.25, "reflexive": 0.10, "ioi": 0.16, "string": 0.14, "wide": 0.15}
"""Share of the words that each family's documents hold, their fillers included."""
FILLER_SHARE = 0.2
"""Share of the documents that begin with a filler sentence."""
FURTHER_SHARE = 0.4
"""Probability that a document of short sentences goes on, up to ``LONGEST`` sentences."""
LONGEST = 3
SAMPLE = 400
"""Documents per family from which its mean length is taken."""


def documents(seed: int) -> Iterator[str]:
    """An endless stream of training documents, the same for the same `seed` on every platform.

    Args:
        seed: Names the stream.

    Yields:
        One to three sentences, or a string of random words, perhaps after a filler sentence.
    """
    dice = VariedSentences("corpus", seed)
    families = _families(dice)
    lengths = _mean_lengths()
    rates = list(accumulate(MIX[name] / lengths[name] for name in families))
    draws = tuple(families.values())
    while True:
        share = dice.uniform() * rates[-1]
        yield phrases.render(draws[sum(rate <= share for rate in rates)]())


def _families(dice: VariedSentences) -> dict[str, Callable[[], Words]]:
    """What draws a document of each family, by its name in ``MIX``."""
    cores: dict[str, tuple[Callable[[Any], Words], float]] = {
        "agreement": (agreement.training_sentence, FURTHER_SHARE),
        "coreference": (narrative, 0.0),
        "reflexive": (reflexive.training_sentence, FURTHER_SHARE),
        "ioi": (ioi.training_sentence, 0.0),
        "string": (induction.training_string, 0.0),
        "wide": (VariedSentences.sentence, FURTHER_SHARE),
    }
    return {name: partial(_document, dice, *each) for name, each in cores.items()}


def _document(dice: VariedSentences, core: Callable[[Any], Words], further: float) -> Words:
    """Drawn again until its names may meet; it goes on with the probability `further`."""
    while True:
        drawn = (dice.filler() if dice.chance(FILLER_SHARE) else []) + core(dice)
        length = 1
        while length < LONGEST and dice.chance(further):
            drawn, length = drawn + core(dice), length + 1
        if names_may_meet(drawn):
            return drawn


def names_may_meet(document: Words) -> bool:
    """Whether every two of a document's first names are of the training split, whatever their roles."""
    parts = {part for word in document for part in word.text.split()}
    return phrases.allowed(combinations(sorted(filter(english().name_of, parts)), 2), "train")


@lru_cache(maxsize=1)
def _mean_lengths() -> dict[str, float]:
    """Words in a mean document of each family, from a sample that is the same for every seed."""
    families = _families(VariedSentences("corpus", "lengths"))
    return {name: sum(len(draw()) for _ in range(SAMPLE)) / SAMPLE for name, draw in families.items()}
