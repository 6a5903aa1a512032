"""How do numbers become a table that a browser colours? Rows of cells, with what hovering over each says."""

from dataclasses import dataclass

import pandas as pd

from interp.report.amounts import decimal
from interp.report.colours import Palette, paint, reach
from interp.report.frames import layer_by_head
from interp.report.verdicts import VERDICTS

UNTESTABLE = ("", "not testable")


@dataclass(frozen=True)
class Cell:
    """One value as text, a symbol for what is said of it, its colours and what hovering over it says."""

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
    """A table of coloured cells.

    Attributes:
        corner: What the rows are.
        columns: The columns' headings.
        rows: Each row's heading and cells.
        hatched: Symbol and meaning of what is hatched, as far as it occurs.
    """

    corner: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    hatched: tuple[tuple[str, str], ...]


def heatmap(frame: pd.DataFrame, task: str, column: str, palette: Palette) -> Heatmap:
    """Colour one task's values of `frame`, layers down and heads across.

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
            str(layer),
            tuple(
                _cell(f"Head {layer}.{head}", table.loc[layer, head], verdicts.loc[layer, head], palette, bound)
                for head in table.columns
            ),
        )
        for layer in table.index
    )
    hatched = (UNTESTABLE,) if table.isna().to_numpy().any() else ()
    return Heatmap("Layer", tuple(f"head {head}" for head in table.columns), rows, hatched)


def _cell(name: str, value: float, verdict: object, palette: Palette, bound: float) -> Cell:
    known = VERDICTS.get(str(verdict))
    symbol, ending = (known.symbol, f" ({known.name})") if known else ("", "")
    if pd.isna(value):
        return Cell("—", symbol, "", f"{name}: not testable{ending}")
    text = decimal(value)
    return Cell(text, symbol, paint(value, palette, bound=bound).style, f"{name}: {text}{ending}")
