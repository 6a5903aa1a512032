"""A model's activations at the words of many texts, kept in a folder and read memory-mapped.

- ``manifest.json``: the request, and every file's SHA-256;
- ``index.parquet``: one row a word: where it stands, and its features;
- ``shard-00000.safetensors``: activations of the first words, a tensor ``[row ...]`` a site, by its hook;
- and so on: as many words each, except the last.

``collecting.py`` writes it. The features are known when the last word has been read, so each shard's words are first
written to a part of the index, and the parts are joined at the end, one row group each.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from jaxtyping import Float, Int
from safetensors import SafetensorError, safe_open
from torch import Tensor

from interp.errors import InputError, LoadError, shown, suggest
from interp.model.devices import ordinary_modes, resolve_dtype
from interp.model.provenance import model_provenance
from interp.model.sites import Site
from interp.runs.files import read_table
from interp.runs.shards import Shard
from interp.runs.store_manifest import MANIFEST, PARTIAL, Manifest, StoredSite, require_undamaged
from interp.tasks.passages import passage_index

INDEX = "index.parquet"
COLUMNS = ("document", "template", "sentence", "word", "token", "n_tokens", "form")
"""Of every index; what there is of features stands behind them."""
_NUMBERS = ("word", "token", "n_tokens")


def write_part(shard: Shard, path: Path) -> None:
    """Write the index of one shard's words."""
    frame = passage_index(shard.passages())
    columns = [pa.array(frame[name], type=_type(name)) for name in frame]
    pq.write_table(pa.table(columns, names=list(frame)), path)


def join_parts(parts: Sequence[Path], path: Path) -> None:
    """Write the index of all shards; features are in the order of the first word that has each."""
    columns = dict.fromkeys(name for part in parts for name in pq.read_schema(part).names)
    schema = pa.schema([(name, _type(name)) for name in columns])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for part in parts:
            table = read_table(part)
            for name in columns:
                if name not in table.column_names:
                    table = table.append_column(name, pa.nulls(len(table), pa.string()))
            writer.write_table(table.select(list(columns)), row_group_size=len(table))


def read_index(path: Path, n_rows: int) -> pd.DataFrame:
    """The index of a store of so many rows; what cannot be read, or is none of theirs, is refused (LoadError)."""
    try:
        n_found = pq.read_metadata(path).num_rows
        frame = read_table(path).to_pandas(ignore_metadata=True, use_threads=False) if n_found == n_rows else None
    except (OSError, ValueError, pa.ArrowException) as error:
        raise LoadError(f"{path}: cannot be read ({error}); see verify()") from error
    if frame is None:
        raise LoadError(f"{path}: expected {n_rows} words, got {n_found}; see verify()")
    missing = [name for name in COLUMNS if name not in frame.columns]
    if missing:
        raise LoadError(f"{path}: expected a column {missing[0]!r}, got {shown(list(frame.columns))}; see verify()")
    return frame


def _type(column: str) -> pa.DataType:
    return pa.int32() if column in _NUMBERS else pa.string()


Numbers = Int[np.ndarray, " row"]
Rows = slice | Sequence[int] | Numbers
"""As a user gives them; a slice is one of all rows."""


