"""Which of its tokens stand for a word? The first, the last, or all: their mean.

PyTorch's sum over a bag adds one number after the other, also on a GPU, where ``index_add_`` adds in any order: the
same words have the same bits.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from interp.errors import InputError
from interp.residual.passages import Passage

Pooling = Literal["first", "last", "mean"]
_TOKENS = {"first": slice(0, 1), "last": slice(-1, None), "mean": slice(None)}


class Pooler:
    """Pools activations over the tokens of each word of a batch.

    Args:
        passages: Rows of equal length.
        pooling: How.
        device: Of the activations.

    Raises:
        InputError: No such pooling.
    """

    def __init__(self, passages: Sequence[Passage], pooling: Pooling, device: torch.device):
        if pooling not in _TOKENS:
            raise InputError(f"pooling: expected first, last or mean, got {pooling!r}")
        self._n_rows, length = len(passages), len(passages[0].ids)
        tokens = [
            [row * length + token for token in word.tokens[_TOKENS[pooling]]]
            for row, passage in enumerate(passages)
            for word in passage.words
        ]
        self._tokens = torch.tensor([token for own in tokens for token in own], device=device)
        self._starts = torch.tensor([0, *accumulate(map(len, tokens[:-1]))], device=device)

    def pool(self, activation: Float[Tensor, "#batch pos ..."]) -> Float[Tensor, "word ..."]:
        """The activations of all words, one passage's after the other's; a mean of 16-bit floats is computed in 32."""
        flat = activation.expand(self._n_rows, *activation.shape[1:]).flatten(0, 1)
        if len(self._tokens) == len(self._starts):
            return flat.index_select(0, self._tokens)
        rows = flat.flatten(1).to(torch.promote_types(flat.dtype, torch.float32))
        means = functional.embedding_bag(self._tokens, rows, self._starts, mode="mean")
        return means.to(flat.dtype).unflatten(1, flat.shape[1:])
