"""How is a data set of the Hugging Face hub read in place of a file?

1. ``hub:NAME[:CONFIG[:SPLIT]]`` names it, as ``hub:nyu-mll/blimp:passive_1:train`` does; ``hub:NAME::SPLIT`` has no
   configuration. Without a split the data set must have only one. A local folder that ``datasets`` can read is a NAME
   too, and needs no network.
2. Rows are streamed, and become items as a file's records do; an error names the data set and the row.
3. Class labels are numbers with names: items are made of the names.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from interp.errors import TaskError
from interp.tasks.readers.shallow import ShallowJson

ItemT = TypeVar("ItemT")
_PREFIX = "hub:"
_READER = "datasets.packaged_modules.json.json"
"""What reads lines of JSON there."""
_FORM = "hub:NAME[:CONFIG[:SPLIT]]"


def is_hub(source: str | Path) -> bool:
    """Whether `source` names a data set of the hub rather than a file."""
    return isinstance(source, str) and source.startswith(_PREFIX)


def hub_parts(source: str) -> tuple[str, str | None, str | None]:
    """The data set's name, its configuration and split, as far as they are named.

    Raises:
        TaskError: `source` has another form.
    """
    name, *rest = source.removeprefix(_PREFIX).split(":")
    if not name or len(rest) > 2:
        raise TaskError(f"expected {_FORM}, got {source!r}; give the data set's name, as in hub:nyu-mll/blimp")
    config, split = (*rest, "", "")[:2]
    return os.path.expanduser(name), config or None, split or None


def hub_items(source: str, parse: Callable[[dict[str, Any]], ItemT]) -> Iterator[ItemT]:
    """Read a data set of the hub, item by item.

    Args:
        source: ``hub:NAME[:CONFIG[:SPLIT]]``.
        parse: Makes an item of a row, and raises ``ValueError`` with what it expected and got.

    Raises:
        TaskError: The name has another form; there is no such data set, configuration or split, or no network; there
            are no rows, or a row (named, from 1) cannot be used.
    """
    with _reached(source):
        rows = iter(_streamed(source))
    number = 0
    while (row := _next(source, rows)) is not None:
        number += 1
        try:
            item = parse(row)
        except TaskError:
            raise
        except ValueError as error:
            raise TaskError(f"{source}, row {number}: {error}") from error
        yield item
    if not number:
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
    labels = {column: names for column, kind in (rows.features or {}).items() if (names := _label_names(kind))}
    return (row | {column: _named(row[column], names) for column, names in labels.items()} for row in rows)


def _label_names(kind: Any) -> Sequence[str] | None:
    """The names of a column's class labels, or of those in its lists."""
    return getattr(getattr(kind, "feature", kind), "names", None)


def _named(label: Any, names: Sequence[str]) -> Any:
    """Names in place of numbers; -1 is no label."""
    if isinstance(label, list):
        return [_named(each, names) for each in label]
    return None if label in (None, -1) else names[label]


def _next(source: str, rows: Iterator[dict[str, Any]]) -> dict[str, Any] | None:
    with _reached(source):
        return next(rows, None)


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
