"""The text that the embedded model is trained on: an endless stream that depends on nothing but the seed.

1. Draw a family of constructions, so that each has its share of the words (``MIX``).
2. Draw one document of it from the training split: one to three sentences, sometimes after a filler sentence.
3. The coreference family is short stories with many pronouns, whose antecedents follow one rule: a sentence of
   ``coreference.py`` up to its pronoun, the pronoun and what the antecedent did, and perhaps more sentences about the
   same subject. Or two people did something to different things, and one sentence can only mean one of the two: "Wendy
   found a ladder and the father found a key. She took the ladder."
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import accumulate, combinations

from interp.tasks import agreement, induction, ioi, reflexive
from interp.tasks.coreference import POSSESSIVES, SUBJECT_PRONOUNS, Coreference, Ending, Link, propose
from interp.tasks.grammar.draws import Dice, allowed, draw_within
from interp.tasks.grammar.lexicon import GENDERS, Kind, Vocabulary, vocabulary
from interp.tasks.grammar.phrases import (
    FULL_STOP,
    GENERAL_ADJECTIVES,
    NUMBERS,
    Tense,
    Word,
    Words,
    filler,
    form,
    noun_phrase,
    render,
    sentence,
    some_object,
    verb_phrase,
)
from interp.tasks.grammar.varied_sentences import VariedSentences

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


MIX = {"agreement": 0.20, "coreference": 0.25, "reflexive": 0.10, "ioi": 0.16, "string": 0.14, "wide": 0.15}
"""Share of the words that each family's documents hold, their fillers included."""

FILLER_SHARE = 0.2
"""Share of the documents that begin with a filler sentence."""

FURTHER_SHARE = 0.4
"""Probability that a document of short sentences goes on, up to ``LONGEST`` sentences."""
LONGEST = 3

SAMPLE = 400
"""Documents per family from which its mean length is taken."""

Family = Callable[[], Words]


def documents(seed: int) -> Iterator[str]:
    """An endless stream of training documents, the same for the same `seed` on every platform.

    Args:
        seed: Names the stream.

    Yields:
        One to three sentences, or a string of random words, perhaps after a filler sentence.
    """
    dice = Dice("corpus", seed)
    families = _families(dice)
    lengths = _mean_lengths()
    rates = list(accumulate(MIX[name] / lengths[name] for name in families))
    draws = tuple(families.values())
    while True:
        share = dice.uniform() * rates[-1]
        yield render(draws[sum(rate <= share for rate in rates)]())


def _families(dice: Dice) -> dict[str, Family]:
    """What draws a document of each family, by its name in ``MIX``."""
    words = vocabulary()
    wide = VariedSentences(dice, words)

    def document(core: Family, further: float) -> Family:
        def proposed() -> Words:
            drawn = filler(dice, words) if dice.chance(FILLER_SHARE) else []
            drawn += core()
            for _ in range(LONGEST - 1):
                if not dice.chance(further):
                    break
                drawn += core()
            return drawn

        def draw() -> Words:
            while not names_may_meet(drawn := proposed(), words):
                pass
            return drawn

        return draw

    return {
        "agreement": document(lambda: agreement.training_sentence(dice, words), FURTHER_SHARE),
        "coreference": document(lambda: narrative(dice, words), 0.0),
        "reflexive": document(lambda: reflexive.training_sentence(dice, words), FURTHER_SHARE),
        "ioi": document(lambda: ioi.training_sentence(dice, words), 0.0),
        "string": document(lambda: induction.training_string(dice, words), 0.0),
        "wide": document(wide.sentence, FURTHER_SHARE),
    }


def names_may_meet(document: Words, words: Vocabulary) -> bool:
    """Whether every two of a document's first names are of the training split, whatever their roles."""
    parts = {part for word in document for part in word.text.split()}
    names = filter(words.lexicon.name_of, parts)
    return allowed(combinations(sorted(names), 2), "train")


@lru_cache(maxsize=1)
def _mean_lengths() -> dict[str, float]:
    """Words in a mean document of each family, from a sample that is the same for every seed."""
    families = _families(Dice("corpus", "lengths"))
    return {name: sum(len(draw()) for _ in range(SAMPLE)) / SAMPLE for name, draw in families.items()}
