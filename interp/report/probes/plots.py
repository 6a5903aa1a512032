"""What do probes look like at a glance? Heads by layer, or layers as a curve, and the best cells beside their controls.

Each function returns a ``matplotlib.figure.Figure`` of its own. What was not measured is hatched or absent, never 0.
"""

from functools import partial

import numpy as np
import seaborn as sns
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from interp.report.colours import SEQUENTIAL
from interp.report.drawing import draw_table, hatching, short, verdict_marker
from interp.report.figure import Draws, Figure
from interp.report.frames import layer_by_head
from interp.report.probes.controls import cells_beside_controls
from interp.report.probes.curves import curve
from interp.report.probes.frames import ProbeFrames, has_heads, measure_of, scale_of
from interp.report.probes.verdicts import NONE, VERDICTS
from interp.report.probes.words import subject

_LONGEST_TITLE = 60


def figures(frames: ProbeFrames) -> Draws:
    """What draws every figure, by its name; of a single cell only what stands beside it."""
    draws = {"controls": partial(cells_beside_controls, frames)}
    if len(frames.frame) > 1:
        draw = heatmap if has_heads(frames) else curve
        draws |= {column: partial(draw, frames, column) for column in ("score", "selectivity")}
    return draws


def heatmap(frames: ProbeFrames, column: str) -> Figure:
    """A column of all heads, layers down and heads across.

    Args:
        frames: Of heads.
        column: ``score``, whose colours run from the majority's level to 1, or ``selectivity``, from 0 as far.
    """
    frame = frames.frame.assign(task="")
    table = layer_by_head(frame, "", column)
    n_layers, n_heads = table.shape
    size = (max(4.2, 0.62 * n_heads + 1.9), max(2.6, 0.55 * n_layers + 1.6))
    figure = Figure(figsize=size, dpi=150, layout="constrained")
    ax = figure.subplots()
    low, high = scale_of(frames, column)
    palette = sns.color_palette(SEQUENTIAL, as_cmap=True)
    draw_table(ax, table, cmap=palette, vmin=low, vmax=high, annotate=True, cbar=True, label=_label(frames, column))
    ax.set(xlabel="head", ylabel="layer")
    verdicts = layer_by_head(frame, "", "verdict").to_numpy()
    present = [name for name in VERDICTS if name != NONE and (verdicts == name).any()]
    for name in present:
        rows, columns = np.nonzero(verdicts == name)
        ax.add_line(verdict_marker(VERDICTS[name], columns + 0.5, rows + 0.72))
    _title(ax, frames, column, low)
    handles: list[Artist] = [verdict_marker(VERDICTS[name]) for name in present]
    if table.isna().to_numpy().any():
        handles, present = [*handles, hatching()], [*present, "not measured"]
    if handles:
        figure.legend(handles, present, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    return figure


def _label(frames: ProbeFrames, column: str) -> str:
    name = measure_of(frames).title
    return name if column == "score" else f"selectivity, of {name}"


def _title(ax: Axes, frames: ProbeFrames, column: str, low: float) -> None:
    what = short(subject(frames), _LONGEST_TITLE)
    since = f"the majority's {low:.2f}" if column == "score" else "0"
    ax.set_title(f"{what}\n{_label(frames, column)} (colour from {since} up)", fontsize=9, parse_math=False)
