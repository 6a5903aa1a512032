"""Where runs are kept. Only Python's own modules are imported here: ``interp doctor`` asks where others are missing."""

import os
from pathlib import Path

from interp.errors import InputError


def root_of(given: str | os.PathLike[str] | None) -> Path:
    """The folder of runs that is given, as an absolute path; None: ``$INTERP_RUNS``, or a folder of the user's own.

    Raises:
        InputError: It contains a null character.
    """
    if given is None:
        data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
        given = os.environ.get("INTERP_RUNS") or os.path.join(data, "interp", "runs")
    if "\0" in os.fspath(given):
        raise InputError(f"folder of runs {os.fspath(given)!r:.80}: expected a path, got one with a null character")
    return Path(os.path.expanduser(given)).absolute()
