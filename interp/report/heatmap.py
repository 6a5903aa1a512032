"""Which colour does a value get, on a light and on a dark page, and which ink can be read on it?

Values map linearly to a palette: sequential from 0 for attention, whose negative values are as
neutral as 0; diverging and centred on 0 for effects. The ink is black or white, whichever has the
larger contrast ratio by WCAG 2.2's relative luminance (https://www.w3.org/TR/WCAG22/#dfn-relative-luminance).

How do numbers become a table that a browser colours? Rows of cells, with what hovering over each says.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.colors import Colormap, to_hex
from numpy.typing import ArrayLike

from interp.report.heads_frames import VERDICTS, layer_by_head
from interp.report.words import decimal

Palette = Literal["attention", "effect"]
SEQUENTIAL = "light:#1b6ca8"
"""Seaborn's name of the palette of attention on a light page."""

FAINTEST_BOUND = 1.0
"""Colours reach at least to one nat of effect, so that noise around 0 stays pale."""


@dataclass(frozen=True)
class Paint:
    """The background and ink of one cell, as hexadecimal colours for a light and a dark page."""

    light: str
    light_ink: str
    dark: str
    dark_ink: str

    @property
    def style(self) -> str:
        """CSS declarations that ``page.css`` chooses from by the reader's colour scheme."""
        return f"--l:{self.light};--li:{self.light_ink};--d:{self.dark};--di:{self.dark_ink}"


def paint(value: float, palette: Palette, *, bound: float = 1.0) -> Paint:
    """Colour a measured value.

    Args:
        value: The value; beyond `bound` it gets the palette's end.
        palette: ``attention`` runs from 0 to `bound`; ``effect`` from -`bound` to `bound`.
        bound: The largest magnitude that the colours tell apart, above 0.
    """
    share = value / bound if palette == "attention" else (value / bound + 1) / 2
    light, dark = (to_hex(scheme(min(max(share, 0.0), 1.0))) for scheme in _schemes(palette))
    return Paint(light, ink(light), dark, ink(dark))


def reach(values: ArrayLike) -> float:
    """What the colours of `values` reach to: the largest magnitude, and ``FAINTEST_BOUND`` at least; NaN has no say."""
    return max(FAINTEST_BOUND, *np.abs(np.nan_to_num(np.asarray(values, dtype=float))).ravel())


def ink(background: str) -> str:
    """Black or white, whichever is easier to read on the hexadecimal colour `background`."""
    return "#000000" if contrast("#000000", background) >= contrast("#ffffff", background) else "#ffffff"


def contrast(one: str, other: str) -> float:
    """WCAG's contrast ratio of two hexadecimal colours, from 1 (equal) to 21 (black and white)."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@cache
def _schemes(palette: Palette) -> tuple[Colormap, Colormap]:
    """The palette for a light and for a dark page; small values fade into the page in both."""
    if palette == "attention":
        make: Callable[..., Colormap] = sns.color_palette
        return make(SEQUENTIAL, as_cmap=True), make("dark:#6cc0ff", as_cmap=True)
    light, dark = (sns.diverging_palette(15, 250, s=85, l=52, center=c, as_cmap=True) for c in ("light", "dark"))
    return light, dark


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


def head_grid(
    cells: pd.DataFrame, cell: Callable[[pd.Series], Cell], hatched: tuple[tuple[str, str], ...] = ()
) -> Heatmap:
    """Layers down, heads across, with what `cell` makes of each row; every layer has the same heads."""
    rows = cells.set_index(["layer", "head"], drop=False)
    layers, heads = (sorted(cells[name].unique()) for name in ("layer", "head"))
    drawn = tuple((str(layer), tuple(cell(rows.loc[(layer, head)]) for head in heads)) for layer in layers)
    return Heatmap("Layer", tuple(f"head {head}" for head in heads), drawn, hatched)


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
