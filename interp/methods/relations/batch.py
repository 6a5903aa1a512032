"""How often do the heads find the related words of one batch? Summed by document and direction, layer by layer."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from interp.methods.relations.items import Items
from interp.methods.relations.word_attention import ReadingRow, WordAttention

ITEMS_AT_ONCE = 4096
"""Each with a row of attention for every head."""

Excluded = Literal["special", "self"]
"""What no choice is made among: tokens of no word, such as BOS or ``[SEP]``; the word that looks."""


@dataclass
class Sums:
    """Of one document and direction: ``n`` items, and sums over them.

    Attributes:
        hits: How often each head chose a related word.
        attention: Attention to related words, by head.
        rules: How often each rule named one.
        chance: Expected hits of an equal choice.
    """

    n: int
    hits: Float[np.ndarray, " cell"]
    attention: Float[np.ndarray, " cell"]
    rules: Float[np.ndarray, " rule"]
    chance: float

    def add(self, other: "Sums") -> None:
        """Take in another batch's sums."""
        self.n += other.n
        self.chance += other.chance
        self.hits += other.hits
        self.attention += other.attention
        self.rules += other.rules


@dataclass(frozen=True)
class ItemRow(ReadingRow):
    """A window with what is scored in it."""

    items: Items


class RelationBatch:
    """The items of a batch and what is summed over them, layer by layer."""

    def __init__(self, rows: Sequence[ItemRow], shape: tuple[int, int], causal: bool, exclude: Collection[Excluded]):
        self._rows, self._causal, self._exclude = rows, causal, exclude
        items = [row.items for row in rows]
        self._row = torch.tensor([number for number, each in enumerate(items) for _ in each.query])
        self._query = torch.tensor(
            [place for row in rows for place in np.searchsorted(row.queries, row.items.query).tolist()]
        )
        n_units = max(row.window.tokens.n_units for row in rows)
        self._related = torch.zeros(len(self._row), n_units, dtype=torch.bool)
        start = 0
        for each in items:
            stop = start + len(each.query)
            self._related[start:stop, : each.related.shape[1]] = torch.from_numpy(each.related)
            start = stop
        owners = [(row.window.document, at) for row in rows for at in row.items.direction.tolist()]
        self._keys = list(dict.fromkeys(owners))
        number = {key: at for at, key in enumerate(self._keys)}
        self._key = torch.tensor([number[owner] for owner in owners])
        layers, heads = shape
        self._hits = torch.zeros(len(self._keys), layers, heads, dtype=torch.float64)
        self._attention = torch.zeros_like(self._hits)
        self._hidden: Tensor | None = None

    def take(self, layer: int, words: WordAttention) -> None:
        """Add one layer's heads."""
        device = words.device
        row, query, key = self._row.to(device), self._query.to(device), self._key.to(device)
        if self._hidden is None:
            self._hidden = ~self._candidates(words).to(device)
        related = torch.nn.functional.pad(self._related, (0, words.shape[-1] - self._related.shape[1])).to(device)
        for start in range(0, len(row), ITEMS_AT_ONCE):
            part = slice(start, start + ITEMS_AT_ONCE)
            own, right = words[row[part], :, query[part]], related[part, None]
            open_to = own.masked_fill(self._hidden[row[part], query[part]][:, None], -1.0)
            most = open_to == open_to.amax(-1, keepdim=True)
            for sums, found in ((self._attention, (own * right).sum(-1)), (self._hits, _share(most & right, most))):
                sums[:, layer].index_add_(0, key[part].cpu(), found.double().cpu())

    def _candidates(self, words: WordAttention) -> Bool[Tensor, "batch query_word key_word"]:
        """What each query's choice is made among."""
        n_batch, _, n_queries, n_keys = words.shape
        found = torch.zeros(n_batch, n_queries, n_keys, dtype=torch.bool)
        n_most = max(row.window.tokens.n_units for row in self._rows)
        for number, row in enumerate(self._rows):
            n_units = row.window.tokens.n_units
            for at, query in enumerate(row.queries):
                found[number, at, : query if self._causal else n_units] = True
                found[number, at, query] = "self" not in self._exclude
            if "special" not in self._exclude:
                own = len(row.window.tokens.ids) - int((row.window.tokens.unit_of_token >= 0).sum())
                found[number, : len(row.queries), n_most : n_most + own] = True
        return found

    def sums(self) -> Iterator[tuple[str, int, Sums]]:
        """By document and the number of the direction."""
        rules = np.concatenate([row.items.rules for row in self._rows])
        chance = np.concatenate([row.items.chance for row in self._rows])
        key = self._key.numpy()
        for number, (document, at) in enumerate(self._keys):
            own = key == number
            yield (
                document,
                at,
                Sums(
                    int(own.sum()),
                    self._hits[number].flatten().numpy().copy(),
                    self._attention[number].flatten().numpy().copy(),
                    rules[own].sum(axis=0).astype(float),
                    float(chance[own].sum()),
                ),
            )


def _share(some: Bool[Tensor, "item head word"], of: Bool[Tensor, "item head word"]) -> Float[Tensor, "item head"]:
    return some.sum(-1) / of.sum(-1)
