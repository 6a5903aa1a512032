"""What is in a report's folder, and how was it made? ``manifest.json``: format, provenance, SHA-256 of every file."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path, PurePath
from typing import Any

HEADS = "interp heads report"
SWEEP = "interp sweep report"
RELATIONS = "interp relations report"
PROBES = "interp probes report"
CALIBRATION = "interp calibration report"
CARD = "interp head card"
FORMATS = (HEADS, SWEEP, RELATIONS, PROBES, CALIBRATION, CARD)
FORMAT_VERSION = 1
MANIFEST = "manifest.json"


def files_of_report(folder: Path, formats: Sequence[str] = FORMATS) -> set[str]:
    """The files that the folder's manifest claims; none if it is not a manifest of ours, of one of the `formats`."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, UnicodeDecodeError, json.JSONDecodeError):
        return set()
    if not isinstance(manifest, dict) or manifest.get("format") not in formats:
        return set()
    files = manifest.get("files")
    return {MANIFEST, *files} if isinstance(files, dict) and all(map(_is_inside, files)) else set()


def _is_inside(name: str) -> bool:
    """Whether a manifest may claim it: what it claims is replaced and removed, and must lie in the report's folder."""
    path = PurePath(name)
    return not path.is_absolute() and ".." not in path.parts and "\0" not in name


def write_manifest(folder: Path, provenance: Mapping[str, Any], command: str | None, *, kind: str) -> None:
    """Write the manifest of everything that lies in `folder`; `kind` is one of ``FORMATS``."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    manifest = {
        "format": kind,
        "version": FORMAT_VERSION,
        "interp": version("interp"),
        "command": command,
        "provenance": plain(provenance),
        "files": {path.relative_to(folder).as_posix(): _sha256(path) for path in files},
    }
    text = json.dumps(manifest, indent=2, ensure_ascii=False, allow_nan=False)
    # Half of a surrogate pair has no UTF-8; written with a backslash, it is JSON.
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8", errors="backslashreplace")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def plain(value: Any) -> Any:
    """The value as JSON knows it: a missing number is null, anything unknown its text."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each) for each in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value if isinstance(value, str | bool | int | float | None) else str(value)
