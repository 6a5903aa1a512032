"""Which heads look at the previous token, at the same token, at what came after it last time, or at the first token?

The functions that can be told from positions and token ids alone:

- **previous token**: attention from each token to the one before it;
- **duplicate token**: to earlier occurrences of the same token;
- **induction**: to the tokens after earlier occurrences of the same token;
- **first-token sink**: to the first token of the row, where heads rest that have nothing to say.

1. Each function is a set of key positions for every query. A head's score is its mean attention to the set, over the
   queries whose set is not empty; **chance** is what even attention would give.
2. On text, or on rows of random tokens said twice (``s s``, between the special tokens around a text), where nothing
   but the repetition can be known.
3. Rows are the clusters of the intervals.

Elhage et al. (2021), "A Mathematical Framework for Transformer Circuits"; Olsson et al. (2022), "In-context Learning
and Induction Heads".
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from interp.arguments import named_arguments
from interp.claims.bootstrap import cluster_bootstrap
from interp.claims.units import ClusterTable
from interp.errors import InputError
from interp.methods.relations.words import run_patterns
from interp.model.devices import documented, place_of
from interp.model.positions import looks_back_only
from interp.residual.collecting import TOKENS_AT_ONCE
from interp.shapes import Pattern, Tokens
from interp.special_tokens import special_around

FUNCTIONS = ("previous token", "duplicate token", "induction", "first-token sink")
ROWS, HALF = 40, 25
"""Rows of random tokens, and tokens of each half."""


@documented
def function_heads(
    model: Any, rows: Sequence[Sequence[int]] | Tokens | None = None, *, n_rows: int = ROWS, seed: int = 0
) -> pd.DataFrame:
    """Score every head on every function.

    Args:
        model: Follows TransformerLens' protocol.
        rows: Token ids with their first special token; None for random tokens said twice.
        n_rows: How many rows of random tokens.
        seed: Of the random tokens and the resampling.

    Returns:
        One row per function, layer and head: ``function``, ``layer``, ``head``, ``score`` with its interval ``low``,
        ``high`` (95 %, rows resampled), ``chance``, ``n_rows`` that have such queries. NaN where there are none.

    Raises:
        InputError: A row that the model cannot carry, or attention that is no number.
    """
    given = repeated(model, n_rows, seed) if rows is None else [tuple(row) for row in rows]
    _check(model, given)
    layers, heads = model.cfg.n_layers, model.cfg.n_heads
    sums = np.zeros((len(FUNCTIONS), len(given), layers * heads))
    counts, chances = np.zeros((len(FUNCTIONS), len(given))), np.zeros((len(FUNCTIONS), len(given)))
    for numbers in _of_equal_length(given):
        tokens = torch.tensor([given[number] for number in numbers], device=place_of(model)[0])
        masks = function_masks(tokens)
        visible = _visible(tokens, causal=looks_back_only(model)).sum(-1)
        counts[:, numbers] = masks.any(-1).sum(-1).cpu().numpy()
        chances[:, numbers] = (masks.sum(-1) / visible).sum(-1).cpu().numpy()
        run_patterns(model, tokens, _adder(masks, sums, numbers, heads))
    return _tabulate(sums, counts, chances, (layers, heads), seed)


@named_arguments
def repeated(model: Any, n_rows: int, seed: int) -> list[tuple[int, ...]]:
    """Rows of random tokens said twice, between what stands around a text; halves are shorter where the context is.

    Raises:
        InputError: The context has no room for two tokens said twice.
    """
    tokenizer = getattr(model, "tokenizer", None)
    both_sides = not looks_back_only(model)
    before, after = ((0,), ()) if tokenizer is None else special_around(tokenizer, both_sides=both_sides)
    half = min(HALF, (model.cfg.n_ctx - len(before) - len(after)) // 2)
    if half < 2 or n_rows < 1:
        raise InputError(
            f"repeated random tokens: expected a context of 5 tokens at least and one row, got {model.cfg.n_ctx} and "
            f"{n_rows}"
        )
    special = set(getattr(tokenizer, "all_special_ids", ()))
    ordinary = np.array([each for each in range(model.cfg.d_vocab) if each not in special])
    generator = np.random.default_rng(seed)
    drawn = [generator.choice(ordinary, size=half, replace=len(ordinary) < half).tolist() for _ in range(n_rows)]
    return [(*before, *row, *row, *after) for row in drawn]


def function_masks(tokens: Tokens) -> Bool[Tensor, "function batch query_pos key_pos"]:
    """Where each function looks, in the order of ``FUNCTIONS``."""
    batch, length = tokens.shape
    query, key = torch.arange(length)[:, None], torch.arange(length)[None]
    earlier = (key < query).to(tokens.device)
    same = (tokens[:, :, None] == tokens[:, None, :]) & earlier
    after = torch.zeros_like(same)
    after[:, :, 1:] = same[:, :, :-1]
    previous = (key == query - 1).to(tokens.device).expand(batch, -1, -1)
    first = ((key == 0) & (query > 0)).to(tokens.device).expand(batch, -1, -1)
    return torch.stack([previous, same, after & earlier, first])


def _visible(tokens: Tokens, *, causal: bool) -> Bool[Tensor, "query_pos key_pos"]:
    length = tokens.shape[1]
    whole = torch.ones(length, length, dtype=torch.bool, device=tokens.device)
    return whole.tril() if causal else whole


def _adder(
    masks: Bool[Tensor, "function batch query_pos key_pos"], into: np.ndarray, numbers: list[int], heads: int
) -> Callable[[int, Pattern], None]:
    def add(layer: int, pattern: Pattern) -> None:
        for function, mask in enumerate(masks):
            found = (pattern * mask[:, None]).sum((-1, -2)).double().cpu().numpy()
            into[function, numbers, layer * heads : (layer + 1) * heads] = found

    return add


def _tabulate(
    sums: Float[np.ndarray, "function row cell"],
    counts: Float[np.ndarray, "function row"],
    chances: Float[np.ndarray, "function row"],
    shape: tuple[int, int],
    seed: int,
) -> pd.DataFrame:
    cells = pd.MultiIndex.from_product([range(shape[0]), range(shape[1])], names=["layer", "head"])
    parts = []
    for number, function in enumerate(FUNCTIONS):
        repeated_counts = np.repeat(counts[number][:, None], len(cells), axis=1)
        interval = cluster_bootstrap(ClusterTable(sums[number], repeated_counts, cells), seed=seed)
        n = counts[number].sum()
        columns = {
            "function": function,
            "score": interval.estimate,
            "low": interval.low,
            "high": interval.high,
            "chance": chances[number].sum() / n if n else np.nan,
            "n_rows": int((counts[number] > 0).sum()),
        }
        parts.append(pd.DataFrame(columns, index=cells).reset_index())
    order = ["function", "layer", "head", "score", "low", "high", "chance", "n_rows"]
    return pd.concat(parts, ignore_index=True)[order]


def _of_equal_length(rows: Sequence[Sequence[int]]) -> Iterable[list[int]]:
    """The numbers of rows of equal length, in batches."""
    by_length: dict[int, list[int]] = {}
    for number, row in enumerate(rows):
        by_length.setdefault(len(row), []).append(number)
    for length, numbers in sorted(by_length.items()):
        size = max(1, TOKENS_AT_ONCE // length)
        yield from (numbers[start : start + size] for start in range(0, len(numbers), size))


def _check(model: Any, rows: Sequence[Sequence[int]]) -> None:
    longest = max(map(len, rows), default=0)
    bad = [each for row in rows for each in row if not 0 <= each < model.cfg.d_vocab]
    if not rows or min(map(len, rows)) < 2 or longest > model.cfg.n_ctx or bad:
        raise InputError(
            f"function heads: expected rows of 2 to {model.cfg.n_ctx} token ids below {model.cfg.d_vocab}, got "
            f"{len(rows)} rows of up to {longest} tokens{f' with id {bad[0]}' if bad else ''}"
        )
