"""What would find the related word without attention? Rules that always name one word.

- **offset -d**: the word d before (after) the one that looks; beyond the sentence's edge, the word at the edge;
- **first word**, **last word**: first-token sinks look like coreference to the first word;
- **nearest NOUN before** (after, either way): the nearest word of a part of speech; where there is none, the neighbour;
- **most tokens**: the word of the most tokens, of several the nearest. Attention to a word is summed over its tokens:
  a head that looks everywhere alike looks most at long words, which are rare words and names;
- **chance**: any word that could be looked at, with equal odds.

A model that only looks back is held against rules that look back. Every rule names one other word in every case: one
that fell silent where it reaches beyond the edge would be beaten by any head.

Clark et al. (2019), "What does BERT look at?", table 1: the best fixed offset.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Int

MOST_DISTANT = 20
"""Words: the largest offset that is tried."""
CHANCE = "chance"
MOST_TOKENS = "most tokens"
PARTS_OF_SPEECH = (
    *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM"),
    *("PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X"),
)


def rule_names(*, causal: bool) -> list[str]:
    """The rules, in the order of ``rule_picks``' columns."""
    sides = ("before",) if causal else ("before", "after", "either way")
    nearest = [f"nearest {upos} {side}" for upos in PARTS_OF_SPEECH for side in sides]
    edges = ["first word", MOST_TOKENS] if causal else ["first word", "last word", MOST_TOKENS]
    return [*(f"offset {each:+d}" for each in _offsets(causal)), *edges, *nearest]


def rule_picks(
    upos: Sequence[str], n_tokens: Int[np.ndarray, " unit"], *, causal: bool
) -> Int[np.ndarray, "unit rule"]:
    """The unit that each rule names for every unit that looks.

    A causal model's first unit has nothing to look at: what stands in its row means nothing.

    Args:
        upos: Part of speech of each unit; empty where it has none of its own.
        n_tokens: Tokens of each unit.
        causal: Whether only earlier units can be looked at.
    """
    unit = np.arange(len(upos))
    last = unit - 1 if causal else np.full(len(upos), len(upos) - 1)
    neighbour = _beside(unit, unit - 1, last)
    columns = [_beside(unit, unit + each, last) for each in _offsets(causal)]
    columns.append(_beside(unit, np.zeros_like(unit), last))
    if not causal:
        columns.append(_beside(unit, last, last))
    columns.append(_most_tokens(n_tokens, unit, causal))
    for part in PARTS_OF_SPEECH:
        columns += _nearest(np.array([each == part for each in upos]), unit, neighbour, causal)
    return np.stack(columns, axis=1)


def _offsets(causal: bool) -> list[int]:
    back = [-distance for distance in range(1, MOST_DISTANT + 1)]
    return back if causal else [*back, *(-each for each in back)]


def _beside(
    unit: Int[np.ndarray, " unit"], target: Int[np.ndarray, " unit"], last: Int[np.ndarray, " unit"]
) -> Int[np.ndarray, " unit"]:
    """`target` within the edges; a unit's neighbour where that is the unit itself."""
    within = np.clip(target, 0, np.maximum(last, 0))
    inward = np.where(unit > 0, unit - 1, unit + 1)
    return np.where(within == unit, np.clip(inward, 0, max(len(unit) - 1, 0)), within)


def _most_tokens(
    n_tokens: Int[np.ndarray, " unit"], unit: Int[np.ndarray, " unit"], causal: bool
) -> Int[np.ndarray, " unit"]:
    """The other unit of the most tokens; of several the nearest, of two as near the earlier."""
    distance = np.abs(unit[:, None] - unit)
    worth = n_tokens[None] - distance / (len(unit) + 1.0)
    hidden = (unit[None] >= unit[:, None]) if causal else distance == 0
    return np.where(hidden, -np.inf, worth).argmax(axis=1)


def _nearest(
    member: np.ndarray, unit: Int[np.ndarray, " unit"], neighbour: Int[np.ndarray, " unit"], causal: bool
) -> Iterator[Int[np.ndarray, " unit"]]:
    """The nearest member before, and, where a model looks ahead, after and either way."""
    n_units = len(unit)
    at = np.where(member, unit, -1)
    before = np.concatenate([[-1], np.maximum.accumulate(at)[:-1]])
    yield np.where(before >= 0, before, neighbour)
    if causal:
        return
    at = np.where(member, unit, n_units)
    after = np.concatenate([np.minimum.accumulate(at[::-1])[::-1][1:], [n_units]])
    yield np.where(after < n_units, after, neighbour)
    back = np.where(before >= 0, unit - before, 2 * n_units)
    ahead = np.where(after < n_units, after - unit, 2 * n_units)
    either = np.where(back <= ahead, before, after)
    yield np.where(np.minimum(back, ahead) < 2 * n_units, either, neighbour)
