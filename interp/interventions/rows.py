"""Rows that a model runs for a task: prompts or sentences, in batches of equal length.

Rows of one batch are equally long, so no padding is needed and any model that follows TransformerLens' protocol can run
them, whether or not it takes an attention mask.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from interp.errors import InputError
from interp.model.devices import place_of, sent
from interp.options import Direction
from interp.residual.collecting import read
from interp.shapes import Tokens
from interp.tasks.alignment import corresponding
from interp.tasks.task import EncodedExample, Task, Unit

BATCH_SIZE = 256
OF_SINGLE_TOKENS = ("logit_difference", "probability_difference", "best_logit_difference", "probability")
"""The metrics that compare the logits of single tokens."""
Source = Literal[Direction, "word"]
"""Where activations are patched in from: the unit's other example, or the one in which the related word is another."""


@dataclass(frozen=True)
class Row:
    """One row of a forward pass."""

    encoded: EncodedExample  # the example that the row belongs to: its answers are scored
    example: int  # its number, counted over the examples of the units
    fold: int  # the reference set that serves it
    continuation: tuple[int, ...] = ()  # what follows the prompt; empty where the prompt's last logits decide
    sign: int = 1  # +1 or, for the wrong continuation, -1: how its score enters the example's metric
    # the example whose prompt is run in place of the row's own; None for its own
    corrupted: EncodedExample | None = None
    source: EncodedExample | None = None  # the example whose activations are patched in; None where nothing is patched

    @cached_property
    def run(self) -> EncodedExample:
        """The example whose prompt is run."""
        return self.corrupted or self.encoded

    @cached_property
    def tokens(self) -> tuple[int, ...]:
        """Token ids that are run, special tokens included."""
        return self.run.prompt + self.continuation + self.run.after

    @cached_property
    def source_tokens(self) -> tuple[int, ...]:
        """Token ids that activations are patched in from; the row's own where nothing is patched."""
        source = self.source or self.run
        return source.prompt + self.continuation + source.after

    @cached_property
    def first_difference(self) -> int:
        """The first position where the run and its source differ, or mean something else; the row's length if none."""
        for position, (token, other) in enumerate(zip(self.tokens, self.source_positions, strict=True)):
            if other != position or self.source_tokens[position] != token:
                return position
        return len(self.tokens)

    @cached_property
    def source_positions(self) -> tuple[int, ...]:
        """For every position that is run, the one of the source that means the same; -1 where none does."""
        source = self.source or self.run
        ends = range(len(source.prompt), len(self.source_tokens))
        return (*corresponding(self.run, source), *ends)

    @property
    def template(self) -> str:
        """The template of what is run."""
        return self.run.example.template

    @property
    def layout(self) -> str:
        """The layout of what is run."""
        return self.run.example.layout


@dataclass(frozen=True)
class Batch:
    """Rows of equal length, which end alike, and their tokens on the model's device."""

    rows: tuple[Row, ...]
    tokens: Tokens

    @property
    def examples(self) -> list[int]:
        """The example that each row belongs to."""
        return [row.example for row in self.rows]

    @property
    def length(self) -> int:
        """Tokens of each row."""
        return self.tokens.shape[1]

    @property
    def deciding(self) -> int:
        """The position whose logits decide, the last but for special tokens behind."""
        return self.length - 1 - len(self.rows[0].run.after)

    @property
    def source_tokens(self) -> Tokens:
        """What activations are patched in from."""
        return sent(np.array([row.source_tokens for row in self.rows]), self.tokens.device)

    def take(self, index: Sequence[int]) -> "Batch":
        """Some of the rows; where it is all of them, the same batch, for which replacements keep their values."""
        if list(index) == list(range(len(self.rows))):
            return self
        return Batch(
            tuple(self.rows[each] for each in index), self.tokens[sent(np.array(index, dtype=int), self.tokens.device)]
        )

    def marked(self, at: Callable[[Row], Iterable[int]]) -> Bool[Tensor, "batch pos"]:
        """True at some positions of each row."""
        mask = np.zeros(self.tokens.shape, dtype=bool)
        for number, row in enumerate(self.rows):
            mask[number, list(at(row))] = True
        return sent(mask, self.tokens.device)

    def split(self, size: int) -> list["Batch"]:
        """Parts of at most `size` rows."""
        n = len(self.rows)
        return [self.take(range(start, min(start + size, n))) for start in range(0, n, size)]


def task_rows(metric: str, units: Iterable[Unit], direction: Source | None = None) -> list[Row]:
    """The rows that `metric` is measured on.

    One per example (its prompt), or one for each right and each wrong sentence for a sentence's log-probability.

    For patching, ``denoise`` runs the other example of the unit and patches from this one, ``noise`` runs this one and
    patches from the other, ``word`` from its word counterfactual; this one's answers are scored.
    """
    rows: list[Row] = []
    pairs = ((unit, encoded) for unit in units for encoded in unit.examples)
    for number, (unit, encoded) in enumerate(pairs):
        if metric in OF_SINGLE_TOKENS:
            _require_single_tokens(metric, encoded)
        pair = {} if direction is None else _run_and_source(unit, encoded, direction)
        rows += [Row(encoded, number, unit.fold, end, sign, **pair) for end, sign in encoded.continuations(metric)]
    return rows


