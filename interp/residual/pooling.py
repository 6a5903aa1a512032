"""Which of its tokens stand for a word? The first, the last, or all: their mean.

A mean adds token after token. So no sum has two numbers added to it at once, in an order that a GPU would choose.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

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
        places = [
            [row * length + token for token in word.tokens[_TOKENS[pooling]]]
            for row, passage in enumerate(passages)
            for word in passage.words
        ]
        self._counts = torch.tensor([len(each) for each in places], device=device)
        self._steps: list[tuple[Tensor, Tensor]] = []
        for nth in range(max(map(len, places))):
            words = [number for number, each in enumerate(places) if len(each) > nth]
            chosen = [places[number][nth] for number in words]
            self._steps.append((torch.tensor(words, device=device), torch.tensor(chosen, device=device)))

    def pool(self, activation: Float[Tensor, "#batch pos ..."]) -> Float[Tensor, "word ..."]:
        """The activations of all words, one passage's after the other's; a mean of 16-bit floats is computed in 32."""
        flat = activation.expand(self._n_rows, *activation.shape[1:]).flatten(0, 1)
        (_, places), *further = self._steps
        pooled = flat.index_select(0, places)
        if not further:
            return pooled
        pooled = pooled.to(torch.promote_types(pooled.dtype, torch.float32))
        for words, places in further:
            pooled.index_add_(0, words, flat.index_select(0, places).to(pooled.dtype))
        pooled /= self._counts.view(-1, *[1] * (pooled.ndim - 1))
        return pooled.to(activation.dtype)
