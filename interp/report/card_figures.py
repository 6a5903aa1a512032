"""What a card looks like: dots with their intervals for its tasks and replacements, and for its direct paths."""

from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from interp.errors import InputError
from interp.report.card_evidence import measured, n_shown, named, of_task, path_names, spoken
from interp.report.dots import dots_figure, series
from interp.report.drawing import Figure, chosen, finish, require, short
from interp.report.heads_frames import shown_names

_LONGEST = 40
_MADE_BY = "interp.methods.head_card.head_card"
_ATTRIBUTES = ("name", "verdicts", "tasks", "shares", "replacements", "feeds", "readers")


def card(card: Any) -> Figure:
    """What each task loses without the head, under every kind of ablation, with 95 % intervals.

    Args:
        card: What ``interp.methods.head_card.head_card`` returns.

    Raises:
        InputError: It is something else.
    """
    require(card, _ATTRIBUTES, "card", _MADE_BY)
    shown = named(card)
    tasks, by_kind = measured(shown), shown.replacements.groupby("replacement", sort=False)
    drawn = {
        spoken(kind): series(rows.set_index("task").reindex(tasks), "share", "share_low", "share_high")
        for kind, rows in by_kind
    }
    across = "effect of ablation, as a share of what the whole model does\n(grey: too small to count)"
    return dots_figure(tasks, drawn, across, f"head {card.name}", ignored=float(shown.shares["minimum"].iloc[0]))


def card_paths(card: Any, task: str | None = None) -> Figure:
    """The largest direct paths into the head and from it, as shares of a task's answer, with 95 % intervals.

    Args:
        card: What ``interp.methods.head_card.head_card`` returns.
        task: One of its tasks; None where it has only one.

    Raises:
        InputError: It is something else, has no such task, or no path was patched on it.
    """
    require(card, _ATTRIBUTES, "card_paths", _MADE_BY)
    tasks = [str(each) for each in card.tasks["task"]]
    which = chosen("task", task, tasks)
    own = of_task(named(card), shown_names(tasks)[which])
    if own.feeds.empty and own.readers.empty:
        raise InputError(
            f"card_paths: no path was patched on {which!r}; card.left_out says why, or draw interp.plots.card(card)"
        )
    parts = {"into the head": own.feeds, "from the head": own.readers}
    n_rows = max(min(len(paths), n_shown(paths)) for paths in parts.values())
    figure = Figure(figsize=(8.4, 0.27 * n_rows + 1.6), dpi=150, layout="constrained")
    for ax, (title, paths) in zip(figure.subplots(1, 2, sharex=True), parts.items(), strict=True):
        _paths(ax, paths.head(n_shown(paths)), n_rows, title)
    figure.supxlabel("share of the answer that the path restores", fontsize=9)
    figure.suptitle(f"head {own.name}, {short(own.tasks['task'].iloc[0], _LONGEST)}", fontsize=10, parse_math=False)
    return figure


def _paths(ax: Axes, paths: pd.DataFrame, n_rows: int, title: str) -> None:
    ax.axvline(0, color="0.5", linewidth=0.8)
    y, colours = np.arange(len(paths)), sns.color_palette("RdBu", 8)
    colour = [colours[0] if value < 0 else colours[-1] for value in paths["normalised"]]
    ax.hlines(y, paths["normalised_low"], paths["normalised_high"], color=colour, linewidth=1.6)
    ax.scatter(paths["normalised"], y, color=colour, s=22, zorder=3)
    finish(ax, title, "", rows=[short(name, _LONGEST) for name in path_names(paths)])
    ax.set_ylim(n_rows - 0.4, -0.6)  # both panels have the same
    ax.xaxis.set_major_locator(MaxNLocator(4))
