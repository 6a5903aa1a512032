"""Where are a model's activations kept, and how are they read again? In a folder, memory-mapped.

- ``manifest.json``: the request, and every file's SHA-256;
- ``index.parquet``: one row a word: where it stands, and what is known of it;
- ``shard-00000.safetensors``: activations of the first words, a tensor ``[row ...]`` a site, by its hook;
- and so on: as many words each, but the last.

``collecting.py`` writes it.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from interp.errors import InputError, LoadError, shown, suggest
from interp.interventions.provenance import model_provenance
from interp.model.devices import ordinary_modes, resolve_dtype
from interp.model.sites import Site
from interp.runs.folder import PARTIAL
from interp.runs.index import INDEX, read_index
from interp.runs.manifest import MANIFEST, Manifest, StoredSite, require_undamaged
from interp.runs.rows import Rows, by_shard, part_of, row_numbers


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

        Raises:
            LoadError: There is no store, an incomplete one, or a file of it is missing or damaged, which is named.
        """
        folder = Path(os.path.expanduser(folder))
        if not (folder / MANIFEST).exists():
            _refuse(folder)
        store = cls(folder, Manifest.read(folder / MANIFEST))
        missing = store.missing()
        if missing:
            raise LoadError(f"{missing[0]}: expected a file of the store, got none; collect again, and it is made anew")
        if verify:
            store.verify()
        return store

    def verify(self) -> None:
        """Compare every file with the manifest.

        Raises:
            LoadError: One is missing or damaged, which is named.
        """
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
                    f"{here}; load that model, or collect anew"
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
