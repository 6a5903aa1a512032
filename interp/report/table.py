"""Where does a single table go? One CSV file, written whole or not at all."""

import os
import secrets
from pathlib import Path

import pandas as pd

from interp.errors import OutputError


def check_table(out: str | Path) -> Path:
    """Find out whether a table could be written to the file `out`, before anything is computed.

    Returns:
        `out` as an absolute path.

    Raises:
        OutputError: If `out` is a folder, does not end in ``.csv``, or cannot be written.
    """
    file = Path(out).expanduser().resolve()
    if file.suffix.lower() != ".csv" or file.is_dir():
        raise OutputError(f"output file: expected the name of a .csv file, got {out}; name another with --out")
    _write(file, "").unlink()
    return file


def save_table(frame: pd.DataFrame, out: str | Path) -> Path:
    """Write `frame` to the CSV file `out`, replacing an older one.

    Raises:
        OutputError: As ``check_table``.
    """
    file = check_table(out)
    os.replace(_write(file, frame.to_csv(index=False)), file)
    return file


def _write(file: Path, text: str) -> Path:
    """Write `text` into a hidden sibling of `file`, whole or not at all."""
    draft = file.with_name(f".{file.name}.{secrets.token_hex(4)}.partial")
    try:
        draft.write_text(text, encoding="utf-8")
    except BaseException as error:
        draft.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise OutputError(
                f"output file {file}: expected a place that can be written, got '{error.strerror or error}'; "
                "name another with --out"
            ) from error
        raise
    return draft
