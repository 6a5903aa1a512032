"""In which folder are runs kept? In the one that is named, or in one of the user's own."""

import os
from pathlib import Path

from interp.errors import InputError


def root_of(given: str | os.PathLike[str] | None) -> Path:
    """The folder of runs that is given, or the default one, as an absolute path.

    Raises:
        InputError: No path could be that.
    """
    if given is not None and "\0" in os.fspath(given):
        raise InputError(f"folder of runs {os.fspath(given)!r:.80}: expected a path, got one with a null character")
    return default_root() if given is None else Path(os.path.expanduser(given)).absolute()


def default_root() -> Path:
    """Where runs are kept unless told otherwise: ``$INTERP_RUNS``, or a folder of the user's own."""
    given = os.environ.get("INTERP_RUNS")
    if given:
        return Path(os.path.expanduser(given)).absolute()
    data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return Path(data) / "interp" / "runs"
