"""How is a table of tab-separated values read, with the number of every row's line?

1. The first line must be the published header: columns that have moved are an error, never read as something else.
2. Quotation marks are text like any other: none of the published tables quotes its fields.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from interp.errors import TaskError
from interp.tasks.readers.lines import located, numbered_lines, shortened


def table_rows(path: Path, what: str, columns: Sequence[str], hint: str = "") -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a table under its header, by column; empty lines are left out.

    Args:
        path: The file.
        what: What it should be, with its article, such as ``a GAP file``.
        columns: Its header.
        hint: What to do where `path` is a folder.

    Raises:
        TaskError: The file is missing, a folder, unreadable or not UTF-8, has another header or no rows, or a row
            (named) has too few or too many fields.
    """
    lines = ((number, line) for number, line in numbered_lines(path, what, hint) if line.strip())
    first = next(lines, None)
    if first is None:
        raise TaskError(f"{path}: expected {what}, got an empty file")
    with located(path, first[0]):
        _check_header(first[1], columns)
    empty = True
    for number, line in lines:
        fields, empty = line.split("\t"), False
        with located(path, number):
            if len(fields) != len(columns):
                raise ValueError(f"expected {len(columns)} fields between tabs, got {len(fields)} in {shortened(line)}")
        yield number, dict(zip(columns, fields, strict=True))
    if empty:
        raise TaskError(f"{path}: expected {what}, got a header without rows")


def _check_header(line: str, columns: Sequence[str]) -> None:
    if line.split("\t") != list(columns):
        raise ValueError(f"expected the header {' '.join(columns)!r} between tabs, got {shortened(line)}")
