"""Which tokens is each word of a text made of? Attention is between tokens, relations are between words.

1. A token belongs to the word whose characters it covers; white space at its edges does not count. A word of several
   tokens has all of them.
2. Where a token covers characters of two words (``don't`` as ``don`` and ``'t``), nobody can tell which of them it
   stands for: these words form one **unit** that can be looked at, but that no relation is scored on. So do the words
   of a multiword token that do not spell it.
3. Tokens of no word, such as ``[CLS]`` or a space by itself, belong to no unit.

What cannot be aligned is counted by its reason, never guessed.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from interp.tasks.alignment import inked
from interp.tasks.example import Span

NONE = -1
SHARED = "shares a token with another word"
NO_TOKEN = "no token covers it"


@dataclass(frozen=True)
class WordTokens:
    """A row of tokens and the words that they spell.

    Attributes:
        ids: Token ids of the whole row, special tokens included.
        unit_of_token: The unit that each token belongs to; ``NONE`` for none.
        word_of_unit: The word of each unit, in the text's order; ``NONE`` where several words share tokens.
        unit_of_word: The unit of each word; ``NONE`` where it has none of its own.
        unaligned: How many words have no unit of their own, by the reason.
    """

    ids: tuple[int, ...]
    unit_of_token: Int[np.ndarray, " pos"]
    word_of_unit: Int[np.ndarray, " unit"]
    unit_of_word: Int[np.ndarray, " word"]
    unaligned: Mapping[str, int]

    @property
    def n_units(self) -> int:
        """Units of the row."""
        return len(self.word_of_unit)


def align_words(
    text: str,
    spans: Sequence[Span],
    ids: Sequence[int],
    offsets: Sequence[tuple[int, int]],
    around: tuple[tuple[int, ...], tuple[int, ...]] = ((), ()),
) -> WordTokens:
    """Find out which tokens each word is made of.

    Args:
        text: What was tokenized.
        spans: The words' characters in it, in its order.
        ids: The text's own tokens.
        offsets: The characters that each came from.
        around: Special tokens before and after them.
    """
    owners = _owners(len(text), spans)
    covered = [_words_in(owners[start:stop]) for start, stop in inked(text, offsets)]
    group = _joined(len(spans), [*covered, *_sharing(owners, spans)])
    seen = {word for words in covered for word in words}
    groups = sorted({group[word] for word in seen})
    unit_of_group = {each: unit for unit, each in enumerate(groups)}
    sizes = Counter(group)
    alone = [sizes[group[word]] == 1 for word in range(len(spans))]
    before, after = around
    of_token = [unit_of_group[group[words[0]]] if words else NONE for words in covered]
    return WordTokens(
        (*before, *ids, *after),
        np.array([*[NONE] * len(before), *of_token, *[NONE] * len(after)], dtype=np.int64),
        np.array([each if sizes[each] == 1 else NONE for each in groups], dtype=np.int64),
        np.array([unit_of_group.get(each, NONE) if own else NONE for each, own in zip(group, alone, strict=True)]),
        Counter(
            NO_TOKEN if group[word] not in unit_of_group else SHARED
            for word in range(len(spans))
            if group[word] not in unit_of_group or not alone[word]
        ),
    )


def _owners(length: int, spans: Sequence[Span]) -> list[int]:
    """The word that each character belongs to; the first, where several do."""
    owners = [NONE] * length
    for word in reversed(range(len(spans))):
        span = spans[word]
        owners[span.start : span.stop] = [word] * (span.stop - span.start)
    return owners


def _words_in(owners: Sequence[int]) -> list[int]:
    """The words that these characters belong to."""
    return list(dict.fromkeys(word for word in owners if word != NONE))


def _sharing(owners: Sequence[int], spans: Sequence[Span]) -> list[list[int]]:
    """The words whose characters belong to another one, with that one."""
    found = ([word, *_words_in(owners[span.start : span.stop])] for word, span in enumerate(spans))
    return [each for each in found if set(each) != {each[0]}]


def _joined(n_words: int, together: Sequence[Sequence[int]]) -> list[int]:
    """Each word's group, by the group's first word: words that stand in one list are in one group."""
    group = list(range(n_words))
    for words in together:
        if len(words) > 1:
            joined = {group[word] for word in words}
            least = min(joined)
            group = [least if each in joined else each for each in group]
    return group
