"""What do the last few words say about the next? Interpolated Kneser-Ney (Kneser & Ney 1995; Chen & Goodman 1999).

1. ``nltk.lm`` counts every n-gram of the rows up to the order. In front of each document stands BOS, as often as the
   highest order needs.
2. With ``d`` the discount, ``c`` the count, ``n`` the number of different words after a context, and ``h'`` the context
   without its first word, ``p(w | h) = (c(h w) - d) / c(h) + d n(h) / c(h) p(w | h')``. There ``c(h)`` is the sum of
   ``c(h w)`` over ``w``, and the first term is 0 for a word that never followed. At the highest order ``c`` counts
   occurrences; below it, how many different words stand in front. An unseen context has the distribution of its shorter
   one.
3. Below the unigrams lies the uniform distribution, reached by the same recursion. Only here this differs from nltk,
   which does not discount the unigrams, so that a word it never saw has probability 0.

nltk scores one word at a time and passes over all its counts for that. Here its counts become tables once, from which
the distributions over the whole vocabulary are made for all positions together: an n-gram is one number, its tokens the
digits to base ``d_vocab``, so those with one context lie together in order.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from nltk.lm import KneserNeyInterpolated, NgramCounter
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from forerunners.language_model import Forerunner, ForerunnerConfig, require_counts
from interp.errors import ConfigError, InputError, shown
from interp.model.devices import documented
from interp.shapes import Logits, PaddingMask, Tokens

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


@dataclass(frozen=True)
class NGramConfig(ForerunnerConfig):
    """What an n-gram model is made of.

    Attributes:
        order: Words of the longest n-grams, at least 2: the next one, and those that tell it.
        d_vocab: Entries of the vocabulary.
        bos: The token that every row, and every document in it, begins with.
        discount: What is taken from every count, above 0 and at most 1.
        n_layers: Nothing lies between the tokens and the logits.

    Raises:
        ConfigError: A value describes no model, or the n-grams are too many to be numbered.
    """

    order: int
    d_vocab: int
    bos: int = 0
    discount: float = 0.75

    n_layers: ClassVar[int] = 0

    @classmethod
    def check(cls, fields: Mapping[str, Any]) -> None:
        """Refuse values that describe no model.

        Raises:
            ConfigError: It says which.
        """
        require_counts(fields, ("order", "d_vocab"))
        order, d_vocab = fields["order"], fields["d_vocab"]
        bos, discount = fields.get("bos", 0), fields.get("discount", 0.75)
        if order < 2:
            raise ConfigError(f"order: expected at least 2, a word and the one before it, got {order}")
        if not (isinstance(bos, int) and 0 <= bos < d_vocab):
            raise ConfigError(f"bos: expected a token id from 0 to {d_vocab - 1}, got {shown(bos)}")
        if not (isinstance(discount, int | float) and 0 < discount <= 1):
            raise ConfigError(f"discount: expected a number above 0 and at most 1, got {shown(discount)}")
        if (d_vocab > 1 and order > 63) or d_vocab**order >= 2**63:
            raise ConfigError(
                f"order: the n-grams of {shown(order)} words out of {shown(d_vocab)} cannot be numbered in 64 bits; "
                "take a lower order"
            )


class NGram(Forerunner):
    """``p(w | h) = alpha(h w) + gamma(h) p(w | h')``; the logits are log-probabilities in nats, in 64 bits.

    Made by ``fit_ngram``. It takes token ids, not text, and has no points.

    Attributes:
        unigram: The distribution without a context.
        orders: The tables of the orders from 2 on.
    """

    config: NGramConfig

    def __init__(
        self,
        config: NGramConfig,
        unigram: Float[Tensor, " d_vocab"],
        orders: Sequence[OrderTable],
        tokenizer: PreTrainedTokenizerBase | None = None,
        *,
        name: str = "n-gram",
    ):
        super().__init__(config, tokenizer, name)
        self.unigram = nn.Parameter(unigram, requires_grad=False)
        self.orders = nn.ModuleList(orders)
        self.setup()
        self.eval()

    def predict(self, tokens: Tokens, mask: PaddingMask) -> Logits:
        """The logarithm of the next word's distribution at each position."""
        contexts, place = torch.unique(self.contexts(tokens), return_inverse=True)
        p = self.unigram.expand(len(contexts), -1)
        for length, table in enumerate(self.orders, start=1):
            p = table(p, contexts % self.config.d_vocab**length)
        return p.log()[place]

    def contexts(self, tokens: Tokens) -> Int[Tensor, "batch pos"]:
        """What the next word is told from, as a number: the words up to here, with BOS for those before the document.

        What stands before a row counts as before its document, whether or not the row begins with BOS.
        """
        position = torch.arange(tokens.shape[1], device=tokens.device)
        begun = torch.where(tokens == self.config.bos, position, 0).cummax(dim=1).values
        total = torch.zeros_like(tokens)
        for back in range(self.config.order - 1):
            here = tokens.gather(1, (position - back).clamp(min=0).expand_as(tokens))
            here = torch.where(position - back < begun, self.config.bos, here)
            total = total + here * self.config.d_vocab**back
        return total


@documented
def fit_ngram(
    rows: Iterable[Sequence[int]],
    config: NGramConfig,
    tokenizer: PreTrainedTokenizerBase | None = None,
    *,
    name: str = "n-gram",
) -> NGram:
    """Fit an n-gram model to rows of token ids, such as those that the other models are trained on.

    Five million tokens of generated English in order 5 took 75 s and 4 GB while nltk counted.

    Args:
        rows: Each begins with BOS, and may hold several documents, each behind its own.
        config: What to make.
        tokenizer: For reports and tasks.
        name: Where the model came from.

    Raises:
        InputError: There is nothing to count, a row does not begin with BOS, an id is outside the vocabulary, or there
            are more n-grams than nltk counts.
    """
    counter, d_vocab = fitted_by_nltk(rows, config).counts, config.d_vocab
    keys, counts = occurrences(counter, config.order, d_vocab)
    tables: list[OrderTable] = []
    for order in range(config.order, 0, -1):
        tables.insert(0, OrderTable.of(keys, counts, d_vocab=d_vocab, discount=config.discount))
        keys, counts = continuations(keys, order, d_vocab)
    uniform = torch.full((1, d_vocab), 1 / d_vocab, dtype=torch.float64)
    with torch.no_grad():
        unigram = tables[0](uniform, torch.zeros(1, dtype=torch.long))[0]
    return NGram(config, unigram, tables[1:], tokenizer, name=name)


def fitted_by_nltk(rows: Iterable[Sequence[int]], config: NGramConfig) -> KneserNeyInterpolated:
    """The model that nltk itself has, fitted to the rows; its ``unmasked_score(word, context)`` takes token ids.

    Raises:
        InputError: See ``fit_ngram``.
    """
    fitted = KneserNeyInterpolated(config.order, discount=config.discount)
    try:
        fitted.counts.update(ngrams(row, config) for row in rows)
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"nltk counts no more n-grams ({error}); take fewer rows, or a lower order") from error
    if not fitted.counts.N():
        raise InputError("rows: expected at least one row of two tokens, BOS and another; got nothing to count")
    return fitted


def ngrams(row: Sequence[int], config: NGramConfig) -> Iterator[tuple[int, ...]]:
    """Each token of a row but its first, behind the words before it in its document: one n-gram of every order.

    Raises:
        InputError: The row does not begin with BOS, or an id is outside the vocabulary.
    """
    if not row or row[0] != config.bos:
        raise InputError(f"rows: expected each to begin with BOS ({config.bos}), got {list(row[:5])}; put it in front")
    if not 0 <= min(row) <= max(row) < config.d_vocab:
        raise InputError(f"rows: expected ids from 0 to {config.d_vocab - 1}, got {min(row)} to {max(row)}")
    start = (config.bos,) * (config.order - 1)
    context = start
    for token in row[1:]:
        ngram = (*context, token)
        yield from (ngram[dropped:] for dropped in range(config.order))
        context = start if token == config.bos else ngram[1:]