def row_numbers(rows: Rows | None, n_rows: int) -> Numbers:
    """The numbers of the rows that are asked for, of `n_rows`; None stands for all. What is none is refused."""
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
    """Rows of the tensor `name` in a file, of all or some heads; consecutive rows are a view of the file.

    A file that is missing, cannot be read, or holds another tensor of that name is refused (LoadError).
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


@dataclass(frozen=True)
class ActivationStore:
    """A complete store.

    Attributes:
        folder: Where it is.
        manifest: What is in it.
    """

    folder: Path
    manifest: Manifest

    @classmethod
    def open(cls, folder: str | Path, *, verify: bool = True) -> "ActivationStore":
        """The store in a folder.

        Args:
            folder: As ``collect`` left it.
            verify: Read every byte, and compare it with the manifest.

        Returns:
            The store, for ``interp.probe``.

        Raises:
            LoadError: There is no store, an incomplete one, or a file of it is missing or damaged, which is named.
        """
        folder = Path(os.path.expanduser(folder))
        if not (folder / MANIFEST).exists():
            _refuse(folder)
        store = cls(folder, Manifest.read(folder / MANIFEST))
        missing = store.missing()
        if missing:
            raise LoadError(f"{missing[0]}: expected a file of the store, got none; collect again to make it")
        if verify:
            store.verify()
        return store

    def verify(self) -> None:
        """Compare every file with the manifest; one that is missing or damaged is named (LoadError)."""
        for path, digest in self._files():
            require_undamaged(path, digest)

    def missing(self) -> list[Path]:
        """The files that should be there and are not."""
        return [path for path, _ in self._files() if not path.is_file()]

    def _files(self) -> Iterator[tuple[Path, str]]:
        yield self.folder / INDEX, str(self.manifest.index)
        yield from ((self.folder / shard.file, shard.sha256) for shard in self.manifest.shards)

    @property
    def rows(self) -> int:
        """How many words there are."""
        return self.manifest.rows

    @property
    def sites(self) -> tuple[Site, ...]:
        """Where activations were read."""
        return tuple(each.site for each in self.manifest.request.sites)

    @cached_property
    def index(self) -> pd.DataFrame:
        """One row a word, in the order of the activations.

        Its columns are ``document``, ``template``, ``sentence``, ``word``, ``token`` (its first position in the row),
        ``n_tokens`` and ``form``; and of every feature F the value, ``F``, the form of the word that it is known by,
        ``F:carrier``, and what must not be in training and test alike, ``F:lemma``, missing where it has none.

        Raises:
            LoadError: It cannot be read.
        """
        return read_index(self.folder / INDEX, self.rows)

    def require_model(self, model: Any) -> None:
        """Refuse a model that the activations are not of.

        Raises:
            InputError: Its weights, or what it is made of, differ; both hashes are told.
        """
        own = model_provenance(model)
        for what in ("model_hash", "config_hash"):
            there, here = getattr(self.manifest.request, what), own[what]
            if there != here:
                raise InputError(
                    f"{self.folder}: expected the model whose activations are stored, {what} {there}, got one of "
                    f"{here}; load that model, or collect again"
                )

    @ordinary_modes()
    def read(
        self, site: Site, rows: Rows | None = None, heads: Sequence[int] | None = None
    ) -> Float[Tensor, "row ..."]:
        """Activations at a site; of what is not asked for, nothing is copied.

        Args:
            site: One of ``sites``.
            rows: Numbers of rows, in any order, or a slice; None for all.
            heads: Of a site with heads, which; None for all.

        Returns:
            ``[row head d_head]`` of ``z``, ``[row d_model]`` of ``resid_post``.

        Raises:
            InputError: No such site, row or head.
            LoadError: A file is missing, or damaged so that it cannot be read.
        """
        self._require_room()
        stored, numbers = self._stored(site), row_numbers(rows, self.rows)
        chosen = None if heads is None else _heads(stored, heads)
        shape = stored.shape if chosen is None else (len(chosen), *stored.shape[1:])
        found = torch.empty(len(numbers), *shape, dtype=resolve_dtype(self.manifest.request.dtype))
        for number, at, own in by_shard(numbers, self.manifest.request.shard_rows):
            path = self.folder / self.manifest.shards[number].file
            found[torch.from_numpy(at)] = part_of(path, site.hook_name, own, chosen, stored.shape)
        return found

    def _require_room(self) -> None:
        """Refuse sizes that the manifest claims and the files do not have: no room is made for them."""
        request = self.manifest.request
        numbers = sum(prod(each.shape) for each in request.sites)
        for shard in self.manifest.shards:
            path = self.folder / shard.file
            least = shard.rows * numbers * resolve_dtype(request.dtype).itemsize
            found = path.stat().st_size if path.is_file() else 0
            if found < least:
                raise LoadError(
                    f"{path}: cannot be read (expected at least {shown(least)} bytes, got {found}); see verify()"
                )

    def _stored(self, site: Site) -> StoredSite:
        known = {each.site: each for each in self.manifest.request.sites}
        if site not in known:
            names = [each.hook_name for each in known]
            raise InputError(f"{self.folder}: nothing is stored of {site.hook_name}; {suggest(site.hook_name, names)}")
        return known[site]


def _refuse(folder: Path) -> None:
    if (folder / PARTIAL).exists():
        raise LoadError(f"{folder}: the store is incomplete; run the same collection again, and it goes on")
    found = "a file" if folder.is_file() else f"a folder without {MANIFEST}" if folder.is_dir() else "no such folder"
    raise LoadError(f"{folder}: expected a store of activations, got {found}; check the path, or collect one")


def _heads(stored: StoredSite, heads: Sequence[int]) -> list[int]:
    if "head" not in stored.site.axes:
        raise InputError(
            f"heads: expected none for {stored.name!r}, which has no heads, got {list(heads)}; leave it out"
        )
    bad = [head for head in heads if not 0 <= head < stored.shape[0]]
    if bad:
        raise InputError(f"heads: expected numbers from 0 to {stored.shape[0] - 1}, got {bad[0]}")
    return list(heads)
