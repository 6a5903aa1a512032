"""How much does each head attend from word to word? Patterns of tokens, summed and averaged to words, batch by batch.

1. Attention *to* a word of several tokens is the sum over its tokens; attention *from* it the mean over them.
2. Rows of a batch have as many tokens (``residual/batching.py``). Each layer's pattern is turned into words as it is
   computed; none is kept.

Clark et al. (2019), "What does BERT look at?", section 4.1.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from interp.errors import InputError
from interp.methods.query_attention import NO_NUMBERS
from interp.model.devices import place_of
from interp.model.sites import Site
from interp.model.transformer import HookedTransformer
from interp.shapes import Pattern, Tokens
from interp.tasks.alignment import require_fast
from interp.tasks.windows import Window
from interp.tasks.word_tokens import NONE

WordAttention = Float[Tensor, "batch head query_word key_word"]


def with_offsets(model: Any, what: str) -> PreTrainedTokenizerBase:
    """The model's tokenizer, which must say which characters its tokens came from.

    Args:
        model: Follows TransformerLens' protocol.
        what: Who asks, for the message.

    Raises:
        InputError: The model has none.
        TaskError: It gives no offsets.
    """
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
    """Run a batch, and hand over each layer's attention between words.

    Args:
        model: Follows TransformerLens' protocol.
        rows: With as many tokens each.
        take: Called with the layer and the attention ``[batch head query_word key_word]``, in 32 bits or more. Its
            query words are each row's ``queries``, 0 beyond their number; its key words are the row's units.
        special: Whether the tokens of no word follow as key words of their own, in their order.

    Raises:
        InputError: The attention is no number.
    """
    device, _ = place_of(model)
    tokens = torch.tensor([row.ids for row in rows], device=device)
    averages, sums = _matrices(rows, special)
    averages, sums = averages.to(device), sums.to(device)

    def to_words(layer: int, weights: Pattern) -> None:
        chosen = averages.to(weights.dtype)[:, None] @ weights
        take(layer, chosen @ sums.to(weights.dtype)[:, None])

    run_patterns(model, tokens, to_words)


def run_patterns(model: Any, tokens: Tokens, take: Callable[[int, Pattern], None]) -> None:
    """Run rows of tokens, and hand over each layer's attention pattern, in 32 bits or more.

    Raises:
        InputError: The attention is no number.
    """

    def reader(layer: int) -> Callable[..., None]:
        def read(pattern: Pattern, *, hook: Any) -> None:
            # A sum is no number if a summand is none, and costs less than looking at each.
            if not bool(torch.isfinite(pattern.sum(dtype=torch.float32))):
                raise InputError(NO_NUMBERS)
            take(layer, pattern.to(torch.promote_types(pattern.dtype, torch.float32)))

        return read

    hooks = [(Site("pattern", layer).hook_name, reader(layer)) for layer in range(model.cfg.n_layers)]
    # Nobody reads the logits, and they can cost as much as the blocks.
    stop = {"stop_at_layer": model.cfg.n_layers} if isinstance(model, HookedTransformer) else {}
    with torch.inference_mode():
        model.run_with_hooks(tokens, fwd_hooks=hooks, **stop)


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
