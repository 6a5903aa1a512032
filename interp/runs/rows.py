"""Which rows of which shards are asked for? Read from memory-mapped files, so that nothing else is copied."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from safetensors import SafetensorError, safe_open
from torch import Tensor

from interp.errors import InputError, LoadError

Numbers = Int[np.ndarray, " row"]
Rows = slice | Sequence[int] | Numbers
"""As a user gives them; a slice is one of all rows."""


def row_numbers(rows: Rows | None, n_rows: int) -> Numbers:
    """The numbers of the rows that are asked for, of `n_rows`; None stands for all.

    Raises:
        InputError: They are no numbers of rows.
    """
    if rows is None or isinstance(rows, slice):
        return np.arange(n_rows)[slice(None) if rows is None else rows]
    numbers = np.asarray(rows)
    if numbers.size and (numbers.ndim != 1 or numbers.dtype.kind not in "iu"):
        raise InputError(f"rows: expected a list of numbers, or a slice, got {rows!r:.80}")
    bad = numbers[(numbers < 0) | (numbers >= n_rows)]
    if len(bad):
        raise InputError(f"rows: expected numbers from 0 to {n_rows - 1}, got {bad[0]}")
    return numbers.astype(np.int64)


def by_shard(numbers: Numbers, shard_rows: int) -> Iterator[tuple[int, Numbers, Numbers]]:
    """Each shard that rows are in, their places in `numbers`, and their numbers in the shard."""
    shard = numbers // shard_rows
    order = np.argsort(shard, kind="stable")
    there, starts = np.unique(shard[order], return_index=True)
    for number, at in zip(there.tolist(), np.split(order, starts)[1:], strict=True):
        yield number, at, numbers[at] - number * shard_rows


def part_of(
    path: Path, name: str, rows: Numbers, heads: Sequence[int] | None, shape: tuple[int, ...]
) -> Float[Tensor, "row ..."]:
    """Rows of a tensor in a file, and of these some heads; rows that follow each other are a view of the file.

    Args:
        path: The file.
        name: The tensor's.
        rows: Their numbers in it.
        heads: Which; None for all, or where there are none.
        shape: Of a row.

    Raises:
        LoadError: The file is missing, damaged so that it cannot be read, or holds another tensor of that name.
    """
    first, stop = int(rows.min()), int(rows.max()) + 1
    try:
        with safe_open(path, framework="pt") as file:
            held = file.get_slice(name)
            there = tuple(held.get_shape())
            fits = there[1:] == shape and stop <= there[0]
            part = held[first:stop] if fits else None
    except (OSError, SafetensorError) as error:
        raise LoadError(f"{path}: cannot be read ({error}); see verify()") from error
    if part is None or not part.is_floating_point():
        raise LoadError(f"{path}: expected {stop} rows of {shape} numbers of {name}, got {there}; see verify()")
    if (np.diff(rows) != 1).any():
        at = torch.from_numpy(rows - first)
        return part[at] if heads is None else part[at[:, None], heads]
    return part if heads is None else part[:, heads]
