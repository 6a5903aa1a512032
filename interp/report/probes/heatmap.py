"""How do cells become tables that a browser colours? Heads by layer, and the best cells beside their controls."""

import pandas as pd

from interp.report.amounts import decimal
from interp.report.colours import paint
from interp.report.frames import layer_by_head
from interp.report.heatmap import Cell, Heatmap
from interp.report.probes.frames import ProbeFrames, has_heads, measure_of, scale_of
from interp.report.probes.leading import ranked
from interp.report.probes.verdicts import VERDICTS
from interp.report.probes.words import CONTROLS, cell_kind, cell_name, spoken

MOST_CELLS = 12
TOUGHEST = "▲"
_UNMEASURED = ("", "not measured")
_NOWHERE = -1
_COLUMNS = {"score": "score", **CONTROLS}


def head_heatmap(frames: ProbeFrames, column: str) -> Heatmap:
    """Colour a column of the frame, layers down and heads across; the verdicts are its symbols.

    Args:
        frames: Of heads.
        column: ``score`` or ``selectivity``.
    """
    numbers = layer_by_head(frames.frame.assign(task="", _row=range(len(frames.frame))), "", "_row")
    numbers = numbers.fillna(_NOWHERE).astype(int)
    rows = tuple(
        (str(layer), tuple(_of_head(frames, column, number) for number in numbers.loc[layer].tolist()))
        for layer in numbers.index
    )
    hatched = (_UNMEASURED,) if (numbers == _NOWHERE).to_numpy().any() else ()
    return Heatmap("Layer", tuple(f"head {head}" for head in numbers.columns), rows, hatched)


def beside(frames: ProbeFrames) -> pd.DataFrame:
    """The cells that are shown beside their controls: the best heads, or all layers in their order."""
    return ranked(frames.frame).head(MOST_CELLS) if has_heads(frames) else frames.frame


def controls_heatmap(frames: ProbeFrames) -> Heatmap:
    """Colour what cells and their controls reach; a score has its verdict's symbol, the toughest control its own."""
    shown = beside(frames)
    rows = tuple(
        (cell_name(row), tuple(_of_control(frames, row, column) for column in _COLUMNS)) for _, row in shown.iterrows()
    )
    hatched = (_UNMEASURED,) if shown[list(_COLUMNS)].isna().to_numpy().any() else ()
    return Heatmap(cell_kind(frames).capitalize(), tuple(_COLUMNS.values()), rows, hatched)


def _of_head(frames: ProbeFrames, column: str, number: int) -> Cell:
    if number == _NOWHERE:
        return Cell("—", "", "", "not measured")
    row, prefix = frames.frame.iloc[number], "" if column == "score" else f"{column}_"
    ends = (row[f"{prefix}low"], row[f"{prefix}high"])
    return _cell(frames, row, column, VERDICTS[row["verdict"]].symbol, ends, row["verdict"])


def _of_control(frames: ProbeFrames, row: pd.Series, column: str) -> Cell:
    if column == "score":
        return _cell(frames, row, column, VERDICTS[row["verdict"]].symbol, (row["low"], row["high"]), row["verdict"])
    toughest = column == row["baseline"]
    return _cell(frames, row, column, TOUGHEST if toughest else "", None, "the toughest" if toughest else "")


def _cell(
    frames: ProbeFrames, row: pd.Series, column: str, symbol: str, ends: tuple[float, float] | None, said: str
) -> Cell:
    name = f"{spoken(frames, row)}, {_COLUMNS.get(column, column)}"
    name = f"{name[0].upper()}{name[1:]}"
    if pd.isna(row[column]):
        return Cell("—", symbol, "", f"{name}: not measured")
    measure, text, (low, high) = measure_of(frames), decimal(row[column]), scale_of(frames, column)
    number = measure.difference(row[column]) if column == "selectivity" else measure.value(row[column])
    interval = f" {measure.interval(*ends)}" if ends else ""
    # Rounded before it is painted: what reads as the same has one colour.
    style = paint(float(text) - low, "attention", bound=high - low).style
    return Cell(text, symbol, style, f"{name}: {number}{interval}{f' ({said})' if said else ''}")
