"""How often does each head find the related word? Counted document by document, while the corpus streams by.

1. Of each word that looks, each head's choice is the other word that it attends to most; of several that it attends to
   alike, each is chosen in part.
2. Kept are sums by cluster of documents (``clusters.py``) and direction: hits and attention of every head, hits of
   every rule. Nothing else that grows with the corpus is kept, but its documents' names.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from interp.methods.relations.batch import Excluded, ItemRow, RelationBatch, Sums
from interp.methods.relations.items import REASONS, items_of
from interp.methods.relations.word_attention import read_words
from interp.residual.batching import batched
from interp.tasks.relations import Direction
from interp.tasks.windows import Window
from interp.tasks.word_tokens import NONE


@dataclass
class RelationCounts:
    """What was counted.

    Attributes:
        directions: What was asked.
        shape: Layers and heads a layer.
        clusters: Of each document, the one that it counts in.
        sums: By cluster and number of the direction.
        left_out: How many pairs were not scored, by number of the direction and reason.
    """

    directions: Sequence[Direction]
    shape: tuple[int, int]
    clusters: Mapping[str, str]
    sums: dict[tuple[str, int], Sums] = field(default_factory=dict)
    left_out: Counter[tuple[int, str]] = field(default_factory=Counter)

    def reasons(self, direction: int) -> dict[str, int]:
        """How many pairs of a direction were not scored, by reason."""
        return {reason: self.left_out[direction, reason] for reason in REASONS}


def count(
    model: Any,
    windows: Iterable[Window],
    directions: Sequence[Direction],
    *,
    causal: bool,
    exclude: Collection[Excluded],
    into: RelationCounts,
    progress: Callable[[int], None],
) -> int:
    """Score every head on every pair of `windows`.

    Args:
        model: Follows TransformerLens' protocol.
        windows: Read one after the other.
        directions: What to score, of those of `into`.
        causal: Whether the model only looks back.
        exclude: What no choice is made among.
        into: Where the sums are added.
        progress: Called with the words read so far, after each batch.

    Returns:
        The words read.

    Raises:
        InputError: As ``read_words``.
    """
    numbers = [into.directions.index(each) for each in directions]
    done = 0
    for batch in batched(_rows(windows, directions, numbers, causal, exclude, into)):
        scored = RelationBatch(batch, into.shape, causal, exclude)
        read_words(model, batch, scored.take, special="special" not in exclude)
        for document, at, sums in scored.sums():
            key = (into.clusters[document], numbers[at])
            if key in into.sums:
                into.sums[key].add(sums)
            else:
                into.sums[key] = sums
        done += sum(len(row.window.words) - row.window.first_query for row in batch)
        progress(done)
    return done


def _rows(
    windows: Iterable[Window],
    directions: Sequence[Direction],
    numbers: Sequence[int],
    causal: bool,
    exclude: Collection[Excluded],
    into: RelationCounts,
) -> Iterator[ItemRow]:
    for window in windows:
        items = items_of(window, directions, causal=causal, n_further=_further(window, exclude))
        for (at, reason), n in items.left_out.items():
            into.left_out[numbers[at], reason] += n
        if len(items.query):
            yield ItemRow(window, tuple(np.unique(items.query).tolist()), items)


def _further(window: Window, exclude: Collection[Excluded]) -> int:
    """What a head can choose beside the other words."""
    special = 0 if "special" in exclude else int((window.tokens.unit_of_token == NONE).sum())
    return special + ("self" not in exclude)
