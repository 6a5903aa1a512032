"""Tables that a reader can sort: of each cell the text to read, and the number that it sorts by."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from interp.report.reading import texts
from interp.report.words import decimal, estimate

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
        digits: Decimals of both; None for the rule of ``estimate``. Points of 100 have one.
    """

    name: str
    heading: str = ""
    low: str = ""
    high: str = ""
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


def is_whole(column: str, values: pd.Series) -> bool:
    """Whether its numbers are counts, which are read without decimals."""
    return column.startswith("n_") or pd.api.types.is_integer_dtype(values)


def _cell(column: Column, row: dict[Any, Any]) -> TableCell:
    value: Any = row.get(column.name)
    low: Any = row.get(column.low, math.nan)
    high: Any = row.get(column.high, math.nan)
    if pd.isna(value) or value == "":
        return TableCell("—" if column.title.strip() else "", "")
    if isinstance(value, str):
        return TableCell(value, "")
    if column.low:
        said = estimate(value, low, high, n_clusters=row.get("n_clusters"), digits=column.digits)
        return TableCell(said, repr(float(value)))
    whole = isinstance(value, int) or column.name.startswith("n_")
    return TableCell(f"{value:.0f}" if whole else _short(value), repr(float(value)))


def _short(number: float) -> str:
    """Three decimals; scientific where that would read as 0."""
    return f"{number:.1e}" if 0 < abs(number) < 0.0005 else decimal(number, 3)
