"""The counts of one order of n-grams as tensors: which words follow a context, and with which probability.

An n-gram is one number, its tokens the digits to base ``d_vocab``; so those with one context lie together in order.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import torch
from jaxtyping import Float, Int
from nltk.lm import NgramCounter
from torch import Tensor, nn

Keys = Int[np.ndarray, " ngram"]
Counts = Int[np.ndarray, " ngram"]
Shorter = Int[np.ndarray, " shorter"]
Distributions = Float[Tensor, "context d_vocab"]
FIELDS = ("contexts", "starts", "words", "alpha", "gamma")
"""The tensors of a table."""
WHOLE, REAL = (torch.int32, torch.int64), (torch.float16, torch.bfloat16, torch.float32, torch.float64)
"""What their numbers can be: those that stand for words or places, and the shares."""


class OrderTable(nn.Module):
    """``p(w | h) = alpha(h w) + gamma(h) p(w | h')`` for all words ``w`` at once; ``gamma`` is 1 for an unseen ``h``.

    Attributes:
        contexts: The contexts as numbers, in order.
        starts: Where the words of each begin in ``words``, and where the last one's end.
        words: The words that follow, context by context.
        alpha: The discounted share of each.
        gamma: What is left to the lower order in each context.
    """

    contexts: Tensor
    starts: Tensor
    words: Tensor

    def __init__(
        self,
        contexts: Int[Tensor, " context"],
        starts: Int[Tensor, " bound"],
        words: Int[Tensor, " ngram"],
        alpha: Float[Tensor, " ngram"],
        gamma: Float[Tensor, " context"],
    ):
        super().__init__()
        for name, tensor in (("contexts", contexts), ("starts", starts), ("words", words)):
            self.register_buffer(name, tensor)
        self.alpha, self.gamma = (nn.Parameter(each, requires_grad=False) for each in (alpha, gamma))

    @classmethod
    def of(cls, keys: Keys, counts: Counts, *, d_vocab: int, discount: float) -> "OrderTable":
        """The table of n-grams in order, each with its count."""
        contexts, starts = np.unique(keys // d_vocab, return_index=True)
        starts = np.append(starts, len(keys))
        n_words, totals = np.diff(starts), np.add.reduceat(counts, starts[:-1])
        return cls(
            torch.from_numpy(contexts),
            torch.from_numpy(starts),
            torch.from_numpy((keys % d_vocab).astype(np.int32)),
            torch.from_numpy((counts - discount) / np.repeat(totals, n_words)),
            torch.from_numpy(discount * n_words / totals),
        )

    def forward(self, lower: Distributions, contexts: Int[Tensor, " context"]) -> Distributions:
        """The distributions in `contexts`, from those of the lower order."""
        place = torch.searchsorted(self.contexts, contexts).clamp(max=len(self.contexts) - 1)
        known = self.contexts[place] == contexts
        out = lower * torch.where(known, self.gamma[place], 1.0)[:, None]
        n = torch.where(known, self.starts[place + 1] - self.starts[place], 0)
        rows = torch.repeat_interleave(n)
        entries = torch.arange(len(rows), device=n.device) + (self.starts[place] - n.cumsum(0) + n)[rows]
        out[rows, self.words[entries].long()] += self.alpha[entries]  # each word once a row, so nothing is overwritten
        return out


def is_table(tensors: Mapping[str, Tensor], d_vocab: int) -> bool:
    """Whether tensors from elsewhere make a table: shapes that fit each other, numbers in order, shares from 0 to 1."""
    contexts, starts, words, alpha, gamma = (tensors[name] for name in FIELDS)
    c, n = contexts.numel(), words.numel()
    shapes = [tuple(tensors[name].shape) for name in FIELDS]
    if not c or shapes != [(c,), (c + 1,), (n,), (n,), (c,)]:
        return False
    if any(each.dtype not in WHOLE for each in (contexts, starts, words)):
        return False
    if alpha.dtype not in REAL or gamma.dtype not in REAL:
        return False
    bounds_fit = int(starts[0]) == 0 and int(starts[-1]) == n
    in_order = bool((contexts.diff() > 0).all()) and bool((starts.diff() > 0).all())
    words_fit = bool(((words >= 0) & (words < d_vocab)).all())
    shares = torch.cat([alpha, gamma])
    return bounds_fit and in_order and words_fit and bool(((shares >= 0) & (shares <= 1)).all())


def occurrences(counter: NgramCounter, order: int, d_vocab: int) -> tuple[Keys, Counts]:
    """The n-grams of an order as numbers, in order, and how often each occurs."""
    weights = d_vocab ** np.arange(order - 1, -1, -1)
    pairs = np.fromiter(_flat(counter, order), dtype=(np.int64, order + 1))
    keys = pairs[:, :-1] @ weights
    in_order = np.argsort(keys)
    return keys[in_order], pairs[in_order, -1]


def _flat(counter: NgramCounter, order: int) -> Iterator[tuple[int, ...]]:
    for context, words in counter[order].items():
        for word, count in words.items():
            yield (*context, word, count)


def continuations(keys: Keys, order: int, d_vocab: int) -> tuple[Shorter, Shorter]:
    """The n-grams of one order less, in order, and how many different words stand in front of each."""
    return np.unique(keys % d_vocab ** (order - 1), return_counts=True)
