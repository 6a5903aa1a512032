"""How does one number per head become a table that a browser colours? Layers down, heads across."""

from dataclasses import dataclass

import pandas as pd

from interp.report.colours import Palette, paint, reach
from interp.report.frames import layer_by_head
from interp.report.verdicts import VERDICTS


@dataclass(frozen=True)
class Cell:
    """One head: its value as text, its verdict's symbol, its colours and what hovering over it says."""

    text: str
    symbol: str
    style: str
    title: str

    @property
    def measured(self) -> bool:
        """Whether there was a value; a cell without one is hatched."""
        return bool(self.style)


@dataclass(frozen=True)
class Heatmap:
    """A table of heads: the numbers of the heads, and one row of cells per layer."""

    heads: tuple[int, ...]
    rows: tuple[tuple[int, tuple[Cell, ...]], ...]

    @property
    def complete(self) -> bool:
        """Whether every head has a value."""
        return all(cell.measured for _, cells in self.rows for cell in cells)


def heatmap(frame: pd.DataFrame, task: str, column: str, palette: Palette) -> Heatmap:
    """Colour one task's values of `frame`.

    Args:
        frame: One row per layer, head and task, with the column ``verdict``.
        task: The task to show.
        column: The column to show.
        palette: See ``colours.paint``; the colours reach to the task's largest magnitude, and to 1 at least.
    """
    table, verdicts = layer_by_head(frame, task, column), layer_by_head(frame, task, "verdict")
    bound = reach(table)
    rows = tuple(
        (
            int(layer),
            tuple(
                _cell(f"Head {layer}.{head}", table.loc[layer, head], verdicts.loc[layer, head], palette, bound)
                for head in table.columns
            ),
        )
        for layer in table.index
    )
    return Heatmap(tuple(int(head) for head in table.columns), rows)


def _cell(name: str, value: float, verdict: object, palette: Palette, bound: float) -> Cell:
    known = VERDICTS.get(str(verdict))
    symbol, ending = (known.symbol, f" ({known.name})") if known else ("", "")
    if pd.isna(value):
        return Cell("—", symbol, "", f"{name}: not testable{ending}")
    text = f"{round(float(value), 2) + 0.0:.2f}"
    return Cell(text, symbol, paint(value, palette, bound=bound).style, f"{name}: {text}{ending}")
