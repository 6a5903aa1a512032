"""Did a cell change anything? What it did to all of its examples, in one word.

What is shown of each cell? Its name, the quantity that is coloured, what is claimed of it and why it may have none.

1. Of an ablation the effect is shown; of patching the normalised effect: 0 is the corrupted run, 1 the clean one.
2. Colours and sizes count from the run that is changed, the ``origin``: 0, or 1 where the clean run is.
3. A cell is a finding where its effect is beyond the correction (``p_adjusted`` at most ``ALPHA``); a large one from a
   tenth of the difference between clean and corrupted, or of the model's own metric on.
4. Where no example changed, what is left of the effect is rounding: no number, and no finding.

How do cells become a table with two sides? One axis across, all others down.

1. Across goes the position attended to, else the position, else the neuron, else the head, else the last label.
2. Down go the others: layers; heads (``2.1``), each with its positions; or one row where there is a single axis.
3. Of more rows than a reader takes in, those with the strongest cells are kept; a table that is too wide is none.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from interp.report.sweep_frames import Names, SweepFrames

CHANGED = "changed"


@dataclass(frozen=True)
class State:
    """Why a cell is hatched instead of coloured.

    Attributes:
        symbol: One character, for tables.
        hatch: For figures.
        meaning: For legends and sentences.
    """

    symbol: str
    hatch: str
    meaning: str


UNMEASURED = "not measured"
STATES = {
    UNMEASURED: State("—", "////", UNMEASURED),
    "identical input": State("=", "....", "both runs have the same activation there, so nothing can change"),
    "unreachable": State("⊘", "xxxx", "what is changed there cannot reach the answer"),
    "no-op": State("∅", "++++", "the intervention changed nothing"),
    "nothing to recover": State("?", "\\\\\\\\", "the clean and the corrupted run are not shown to differ"),
}
"""By status, as far as a cell has no other; the words of ``SweepResult``."""


def statuses(examples: pd.DataFrame, labels: Sequence[str]) -> pd.DataFrame:
    """What happened in each cell.

    Args:
        examples: One row per cell and example, with ``status``.
        labels: The columns that name a cell.

    Returns:
        One row per cell in the order of `examples`: the labels, ``status`` (in words, such as ``changed`` or ``changed
        in 12 of 48``) and ``state`` (one of ``STATES``; empty where something changed).
    """
    counts = examples.groupby([*labels, "status"], sort=False).size().unstack("status", fill_value=0)
    order = pd.MultiIndex.from_frame(examples[list(labels)].drop_duplicates())
    if len(labels) == 1:
        order = order.get_level_values(0)
    counts = counts.reindex(order)
    changed = counts[CHANGED] if CHANGED in counts else 0 * counts.sum(axis=1)
    n_examples = counts.sum(axis=1)
    commonest = counts.drop(columns=CHANGED, errors="ignore").reindex(columns=list(STATES), fill_value=0).idxmax(axis=1)
    words = [_words(*row) for row in zip(changed, n_examples, commonest, strict=True)]
    found = pd.DataFrame({"status": words, "state": commonest.where(changed == 0, "")}, index=counts.index)
    return found.reset_index()


def _words(changed: int, n_examples: int, commonest: str) -> str:
    if changed == n_examples:
        return CHANGED
    return f"changed in {changed} of {n_examples}" if changed else commonest


ALPHA = 0.05
MINIMUM = 0.1
"""From what share on an effect is large; as ``interp.heads`` has it."""
LARGE, SMALL = "large", "small"
MARKS = {LARGE: "●", SMALL: "○"}
MEANINGS = {LARGE: "beyond the correction, and large", SMALL: "beyond the correction, but small"}


def described(frames: SweepFrames) -> pd.DataFrame:
    """The cells in the order of the sweep, with what is shown of them.

    Returns:
        The columns of ``frames.cells`` and ``name``, ``status``, ``state`` (see ``states.statuses``), ``shown``,
        ``shown_low``, ``shown_high`` (the quantity; NaN where there is a state), ``size`` (of the effect, in units of
        the metric; NaN likewise) and ``found`` (``large``, ``small`` or empty). After a screen also the cells that were
        not measured, and ``estimate`` and ``chosen`` of each. What is rounding alone is NaN.
    """
    labels = list(frames.labels)
    cells = statuses(frames.examples, labels).merge(frames.cells, on=labels, how="left", validate="one_to_one")
    if frames.estimates is not None:
        cells = frames.estimates.merge(cells, on=labels, how="left", validate="one_to_one")
        cells = cells.fillna({"status": UNMEASURED, "state": UNMEASURED})
    names = Names(frames.tokens)
    cells["name"] = [names.cell(dict(zip(labels, row, strict=True))) for row in cells[labels].itertuples(index=False)]
    shown = ("normalised", "normalised_low", "normalised_high") if frames.patched else ("effect", "low", "high")
    if frames.patched:
        lost = (cells["state"] == "") & cells["normalised"].isna()
        cells["state"] = cells["state"].mask(lost, "nothing to recover")
    moved = cells["state"] == ""
    for name, column in zip(("shown", "shown_low", "shown_high"), shown, strict=True):
        cells[name] = cells[column].where(moved)
    numbers = [name for name in cells if name in (*shown, "effect", "low", "high", "p", "p_adjusted")]
    cells[numbers] = cells[numbers].where(moved | (cells["state"] == "nothing to recover"))
    cells["size"] = cells["effect"].abs().where(moved)
    beyond = moved & (cells["p_adjusted"] <= ALPHA)
    cells["found"] = np.select([beyond & is_large(frames, cells), beyond], [LARGE, SMALL], "")
    return cells


def is_large(frames: SweepFrames, cells: pd.DataFrame) -> pd.Series:
    """Whether each effect reaches the minimum, tested or not."""
    return (cells["shown"] - origin(frames)).abs() >= minimum(frames)


def origin(frames: SweepFrames) -> float:
    """What is shown of the run that is changed: 1 where that is the clean run, else 0."""
    return 1.0 if frames.provenance.get("direction") == "noise" else 0.0


def minimum(frames: SweepFrames) -> float:
    """From what distance from the origin on a cell is large, in what is shown.

    A KL divergence has nothing to be a share of: it has no minimum.
    """
    if frames.patched:
        return MINIMUM
    return 0.0 if frames.metric == "kl_divergence" else MINIMUM * abs(float(frames.runs["mean"].iloc[0]))


def strongest_first(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells by the size of their effects; then, by their estimates, those that have none."""
    estimate = cells["estimate"].abs() if "estimate" in cells else 0.0
    order = cells.assign(_estimate=estimate).sort_values(["size", "_estimate"], ascending=False, na_position="last")
    return order.drop(columns="_estimate")


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