def _require_single_tokens(metric: str, encoded: EncodedExample) -> None:
    if not encoded.single_tokens:
        texts, ids = (*encoded.example.rights, *encoded.example.wrongs), (*encoded.rights, *encoded.wrongs)
        got = [f"{text!r} ({len(each)} tokens)" for text, each in zip(texts, ids, strict=True)]
        raise InputError(
            f"a {metric.replace('_', ' ')} needs answers of one token, got {' and '.join(got[:4])}",
            "give metric='sentence_log_probability'",
            "leave the item out",
        )


def _run_and_source(unit: Unit, encoded: EncodedExample, direction: Source) -> dict[str, EncodedExample | None]:
    """Which example of the unit is run, and which is patched in from, where `encoded` is the clean one."""
    if direction == "word":
        return {"corrupted": None, "source": _with_another_word(encoded)}
    if unit.counterfactual is None:
        raise InputError(
            f"patching needs a clean and a corrupted prompt, but {encoded.example.text!r} has no counterfactual; "
            "leave the item out, or ablate instead"
        )
    other = unit.counterfactual if encoded is unit.item else unit.item
    if len(other.prompt) != len(encoded.prompt) and not (encoded.related and other.related):
        raise InputError(
            f"patching needs to know which positions mean the same, but {encoded.example.prompt!r} has "
            f"{len(encoded.prompt)} tokens, {other.example.prompt!r} {len(other.prompt)}, and no relation is tagged in "
            "both to align them by; tag one, or leave the item out"
        )
    return {"corrupted": other, "source": encoded} if direction == "denoise" else {"corrupted": None, "source": other}


def _with_another_word(encoded: EncodedExample) -> EncodedExample:
    other = encoded.word_counterfactual
    if other is None or not encoded.is_alike_but_for_the_word(other):
        raise InputError(
            f"exchanging a word: expected {encoded.example.text!r} with a word counterfactual that has as many tokens, "
            f"and others at the related word alone, got {other and other.example.text!r}; give one, or leave it out"
        )
    return other


def batches(model: Any, rows: Sequence[Row], *, size: int = BATCH_SIZE) -> list[Batch]:
    """Group `rows` by length, in batches of at most `size`."""
    by_length: dict[tuple[int, int, int], list[Row]] = {}
    for row in rows:
        by_length.setdefault((len(row.tokens), len(row.source_tokens), len(row.run.after)), []).append(row)
    _require_known(rows, model.cfg.d_vocab)
    device, _ = place_of(model)
    found = []
    for lengths in sorted(by_length):
        same, length = by_length[lengths], max(lengths)
        if length > model.cfg.n_ctx:
            raise InputError(
                f"the example {same[0].encoded.example.text!r} has {length} tokens, but the model's context "
                f"is {model.cfg.n_ctx}; leave long examples out, or take a model with a longer context"
            )
        for start in range(0, len(same), size):
            chunk = tuple(same[start : start + size])
            found.append(Batch(chunk, sent(np.array([row.tokens for row in chunk]), device)))
    return found


def _require_known(rows: Iterable[Row], d_vocab: int) -> None:
    """Refuse ids, of prompts and of answers, that the model has no embedding or no logit for."""
    for row in rows:
        answers = chain(*row.encoded.rights, *row.encoded.wrongs)
        ids = (*row.tokens, *row.source_tokens, *answers)
        if not 0 <= min(ids) <= max(ids) < d_vocab:
            bad = next(each for each in ids if not 0 <= each < d_vocab)
            raise InputError(
                f"the example {row.encoded.example.text!r} has token id {bad}, but the model's vocabulary has "
                f"{d_vocab} entries; load the task with tokenizer=model.tokenizer"
            )


def example_labels(task: Task) -> dict[str, np.ndarray]:
    """Every example's ``unit``, number, ``cluster``, ``template``, and ``layout`` (its unit's, as a number)."""
    owners = [(number, unit) for number, unit in enumerate(task.units) for _ in unit.examples]
    numbers: dict[tuple[str, ...], int] = {}
    layouts = [tuple(sorted({each.example.layout for each in unit.examples})) for _, unit in owners]
    return {
        "unit": np.array([number for number, _ in owners]),
        "example": np.arange(len(owners)),
        "cluster": np.array([unit.cluster for _, unit in owners], dtype=object),
        "template": np.array([each.example.template for each in task.examples], dtype=object),
        "layout": np.array([numbers.setdefault(each, len(numbers)) for each in layouts]),
    }


def read_source(model: Any, batch: Batch, hook_names: Iterable[str]) -> Mapping[str, Tensor]:
    """The activations of the batch's sources, at the positions of its runs; NaN where none corresponds."""
    found = read(model, batch.source_tokens, hook_names)
    if all(row.source_positions == tuple(range(batch.length)) for row in batch.rows):
        return found
    if any(name.endswith("hook_pattern") for name in found):
        raise InputError(
            "pattern: the clean and the corrupted prompt have different lengths, so a row of one pattern is none of "
            "the other's; patch q, k or v, or leave such items out"
        )
    positions = sent(np.array([row.source_positions for row in batch.rows]), batch.tokens.device)
    rows = torch.arange(len(positions), device=positions.device)[:, None]
    aligned = {name: each[rows, positions.clamp(min=0)] for name, each in found.items()}
    for each in aligned.values():
        each.masked_fill_((positions < 0).view(*positions.shape, *[1] * (each.ndim - 2)), torch.nan)
    return aligned
