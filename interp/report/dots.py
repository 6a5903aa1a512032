"""How are estimates with intervals drawn beside each other? Rows from the top; in each, a dot with a line a series."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from interp.report.drawing import LINE, Figure, finish, one_panel, short, style

_APART, _SPREAD = 0.15, 0.32
"""How far series stand from each other, and the first and the last at most from the middle of the row."""
MOST_ROWS = 40


def dots_figure(
    rows: Sequence[str],
    drawn: Mapping[str, pd.DataFrame],
    across: str,
    title: str,
    origin: float | None = 0.0,
    ignored: float = 0.0,
    looks: Mapping[str, Mapping[str, Any]] = {},
    away: Mapping[str, float] = {},
    missing: Sequence[str] = (),
    longest: int = 44,
) -> Figure:
    """Draw them; each series has a shape and a colour of its own, and one alone needs no legend.

    Args:
        rows: The rows' names, the first on top.
        drawn: The series by their names, in the order of `rows`: ``estimate``, ``low``, ``high``; NaN where there is
            none.
        across: What the estimates are.
        title: Of the figure.
        origin: Where a line stands to compare with; None for none.
        ignored: The largest size that does not count, shaded on both sides of the origin; 0 for none.
        looks: Of series that do not look as ``drawing.style`` has it, what ``Axes.plot`` takes.
        away: How far each series stands below the middle of its row; empty for all beside each other.
        missing: Why a row has no estimate, row by row; empty for ``not measured``.
        longest: Characters of a row's name; an ellipsis stands for the rest.
    """
    n_rows, n_series = len(rows), len(drawn)
    spread = min(_SPREAD, _APART * (n_series - 1) / 2)
    places = away or dict(zip(drawn, np.linspace(-spread, spread, n_series), strict=True))
    apart = max(0.27, 1.5 * max(map(abs, away.values())) if away else 0.13 * n_series)
    names = [short(name, longest) for name in rows]
    wide = 7.0 + 0.06 * max(0, max(map(len, names), default=0) - 44)
    figure, ax = one_panel(wide, apart * n_rows + 1.7)
    if origin is not None:
        if ignored:
            ends = (origin - ignored, origin + ignored)
            ax.axvspan(*ends, color="0.93", linewidth=0, zorder=0)
        ax.axvline(origin, color="0.5", linewidth=0.8, zorder=1)
    for number, (name, frame) in enumerate(drawn.items()):
        place, look = np.arange(n_rows) + places[name], looks.get(name) or style(number)
        ax.hlines(place, frame["low"], frame["high"], color=look["color"], linewidth=1.6, zorder=2)
        ax.plot(frame["estimate"], place, **{"linestyle": "none", "markersize": 5, "zorder": 3, "label": name, **look})
    known = np.any([frame["estimate"].notna().to_numpy() for frame in drawn.values()], axis=0)
    for row in np.flatnonzero(~known).tolist():
        why = missing[row] if missing else "not measured"
        ax.text(origin or 0.0, row, f" {why}", va="center", fontsize=7, color="0.4")
    ax.grid(axis="y", color="0.93", zorder=0)
    ax.set_axisbelow(True)
    finish(ax, title, across, rows=names)
    if n_series > 1:
        n_columns = max(1, min(4, n_series, int(16 * wide / (6 + max(map(len, drawn))))))
        figure.legend(loc="outside lower center", ncols=n_columns, fontsize=8, frameon=False)
    return figure


def series(frame: pd.DataFrame, estimate: str, low: str, high: str) -> pd.DataFrame:
    """Three columns of a frame as a series of dots."""
    return frame[[estimate, low, high]].set_axis(["estimate", "low", "high"], axis=1).astype(float)


def found_or_not(
    estimates: pd.DataFrame, found: pd.Series, names: tuple[str, str], **look: Any
) -> tuple[dict[str, pd.DataFrame], dict[str, dict[str, Any]]]:
    """Rows that are found (filled dots) and the others (open ones), as far as there are any: their series and looks."""
    drawn, looks = {}, {}
    for name, which, fill in zip(names, (found, ~found), (LINE, "white"), strict=True):
        if which.any():
            drawn[name] = estimates.where(which)
            looks[name] = {"marker": "o", "color": LINE, "markerfacecolor": fill, **look}
    return drawn, looks
