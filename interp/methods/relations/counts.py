"""How often does each head find the related word? Counted by groups of documents, while the corpus streams by.

1. Of each word that looks, each head's choice is the other word that it attends to most; of several that it attends to
   alike, each is chosen in part.
2. Kept are sums by cluster of documents (``clusters.py``) and direction: hits and attention of every head, hits of
   every rule. Nothing else that grows with the corpus is kept, but its documents' names.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import pandas as pd

from interp.methods.relations.batch import Excluded, ItemRow, RelationBatch, Sums
from interp.methods.relations.items import REASONS, items_of
from interp.methods.relations.word_attention import read_words
from interp.residual.batching import batched
from interp.tasks.relations import Direction
from interp.tasks.windows import Window
from interp.tasks.word_tokens import NONE

Key = tuple[str, int]
"""A cluster of documents, and the number of a direction."""


@dataclass
class Counted:
    """What was counted in some documents.

    Attributes:
        sums: By cluster and number of the direction.
        left_out: How many pairs were not scored, by number of the direction and reason.
        too_long: Sentences longer than the context, by document and name, and their tokens.
        n_words: How many were read, each as often as it was.
    """

    sums: dict[Key, Sums] = field(default_factory=dict)
    left_out: Counter[tuple[int, str]] = field(default_factory=Counter)
    too_long: dict[str, int] = field(default_factory=dict)
    n_words: int = 0

    def add(self, other: "Counted") -> None:
        """Take in the sums of the documents that follow, which become part of these."""
        for key, sums in other.sums.items():
            if key in self.sums:
                self.sums[key].add(sums)
            else:
                self.sums[key] = sums
        self.left_out.update(other.left_out)
        self.too_long |= other.too_long
        self.n_words += other.n_words

    def frame(self) -> pd.DataFrame:
        """A row for each cluster and direction."""
        names = {"cluster": [key[0] for key in self.sums], "direction": [key[1] for key in self.sums]}
        return pd.DataFrame(names | {name: [getattr(each, name) for each in self.sums.values()] for name in _SUMMED})

    def facts(self) -> dict[str, Any]:
        """What is not in ``frame``, as JSON has it."""
        left_out = [[at, reason, n] for (at, reason), n in self.left_out.items()]
        return {"left_out": left_out, "too_long": self.too_long, "n_words": self.n_words}

    @classmethod
    def of(cls, frame: pd.DataFrame, facts: Mapping[str, Any]) -> "Counted":
        """What was counted, as ``frame`` and ``facts`` have it."""
        sums = {
            (str(row.cluster), int(row.direction)): Sums(
                int(row.n), np.array(row.hits), np.array(row.attention), np.array(row.rules), float(row.chance)
            )
            for row in frame.itertuples()
        }
        left_out = Counter({(at, reason): n for at, reason, n in facts["left_out"]})
        return cls(sums, left_out, dict(facts["too_long"]), facts["n_words"])


_SUMMED = tuple(each.name for each in fields(Sums))


@dataclass(frozen=True)
class RelationCounts:
    """What was counted in a corpus.

    Attributes:
        directions: What was asked.
        shape: Layers and heads a layer.
        clusters: Of each document, the one that it counts in.
        counted: The sums.
    """

    directions: Sequence[Direction]
    shape: tuple[int, int]
    clusters: Mapping[str, str]
    counted: Counted

    @property
    def sums(self) -> dict[Key, Sums]:
        """By cluster and number of the direction."""
        return self.counted.sums

    def reasons(self, direction: int) -> dict[str, int]:
        """How many pairs of a direction were not scored, by reason."""
        return {reason: self.counted.left_out[direction, reason] for reason in REASONS}


def count(
    model: Any,
    windows: Iterable[Window],
    directions: Mapping[int, Direction],
    clusters: Mapping[str, str],
    *,
    causal: bool,
    exclude: Collection[Excluded],
    into: Counted,
) -> None:
    """Score every head on every pair of `windows`.

    Args:
        model: Follows TransformerLens' protocol.
        windows: Read one after the other.
        directions: What to score, by number.
        clusters: Of each document.
        causal: Whether the model only looks back.
        exclude: What no choice is made among.
        into: Where the sums are added.

    Raises:
        InputError: As ``read_words``.
    """
    numbers, shape = list(directions), (model.cfg.n_layers, model.cfg.n_heads)
    for batch in batched(_rows(windows, directions, causal, exclude, into)):
        scored = RelationBatch(batch, shape, causal, exclude)
        read_words(model, batch, scored.take, special="special" not in exclude)
        for document, at, sums in scored.sums():
            into.add(Counted({(clusters[document], numbers[at]): sums}))
        into.n_words += sum(len(row.window.words) - row.window.first_query for row in batch)


def _rows(
    windows: Iterable[Window],
    directions: Mapping[int, Direction],
    causal: bool,
    exclude: Collection[Excluded],
    into: Counted,
) -> Iterator[ItemRow]:
    numbers, wanted = list(directions), list(directions.values())
    for window in windows:
        items = items_of(window, wanted, causal=causal, n_further=_further(window, exclude))
        for (at, reason), n in items.left_out.items():
            into.left_out[numbers[at], reason] += n
        if len(items.query):
            yield ItemRow(window, tuple(np.unique(items.query).tolist()), items)


def _further(window: Window, exclude: Collection[Excluded]) -> int:
    """What a head can choose beside the other words."""
    special = 0 if "special" in exclude else int((window.tokens.unit_of_token == NONE).sum())
    return special + ("self" not in exclude)
