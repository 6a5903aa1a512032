"""Numbers in their places: the same cells as a table that a browser colours, and as a figure.

Values map linearly to a palette: ``attention`` runs from nothing up, and less than nothing is as neutral as nothing;
``effect`` diverges from a middle, as far above as below. The ink is black or white, whichever has the larger contrast
ratio by WCAG 2.2's relative luminance (https://www.w3.org/TR/WCAG22/#dfn-relative-luminance). What has no number is
hatched, never 0.
"""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.colors import Colormap, to_hex
from numpy.typing import ArrayLike

from interp.report.drawing import (
    Figure,
    draw_table,
    hatching,
    is_annotated,
    label_text,
    legend,
    mark_cells,
    one_panel,
    thin_ticks,
)
from interp.report.heads_frames import VERDICTS, Verdict, layer_by_head
from interp.report.words import decimal

Palette = Literal["attention", "effect"]
SEQUENTIAL = "light:#1b6ca8"
"""Seaborn's name of the palette of attention on a light page."""

FAINTEST_BOUND = 1.0
"""Colours reach at least to one nat of effect, so that noise around 0 stays pale."""


@dataclass(frozen=True)
class Paint:
    """The background of one cell, as hexadecimal colours for a light and a dark page."""

    light: str
    dark: str

    @property
    def style(self) -> str:
        """CSS declarations of backgrounds and inks; ``page.css`` chooses from them by the reader's colour scheme."""
        return f"--l:{self.light};--li:{ink(self.light)};--d:{self.dark};--di:{ink(self.dark)}"


def paint(value: float, palette: Palette, *, bound: float = 1.0) -> Paint:
    """Colour a measured value: ``attention`` from 0 to `bound`, ``effect`` from -`bound`; the ends beyond."""
    share = value / bound if palette == "attention" else (value / bound + 1) / 2
    return Paint(*(to_hex(scheme(min(max(share, 0.0), 1.0))) for scheme in _schemes(palette)))


def reach(values: ArrayLike) -> float:
    """What the colours of `values` reach to: the largest magnitude, and ``FAINTEST_BOUND`` at least; NaN has no say."""
    return max(FAINTEST_BOUND, *np.abs(np.nan_to_num(np.asarray(values, dtype=float))).ravel())


def ink(background: str) -> str:
    """Black or white, whichever is easier to read on the hexadecimal colour `background`."""
    return "#000000" if contrast("#000000", background) >= contrast("#ffffff", background) else "#ffffff"


def contrast(one: str, other: str) -> float:
    """WCAG's contrast ratio of two hexadecimal colours, from 1 (equal) to 21 (black and white)."""
    low, high = sorted(sns.utils.relative_luminance(each) for each in (one, other))
    return float((high + 0.05) / (low + 0.05))


@cache
def _schemes(palette: Palette) -> tuple[Colormap, Colormap]:
    """The palette for a light and for a dark page; small values fade into the page in both."""
    if palette == "attention":
        make: Callable[..., Colormap] = sns.color_palette
        return make(SEQUENTIAL, as_cmap=True), make("dark:#6cc0ff", as_cmap=True)
    light, dark = (sns.diverging_palette(15, 250, s=85, l=52, center=c, as_cmap=True) for c in ("light", "dark"))
    return light, dark


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
    """A table of coloured cells, as a page shows it: headings of columns, and each row's heading and cells."""

    corner: str  # what the rows are
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    hatched: tuple[tuple[str, str], ...]  # symbol and meaning, as far as it occurs


def head_grid(
    cells: pd.DataFrame, cell: Callable[[pd.Series], Cell], hatched: tuple[tuple[str, str], ...] = ()
) -> Heatmap:
    """Layers down, heads across, with what `cell` makes of each row; every layer has the same heads."""
    rows = cells.set_index(["layer", "head"], drop=False)
    layers, heads = (sorted(cells[name].unique()) for name in ("layer", "head"))
    drawn = tuple((str(layer), tuple(cell(rows.loc[(layer, head)]) for head in heads)) for layer in layers)
    return Heatmap("Layer", tuple(f"head {head}" for head in heads), drawn, hatched)


@dataclass(frozen=True)
class Reason:
    """Why a place has no number: one character for tables, a hatch for figures, and what it means."""

    symbol: str
    hatch: str
    meaning: str


def missing(name: str = "not measured") -> dict[str, Reason]:
    """The only reason that there is, by its name."""
    return {name: Reason("—", "////", name)}


