"""How does a file come to the disk? Whole or not at all: written beside its place, brought to the disk, and renamed."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError

from interp.errors import OutputError


@contextmanager
def writing(folder: Path, what: str = "output folder") -> Iterator[None]:
    """Turn what the system says against writing into `folder` into an ``OutputError``."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        number = getattr(error, "errno", None)  # libraries have words of their own for it
        said = os.strerror(number) if number else error
        raise OutputError(
            f"{what} {folder}: expected a place that can be written, got '{said}'; name another, or make room and go on"
        ) from error


def put(draft: Path, path: Path) -> None:
    """Bring a file that was written to the disk, and to its place on the same file system."""
    to_disk(draft)
    os.replace(draft, path)
    to_disk(path.parent)


def to_disk(path: Path) -> None:
    """Wait until what was written to a file, or renamed in a folder, is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
