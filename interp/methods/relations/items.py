"""Which pairs of a window can a head be scored on? Words as units of tokens, what cannot be scored counted.

1. A word that looks, and at least one of its related words, must have tokens of their own (``tasks/word_tokens.py``).
2. A causal model can only look back: related words that stand later are taken away, and a pair that has none left is
   counted as *ahead*.
3. A pair whose related words all stand outside of the window is counted as *outside*.
4. Where every word that could be looked at is right, or there is none to look at, nothing can be told: *no choice*.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from interp.methods.relations.rules import rule_picks
from interp.tasks.relations import Direction, Found, found
from interp.tasks.windows import Window
from interp.tasks.word_tokens import NONE

AHEAD, UNALIGNED, OUTSIDE, NO_CHOICE = "ahead", "unaligned", "outside", "no choice"
REASONS = (AHEAD, UNALIGNED, OUTSIDE, NO_CHOICE)


@dataclass(frozen=True)
class Items:
    """What heads are scored on in one window.

    Attributes:
        direction: Number of each item's direction.
        query: The unit that looks.
        related: Where the units that it should find are True.
        rules: Whether each rule finds one of them, 0 or 1.
        chance: Share of right ones among what can be chosen.
        left_out: How often what was not scored, by (direction, reason).
    """

    direction: Int[np.ndarray, " item"]
    query: Int[np.ndarray, " item"]
    related: Bool[np.ndarray, "item unit"]
    rules: Bool[np.ndarray, "item rule"]
    chance: Float[np.ndarray, " item"]
    left_out: Counter[tuple[int, str]]


def items_of(window: Window, directions: Sequence[Direction], *, causal: bool, n_further: int = 0) -> Items:
    """The items of a window.

    Args:
        window: Its words, and their units of tokens.
        directions: What is asked; an item names one by its number here.
        causal: Whether only earlier words can be looked at.
        n_further: How many tokens of no word, or the word itself, can be chosen, too.
    """
    kept: list[tuple[int, int, list[int]]] = []
    left_out: Counter[tuple[int, str]] = Counter()
    n_units = window.tokens.n_units
    for number, direction in enumerate(directions):
        for pair in found(direction, window):
            if pair.query < window.first_query:
                continue
            query, related, reason = _units(pair, window, causal)
            if not reason and not n_further and len(related) == (query if causal else n_units - 1):
                reason = NO_CHOICE
            if reason:
                left_out[number, reason] += 1
            else:
                kept.append((number, query, related))
    return _tabulated(kept, window, left_out, causal=causal, n_further=n_further)


def _units(pair: Found, window: Window, causal: bool) -> tuple[int, list[int], str]:
    """The units of a pair, or the reason why it cannot be scored."""
    unit_of_word = window.tokens.unit_of_word
    query = int(unit_of_word[pair.query])
    units = {int(unit_of_word[each]) for each in pair.related}
    if not units:
        return query, [], OUTSIDE
    own = units - {NONE}
    if query == NONE or not own:
        return query, [], UNALIGNED
    related = sorted(each for each in own if not causal or each < query)
    return query, related, "" if related else AHEAD


def _tabulated(
    kept: Sequence[tuple[int, int, list[int]]],
    window: Window,
    left_out: Counter[tuple[int, str]],
    *,
    causal: bool,
    n_further: int,
) -> Items:
    n_units = window.tokens.n_units
    query = np.array([each[1] for each in kept], dtype=np.int64)
    related = np.zeros((len(kept), n_units), dtype=bool)
    for row, (_, _, units) in enumerate(kept):
        related[row, units] = True
    upos = [window.words[word].upos if word != NONE else "" for word in window.tokens.word_of_unit]
    n_tokens = np.bincount(window.tokens.unit_of_token[window.tokens.unit_of_token != NONE], minlength=n_units)
    picks = rule_picks(upos, n_tokens, causal=causal)[query] if kept else np.zeros((0, 0), dtype=np.int64)
    others = query if causal else np.full(len(kept), n_units - 1)
    return Items(
        np.array([each[0] for each in kept], dtype=np.int64),
        query,
        related,
        np.take_along_axis(related, picks, axis=1) if kept else np.zeros((0, 0), dtype=bool),
        related.sum(axis=1) / np.maximum(others + n_further, 1),
        left_out,
    )
