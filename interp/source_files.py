"""Is the source that this process imports still the one that it began with? Noted when ``interp`` is imported.

A process computes with what it has imported, and imports more of it as it goes on. So once a source was edited, or
replaced by another version, nobody can say by which program it computes.
"""

import os
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parent
NO_PART = ("report", "cli", "doctor")
"""Folders of this package on which no number depends."""


def modules() -> list[Path]:
    """The modules of this package that numbers depend on, in order."""
    return sorted(Path(path) for path, _ in _found(PACKAGE))


def changed() -> bool:
    """Whether one of them is not as it was when this process began to import them."""
    return dict(_found(PACKAGE)) != _FIRST


def _found(folder: str | os.PathLike[str]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Each module's path, with the time and the size of its last change."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir() and entry.name not in ("__pycache__", *NO_PART):
                yield from _found(entry.path)
            elif entry.name.endswith(".py"):
                state = entry.stat()
                yield entry.path, (state.st_mtime_ns, state.st_size)


_FIRST = dict(_found(PACKAGE))
