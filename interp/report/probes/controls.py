"""What is each of the best cells held against? Its score with the interval, beside all of its controls."""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from interp.report.drawing import wrapped_title
from interp.report.figure import Figure
from interp.report.probes.frames import ProbeFrames
from interp.report.probes.heatmap import beside
from interp.report.probes.styles import BLUE, EDGE, STYLES, lowest, measured, name_axis
from interp.report.probes.verdicts import ENCODES
from interp.report.probes.words import CONTROLS, cell_kind, spoken, subject

_SPREAD = 0.3
"""How far from its cell's line the first and the last control stand."""


def cells_beside_controls(frames: ProbeFrames) -> Figure:
    """The best heads, or all layers in their order: dots with 95 % intervals, and the controls' marks around them."""
    shown = beside(frames)
    figure = Figure(figsize=(7.4, 0.46 * len(shown) + 2.0), dpi=150, layout="constrained")
    ax = figure.subplots()
    at, low = np.arange(len(shown)), lowest(frames)
    for row in at[::2]:
        ax.axhspan(row - 0.5, row + 0.5, color="0.96", zorder=0, linewidth=0)
    names = measured(frames)
    for name, away in zip(names, np.linspace(-_SPREAD, _SPREAD, len(names)), strict=True):
        style = STYLES[name]
        ax.plot(
            shown[name].clip(lower=low),
            at + away,
            style.marker,
            color=style.colour,
            markersize=5,
            label=CONTROLS[name],
            zorder=2,
        )
    _scores(ax, shown, low)
    ax.set_yticks(at, labels=[spoken(frames, row) for _, row in shown.iterrows()], fontsize=8, parse_math=False)
    ax.set_ylim(len(shown) - 0.5, -0.5)
    ax.set_xlim(low - 0.03 * (1 - low), 1 + 0.03 * (1 - low))
    name_axis(ax, frames, "x")
    ax.tick_params(axis="both", length=0, labelsize=8)
    ax.grid(axis="x", color="0.88")
    ax.set_axisbelow(True)
    sns.despine(ax=ax, left=True)
    wrapped_title(ax, _said(frames, len(shown)))
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    return figure


def _said(frames: ProbeFrames, n_shown: int) -> str:
    n_cells = len(frames.frame)
    which = f"the best {n_shown} of {n_cells:,} {cell_kind(frames)}s" if n_shown < n_cells else "scores"
    return f"{subject(frames)}: {which} beside the controls"


def _scores(ax: Axes, shown: pd.DataFrame, low: float) -> None:
    at = np.arange(len(shown))
    ends = [shown[end].clip(lower=low) for end in ("low", "high")]
    lines = ax.hlines(at, *ends, zorder=3, label="95 % interval")
    lines.set(color=BLUE, linewidth=4, alpha=0.35)
    encodes = (shown["verdict"] == ENCODES).to_numpy()
    for which, colour, label in ((encodes, BLUE, "score, encodes"), (~encodes, "white", "score, not shown to encode")):
        if which.any():
            (dots,) = ax.plot(shown.loc[which, "score"].clip(lower=low), at[which], "o", markersize=8, label=label)
            dots.set(markerfacecolor=colour, markeredgecolor=EDGE, zorder=4)
