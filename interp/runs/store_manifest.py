"""``manifest.json`` of a store: the request, every file's SHA-256, and its own.

There is one way to write it, so that any changed byte is found. Nothing in it depends on when, where or in how many
goes a store was collected. Its own hash shows that it is undamaged, not that this program wrote it: so each field is
checked as well.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import NoneType
from typing import Any, get_args

from interp.errors import InputError, LoadError
from interp.model.devices import DTYPES
from interp.model.sites import Site
from interp.residual.collecting import Pooling
from interp.runs.files import read_signed, sha256_of, signed, wrong_file

_TOP = {
    **{"format": str, "version": int, "rows": int, "request": dict, "shards": list},
    **{"index": (str, NoneType), "sha256": str},
}
_REQUEST = {
    **dict.fromkeys(("model_hash", "model_dtype", "data_hash", "pooling", "dtype"), str),
    **dict.fromkeys(("config_hash", "tokenizer_hash"), (str, NoneType)),
    "sites": list,
    "shard_rows": int,
    "computed": dict,
}
_SITE = {"name": str, "layer": (int, NoneType), "shape": list}
_SHARD = {"file": str, "rows": int, "read": str, "sha256": str}
_FILE = re.compile(r"shard-\d{5,9}\.safetensors")
"""No path: what lies outside of the store is not read."""


def is_described(content: Mapping[str, Any]) -> bool:
    """Whether what a ``manifest.json`` holds has the fields of one, each of its kind, and numbers that fit together."""
    if not _has(content, _TOP) or not _has(content["request"], _REQUEST):
        return False
    request, shards = content["request"], content["shards"]
    if request["pooling"] not in get_args(Pooling) or request["dtype"] not in DTYPES:
        return False
    if not all(_has(each, _SITE) for each in request["sites"]) or not all(_has(each, _SHARD) for each in shards):
        return False
    if not all(_is_site(each) for each in request["sites"]):
        return False
    sizes = [size for each in request["sites"] for size in each["shape"]]
    rows, most = [each["rows"] for each in shards], request["shard_rows"]
    if not all(isinstance(each, str | int) for each in request["computed"].values()):
        return False
    counts = all(type(each) is int and each > 0 for each in (*sizes, *rows, most))
    return counts and sum(rows) == content["rows"] and max(rows, default=0) <= most and _named(shards)


def _has(value: Any, kinds: Mapping[str, Any]) -> bool:
    """Whether a value is an object with these fields and no other."""
    return (
        isinstance(value, dict)
        and value.keys() == kinds.keys()
        and all(isinstance(value[name], kind) and not isinstance(value[name], bool) for name, kind in kinds.items())
    )


def _is_site(described: Mapping[str, Any]) -> bool:
    try:
        return bool(Site(described["name"], described["layer"]))
    except InputError:
        return False


def _named(shards: list[Any]) -> bool:
    return all(_FILE.fullmatch(each["file"]) for each in shards)


FORMAT, VERSION = "interp activation store", 2
MANIFEST = "manifest.json"
PARTIAL = "collecting.partial"
"""Folder of a store that is being collected."""
_WHAT = "the manifest of a store of activations"
_ADVICE = "restore it, or, if this was a store, delete the folder and collect again"


@dataclass(frozen=True)
class StoredSite:
    """A site, and the shape of its activation at one word.

    Attributes:
        name: As ``Site`` has it.
        layer: The same.
        shape: ``(head, d_head)`` of ``z``, ``(d_model,)`` of ``resid_post``.
    """

    name: str
    layer: int | None
    shape: tuple[int, ...]

    @property
    def site(self) -> Site:
        """What it is the shape of."""
        return Site(self.name, self.layer)


@dataclass(frozen=True)
class Request:
    """All that a store's contents depend on, beside the kind of CPU or GPU.

    Attributes:
        model_hash: Of the weights.
        config_hash: Of what the model is made of; None of others' models.
        tokenizer_hash: None without one.
        model_dtype: In which the model computed.
        data_hash: Of what was read.
        sites: Where.
        pooling: Over a word's tokens.
        dtype: Of the stored numbers.
        shard_rows: Rows of each shard but the last.
        computed: What last bits follow from: threads, kind of device, program and its versions, torch's settings.
    """

    model_hash: str
    config_hash: str | None
    tokenizer_hash: str | None
    model_dtype: str
    data_hash: str
    sites: tuple[StoredSite, ...]
    pooling: Pooling
    dtype: str
    shard_rows: int
    computed: Mapping[str, Any]

    def require_same(self, asked: "Request", folder: Path) -> None:
        """Refuse another request where there is a store of this one, however that is computed.

        Raises:
            LoadError: They differ, and in what.
        """
        for field in fields(self):
            there, here = getattr(self, field.name), getattr(asked, field.name)
            if there != here and field.name != "computed":
                raise LoadError(
                    f"{folder}: a store of another request: {field.name} was {_said(there)} there and is {_said(here)} "
                    "here; give the same, or another folder"
                )

    def require_computed(self, asked: "Request", folder: Path) -> None:
        """Refuse to go on in another way than this, which would give a store of numbers that differ in last bits.

        Raises:
            LoadError: They are computed in other ways, and in which.
        """
        for name in {**self.computed, **asked.computed}:
            there, here = self.computed.get(name), asked.computed.get(name)
            if there != here:
                raise LoadError(
                    f"{folder}: a store that was computed in another way: {name} was {_short(there)} there and is "
                    f"{_short(here)} here; go on in the same way, or collect into another folder"
                )


def _said(value: Any) -> str:
    return ", ".join(each.site.hook_name for each in value) if isinstance(value, tuple) else repr(value)


def _short(value: Any) -> str:
    """A version or a setting; of a hash, its beginning."""
    return f"{value!s:.16}"


@dataclass(frozen=True)
class ShardFile:
    """A file of activations: its name, its number of words, and hashes of the tokens that were read and of the file."""

    file: str
    rows: int
    read: str
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """The content of a store; `index` is the index file's SHA-256, and None while the store is incomplete."""

    request: Request
    shards: tuple[ShardFile, ...]
    index: str | None

    @property
    def rows(self) -> int:
        """Words in all shards."""
        return sum(shard.rows for shard in self.shards)

    def text(self) -> str:
        """As it is written."""
        return signed({"format": FORMAT, "version": VERSION, "rows": self.rows, **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> "Manifest":
        """What a file holds.

        Raises:
            LoadError: It is no manifest of a store, of another version, or damaged.
        """
        content = read_signed(path, FORMAT, VERSION, _WHAT, _ADVICE)
        if not is_described(content):
            raise wrong_file(path, _WHAT, _ADVICE)
        return _of_content(content)


def _of_content(content: Mapping[str, Any]) -> Manifest:
    asked = dict(content["request"])
    sites = [StoredSite(each["name"], each["layer"], tuple(each["shape"])) for each in asked.pop("sites")]
    shards = [ShardFile(**each) for each in content["shards"]]
    return Manifest(Request(**asked, sites=tuple(sites)), tuple(shards), content["index"])


def require_undamaged(path: Path, expected: str) -> None:
    """Refuse a file whose bytes are not those that were written.

    Raises:
        LoadError: It is missing, cannot be read, or is damaged.
    """
    try:
        found = sha256_of(path)
    except OSError as error:
        raise LoadError(
            f"{path}: cannot be read ({error.strerror or error}); collect again, and what is missing is made anew"
        ) from error
    if found != expected:
        raise LoadError(
            f"{path}: expected SHA-256 {expected}, got {found}: it is damaged; restore it, or delete it and collect "
            "again, and it is made anew"
        )
