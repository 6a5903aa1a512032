"""Where does every head look from the query? One row of the attention pattern per example."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from interp.errors import InputError
from interp.interventions.rows import Batch, Row, batches
from interp.methods.baselines import query_of
from interp.model.sites import Site
from interp.residual.activations import without_logits
from interp.tasks.task import EncodedExample


def query_attention(model: Any, examples: Sequence[EncodedExample]) -> Float[np.ndarray, "example cell key_pos"]:
    """Attention from each example's query, by head and key position; 0 beyond the query.

    Of a batch's patterns only the query's row is kept, so memory stays small.

    Args:
        model: Follows TransformerLens' protocol.
        examples: With a query each.

    Returns:
        Heads are in the order (layer 0, head 0), (layer 0, head 1), ...

    Raises:
        InputError: An example that the model cannot carry, or attention that is no number.
    """
    rows = [_row(number, encoded) for number, encoded in enumerate(examples)]
    n_layers, n_heads = model.cfg.n_layers, model.cfg.n_heads
    n_keys = 1 + max(query_of(each) for each in examples)
    weights = np.zeros((len(rows), n_layers, n_heads, n_keys))
    for batch in batches(model, rows):
        hooks = [(Site("pattern", layer).hook_name, _reader(batch, weights[:, layer])) for layer in range(n_layers)]
        with torch.inference_mode():
            model.run_with_hooks(batch.tokens, fwd_hooks=hooks, **without_logits(model))
    if not np.isfinite(weights).all():
        raise InputError("the attention pattern holds NaN: scores overflow in the model's dtype; use float32")
    return weights.reshape(len(rows), n_layers * n_heads, n_keys)


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
