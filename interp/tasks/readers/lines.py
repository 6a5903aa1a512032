"""How is a file of text read so that every error names the file and the line?

1. Lines are decoded one by one: a file is never in memory as a whole.
2. Whoever takes a line apart raises ``ValueError`` with what was expected and got; ``located`` says where.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from interp.errors import TaskError


def numbered_lines(path: Path, what: str, hint: str = "") -> Iterator[tuple[int, str]]:
    """The lines of a file without their ends, numbered from 1.

    Args:
        path: The file.
        what: What it should be, with its article, such as ``a BLiMP file``.
        hint: What to do where `path` is a folder.

    Raises:
        TaskError: The file is missing, a folder or unreadable, or a line of it is not UTF-8; when the first line is
            asked for, or that one.
    """
    try:
        # A folder can be opened on some systems, and be read on none.
        if path.is_dir():
            raise TaskError(f"{path}: expected {what}, got a folder; {hint or 'name a file in it'}")
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                with located(path, number):
                    yield number, _decoded(line)
    except FileNotFoundError as error:
        raise TaskError(f"{path}: expected {what}, got no such file; check the path") from error
    except OSError as error:
        raise TaskError(f"{path}: the file cannot be read: {error.strerror}") from error


@contextmanager
def located(path: Path, number: int) -> Iterator[None]:
    """Turn a ``ValueError`` about a line into a ``TaskError`` that names file and line."""
    try:
        yield
    except TaskError:
        raise
    except ValueError as error:
        raise TaskError(f"{path}, line {number}: {error}") from error


def read_only_once(path: Path) -> bool:
    """Whether what is there is gone when it has been read, as with a pipe."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def as_path(path: str | Path) -> Path:
    """The path that a user means; ``~`` is their home."""
    return Path(os.path.expanduser(path))


def shortened(text: str) -> str:
    """A line as a message can quote it."""
    text = text.strip()
    return repr(text if len(text) <= 40 else text[:40] + "...")


def _decoded(line: bytes) -> str:
    try:
        return line.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"expected UTF-8, got byte {line[error.start]:#04x} at column {error.start}") from error
