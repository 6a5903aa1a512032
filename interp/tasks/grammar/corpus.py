"""What is the embedded model trained on?

1. Draw a family of constructions, so that each has its share of the words (``MIX``).
2. Draw one document of it from the training split: one to three sentences, sometimes with a filler
   sentence in front.
3. Yield it as text. The stream has no end and depends on nothing but the seed.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import accumulate, combinations

from interp.tasks.grammar import agreement, ioi, reflexives, strings
from interp.tasks.grammar.dice import Dice
from interp.tasks.grammar.filler import filler
from interp.tasks.grammar.narrative import narrative
from interp.tasks.grammar.sentence import Words, render
from interp.tasks.grammar.splits import allowed
from interp.tasks.grammar.vocabulary import Vocabulary, vocabulary
from interp.tasks.grammar.wide import Wide

MIX = {
    "agreement": 0.20,
    "coreference": 0.25,
    "reflexive": 0.10,
    "ioi": 0.16,
    "string": 0.14,
    "wide": 0.15,
}
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
    wide = Wide(dice, words)

    def document(core: Family, further: float) -> Family:
        def draw() -> Words:
            while not names_may_meet(drawn := propose(), words):
                pass
            return drawn

        def propose() -> Words:
            drawn = filler(dice, words) if dice.chance(FILLER_SHARE) else []
            drawn += core()
            for _ in range(LONGEST - 1):
                if not dice.chance(further):
                    break
                drawn += core()
            return drawn

        return draw

    return {
        "agreement": document(lambda: agreement.training_sentence(dice, words), FURTHER_SHARE),
        "coreference": document(lambda: narrative(dice, words), 0.0),
        "reflexive": document(lambda: reflexives.training_sentence(dice, words), FURTHER_SHARE),
        "ioi": document(lambda: ioi.training_sentence(dice, words), 0.0),
        "string": document(lambda: strings.training_string(dice, words), 0.0),
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
