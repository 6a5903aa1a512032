"""Which rows does a model have to run for a task? Prompts or sentences, in batches of equal length.

Rows of one batch are equally long, so no padding is needed and any model that follows
TransformerLens' protocol can run them, whether or not it takes an attention mask.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from interp.errors import InputError
from interp.shapes import Tokens
from interp.tasks.task import EncodedExample, Metric, Unit

BATCH_SIZE = 256


@dataclass(frozen=True)
class Row:
    """One row of a forward pass.

    Attributes:
        encoded: The example that the row belongs to.
        example: Its number, counted over the examples of the units.
        fold: The reference set that serves it.
        continuation: What follows the prompt; empty where the prompt's last logits decide.
        sign: +1 or, for the wrong continuation, -1: how its score enters the example's metric.
    """

    encoded: EncodedExample
    example: int
    fold: int
    continuation: tuple[int, ...] = ()
    sign: int = 1

    @property
    def tokens(self) -> tuple[int, ...]:
        """Token ids, BOS first."""
        return self.encoded.prompt + self.continuation

    @property
    def template(self) -> str:
        """The example's template."""
        return self.encoded.example.template

    @property
    def layout(self) -> str:
        """The example's layout."""
        return self.encoded.example.layout


@dataclass(frozen=True)
class Batch:
    """Rows of equal length and their tokens on the model's device."""

    rows: tuple[Row, ...]
    tokens: Tokens

    @property
    def examples(self) -> list[int]:
        """The example that each row belongs to."""
        return [row.example for row in self.rows]


def task_rows(metric: Metric, units: Iterable[Unit]) -> list[Row]:
    """The rows that `metric` is measured on.

    One per example (its prompt) for a logit difference; two (prompt with right, with wrong) for a
    sentence's log-probability.

    Raises:
        InputError: A logit difference between answers of several tokens.
    """
    rows: list[Row] = []
    pairs = ((unit, encoded) for unit in units for encoded in unit.examples)
    for number, (unit, encoded) in enumerate(pairs):
        if metric == "logit_difference" and not len(encoded.right) == len(encoded.wrong) == 1:
            raise InputError(
                "a logit difference needs answers of one token, got "
                f"{encoded.example.right!r} ({len(encoded.right)} tokens) and {encoded.example.wrong!r} "
                f"({len(encoded.wrong)} tokens); measure the sentence log-probability, or leave the item out"
            )
        ends = zip(encoded.continuations(metric), (+1, -1), strict=False)
        rows += [Row(encoded, number, unit.fold, end, sign) for end, sign in ends]
    return rows


def batches(model: Any, rows: Sequence[Row], *, size: int = BATCH_SIZE) -> list[Batch]:
    """Group `rows` by length, in batches of at most `size`.

    Raises:
        InputError: A row is longer than the model's context, or its tokens are not the model's.
    """
    by_length: dict[int, list[Row]] = {}
    for row in rows:
        by_length.setdefault(len(row.tokens), []).append(row)
    _require_known(rows, model.cfg.d_vocab)
    device = next(model.parameters()).device
    found = []
    for length in sorted(by_length):
        same = by_length[length]
        if length > model.cfg.n_ctx:
            raise InputError(
                f"the example {same[0].encoded.example.text!r} has {length} tokens, but the model's context "
                f"is {model.cfg.n_ctx}; leave long examples out, or take a model with a longer context"
            )
        for start in range(0, len(same), size):
            chunk = tuple(same[start : start + size])
            found.append(Batch(chunk, torch.tensor([row.tokens for row in chunk], device=device)))
    return found


def _require_known(rows: Iterable[Row], d_vocab: int) -> None:
    """Refuse ids, of prompts and of answers, that the model has no embedding or no logit for."""
    for row in rows:
        ids = (*row.encoded.prompt, *row.encoded.right, *row.encoded.wrong)
        if not 0 <= min(ids) <= max(ids) < d_vocab:
            bad = next(each for each in ids if not 0 <= each < d_vocab)
            raise InputError(
                f"the example {row.encoded.example.text!r} has token id {bad}, but the model's vocabulary has "
                f"{d_vocab} entries; load the task with tokenizer=model.tokenizer"
            )
