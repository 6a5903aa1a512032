"""Which words a head can find, what rules without attention would find, and how much heads attend from word to word.

**Rules.** The *offset* d words away (beyond the sentence's edge, the word at the edge); the *first* or *last word*,
where sinks look like coreference; the *nearest* word of a part of speech before, after or either way (where there is
none, the neighbour); the word of the *most tokens*, to which a head that looks everywhere alike looks most; *chance*.
Rules of a causal model look back. Every rule names one other word in every case: one that fell silent beyond the edge
would be beaten by any head (Clark et al. 2019, "What does BERT look at?", table 1).

**Pairs.** A pair is scored where the word that looks and a related word have tokens of their own (else *unaligned*)
within what is read at once (*outside*), a causal model can look back at it (*ahead*), and there is something wrong to
choose (*no choice*). What is not scored is counted.

**Attention.** To a word of several tokens it is the sum over them, from it the mean (Clark et al., section 4.1). Each
layer's pattern is turned into words as it is computed; none is kept.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from interp.errors import InputError
from interp.methods.attention_maps import run_patterns
from interp.model.devices import place_of
from interp.shapes import Pattern
from interp.tasks.alignment import NONE, require_fast
from interp.tasks.relations import Direction, Found, found
from interp.tasks.windows import Window

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
    """The unit that each rule names for every unit that looks; `upos` is empty where a unit has none of its own.

    A causal model's first unit has nothing to look at: what stands in its row means nothing.
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


AHEAD, UNALIGNED, OUTSIDE, NO_CHOICE = "ahead", "unaligned", "outside", "no choice"
REASONS = (AHEAD, UNALIGNED, OUTSIDE, NO_CHOICE)


@dataclass(frozen=True)
class Items:
    """What heads are scored on in one window: the number of the direction, the unit that looks and those to be found.

    ``rules`` says whether each rule finds one of them; ``chance`` is the share of right ones among what can be chosen;
    ``left_out`` counts what was not scored, by (direction, reason).
    """

    direction: Int[np.ndarray, " item"]
    query: Int[np.ndarray, " item"]
    related: Bool[np.ndarray, "item unit"]
    rules: Bool[np.ndarray, "item rule"]
    chance: Float[np.ndarray, " item"]
    left_out: Counter[tuple[int, str]]


def items_of(window: Window, directions: Sequence[Direction], *, causal: bool, n_further: int = 0) -> Items:
    """The items of a window; each names its direction by the number in `directions`.

    `n_further` is how many tokens of no word, or the word itself, can be chosen, too.
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


WordAttention = Float[Tensor, "batch head query_word key_word"]


def with_offsets(model: Any, what: str) -> PreTrainedTokenizerBase:
    """The model's tokenizer, which must say which characters its tokens came from; `what` asks, for the message."""
    tokenizer = getattr(model, "tokenizer", None)
    if tokenizer is None:
        raise InputError(
            f"{what}: expected a model with a tokenizer, got one without; give it its own, as in "
            "load_model(..., tokenizer=...)"
        )
    return require_fast(tokenizer)


@dataclass(frozen=True)
class ReadingRow:
    """A window with the units whose attention is wanted."""

    window: Window
    queries: tuple[int, ...]

    @property
    def ids(self) -> tuple[int, ...]:
        """Token ids, special tokens included."""
        return self.window.tokens.ids


def read_words(
    model: Any, rows: Sequence[ReadingRow], take: Callable[[int, WordAttention], None], *, special: bool = False
) -> None:
    """Run rows of equally many tokens, and give `take` each layer and its attention, in 32 bits or more.

    Its query words are each row's ``queries``, 0 beyond their number; its key words are the row's units, and with
    `special` the tokens of no word after them, in their order.
    """
    device, _ = place_of(model)
    tokens = torch.tensor([row.ids for row in rows], device=device)
    averages, sums = _matrices(rows, special)
    averages, sums = averages.to(device), sums.to(device)

    def to_words(layer: int, weights: Pattern) -> None:
        chosen = averages.to(weights.dtype)[:, None] @ weights
        take(layer, chosen @ sums.to(weights.dtype)[:, None])

    run_patterns(model, tokens, to_words)


def _matrices(rows: Sequence[ReadingRow], special: bool) -> tuple[Tensor, Tensor]:
    """What averages over each query's tokens ``[batch query_word pos]``, and sums over units ``[batch pos unit]``."""
    length = len(rows[0].ids)
    n_units = max(row.window.tokens.n_units for row in rows)
    without = [(row.window.tokens.unit_of_token == NONE).nonzero()[0] for row in rows]
    width = n_units + (max(map(len, without)) if special else 0)
    averages = torch.zeros(len(rows), max(len(row.queries) for row in rows), length)
    sums = torch.zeros(len(rows), length, width)
    for number, row in enumerate(rows):
        units = torch.from_numpy(row.window.tokens.unit_of_token)
        for at, query in enumerate(row.queries):
            own = units == query
            averages[number, at, own] = 1 / own.sum()
        inside = units != NONE
        sums[number, inside, units[inside]] = 1.0
        if special:
            sums[number, without[number], torch.arange(len(without[number])) + n_units] = 1.0
    return averages, sums
