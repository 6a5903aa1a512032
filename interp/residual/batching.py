"""Which rows does a model read at once? Those of equally many tokens: without padding, any model can run them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeVar, runtime_checkable

TOKENS_AT_ONCE = 2048
"""Of a batch: attention patterns of longer rows are larger."""
BUFFERED = 16_384
"""Tokens of rows that are looked through for some of equal length."""


@runtime_checkable
class HasIds(Protocol):
    """Something with token ids."""

    @property
    def ids(self) -> Sequence[int]:
        """Special tokens included."""
        ...


AnyRow = TypeVar("AnyRow", bound=HasIds)


def batched(rows: Iterable[AnyRow]) -> Iterator[list[AnyRow]]:
    """Rows with equally many tokens, in batches; of the rows, only some are held at a time."""
    held: list[AnyRow] = []
    n_tokens = 0
    for row in rows:
        held.append(row)
        n_tokens += len(row.ids)
        if n_tokens >= BUFFERED:
            yield from _of_equal_length(held)
            held, n_tokens = [], 0
    yield from _of_equal_length(held)


def _of_equal_length(rows: Sequence[AnyRow]) -> Iterator[list[AnyRow]]:
    by_length: dict[int, list[AnyRow]] = {}
    for row in rows:
        by_length.setdefault(len(row.ids), []).append(row)
    for length, same in sorted(by_length.items()):
        size = max(1, TOKENS_AT_ONCE // length)
        yield from (same[start : start + size] for start in range(0, len(same), size))