@dataclass(frozen=True, eq=False)
class Grid:
    """Numbers in their places.

    Attributes:
        down: What the rows are.
        across: What the columns are.
        values: The numbers.
        titles: What hovering over each place says.
        marks: What is said of each number, as a name of `verdicts`; empty for nothing.
        verdicts: By name.
        absent: Why there is no number, as a name of `reasons`; empty where there is one. By default, the first of the
            reasons wherever a number is missing.
        reasons: By name.
        palette: See ``paint``.
        start: What has no colour.
        bound: How far from there the strongest colour is.
    """

    down: str
    across: str
    values: pd.DataFrame
    titles: np.ndarray
    marks: np.ndarray
    verdicts: Mapping[str, Verdict]
    palette: Palette
    bound: float
    start: float = 0.0
    reasons: Mapping[str, Reason] = field(default_factory=missing)
    absent: Any = None

    def __post_init__(self) -> None:
        if self.absent is None:
            object.__setattr__(self, "absent", np.where(self.values.isna(), next(iter(self.reasons)), ""))

    def heatmap(self) -> Heatmap:
        """As a page shows them."""
        spoken = f"{self.across} " if self.across in ("head", "layer", "neuron") else ""
        rows = tuple(
            (str(name), tuple(self._cell(row, column) for column in range(self.values.shape[1])))
            for row, name in enumerate(self.values.index)
        )
        hatched = tuple(
            (reason.symbol, name if name == reason.meaning else f"{name}: {reason.meaning}")
            for name, reason in self._occurring().items()
        )
        return Heatmap(self.down.capitalize(), tuple(f"{spoken}{name}" for name in self.values.columns), rows, hatched)

    def figure(self, title: str, label: str) -> Figure:
        """As a figure; `label` stands at the bar of the colours."""
        longest = max(len(label_text(name)) for name in self.values.columns)
        n_rows, n_columns = self.values.shape
        wide, high = (0.62, 0.42) if is_annotated(self.values) else (0.28, 0.26)
        figure, ax = one_panel(max(4.6, wide * n_columns + 2.4), max(2.8, high * n_rows + 1.9 + 0.05 * longest))
        from_0 = self.palette == "attention"
        colours = sns.color_palette(SEQUENTIAL if from_0 else "RdBu", as_cmap=True)
        hatches = np.array([[self.reasons[name].hatch if name else "" for name in row] for row in self.absent])
        ends = {"vmin": self.start - (0 if from_0 else self.bound), "vmax": self.start + self.bound}
        draw_table(ax, self.values, cmap=colours, annotate=True, cbar=True, label=label, hatches=hatches, **ends)
        thin_ticks(ax)
        ax.tick_params(axis="x", labelrotation=45 if longest > 4 else 0)
        for tick in ax.get_xticklabels():
            tick.set(ha="right" if longest > 4 else "center", rotation_mode="anchor")
        ax.set(xlabel=self.across, ylabel=self.down)
        lines = [textwrap.fill(line, int(11 * figure.get_figwidth())) for line in title.split("\n")]
        figure.suptitle("\n".join(lines), fontsize=9, parse_math=False)
        # Below the number, where there is one.
        handles = mark_cells(ax, self.marks, self.verdicts, down=0.72 if is_annotated(self.values) else 0.5)
        legend(figure, handles | {name: hatching(reason.hatch) for name, reason in self._occurring().items()})
        return figure

    def _occurring(self) -> dict[str, Reason]:
        return {name: reason for name, reason in self.reasons.items() if (self.absent == name).any()}

    def _cell(self, row: int, column: int) -> Cell:
        absent, mark, title = self.absent[row, column], self.marks[row, column], str(self.titles[row, column])
        symbol = self.verdicts[mark].symbol if mark else ""
        if absent:
            return Cell(self.reasons[absent].symbol, symbol, "", title)
        # Rounded before it is painted: what reads as the same has one colour.
        text = decimal(self.values.iat[row, column])
        return Cell(text, symbol, paint(float(text) - self.start, self.palette, bound=self.bound).style, title)


def grid_of_heads(
    frame: pd.DataFrame, task: str, column: str, titles: Sequence[str], verdicts: Mapping[str, Verdict], **colours: Any
) -> Grid:
    """A column of one task's heads, layers down and heads across, with their ``verdict``.

    `titles` stand in the frame's order; `colours` are ``palette``, ``bound``, ``start`` and ``reasons`` of ``Grid``.
    """
    rows = frame.assign(_title=list(titles))
    values, said, marks = (layer_by_head(rows, task, name) for name in (column, "_title", "verdict"))
    absent = next(iter(colours.get("reasons", missing())))
    marks = marks.where(marks.isin(list(verdicts)), "").to_numpy()
    return Grid("layer", "head", values, said.fillna(absent).to_numpy(), marks, verdicts, **colours)


def heatmap(frame: pd.DataFrame, task: str, column: str, palette: Palette) -> Heatmap:
    """Colour one task's values of a dossier's `frame`; the colours reach to the largest size, and to 1 at least."""
    titles = []
    for layer, head, value, verdict in frame[["layer", "head", column, "verdict"]].itertuples(index=False):
        number = "not testable" if pd.isna(value) else decimal(value)
        titles.append(f"Head {layer}.{head}: {number}" + (f" ({verdict})" if verdict in VERDICTS else ""))
    bound, reasons = reach(frame.loc[frame["task"] == task, column]), missing("not testable")
    return grid_of_heads(frame, task, column, titles, VERDICTS, palette=palette, bound=bound, reasons=reasons).heatmap()
