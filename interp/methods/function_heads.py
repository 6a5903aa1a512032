"""Which heads look at the previous token, at the same token, at what came after it last time, or at the first token?

1. Each function is a set of key positions for every query: the **previous token**; earlier occurrences of the same
   token (**duplicate token**); the tokens after these (**induction**); the first token of the row, where heads rest
   that have nothing to say (**first-token sink**).
2. A head's score is its mean attention to the set, over the queries whose set is not empty; **chance** is what even
   attention would give. Rows are the clusters of the intervals.
3. On text, or on rows of random tokens said twice, where nothing but the repetition can be known.

Elhage et al. (2021), "A Mathematical Framework for Transformer Circuits"; Olsson et al. (2022), "In-context Learning
and Induction Heads".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from interp.arguments import named_arguments
from interp.claims.bootstrap import cluster_bootstrap
from interp.claims.units import ClusterTable
from interp.errors import InputError
from interp.methods.attention_maps import run_patterns
from interp.model.devices import documented, place_of, sent
from interp.model.positions import looks_back_only
from interp.model.provenance import model_provenance
from interp.residual.collecting import batched
from interp.result import Result
from interp.shapes import Pattern, Tokens
from interp.special_tokens import special_around

FUNCTIONS = ("previous token", "duplicate token", "induction", "first-token sink")
ROWS, HALF = 40, 25
"""Rows of random tokens, and tokens of each half."""


@dataclass(frozen=True, eq=False, repr=False)
class FunctionHeads(Result):
    """How much of their attention heads give to what each function looks at.

    Attributes:
        examples: One row per function, layer, head and ``row`` of tokens: ``n_queries`` whose set of keys is not empty,
            their mean ``attention`` to it, and ``chance``. Rows without such queries are left out.
        provenance: How the numbers were made.
        cells: What ``summary()`` gives.
    """

    cells: pd.DataFrame

    shown_by: ClassVar[str] = "attention"

    def summary(self) -> pd.DataFrame:
        """One row per function, layer and head.

        Columns: ``function``, ``layer``, ``head``, ``score`` with its interval ``low``, ``high`` (95 %, rows
        resampled), ``chance``, ``n_rows`` that have such queries. NaN where there are none.
        """
        return self.cells


@documented
def function_heads(
    model: Any, rows: Sequence[Sequence[int]] | Tokens | None = None, *, n_rows: int = ROWS, seed: int = 0
) -> FunctionHeads:
    """Score every head on every function.

    Args:
        model: Follows TransformerLens' protocol.
        rows: Token ids with their first special token; None for random tokens said twice.
        n_rows: How many rows of random tokens.
        seed: Of the random tokens and the resampling.

    Returns:
        One row per function, layer and head in ``summary()``.

    Raises:
        InputError: A row that the model cannot carry, or attention that is not a number.

    Examples:
        >>> import interp
        >>> from interp.methods.function_heads import function_heads
        >>> scores = function_heads(interp.load_model(), n_rows=4).summary()
        >>> sorted(scores["function"].unique())
        ['duplicate token', 'first-token sink', 'induction', 'previous token']
    """
    given = repeated(model, n_rows, seed) if rows is None else [tuple(row) for row in rows]
    _check(model, given)
    shape = (model.cfg.n_layers, model.cfg.n_heads)
    sums = np.zeros((len(given), len(FUNCTIONS), *shape))
    counts, chances = np.zeros((len(given), len(FUNCTIONS))), np.zeros((len(given), len(FUNCTIONS)))
    for numbers in batched(range(len(given)), given.__getitem__):
        tokens = sent(np.array([given[number] for number in numbers]), place_of(model)[0])
        masks = function_masks(tokens)
        length = tokens.shape[1]
        visible = torch.arange(1, length + 1, device=tokens.device) if looks_back_only(model) else length
        of_rows = masks.any(-1).sum(-1), (masks.sum(-1) / visible).sum(-1)
        own = torch.zeros(len(numbers), len(FUNCTIONS), *shape, dtype=torch.float64, device=tokens.device)
        run_patterns(model, tokens, partial(_add, masks, own))
        sums[numbers] = own.cpu().numpy()
        counts[numbers], chances[numbers] = torch.stack(of_rows).mT.cpu().numpy()
    text = "random tokens said twice" if rows is None else "given"
    how = {**model_provenance(model), "rows": text, "n_rows": len(given), "seed": seed, "shape": shape}
    return _tabulate(sums, counts, chances, how)


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
    place = torch.arange(length, device=tokens.device)
    query, key = place[:, None], place[None]
    same = (tokens[:, :, None] == tokens[:, None, :]) & (key < query)
    after = torch.zeros_like(same)
    after[:, :, 1:] = same[:, :, :-1]
    previous, first = (each.expand(batch, -1, -1) for each in (key == query - 1, (key == 0) & (query > 0)))
    return torch.stack([previous, same, after & (key < query), first])


def _add(
    masks: Bool[Tensor, "function batch query_pos key_pos"],
    into: Float[Tensor, "batch function layer head"],
    layer: int,
    pattern: Pattern,
) -> None:
    for function, mask in enumerate(masks):
        into[:, function, layer] = (pattern * mask[:, None]).sum((-1, -2))


def _tabulate(
    sums: Float[np.ndarray, "row function layer head"],
    counts: Float[np.ndarray, "row function"],
    chances: Float[np.ndarray, "row function"],
    how: Mapping[str, Any],
) -> FunctionHeads:
    """A cell is a function and head."""
    cells = pd.MultiIndex.from_product([FUNCTIONS, *map(range, how["shape"])], names=["function", "layer", "head"])
    attention = sums.reshape(len(sums), len(cells))
    n_queries, chance = (np.repeat(each, sums[0, 0].size, axis=1) for each in (counts, chances))
    interval = cluster_bootstrap(ClusterTable(attention, n_queries, cells), seed=how["seed"])
    n = n_queries.sum(axis=0)
    columns = {
        "score": interval.estimate,
        "low": interval.low,
        "high": interval.high,
        "chance": np.divide(chance.sum(axis=0), n, out=np.full(len(cells), np.nan), where=n > 0),
        "n_rows": (n_queries > 0).sum(axis=0),
    }
    cell, row = np.nonzero(n_queries.T)
    there = n_queries[row, cell]
    examples = (
        cells[cell]
        .to_frame(index=False)
        .assign(
            row=row,
            n_queries=there.astype(int),
            attention=attention[row, cell] / there,
            chance=chance[row, cell] / there,
        )
    )
    return FunctionHeads(examples, how, pd.DataFrame(columns, index=cells).reset_index())


def _check(model: Any, rows: Sequence[Sequence[int]]) -> None:
    longest = max(map(len, rows), default=0)
    bad = [each for row in rows for each in row if not 0 <= each < model.cfg.d_vocab]
    if not rows or min(map(len, rows)) < 2 or longest > model.cfg.n_ctx or bad:
        raise InputError(
            f"function heads: expected rows of 2 to {model.cfg.n_ctx} token ids below {model.cfg.d_vocab}, got "
            f"{len(rows)} rows of up to {longest} tokens{f' with id {bad[0]}' if bad else ''}"
        )
