"""How do cells become a table with two sides? One axis across, all others down.

1. Across goes the position attended to, else the position, else the neuron, else the head, else the last label.
2. Down go the others: layers; heads (``2.1``), each with its positions; or one row where there is a single axis.
3. Of more rows than a reader takes in, those with the strongest cells are kept; a table that is too wide is none.
"""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from interp.report.sweeps.cells import strongest_first
from interp.report.sweeps.frames import SweepFrames
from interp.report.sweeps.names import Names

_ACROSS = ("key", "pos", "neuron", "head")
_DOWN = ("layer", "head", "neuron", "pos")
_MOST = 48
_KEPT = 24
_SPOKEN = {"pos": "position", "key": "attention to"}


@dataclass(frozen=True, eq=False)
class Panel:
    """Which cell stands where.

    Attributes:
        down: What the rows are; empty where there is only one.
        across: What the columns are.
        rows: Their headings.
        columns: Theirs.
        numbers: The row in ``described`` of the cell in each place; -1 where none was measured.
        n_rows: How many rows there are with those that are left out.
    """

    down: str
    across: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    numbers: np.ndarray
    n_rows: int

    def table(self, values: pd.Series) -> np.ndarray:
        """The cells' values in their places; NaN where none was measured."""
        found = values.to_numpy(dtype=float)[self.numbers]
        return np.where(self.numbers >= 0, found, np.nan)


def panel(frames: SweepFrames, cells: pd.DataFrame) -> Panel | None:
    """The table of `cells` (see ``described``); None of a single cell, and where it would be too wide."""
    labels = frames.labels
    across = next((axis for axis in _ACROSS if axis in labels), labels[-1])
    down = sorted((axis for axis in labels if axis != across), key=lambda axis: (axis not in _DOWN, *_rank(axis)))
    columns = cells[across].drop_duplicates().tolist()
    if len(cells) == 1 or len(columns) > _MOST:
        return None
    keys: list[tuple[Hashable, ...]] = [()] * len(cells)
    if down:
        keys = list(zip(*(cells[axis] for axis in down), strict=True))
    rows = _rows(keys, cells, down)
    numbers = np.full((len(rows), len(columns)), -1)
    for number, (key, column) in enumerate(zip(keys, cells[across], strict=True)):
        if key in rows:
            numbers[rows.index(key), columns.index(column)] = number
    names = Names(frames.tokens)
    headings = [names.headings(axis, [row[place] for row in rows]) for place, axis in enumerate(down)]
    return Panel(
        _spoken_rows(down),
        _SPOKEN.get(across, across),
        tuple(_joined(down, each) for each in zip(*headings, strict=True)) if down else ("",),
        tuple(names.headings(across, columns)),
        numbers,
        len(dict.fromkeys(keys)),
    )


def _rows(keys: list[tuple[Hashable, ...]], cells: pd.DataFrame, down: list[str]) -> list[tuple[Hashable, ...]]:
    """The rows that are shown, each axis in the order of the sweep."""
    places = [{value: place for place, value in enumerate(cells[axis].drop_duplicates())} for axis in down]
    rows = sorted(set(keys), key=lambda row: [place[value] for place, value in zip(places, row, strict=True)])
    if len(rows) <= _MOST:
        return rows
    strongest = dict.fromkeys(keys[number] for number in strongest_first(cells).index)
    kept = set(list(strongest)[:_KEPT])
    return [row for row in rows if row in kept]


def _rank(axis: str) -> tuple[int, str]:
    return (_DOWN.index(axis), "") if axis in _DOWN else (0, axis)


def _spoken_rows(down: list[str]) -> str:
    if not down:
        return ""
    if down[:2] == ["layer", "head"]:
        return ", ".join(["head", *(_SPOKEN.get(axis, axis) for axis in down[2:])])
    return ", ".join(_SPOKEN.get(axis, axis) for axis in down)


def _joined(down: list[str], headings: tuple[str, ...]) -> str:
    if down[:2] == ["layer", "head"]:
        return ", ".join([".".join(headings[:2]), *headings[2:]])
    return ", ".join(headings)
