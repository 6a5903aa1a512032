"""What was asked for, and which files hold it? ``manifest.json``: the request, every file's SHA-256, and its own.

It has one way to be written, so that a byte that is not as it was written is found. Nothing in it depends on when,
where or in how many goes a store was collected; how it was computed stands in it.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from interp.errors import LoadError
from interp.model.sites import Site
from interp.residual.collecting import Pooling
from interp.runs.described import is_described
from interp.runs.signed import other, read_signed, sha256_of, signed

FORMAT, VERSION = "interp activation store", 2
MANIFEST = "manifest.json"
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
    """A file of activations.

    Attributes:
        file: Its name.
        rows: Words in it.
        read: SHA-256 of the token ids that were run for it, and the positions that were read.
        sha256: Of the file.
    """

    file: str
    rows: int
    read: str
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What is in a store.

    Attributes:
        request: What was asked for.
        shards: In order.
        index: SHA-256 of the index; None while there is none, so while the store is incomplete.
    """

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
            raise other(path, _WHAT, _ADVICE)
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
