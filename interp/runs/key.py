"""What a run's key follows from: the request, the source of this package, and the versions of the libraries.

The key is the hash of the request and the program. It names the run's folder, in which each file is known by its hash:

- ``manifest.json``: the request and the program; their hash is the key
- ``parts/NAME.HASH.parquet``: what was measured, part by part; ``HASH`` begins the file's SHA-256
- ``NAME.parquet``: the finished tables; a sweep has one, ``frame``
- ``result.json``: provenance, the SHA-256 of each table, the names of the parts; written last
- ``log.jsonl``: the events: begun, kept, found damaged, finished
"""

import hashlib
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import version
from typing import Any

from interp.errors import InputError
from interp.hashing import canonical, plain
from interp.runs.files import Signed
from interp.source_files import PACKAGE, changed, modules

MANIFEST, RESULT, PARTS, LOG, LOCK = "manifest.json", "result.json", "parts", "log.jsonl", "lock"
FRAME = "frame"
"""Name of a run's main table."""
TABLE = re.compile(r"[a-z][a-z0-9_]*")
KEY_DIGITS = 16
KEY = re.compile(rf"([0-9a-f]{{{KEY_DIGITS}}})(?:-([1-9][0-9]{{0,8}}))?")
"""Name of a run's folder: the hash, and the generation of a fresh answer (``fresh.py``)."""
DIGITS = 16
"""Digits of a part's SHA-256 in its file's name."""
PART = re.compile(rf"([A-Za-z0-9_.-]+)\.([0-9a-f]{{{DIGITS}}})\.parquet")
LIBRARIES = ("torch", "numpy", "scipy", "pandas", "transformers", "transformer_lens")

_ADVICE = "give the command again, which makes it, or remove the run (`interp runs rm`)"


def table_file(name: str) -> str:
    """File name of a finished table."""
    return f"{name}.parquet"


def code_hash() -> str:
    """SHA-256 of the modules that numbers depend on, as this process imports them.

    Raises:
        InputError: A source was edited since this process began.
    """
    if changed():
        raise InputError(
            "interp: expected the source that this process began with, got one that was changed since, so that no hash "
            "could tell what it computes with; start again (in a notebook: restart the kernel)"
        )
    return _hash()


@cache
def _hash() -> str:
    digest = hashlib.sha256()
    for path in modules():
        digest.update(f"{path.relative_to(PACKAGE).as_posix()}\n".encode() + path.read_bytes())
    return digest.hexdigest()


@cache
def versions() -> dict[str, str]:
    """Versions of the libraries that compute, and of Python."""
    return {**{name: version(name) for name in LIBRARIES}, "python": platform.python_version()}


def program() -> dict[str, str]:
    """What has to be the same wherever parts of one answer are computed, by name."""
    return {"interp": code_hash(), **versions()}


def require_program(asked: Mapping[str, str]) -> None:
    """Refuse to compute for a process with another ``program()``.

    Raises:
        InputError: The two differ; what differs is named.
    """
    own = {name: program().get(name, "none") for name in asked}
    different = [name for name in asked if own[name] != asked[name]]
    if different:
        here, there = (", ".join(f"{name} {each[name][:12]}" for name in different) for each in (own, asked))
        raise InputError(
            f"worker on {platform.node()}: expected the program of the process that asks ({there}), got {here}; "
            "install the same on both, and if a source was edited meanwhile, ask again"
        )


@dataclass(frozen=True)
class Record(Signed):
    """The manifest of a run.

    Attributes:
        asked: All that its numbers follow from, except the machine's arithmetic.
        about: Notes for readers: the model's name, the command line ...
        generation: Number of a fresh answer (``fresh.py``); 0 for the first one.
    """

    asked: Mapping[str, Any]
    about: Mapping[str, Any]
    generation: int = 0
    format, version, what, advice = "interp run", 2, "the manifest of a run", _ADVICE

    @classmethod
    def of(cls, asked: Mapping[str, Any], about: Mapping[str, Any]) -> "Record":
        """The record of a request that this program computes."""
        return cls(plain({**asked, "code": code_hash(), "versions": versions()}), plain(about))

    @cached_property
    def question(self) -> str:
        """Hash of what was asked; the same for all its generations."""
        return hashlib.sha256(canonical(self.asked).encode()).hexdigest()[:KEY_DIGITS]

    @property
    def key(self) -> str:
        """Name of the run's folder."""
        return f"{self.question}-{self.generation}" if self.generation else self.question

    def derived(self) -> dict[str, Any]:
        """The key: its hash of what was asked shows that the two belong together."""
        return {"key": self.key}

    def fits(self) -> bool:
        """Whether there is such a key."""
        return KEY.fullmatch(self.key) is not None


@dataclass(frozen=True)
class Result(Signed):
    """A finished run, except the numbers in its tables.

    Attributes:
        key: Of the run.
        facts: As JSON; a sweep's provenance.
        tables: SHA-256 of each table's file, by the table's name.
        parts: File names of the parts.
    """

    key: str
    facts: Mapping[str, Any]
    tables: Mapping[str, str]
    parts: tuple[str, ...]
    format, version, what, advice = "interp run result", 2, "the result of a run", _ADVICE

    def fits(self) -> bool:
        """Whether no name leads out of the folder, and an answer without tables says so."""
        return (
            all(map(TABLE.fullmatch, self.tables))
            and all(map(PART.fullmatch, self.parts))
            and bool(self.tables or self.facts.get("answers") == [])
        )
