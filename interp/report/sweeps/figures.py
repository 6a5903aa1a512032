"""What does a sweep look like? The figures that take a result itself; ``plots.py`` draws them."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from interp.report.drawing import despined, short
from interp.report.given import require
from interp.report.styles import LINE
from interp.report.sweeps.cells import described
from interp.report.sweeps.frames import SweepFrames
from interp.report.sweeps.names import GROWING
from interp.report.sweeps.panel import panel
from interp.report.sweeps.plots import heatmap_figure, strongest_figure
from interp.report.sweeps.result import SweepLike, sweep_frames
from interp.report.sweeps.words import along_paths, done, task_name, unit


def sweep(result: SweepLike | SweepFrames, *, tokens: Sequence[str] | None = None) -> Figure:
    """Every cell in its place: layers by heads, or by positions; of a single axis, dots with 95 % intervals.

    Colours diverge from the run that is changed (0; where the clean run is patched into, 1), and reach as far above as
    below. Black dots are beyond the correction and large, white ones beyond it but small. What could not change
    anything is hatched by its reason. Of more than 48 rows the strongest are shown; what is wider is shown as dots.

    Args:
        result: What ``interp.ablate``, ``interp.patch`` or ``interp.path_patch`` returns.
        tokens: The text at each position, for cells by position where all prompts have one length.

    Raises:
        InputError: It is no sweep, has no row, or there are fewer texts than positions.
    """
    frames = sweep_frames(result, tokens)
    cells = described(frames)
    in_a_row = along_paths(frames) or len(frames.labels) == 1 or frames.labels == GROWING
    placed = None if in_a_row else panel(frames, cells)
    return strongest_figure(frames, cells) if placed is None else heatmap_figure(frames, cells, placed)


def strongest(result: SweepLike | SweepFrames, *, tokens: Sequence[str] | None = None) -> Figure:
    """The 20 strongest cells as dots with their 95 % intervals; all cells in their order where there is one short axis.

    Args:
        result: As for ``sweep``.
        tokens: As for ``sweep``.

    Raises:
        InputError: As for ``sweep``.
    """
    frames = sweep_frames(result, tokens)
    return strongest_figure(frames, described(frames))


def greedy(result: SweepLike) -> Figure:
    """What a growing set of ablated heads costs, step by step, with 95 % intervals: the half that did not choose them.

    Args:
        result: What ``interp.methods.greedy.greedy`` returns.

    Raises:
        InputError: It is something else.
    """
    require(result, ("chosen", "summary", "provenance", "labels"), "greedy", "interp.methods.greedy.greedy")
    frames, steps = sweep_frames(result), result.summary().sort_values("step")
    figure = Figure(figsize=(max(4.6, 0.55 * len(steps) + 2.2), 3.4), dpi=150, layout="constrained")
    ax = figure.subplots()
    place = steps["step"].to_numpy()
    ends = np.abs(steps[["low", "high"]].to_numpy().T - steps["effect"].to_numpy())
    ax.errorbar(place, steps["effect"], yerr=ends, fmt="o-", markersize=4.5, capsize=2.5, color=LINE)
    ax.axhline(0, color="0.5", linewidth=0.8)
    names = [f"+ {layer}.{head}" for layer, head in zip(steps["layer"], steps["head"], strict=True)]
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if len(names) <= 30:
        ax.set_xticks(place, labels=names, fontsize=8, rotation=0 if len(names) < 12 else 90)
    ax.set_xlabel("head that is ablated, too", fontsize=9)
    ax.set_ylabel(f"effect ({unit(frames)})", fontsize=9)
    ax.set_title(f"{short(task_name(frames), 60)}\n{done(frames)}", fontsize=9, parse_math=False)
    despined(ax)
    return figure
