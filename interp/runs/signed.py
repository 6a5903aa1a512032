"""JSON that carries its own SHA-256, and has one way to be written: a byte that is not as it was written is found."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from interp.errors import LoadError, shown


class OtherVersionError(LoadError):
    """Written by another version of this program: no damage."""


def signed(content: Mapping[str, Any]) -> str:
    """The text of `content`, which JSON can hold."""
    digest = hashlib.sha256(_json(content).encode()).hexdigest()
    return _json({**content, "sha256": digest})


def read_signed(path: Path, kind: str, version: int, what: str, advice: str) -> dict[str, Any]:
    """What ``signed`` has written to a file.

    Args:
        path: The file.
        kind: Its ``format``.
        version: The one that this program reads.
        what: What it should be, in words.
        advice: What to do about a file that is none of these, or damaged.

    Raises:
        OtherVersionError: It is of another version.
        LoadError: It cannot be read, is of another kind, or damaged.
    """
    try:
        text = path.read_text(encoding="utf-8")
        content = json.loads(text)
        ours = isinstance(content, dict) and content.get("format") == kind and _is_signed(content, text)
    except OSError as error:
        raise LoadError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (ValueError, RecursionError) as error:  # also a NaN, half a character, or endless nesting
        raise other(path, what, advice) from error
    if not ours:
        raise other(path, what, advice)
    if content.get("version") != version:
        raise OtherVersionError(
            f"{path}: {what} in version {shown(content.get('version'))}, this program reads {version}; use the version "
            "of interp that wrote it"
        )
    return dict(content)


def other(path: Path, what: str, advice: str) -> LoadError:
    """What to raise of a file that is not what it should be."""
    return LoadError(f"{path}: expected {what}, got something else, or a damaged one; {advice}")


def _is_signed(content: Mapping[str, Any], text: str) -> bool:
    return signed({name: value for name, value in content.items() if name != "sha256"}) == text


def _json(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def sha256_of(path: Path) -> str:
    """SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(2**20):
            digest.update(part)
    return digest.hexdigest()
