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
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from interp.errors import InputError
from interp.methods.attention_maps import run_patterns
from interp.model.devices import place_of, sent
from interp.shapes import Pattern
from interp.tasks.alignment import NONE, Window, require_fast
from interp.tasks.relations import Direction, Found, found

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
    return list(_rules(["", ""], np.ones(2, dtype=np.int64), causal))


def rule_picks(
    upos: Sequence[str], n_tokens: Int[np.ndarray, " unit"], *, causal: bool
) -> Int[np.ndarray, "unit rule"]:
    """The unit that each rule names for every unit that looks; `upos` is empty where a unit has none of its own.

    A causal model's first unit has nothing to look at: what stands in its row means nothing.
    """
    return np.stack(list(_rules(upos, n_tokens, causal).values()), axis=1)


def _rules(
    upos: Sequence[str], n_tokens: Int[np.ndarray, " unit"], causal: bool
) -> dict[str, Int[np.ndarray, " unit"]]:
    """By the rule's name, the unit that it names for every unit."""
    unit = np.arange(len(upos))
    last = unit - 1 if causal else np.full(len(upos), len(upos) - 1)
    back = [-distance for distance in range(1, MOST_DISTANT + 1)]
    offsets = back if causal else [*back, *(-each for each in back)]
    picks = {f"offset {each:+d}": _beside(unit, unit + each, last) for each in offsets}
    picks["first word"] = _beside(unit, np.zeros_like(unit), last)
    if not causal:
        picks["last word"] = _beside(unit, last, last)
    picks[MOST_TOKENS] = _most_tokens(n_tokens, unit, causal)
    for part in PARTS_OF_SPEECH:
        member = np.array([each == part for each in upos])
        for side, nearest in _nearest(member, unit, _beside(unit, unit - 1, last)).items():
            if side == "before" or not causal:
                picks[f"nearest {part} {side}"] = nearest
    return picks


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
    member: np.ndarray, unit: Int[np.ndarray, " unit"], neighbour: Int[np.ndarray, " unit"]
) -> dict[str, Int[np.ndarray, " unit"]]:
    """The nearest member on each side, and either way; the neighbour where there is none."""
    nowhere = 2 * len(unit)  # further than any unit is from another
    before = np.concatenate([[-nowhere], np.maximum.accumulate(np.where(member, unit, -nowhere))[:-1]])
    after = np.concatenate([np.minimum.accumulate(np.where(member, unit, 2 * nowhere)[::-1])[::-1][1:], [2 * nowhere]])
    either = np.where(unit - before <= after - unit, before, after)
    sides = {"before": before, "after": after, "either way": either}
    return {side: np.where(np.isin(found, unit), found, neighbour) for side, found in sides.items()}


AHEAD, UNALIGNED, OUTSIDE, NO_CHOICE = "ahead", "unaligned", "outside", "no choice"
REASONS = (AHEAD, UNALIGNED, OUTSIDE, NO_CHOICE)


@dataclass(frozen=True)
class Items:
    """What heads are scored on in one window: the number of the direction, the unit that looks and those to be found.

    The keys are the window's units and, where one can be chosen, the tokens of no word after them. ``allowed`` says
    what can be chosen; ``rules`` whether each rule finds a related word, and at last by chance: the share of right
    choices. ``left_out`` counts what was not scored, by (direction, reason).
    """

    direction: Int[np.ndarray, " item"]
    query: Int[np.ndarray, " item"]
    related: Bool[np.ndarray, "item key"]
    allowed: Bool[np.ndarray, "item key"]
    rules: Float[np.ndarray, "item rule"]
    left_out: Counter[tuple[int, str]]


def items_of(window: Window, directions: Sequence[Direction], *, causal: bool, exclude: Collection[str]) -> Items:
    """The items of a window; each names its direction by the number in `directions`."""
    kept: list[tuple[int, int]] = []
    related_to: list[list[int]] = []
    left_out: Counter[tuple[int, str]] = Counter()
    for number, direction in enumerate(directions):
        for pair in found(direction, window):
            if pair.query < window.first_query:
                continue
            unit, units, reason = _units(pair, window, causal)
            if reason:
                left_out[number, reason] += 1
            else:
                kept.append((number, unit))
                related_to.append(units)
    direction_of, query = np.array(kept, dtype=np.int64).reshape(-1, 2).T
    n_units = window.tokens.n_units
    key = np.arange(n_keys(window, special="special" not in exclude))
    related = np.array([np.isin(key, units) for units in related_to], dtype=bool).reshape(len(query), len(key))
    allowed = (key >= n_units) | (key < np.where(causal, query, n_units)[:, None])
    allowed[np.arange(len(query)), query] = "self" not in exclude
    wrong = (allowed & ~related).any(axis=1)
    left_out.update((int(number), NO_CHOICE) for number in direction_of[~wrong])
    direction_of, query, related, allowed = (each[wrong] for each in (direction_of, query, related, allowed))
    return Items(direction_of, query, related, allowed, _by_rule(window, query, related, allowed, causal), left_out)


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


def _by_rule(
    window: Window,
    query: Int[np.ndarray, " item"],
    related: Bool[np.ndarray, "item key"],
    allowed: Bool[np.ndarray, "item key"],
    causal: bool,
) -> Float[np.ndarray, "item rule"]:
    """What each rule, and at last chance, finds."""
    if not len(query):
        return np.zeros((0, 0))
    tokens = window.tokens
    upos = [window.words[word].upos if word != NONE else "" for word in tokens.word_of_unit]
    n_tokens = np.bincount(tokens.unit_of_token[tokens.unit_of_token != NONE], minlength=tokens.n_units)
    picks = rule_picks(upos, n_tokens, causal=causal)[query]
    return np.column_stack([np.take_along_axis(related, picks, axis=1), related.sum(axis=1) / allowed.sum(axis=1)])


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


def n_keys(window: Window, *, special: bool) -> int:
    """How many key words a window has: its units and, with `special`, the tokens of no word."""
    tokens = window.tokens
    return tokens.n_units + (int((tokens.unit_of_token == NONE).sum()) if special else 0)


def read_words(
    model: Any, rows: Sequence[ReadingRow], take: Callable[[int, WordAttention], None], *, special: bool = False
) -> None:
    """Run rows of equally many tokens, and give `take` each layer and its attention, in 32 bits or more.

    Its query words are each row's ``queries``, 0 beyond their number; its key words are each row's units and, with
    `special`, its tokens of no word after them, in their order; 0 beyond these.
    """
    device, _ = place_of(model)
    tokens = sent(np.array([row.ids for row in rows]), device)
    n, length = tokens.shape
    averages = np.zeros((n, max(len(row.queries) for row in rows), length), dtype=np.float32)
    sums = np.zeros((n, length, max(n_keys(row.window, special=special) for row in rows)), dtype=np.float32)
    for number, row in enumerate(rows):
        unit = row.window.tokens.unit_of_token
        for at, query in enumerate(row.queries):
            averages[number, at] = (unit == query) / (unit == query).sum()
        alone = unit == NONE
        key = np.where(alone, row.window.tokens.n_units + np.cumsum(alone) - 1, unit)
        read = np.flatnonzero(special | ~alone)
        sums[number, read, key[read]] = 1.0
    mean, total = sent(averages, device), sent(sums, device)

    def to_words(layer: int, weights: Pattern) -> None:
        chosen = mean.to(weights.dtype)[:, None] @ weights
        take(layer, chosen @ total.to(weights.dtype)[:, None])

    run_patterns(model, tokens, to_words)
