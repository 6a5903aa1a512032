"""What does a card look like at a glance? Dots with their intervals: tasks, replacements, paths.

Each function returns a ``matplotlib.figure.Figure`` of its own; nothing global is set and nothing is shown.

What does a card look like? The figures that take a card itself; ``plots.py`` draws them.
"""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from interp.errors import InputError
from interp.report.card_frames import CardFrames, Shown, kind, n_shown, shown
from interp.report.drawing import Figure, chosen, require, short
from interp.report.heads_frames import shown_names

_LONGEST = 40


def shares_figure(card: Shown) -> Figure:
    """What each task loses without the head, by every kind of ablation, as a share of what the whole model does."""
    tasks, kinds = list(card.measured), list(dict.fromkeys(card.replacements["kind"]))
    figure = Figure(figsize=(6.4, 0.55 * len(tasks) + 1.7), dpi=150, layout="constrained")
    ax = figure.subplots()
    minimum = card.shares["minimum"].iloc[0]
    ax.axvspan(-minimum, minimum, color="0.93", linewidth=0)
    ax.axvline(0, color="0.5", linewidth=0.8)
    for number, (each, colour) in enumerate(zip(kinds, sns.color_palette("colorblind"), strict=False)):
        rows = card.replacements[card.replacements["kind"] == each].set_index("task").reindex(tasks)
        y = np.arange(len(tasks)) + 0.16 * (number - (len(kinds) - 1) / 2)
        ax.hlines(y, rows["share_low"], rows["share_high"], color=colour, linewidth=1.6)
        ax.plot(rows["share"], y, "o", color=colour, markersize=4.5, label=kind(each))
    _names(ax, tasks)
    ax.set_xlabel("effect of ablation, as a share of what the whole model does\n(grey: too small to count)", fontsize=9)
    if kinds:
        ax.legend(fontsize=8, frameon=False, loc="best")
    ax.set_title(f"head {card.name}", fontsize=10)
    return figure


def paths_figure(card: Shown) -> Figure:
    """The largest direct paths of one task, into the head and from it, as shares of the answer."""
    parts = {"into the head": card.feeds, "from the head": card.readers}
    n_rows = max(min(len(paths), n_shown(paths)) for paths in parts.values())
    figure = Figure(figsize=(8.4, 0.27 * n_rows + 1.6), dpi=150, layout="constrained")
    for ax, (title, paths) in zip(figure.subplots(1, 2, sharex=True), parts.items(), strict=True):
        _paths(ax, paths.head(n_shown(paths)), n_rows)
        ax.set_title(title, fontsize=9)
    figure.supxlabel("share of the answer that the path brings back", fontsize=9)
    figure.suptitle(f"head {card.name}, {short(card.tasks['task'].iloc[0], _LONGEST)}", fontsize=10, parse_math=False)
    return figure


def _paths(ax: Axes, paths: pd.DataFrame, n_rows: int) -> None:
    ax.axvline(0, color="0.5", linewidth=0.8)
    y, colours = np.arange(len(paths)), sns.color_palette("RdBu", 8)
    colour = [colours[0] if value < 0 else colours[-1] for value in paths["normalised"]]
    ax.hlines(y, paths["normalised_low"], paths["normalised_high"], color=colour, linewidth=1.6)
    ax.scatter(paths["normalised"], y, color=colour, s=22, zorder=3)
    _names(ax, [f"{sender} → {receiver}" for sender, receiver in zip(paths["sender"], paths["receiver"], strict=True)])
    ax.set_ylim(n_rows - 0.4, -0.6)
    ax.xaxis.set_major_locator(MaxNLocator(4))


def _names(ax: Axes, names: list[str]) -> None:
    """Rows from the top, with their names."""
    ax.set_yticks(np.arange(len(names)), labels=[short(name, _LONGEST) for name in names], fontsize=8, parse_math=False)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="x", labelsize=8)
    sns.despine(ax=ax, left=True)


_MADE_BY = "interp.methods.head_card.head_card"
_ATTRIBUTES = ("name", "verdicts", "tasks", "shares", "replacements", "feeds", "readers")


def card(card: CardFrames) -> Figure:
    """What each task loses without the head, under every kind of ablation, with 95 % intervals.

    Args:
        card: What ``interp.methods.head_card.head_card`` returns.

    Raises:
        InputError: It is something else.
    """
    require(card, _ATTRIBUTES, "card", _MADE_BY)
    return shares_figure(shown(card))


def card_paths(card: CardFrames, task: str | None = None) -> Figure:
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
    own = shown(card).of(shown_names(tasks)[which])
    if own.feeds.empty and own.readers.empty:
        raise InputError(
            f"card_paths: no path was patched on {which!r}; card.left_out says why, or draw interp.plots.card(card)"
        )
    return paths_figure(own)
