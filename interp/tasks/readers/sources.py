"""Where a reader's items come from: lines of a file, rows of a table, or a data set of the Hugging Face hub.

Every error names the file and line, or the data set and row. Whoever takes a record apart raises ``ValueError`` with
what was expected and got. Lines are decoded one by one: a file is never in memory as a whole. The first line of a table
must be the published header; quotation marks are text like any other.

``hub:NAME[:CONFIG[:SPLIT]]`` names a data set, as ``hub:nyu-mll/blimp:passive_1:train`` does; ``hub:NAME::SPLIT`` has
no configuration. Without a split the data set must have only one. A local folder that ``datasets`` can read is a NAME
too. Rows are streamed; class labels become their names.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow.json

from interp.errors import TaskError

ItemT = TypeVar("ItemT")
RecordT = TypeVar("RecordT")


def numbered_lines(path: Path, what: str, hint: str = "") -> Iterator[tuple[int, str]]:
    """The lines of a file without their ends, numbered from 1."""
    try:
        # A folder can be opened on some systems, and be read on none.
        if path.is_dir():
            raise TaskError(f"{path}: expected {what}, got a folder; {hint or 'name a file in it'}")
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                with located(f"{path}, line {number}"):
                    try:
                        text = line.decode("utf-8-sig").rstrip("\r\n")
                    except UnicodeDecodeError as error:
                        at = error.start
                        raise ValueError(f"expected UTF-8, got byte {line[at]:#04x} at column {at}") from error
                    yield number, text
    except FileNotFoundError as error:
        raise TaskError(f"{path}: expected {what}, got no such file; check the path") from error
    except OSError as error:
        raise TaskError(f"{path}: the file cannot be read: {error.strerror}") from error


@contextmanager
def located(place: str) -> Iterator[None]:
    """Turn a ``ValueError`` about a record into a ``TaskError`` that names its place."""
    try:
        yield
    except TaskError:
        raise
    except ValueError as error:
        raise TaskError(f"{place}: {error}") from error


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


def filled_lines(path: Path, what: str, each: str, hint: str = "") -> Iterator[tuple[int, str]]:
    """The lines that are not blank; a file without any is refused."""
    empty = True
    for number, line in numbered_lines(path, what, hint):
        if line.strip():
            empty = False
            yield number, line
    if empty:
        raise TaskError(f"{path}: expected {each}, got an empty file")


def table_rows(path: Path, what: str, columns: Sequence[str], hint: str = "") -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a table under its header, by column; empty lines are left out."""
    n_rows = 0
    for n_rows, (number, line) in enumerate(filled_lines(path, what, what, hint)):
        fields = line.split("\t")
        with located(f"{path}, line {number}"):
            if n_rows == 0 and fields != list(columns):
                raise ValueError(f"expected the header {' '.join(columns)!r} between tabs, got {shortened(line)}")
            if len(fields) != len(columns):
                raise ValueError(f"expected {len(columns)} fields between tabs, got {len(fields)} in {shortened(line)}")
        if n_rows:
            yield number, dict(zip(columns, fields, strict=True))
    if n_rows == 0:
        raise TaskError(f"{path}: expected {what}, got a header without rows")


def file_items(
    path: Path, records: Iterable[tuple[int, RecordT]], parse: Callable[[RecordT], ItemT]
) -> Iterator[ItemT]:
    """An item of each numbered record of a file; `parse` raises ``ValueError`` with what it expected and got."""
    for number, record in records:
        with located(f"{path}, line {number}"):
            item = parse(record)
        yield item


def json_object(line: str) -> dict[str, Any]:
    """A line of JSON, which holds one object; raises ``ValueError``."""
    try:
        record = json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"expected a JSON object, got {shortened(line)} ({error})") from error
    if not isinstance(record, dict):
        raise ValueError(f"expected a JSON object, got {shortened(line)}")
    return record


DEEPEST = 1_000
"""Levels of a line; brackets within its texts count as well."""


