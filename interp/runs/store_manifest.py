"""``manifest.json`` of a store: the request, every file's SHA-256, and its own.

There is one way to write it, so that any changed byte is found. Nothing in it depends on when, where or in how many
goes a store was collected. Its own hash shows that it is undamaged, not that this program wrote it: so each field is
checked as well.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from interp.errors import LoadError
from interp.model.devices import DTYPES
from interp.model.sites import Site
from interp.residual.collecting import Pooling
from interp.runs.files import Signed, sha256_of

MANIFEST = "manifest.json"
PARTIAL = "collecting.partial"
"""Folder of a store that is being collected."""
_FILE = re.compile(r"shard-\d{5,9}\.safetensors")
"""No path: what lies outside of the store is not read."""


@dataclass(frozen=True)
class StoredSite:
    """A site, and the shape of its activation at one word: ``(head, d_head)`` of ``z``, else ``(d_model,)``."""

    name: str
    layer: int | None
    shape: tuple[int, ...]

    @property
    def site(self) -> Site:
        """What it is the shape of."""
        return Site(self.name, self.layer)


@dataclass(frozen=True)
class Request:
    """All that a store's contents depend on, beside the kind of CPU or GPU."""

    model_hash: str  # of the weights
    config_hash: str | None  # of what the model is made of; None of others' models
    tokenizer_hash: str | None
    model_dtype: str  # in which the model computed
    data_hash: str  # of what was read
    sites: tuple[StoredSite, ...]
    pooling: Pooling  # over a word's tokens
    dtype: str  # of the stored numbers
    shard_rows: int  # rows of each shard but the last
    computed: Mapping[str, str | int | bool]  # what last bits follow from: threads, device, program, torch's settings

    def require_same(self, asked: "Request", folder: Path) -> None:
        """Refuse another request where there is a store of this one, however that is computed (LoadError)."""
        for field in fields(self):
            there, here = getattr(self, field.name), getattr(asked, field.name)
            if there != here and field.name != "computed":
                raise LoadError(
                    f"{folder}: a store of another request: {field.name} was {_said(there)} there and is {_said(here)} "
                    "here; give the same, or another folder"
                )

    def require_computed(self, asked: "Request", folder: Path) -> None:
        """Refuse to go on in another way than this, which would give numbers that differ in last bits (LoadError)."""
        for name in {**self.computed, **asked.computed}:
            there, here = self.computed.get(name), asked.computed.get(name)
            if there != here:
                raise LoadError(
                    f"{folder}: a store that was computed in another way: {name} was {there!s:.16} there and is "
                    f"{here!s:.16} here; go on in the same way, or collect into another folder"
                )


def _said(value: Any) -> str:
    return ", ".join(each.site.hook_name for each in value) if isinstance(value, tuple) else repr(value)


@dataclass(frozen=True)
class ShardFile:
    """A file of activations: its name, its number of words, and hashes of the tokens that were read and of the file."""

    file: str
    rows: int
    read: str
    sha256: str


@dataclass(frozen=True)
class Manifest(Signed):
    """The content of a store; `index` is the index file's SHA-256, and None while the store is incomplete."""

    request: Request
    shards: tuple[ShardFile, ...]
    index: str | None
    format, version, what = "interp activation store", 2, "the manifest of a store of activations"
    advice = "restore it, or, if this was a store, delete the folder and collect again"

    @property
    def rows(self) -> int:
        """Words in all shards."""
        return sum(shard.rows for shard in self.shards)

    def derived(self) -> dict[str, Any]:
        """The number of words."""
        return {"rows": self.rows}

    def fits(self) -> bool:
        """Whether the numbers fit together, and all that is named is known."""
        request = self.request
        sizes = [size for each in request.sites for size in each.shape]
        rows = [each.rows for each in self.shards]
        return (
            request.dtype in DTYPES
            and all(each.site for each in request.sites)
            and all(each > 0 for each in (*sizes, *rows, request.shard_rows))
            and max(rows, default=0) <= request.shard_rows
            and all(_FILE.fullmatch(each.file) for each in self.shards)
        )


def require_undamaged(path: Path, expected: str) -> None:
    """Refuse a file that is missing, or whose bytes are not those that were written (LoadError)."""
    try:
        found = sha256_of(path)
    except OSError as error:
        raise LoadError(
            f"{path}: cannot be read ({error.strerror or error}); collect again, and what is missing is made again"
        ) from error
    if found != expected:
        raise LoadError(
            f"{path}: expected SHA-256 {expected}, got {found}: it is damaged; restore it, or delete it and collect "
            "again, and it is made again"
        )
