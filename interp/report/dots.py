"""How are estimates with intervals drawn beside each other? Rows from the top; in each, a dot with a line a series."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from interp.report.drawing import Figure, despined, short, style, wrapped_title

_LONGEST = 44
_APART, _SPREAD = 0.15, 0.32
"""How far series stand from each other, and the first and the last at most from the middle of the row."""
MOST_ROWS = 40


@dataclass(frozen=True)
class Dots:
    """What is drawn.

    Attributes:
        rows: The rows' names, the first on top.
        series: By their names, in the order of `rows`: ``estimate``, ``low``, ``high``; NaN where there is none.
        across: What the estimates are.
        title: Of the figure.
        origin: Where a line stands to compare with; None for none.
        ignored: The largest size that does not count, shaded on both sides of the origin; 0 for none.
    """

    rows: Sequence[str]
    series: dict[str, pd.DataFrame]
    across: str
    title: str
    origin: float | None = 0.0
    ignored: float = 0.0


def dots_figure(dots: Dots) -> Figure:
    """Draw them; each series has a shape and a colour of its own, and one alone needs no legend."""
    apart = max(0.27, 0.13 * len(dots.series))
    figure = Figure(figsize=(7.0, apart * len(dots.rows) + 1.7), dpi=150, layout="constrained")
    ax = figure.subplots()
    _compare(ax, dots)
    for number, (name, frame) in enumerate(dots.series.items()):
        _draw(ax, frame, number, len(dots.series), name)
    _unmeasured(ax, dots)
    ax.set_yticks(np.arange(len(dots.rows)), labels=[short(name, _LONGEST) for name in dots.rows], parse_math=False)
    ax.set_ylim(len(dots.rows) - 0.4, -0.6)
    ax.set_xlabel(dots.across, fontsize=9)
    ax.grid(axis="y", color="0.93", zorder=0)
    ax.set_axisbelow(True)
    despined(ax, left=True)
    ax.tick_params(axis="y", length=0)
    wrapped_title(ax, dots.title)
    if len(dots.series) > 1:
        figure.legend(loc="outside lower center", ncols=min(4, len(dots.series)), fontsize=8, frameon=False)
    return figure


def _compare(ax: Axes, dots: Dots) -> None:
    if dots.origin is None:
        return
    if dots.ignored:
        ax.axvspan(dots.origin - dots.ignored, dots.origin + dots.ignored, color="0.93", linewidth=0, zorder=0)
    ax.axvline(dots.origin, color="0.5", linewidth=0.8, zorder=1)


def _draw(ax: Axes, frame: pd.DataFrame, number: int, n_series: int, name: str) -> None:
    spread = min(_SPREAD, _APART * (n_series - 1) / 2)
    away = np.linspace(-spread, spread, n_series)[number]
    place, look = np.arange(len(frame)) + away, style(number)
    ax.hlines(place, frame["low"], frame["high"], color=look["color"], linewidth=1.6, zorder=2)
    ax.plot(frame["estimate"], place, linestyle="none", markersize=5, zorder=3, label=name, **look)


def _unmeasured(ax: Axes, dots: Dots) -> None:
    """Say it in the rows in which no series has an estimate."""
    known = np.any([frame["estimate"].notna().to_numpy() for frame in dots.series.values()], axis=0)
    at = 0.0 if dots.origin is None else dots.origin
    for row in np.flatnonzero(~known).tolist():
        ax.text(at, row, " not measured", va="center", fontsize=7, color="0.4")


def series(frame: pd.DataFrame, estimate: str, low: str, high: str) -> pd.DataFrame:
    """Three columns of a frame as a series of dots."""
    return frame[[estimate, low, high]].set_axis(["estimate", "low", "high"], axis=1).astype(float)