class ShallowJson:
    """``pyarrow.json``, but for what is nested too deep: ten thousand levels overrun its stack and end the process."""

    def __getattr__(self, name: str) -> Any:
        return getattr(pyarrow.json, name)

    def read_json(self, file: BytesIO, **options: Any) -> Any:
        """A table of lines of JSON."""
        for number, line in enumerate(file.getvalue().splitlines(), start=1):
            # Most lines have fewer brackets than that.
            if line.count(b"[") + line.count(b"{") <= DEEPEST:
                continue
            letters = np.frombuffer(line, dtype=np.uint8)
            steps = np.isin(letters, np.frombuffer(b"[{", np.uint8)).astype(np.int32)
            steps -= np.isin(letters, np.frombuffer(b"]}", np.uint8))
            if (levels := int(steps.cumsum().max(initial=0))) > DEEPEST:
                raise ValueError(f"line {number}: expected at most {DEEPEST:,} levels of brackets, got {levels:,}")
        return pyarrow.json.read_json(file, **options)


_PREFIX = "hub:"
_READER = "datasets.packaged_modules.json.json"
"""What reads lines of JSON there."""
_FORM = "hub:NAME[:CONFIG[:SPLIT]]"


def is_hub(source: str | Path) -> bool:
    """Whether `source` names a data set of the hub rather than a file."""
    return isinstance(source, str) and source.startswith(_PREFIX)


def hub_parts(source: str) -> tuple[str, str | None, str | None]:
    """The data set's name, its configuration and split, as far as they are named."""
    name, *rest = source.removeprefix(_PREFIX).split(":")
    if not name or len(rest) > 2:
        raise TaskError(f"expected {_FORM}, got {source!r}; give the data set's name, as in hub:nyu-mll/blimp")
    config, split = (*rest, "", "")[:2]
    return os.path.expanduser(name), config or None, split or None


def hub_items(source: str, parse: Callable[[dict[str, Any]], ItemT]) -> Iterator[ItemT]:
    """Read a data set of the hub, item by item."""
    with _reached(source):
        rows = iter(_streamed(source))
    for number in count(1):
        with _reached(source):
            row = next(rows, None)
        if row is None:
            break
        with located(f"{source}, row {number}"):
            item = parse(row)
        yield item
    if number == 1:
        raise TaskError(f"{source}: expected at least one row, got none; name another split")


def _streamed(source: str) -> Iterable[dict[str, Any]]:
    name, config, split = hub_parts(source)
    import datasets  # slow to import, and of use here alone

    with suppress(ImportError):
        vars(import_module(_READER))["paj"] = ShallowJson()
    found = datasets.load_dataset(name, config, split=split, streaming=True)
    if split is None and len(found) != 1:
        raise TaskError(
            f"{source}: expected a split to be named, got none of {', '.join(map(repr, found))}; give {_FORM}"
        )
    rows = found if split is not None else next(iter(found.values()))
    kinds = {column: getattr(kind, "feature", kind) for column, kind in (rows.features or {}).items()}
    labels = {column: names for column, kind in kinds.items() if (names := getattr(kind, "names", None))}
    return (row | {column: _named(row[column], names) for column, names in labels.items()} for row in rows)


def _named(label: Any, names: Sequence[str]) -> Any:
    """Names in place of numbers; -1 is no label."""
    if isinstance(label, list):
        return [_named(each, names) for each in label]
    return None if label in (None, -1) else names[label]


@contextmanager
def _reached(source: str) -> Iterator[None]:
    """Turn whatever ``datasets``, the network or a file's format raises into one error that says what to do."""
    try:
        yield
    except TaskError:
        raise
    except Exception as error:  # its kinds are open: each loader and transport has its own
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise TaskError(
            f"{source}: the data set cannot be read ({reason.rstrip('.')}); check its name, configuration and split "
            "and the network, or download a file and give its path"
        ) from error
