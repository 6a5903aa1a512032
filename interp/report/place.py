"""Where is a report or a table to be written? Places that cannot be used are refused in the same words."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from interp.errors import OutputError


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
            f"{what} {place}: expected a place that can be written, got '{error.strerror or error}'; "
            "name another with --out"
        ) from error
