"""Whom do heads and rules take GAP's pronouns to stand for? Attention from the pronoun to the two names.

A passage is read with as much before the pronoun as fits into the context (a model that looks both ways also reads what
follows). Passages that cannot be scored are counted by reason.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from interp.errors import InputError
from interp.methods.relations.words import ReadingRow, WordAttention, read_words
from interp.model.positions import looks_back_only
from interp.residual.collecting import batched
from interp.special_tokens import special_around
from interp.tasks.alignment import NONE, align_words, require_fast, without_special
from interp.tasks.readers.gap import GapItem, read_gap
from interp.tasks.windows import Window

RULES = ("nearer name", "first name")
_READ = 256
"""Passages that are tokenized together."""


@dataclass(frozen=True)
class Answers:
    """The answers of rules and heads (``answerer``) to a file's passages, beside what is right.

    Attributes:
        says_a: Whether each answers A; else B.
        right_a: Whether A is right, repeated for every answerer; as ``right_b``.
        feminine: Whether the pronoun is.
        pages: Where each passage is from.
        left_out: How many were not scored, by reason.
    """

    says_a: Bool[np.ndarray, "passage answerer"]
    right_a: Bool[np.ndarray, "passage answerer"]
    right_b: Bool[np.ndarray, "passage answerer"]
    feminine: Bool[np.ndarray, " passage"]
    pages: Sequence[str]
    left_out: Counter[str]

    @property
    def decidable(self) -> Bool[np.ndarray, " passage"]:
        """Whether one of the names is right."""
        return self.right_a[:, 0] | self.right_b[:, 0]

    @property
    def hits(self) -> Float[np.ndarray, "passage answerer"]:
        """True positives: 0 or 1."""
        return np.where(self.says_a, self.right_a, self.right_b).astype(float)

    @property
    def named(self) -> Float[np.ndarray, "passage answerer"]:
        """Half of what is answered and what is right: F1 is hits by these."""
        return (1 + self.right_a + self.right_b) / 2


def answers_of(model: Any, path: str | Path, tell: Callable[[], None]) -> Answers:
    """Read a file and let every rule and head answer.

    Args:
        model: Follows TransformerLens' protocol, with a fast tokenizer.
        path: A GAP file.
        tell: Called for every passage.

    Raises:
        InputError: No passage can be scored.
        TaskError: The file cannot be read.
    """
    left_out: Counter[str] = Counter()
    says, items = [], []
    for batch in batched(_rows(model, read_gap(path), left_out, tell)):
        margins = np.zeros((len(batch), model.cfg.n_layers, model.cfg.n_heads))
        read_words(model, batch, _margins_into(batch, margins))
        for row, own in zip(batch, margins, strict=True):
            says.append(np.concatenate([_rules(row.item), own.ravel() > 0]))
            items.append(row.item)
    if not items:
        reasons = ", ".join(f"{count} {why}" for why, count in left_out.items())
        raise InputError(f"{path}: expected passages that the model can read, got none ({reasons})")
    right_a, right_b = (
        np.array([[getattr(item, each).coreferent] for item in items]).repeat(len(says[0]), 1) for each in "ab"
    )
    feminine = np.array([item.gender == "feminine" for item in items])
    return Answers(np.array(says, dtype=bool), right_a, right_b, feminine, [item.url for item in items], left_out)


@dataclass(frozen=True)
class _GapRow(ReadingRow):
    """A passage as a row of tokens, whose units are the two names and the pronoun."""

    item: GapItem
    names: tuple[int, int]


def _rows(model: Any, items: Iterator[GapItem], left_out: Counter[str], tell: Callable[[], None]) -> Iterator[_GapRow]:
    causal = looks_back_only(model)
    tokenizer = require_fast(model.tokenizer)
    around = special_around(tokenizer, both_sides=not causal)
    while some := list(islice(items, _READ)):
        for item, tokens in zip(some, without_special(tokenizer, [each.text for each in some]), strict=True):
            tell()
            found = _row(item, *tokens, around, model.cfg.n_ctx, causal)
            if isinstance(found, str):
                left_out[found] += 1
            else:
                yield found


def _row(
    item: GapItem,
    ids: tuple[int, ...],
    offsets: tuple[tuple[int, int], ...],
    around: tuple[tuple[int, ...], tuple[int, ...]],
    n_ctx: int,
    causal: bool,
) -> _GapRow | str:
    """A passage with as much before the pronoun as fits, or why it cannot be scored."""
    spans = sorted([item.a.span, item.b.span, item.pronoun_span], key=lambda span: span.start)
    pronoun = spans.index(item.pronoun_span)
    if causal and pronoun != 2:
        return "a name after the pronoun"
    last = sum(start < spans[-1].stop for start, _ in offsets)
    room = n_ctx - sum(map(len, around))
    first = max(0, (last if causal or len(ids) > room else len(ids)) - room)
    stop = last if causal else min(len(ids), first + room)
    # A token whose beginning is cut off is none of a name's.
    if first and offsets[first][0] > spans[0].start:
        return "longer than the context"
    tokens = align_words(item.text, spans, ids[first:stop], offsets[first:stop], around)
    units = tokens.unit_of_word
    if (units == NONE).any():
        return "a name or the pronoun has no tokens of its own"
    names = tuple(int(units[spans.index(each.span)]) for each in (item.a, item.b))
    return _GapRow(Window(item.id, (), tokens), (int(units[pronoun]),), item, (names[0], names[1]))


def _margins_into(rows: Sequence[_GapRow], into: np.ndarray) -> Callable[[int, WordAttention], None]:
    def take(layer: int, words: WordAttention) -> None:
        found = words[:, :, 0].double().cpu().numpy()
        for number, row in enumerate(rows):
            a, b = row.names
            into[number, layer] = found[number, :, a] - found[number, :, b]

    return take


def _rules(item: GapItem) -> Bool[np.ndarray, " rule"]:
    """Whether each of ``RULES`` answers A."""
    at = item.pronoun_span.start
    distance = [abs(each.span.start - at) for each in (item.a, item.b)]
    return np.array([distance[0] < distance[1], item.a.span.start < item.b.span.start])


def f1_of(answers: Answers, at: int, chosen: Bool[np.ndarray, " passage"] | None = None) -> float:
    """F1 of one answerer on some passages, or on all; NaN of none."""
    rows = np.ones(len(answers.pages), dtype=bool) if chosen is None else chosen
    named = answers.named[rows, at].sum()
    return float(answers.hits[rows, at].sum() / named) if named else float("nan")
