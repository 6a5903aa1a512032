"""Where is a report or a table to be written? Places that cannot be used are refused in the same words."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from interp.errors import OutputError

FOLDER = "output folder"


def absolute(out: str | Path, what: str) -> Path:
    """The absolute path that `out` stands for.

    Args:
        out: As a user gives it; ``~`` is their home.
        what: What is written there, such as ``output folder``.

    Raises:
        OutputError: It is no name that a file can have, or one that cannot be written down in UTF-8.
    """
    try:
        path = Path(os.path.expanduser(out)).resolve()
        str(path).encode()
    except (ValueError, OSError, RuntimeError) as error:  # a NUL, bytes that are no UTF-8, links in a circle
        raise OutputError(f"{what}: expected a place that can be named, got {str(out)!r} ({error})") from error
    return path


@contextmanager
def os_errors_of(place: Path, what: str) -> Iterator[None]:
    """Turn what the system says against writing to `place` into an ``OutputError``."""
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"{what} {place}: expected a place that can be written, got '{error.strerror or error}'; name another"
        ) from error


def check_new_folder(out: str | Path, what: str = FOLDER) -> Path:
    """Find out whether something new could be written to `out`: a folder that is missing or empty.

    Args:
        out: As a user gives it.
        what: What it is called there.

    Returns:
        `out` as an absolute path.

    Raises:
        OutputError: If `out` is a file or a folder with anything in it, or cannot be written.
    """
    folder = absolute(out, what)
    with os_errors_of(folder, what):
        if folder.is_dir() and any(folder.iterdir()):
            raise OutputError(f"{what} {folder}: expected a new or empty folder, got one with files; name another")
    check_place(folder, what)
    return folder


def check_place(folder: Path, what: str = FOLDER) -> None:
    """Refuse a place that a file has, or that cannot be written.

    Raises:
        OutputError: It is one of these.
    """
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{what} {folder}: expected a folder, got a file; name another")
    # Asking for permission misses read-only file systems, and says yes to root: try it.
    with os_errors_of(folder, what):
        ancestor = next(parent for parent in folder.parents if parent.exists())
        sibling(ancestor / folder.name).rmdir()


def sibling(folder: Path) -> Path:
    """Make an empty hidden folder next to `folder`."""
    sibling = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.partial")
    sibling.mkdir()
    return sibling
