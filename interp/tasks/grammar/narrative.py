"""Short stories with many pronouns, whose antecedents follow one rule: what coreference is learnt from.

1. A sentence of ``coreference.py`` up to its pronoun, about one person, two people or several.
2. The pronoun of the antecedent, and what it did, often to "her" or "his" things.
3. Perhaps more sentences about the same subject; or, where two people did something to different
   things, one that only one of the two can be meant by: "Wendy found a ladder and the father found a key. She
   took the ladder."
"""

from interp.tasks.grammar.coreference import Coreference, Ending, Link, propose
from interp.tasks.grammar.dice import Dice
from interp.tasks.grammar.lexicon import Kind
from interp.tasks.grammar.phrases import (
    GENERAL_ADJECTIVES,
    NUMBERS,
    Tense,
    form,
    noun_phrase,
    some_object,
    verb_phrase,
)
from interp.tasks.grammar.sentence import FULL_STOP, Word, Words, sentence
from interp.tasks.grammar.splits import draw_within
from interp.tasks.grammar.vocabulary import GENDERS, Vocabulary

SUBJECT_PRONOUNS = {"female": "she", "male": "he", "plural": "they"}
POSSESSIVES = {"female": "her", "male": "his", "plural": "their"}
NARRATIVE_TENSES: tuple[Tense, ...] = ("past", "past", "past", "had", "did", "modal")

LINKS: tuple[Link, ...] = ("alone", "alone", "clause", "clause", "sentence", "beside")
ENDINGS: tuple[Ending, ...] = ("because", "because", "because", "possessive", "possessive", "that")
POSSESSED: tuple[Kind, ...] = ("thing", "thing", "thing", "animal", "person")
PLURAL_SHARE, BINDING_SHARE = 0.12, 0.12


def narrative(dice: Dice, words: Vocabulary) -> Words:
    """One to three sentences about people."""
    if dice.chance(BINDING_SHARE):
        return _binding(dice, words)
    link, ending, group = dice.pick(LINKS), dice.pick(ENDINGS), dice.pick(GENDERS)
    if dice.chance(PLURAL_SHARE):
        drawn, group = _draw_several(dice, words, link, ending), "plural"
    else:
        drawn = _draw(dice, words, link, ending, group)
    story = drawn.before_pronoun()
    if drawn.ending == "possessive":
        story += _possession(dice, words, group)
        if dice.chance(0.5):
            story += [Word(drawn.connective), Word(SUBJECT_PRONOUNS[group]), *_did(dice, words, group)]
    else:
        story += [Word(SUBJECT_PRONOUNS[group]), *_did(dice, words, group)]
    story.append(FULL_STOP)
    while dice.chance(0.4):
        story += sentence([Word(SUBJECT_PRONOUNS[group]), *_did(dice, words, group)])
    return story


def _draw(dice: Dice, words: Vocabulary, link: Link, ending: Ending, gender: str) -> Coreference:
    """A sentence up to its pronoun, about one or two single people."""
    genders = (gender, GENDERS[1 - GENDERS.index(gender)])
    named = (dice.chance(0.7), dice.chance(0.7))
    extra = {place: dice.chance(0.25) for place in ("adjective", "place", "adverb")}
    return draw_within("train", lambda: propose(dice, words, link, ending, genders=genders, named=named, **extra))


def _draw_several(dice: Dice, words: Vocabulary, link: Link, ending: Ending) -> Coreference:
    """A sentence up to its pronoun, about several people and perhaps a single one."""
    genders = (GENDERS[0], dice.pick(GENDERS))

    def several() -> Coreference:
        drawn = propose(dice, words, link, ending, genders=genders, named=(False, True))
        return drawn._replace(antecedent=dice.pick(words.nouns["person"]), number="plural")

    return draw_within("train", several)


def _binding(dice: Dice, words: Vocabulary) -> Words:
    """Two people and two things, then one of the people, known by the pronoun, and that one's thing."""
    gender = dice.pick(GENDERS)
    drawn = _draw(dice, words, "clause", "because", gender)
    while drawn.clause.object == drawn.earlier.object:
        drawn = _draw(dice, words, "clause", "because", gender)
    both = drawn.before_pronoun()[:-1]  # without the connective
    group, clause = gender, drawn.clause
    if dice.chance(0.5):
        group, clause = GENDERS[1 - GENDERS.index(gender)], drawn.earlier
    verb = dice.pick(words.transitive["person", clause.object.kind])
    act = [Word(SUBJECT_PRONOUNS[group]), Word(verb.past), *noun_phrase("the", clause.object.singular)]
    return [*both, FULL_STOP, *sentence(act)]


def _did(dice: Dice, words: Vocabulary, group: str) -> Words:
    """What somebody did, after the pronoun: an action or a state, in the past."""
    share = dice.uniform()
    if share < 0.15:
        return [Word("were" if group == "plural" else "was"), Word(dice.pick(GENERAL_ADJECTIVES))]
    if share < 0.60:
        verb = dice.pick(words.transitive["person", "thing"])
        thing = _possession(dice, words, group)
        return [*verb_phrase(dice, verb, dice.pick(NARRATIVE_TENSES), "singular"), *thing]
    verb = dice.pick(words.verbs["person"])
    phrase = verb_phrase(dice, verb, dice.pick(NARRATIVE_TENSES), "singular")
    return phrase + some_object(dice, words, verb)


def _possession(dice: Dice, words: Vocabulary, group: str) -> Words:
    """``her old keys``."""
    thing = dice.pick(words.nouns[dice.pick(POSSESSED)])
    adjective = dice.pick(GENERAL_ADJECTIVES) if dice.chance(0.25) else ""
    return noun_phrase(POSSESSIVES[group], form(thing, dice.pick(NUMBERS)), adjective=adjective)
