"""Attention from each example's query, of every head; or the whole patterns of few heads."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from interp.errors import InputError
from interp.interventions.rows import Batch, Row, batches
from interp.methods.attention_baselines import query_of
from interp.model.sites import Site
from interp.residual.activations import without_logits
from interp.tasks.task import EncodedExample

NO_NUMBERS = (
    "the attention pattern holds NaN: scores overflow in the model's dtype (use float32), or a weight is no number"
)


def query_attention(model: Any, examples: Sequence[EncodedExample]) -> Float[np.ndarray, "example cell key_pos"]:
    """Attention from each example's query, by head and key position; 0 beyond the query.

    Of a batch's patterns only the query's row is kept, so memory stays small. Heads are in the order (layer 0, head 0),
    (layer 0, head 1), ...
    """
    n_layers, n_heads = model.cfg.n_layers, model.cfg.n_heads
    n_keys = 1 + max(query_of(each) for each in examples)
    weights = np.zeros((len(examples), n_layers, n_heads, n_keys))
    _listen(model, examples, range(n_layers), lambda batch, layer: _reader(batch, weights[:, layer]))
    _check_finite(weights)
    return weights.reshape(len(examples), n_layers * n_heads, n_keys)


def patterns(
    model: Any, examples: Sequence[EncodedExample], heads: Sequence[tuple[int, int]]
) -> list[list[Float[np.ndarray, "query_pos key_pos"]]]:
    """For each head its whole attention pattern on each example, as long as what is run."""
    kept: list[list[np.ndarray]] = [[np.empty((0, 0))] * len(examples) for _ in heads]
    _listen(model, examples, dict(heads), lambda batch, layer: _keeper(batch, layer, heads, kept))
    for of_head in kept:
        for pattern in of_head:
            _check_finite(pattern)
    return kept


def _listen(
    model: Any,
    examples: Sequence[EncodedExample],
    layers: Iterable[int],
    listener: Callable[[Batch, int], Callable[..., None]],
) -> None:
    """Run the examples, with a listener at the pattern of each of the layers."""
    for batch in batches(model, [_row(number, encoded) for number, encoded in enumerate(examples)]):
        hooks = [(Site("pattern", layer).hook_name, listener(batch, layer)) for layer in layers]
        with torch.inference_mode():
            model.run_with_hooks(batch.tokens, fwd_hooks=hooks, **without_logits(model))


def _check_finite(weights: np.ndarray) -> None:
    if not np.isfinite(weights).all():
        raise InputError(NO_NUMBERS)


def _row(number: int, encoded: EncodedExample) -> Row:
    """The prompt, with the right continuation where the query stands in it."""
    later = query_of(encoded) >= len(encoded.prompt)
    return Row(encoded, number, fold=0, continuation=encoded.right if later else ())


def _reader(batch: Batch, into: np.ndarray) -> Callable[..., None]:
    def read(pattern: Tensor, *, hook: Any) -> None:
        queries = torch.tensor([query_of(row.encoded) for row in batch.rows], device=pattern.device)
        chosen = pattern[torch.arange(len(queries), device=pattern.device), :, queries]
        width = min(chosen.shape[-1], into.shape[-1])
        into[batch.examples, :, :width] = chosen[..., :width].float().cpu().numpy()

    return read


def _keeper(
    batch: Batch, layer: int, heads: Sequence[tuple[int, int]], kept: list[list[np.ndarray]]
) -> Callable[..., None]:
    def keep(pattern: Tensor, *, hook: Any) -> None:
        for place, (_, head) in ((n, each) for n, each in enumerate(heads) if each[0] == layer):
            for example, of_row in zip(batch.examples, pattern[:, head].float().cpu().numpy(), strict=True):
                kept[place][example] = of_row

    return keep
