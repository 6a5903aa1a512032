"""Tables that a reader can sort: of each cell the text to read, and the number that it sorts by."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from interp.report.page_texts import texts
from interp.report.words import decimal, estimate, p_size, size

_HEADINGS: Mapping[str, str] = texts()["headings"]
_ENDINGS = {"_low": ", low", "_high": ", high", "_p_adjusted": ", adjusted p"}
_BEGINNINGS = {"n_": "", "min_": "minimum ", "accuracy_": "accuracy, "}


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        name: Of the frame's column.
        heading: Above it; empty for the column's usual heading.
        low: The frame's column with the lower end of an interval, which stands beside the number.
        high: The upper end's.
        percent: Whether they are shares, which are read in points of 100, with one decimal.
        digits: Decimals of both; None for the rule of ``estimate``.
    """

    name: str
    heading: str = ""
    low: str = ""
    high: str = ""
    percent: bool = False
    digits: int | None = None

    @property
    def title(self) -> str:
        """What stands above it."""
        return self.heading or heading(self.name)


@dataclass(frozen=True)
class TableCell:
    """One cell: what is read, and the number that it sorts by; none of a text."""

    text: str
    key: str


def columns_of(*names: str) -> tuple[Column, ...]:
    """Columns without intervals, by their names."""
    return tuple(map(Column, names))


def rows_of(frame: pd.DataFrame, columns: Sequence[Column]) -> list[list[TableCell]]:
    """The cells of a table; what is missing is a dash and sorts last."""
    return [[_cell(column, row) for column in columns] for row in frame.to_dict("records")]


def heading(column: str) -> str:
    """What a frame's column is called above a table: by its name, or by its name's beginning and ending."""
    if column in _HEADINGS:
        return _HEADINGS[column]
    for ending, words in _ENDINGS.items():
        if column.endswith(ending):
            return heading(column.removesuffix(ending)) + words
    for beginning, words in _BEGINNINGS.items():
        if column.startswith(beginning):
            return words + column.removeprefix(beginning).replace("_", " ")
    return column.replace("_", " ")


def kind_of(column: str, *, whole: bool) -> str:
    """What its numbers are: a ``count``, which is read without decimals, a ``p``, or a ``size``."""
    if "p" in column.split("_"):
        return "p"
    return "count" if whole or column.startswith("n_") else "size"


def _cell(column: Column, row: dict[Any, Any]) -> TableCell:
    value: Any = row.get(column.name)
    if pd.isna(value) or value == "":
        return TableCell("—" if column.title.strip() else "", "")
    if isinstance(value, str):
        return TableCell(value, "")
    scale, digits = (100, 1) if column.percent else (1, column.digits)
    key = repr(round(scale * float(value), 12) if column.percent else float(value))
    if column.low:
        ends = (scale * row.get(end, math.nan) for end in (column.low, column.high))
        return TableCell(estimate(scale * value, *ends, n_clusters=row.get("n_clusters"), digits=digits), key)
    if digits is not None:
        return TableCell(decimal(scale * value, digits), key)
    return TableCell(_SAID[kind_of(column.name, whole=isinstance(value, int))](value), key)


_SAID: Mapping[str, Callable[[float], str]] = {"count": "{:,.0f}".format, "p": p_size, "size": size}
"""How a number is read, by its kind."""
