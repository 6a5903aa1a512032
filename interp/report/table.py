"""Where does a single table go? One CSV file, written whole or not at all."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pandas as pd

from interp.errors import OutputError
from interp.report.place import absolute, os_errors_of

FILE = "output file"


def check_table(out: str | Path) -> Path:
    """Find out whether a table could be written to the file `out`, before anything is computed.

    Returns:
        `out` as an absolute path.

    Raises:
        OutputError: If `out` is a folder, does not end in ``.csv``, or cannot be written.
    """
    file = absolute(out, FILE)
    if file.suffix.lower() != ".csv" or file.is_dir():
        raise OutputError(f"{FILE}: expected the name of a .csv file, got {out}; name another with --out")
    with _draft_of(file):
        pass
    return file


def save_table(frame: pd.DataFrame, out: str | Path) -> Path:
    """Write `frame` to the CSV file `out`, replacing an older one.

    Raises:
        OutputError: As ``check_table``.
    """
    file = check_table(out)
    with _draft_of(file) as draft:
        draft.write_text(frame.to_csv(index=False), encoding="utf-8")
        os.replace(draft, file)
    return file


@contextmanager
def _draft_of(file: Path) -> Iterator[Path]:
    """An empty hidden file next to `file`, gone when the block ends."""
    draft = file.with_name(f".{file.name}.{secrets.token_hex(4)}.partial")
    try:
        with os_errors_of(file, FILE):
            draft.touch(exist_ok=False)
            yield draft
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
