"""What was asked, and what did it come to? Of both a file that says so, and is known by its hash."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from interp.interventions.provenance import canonical
from interp.runs.code import code_hash, versions
from interp.runs.names import KEY_DIGITS, MANIFEST, PART, RESULT, TABLE
from interp.runs.signed import other, read_signed, signed

FORMAT, VERSION = "interp run", 1
RESULT_FORMAT, RESULT_VERSION = "interp run result", 2
_RECORD, _RESULT = "the manifest of a run", "the result of a run"
_ADVICE = "give the command again, which makes it anew, or remove the run (`interp runs rm`)"


@dataclass(frozen=True)
class Record:
    """What a run is of.

    Attributes:
        asked: All that its numbers follow from, beside the machine's arithmetic.
        about: What whoever looks at it later wants to know: the model's name, the command line ...
    """

    asked: Mapping[str, Any]
    about: Mapping[str, Any]

    @classmethod
    def of(cls, asked: Mapping[str, Any], about: Mapping[str, Any]) -> "Record":
        """Of a request, computed by this program."""
        return cls(plain({**asked, "code": code_hash(), "versions": versions()}), plain(about))

    @cached_property
    def key(self) -> str:
        """Tells it from any other; the name of its folder."""
        return hashlib.sha256(canonical(self.asked).encode()).hexdigest()[:KEY_DIGITS]

    def text(self) -> str:
        """As it is written."""
        plain = {"asked": dict(self.asked), "about": dict(self.about)}
        return signed({"format": FORMAT, "version": VERSION, "key": self.key, **plain})

    @classmethod
    def read(cls, folder: Path) -> "Record":
        """That of a run's folder.

        Raises:
            LoadError: There is none, it is damaged, or of another version.
        """
        content = read_signed(folder / MANIFEST, FORMAT, VERSION, _RECORD, _ADVICE)
        asked, about = content.get("asked"), content.get("about")
        if not isinstance(asked, dict) or not isinstance(about, dict) or content.get("key") != cls(asked, about).key:
            raise other(folder / MANIFEST, _RECORD, _ADVICE)
        return cls(asked, about)


@dataclass(frozen=True)
class Result:
    """What a finished run came to, beside its tables' numbers.

    Attributes:
        facts: As JSON has them: of a sweep its provenance.
        tables: The SHA-256 of each table's file, by the table's name.
        parts: The names of the files of parts.
    """

    facts: Mapping[str, Any]
    tables: Mapping[str, str]
    parts: Sequence[str]

    def text(self, key: str) -> str:
        """As it is written, for the run of this key."""
        how = {"facts": plain(self.facts), "tables": dict(self.tables), "parts": list(self.parts)}
        return signed({"format": RESULT_FORMAT, "version": RESULT_VERSION, "key": key, **how})

    @classmethod
    def read(cls, folder: Path, key: str) -> "Result":
        """That of a run's folder.

        Raises:
            LoadError: There is none, it is damaged, of another run or version.
        """
        content = read_signed(folder / RESULT, RESULT_FORMAT, RESULT_VERSION, _RESULT, _ADVICE)
        facts, tables, parts = (content.get(name) for name in ("facts", "tables", "parts"))
        ours = content.get("key") == key
        if not ours or not isinstance(facts, dict) or not _are_tables(tables) or not _are_parts(parts):
            raise other(folder / RESULT, _RESULT, _ADVICE)
        if not tables and facts.get("answers") != []:  # what came to nothing says so
            raise other(folder / RESULT, _RESULT, _ADVICE)
        return cls(facts, tables, parts)


def plain(value: Any) -> Any:
    """A value as JSON has it, which has names for texts alone, and no number that is none or infinite."""
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _are_tables(given: Any) -> TypeGuard[dict[str, str]]:
    """Whether these are names of tables, which lead nowhere else, and hashes."""
    return isinstance(given, dict) and all(
        TABLE.fullmatch(name) is not None and isinstance(digest, str) for name, digest in given.items()
    )


def _are_parts(given: Any) -> TypeGuard[list[str]]:
    """Whether these are names of parts' files, which lead nowhere else."""
    return isinstance(given, list) and all(isinstance(each, str) and PART.fullmatch(each) for each in given)
