"""How did the heads develop? Attention and effect over the steps of a training, task by task."""

from typing import Any, Protocol, runtime_checkable

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from interp.report.drawing import Figure, short
from interp.report.heads_frames import shown_names

TRACKS = "attends and causal"
TRACKING = ("tracks", TRACKS)
"""What a head is that does the task, as far as that is known without probes."""
GREY = "0.8"
POINTS: dict[str, Any] = {"marker": ".", "markersize": 4}
"""Of a single checkpoint, a line shows nothing."""


@runtime_checkable
class DevelopmentFrames(Protocol):
    """Dossiers of several checkpoints, such as ``interp.methods.development.Development``, with the column ``step``."""

    @property
    def frame(self) -> pd.DataFrame:
        """One row per step, layer, head and task."""

    @property
    def tasks(self) -> pd.DataFrame:
        """One row per step and task."""

    @property
    def unjudged(self) -> tuple[int, ...]:
        """Steps that were left when it was interrupted."""


def partial(development: DevelopmentFrames) -> str:
    """That an interrupted development holds less than was asked for; empty for a complete one."""
    left = development.unjudged
    if not left:
        return ""
    judged = development.frame["step"].nunique()
    return (
        f"Partial: it was interrupted after {judged} of {judged + len(left)} checkpoints; "
        f"step {left[0]:,} and later ones were not judged."
    )


def development_table(development: DevelopmentFrames) -> pd.DataFrame:
    """One row a step: how often the model is right on each task, and the heads that track it."""
    frame, tasks = development.frame, development.tasks
    tracking = frame[frame["verdict"].isin(TRACKING)]
    names = tracking["layer"].astype(str) + "." + tracking["head"].astype(str)
    heads = names.groupby([tracking["step"], tracking["task"]]).agg(", ".join)
    accuracy = tasks.set_index(["step", "task"])["accuracy_base"]
    steps = sorted(frame["step"].unique())
    columns: dict[str, list[object]] = {"step": [int(step) for step in steps]}
    for task, shown in shown_names(list(dict.fromkeys(frame["task"]))).items():
        columns[f"{shown}: accuracy"] = [accuracy.get((step, task)) for step in steps]
        columns[f"{shown}: heads"] = [heads.get((step, task)) for step in steps]
    return pd.DataFrame(columns)


def development_figure(frame: pd.DataFrame, tasks: pd.DataFrame) -> Figure:
    """One column a task: the model's accuracy, each head's excess attention and its ablation's share of the metric.

    Heads that track the task at the last step are coloured and named, all others grey. There is no share where the
    interval of the metric does not lie above 0.

    Args:
        frame: ``Development.frame``.
        tasks: ``Development.tasks``.
    """
    names = list(dict.fromkeys(frame["task"]))
    figure = Figure(figsize=(2.9 * len(names) + 0.6, 6.6), layout="constrained")
    axes = figure.subplots(3, len(names), sharex=True, sharey="row", squeeze=False)
    for column, (task, shown) in enumerate(shown_names(names).items()):
        mine, done = frame[frame["task"] == task], tasks[tasks["task"] == task]
        # A share of what may be nothing says nothing.
        base = done.set_index("step")["base"].where(done.set_index("step")["base_low"] > 0)
        drop = mine.assign(share=-mine["effect"] / mine["step"].map(base))
        axes[0, column].plot(done["step"], done["accuracy_base"], color="black", **POINTS)
        axes[0, column].set_title(short(shown, 40), fontsize=10, parse_math=False)
        _heads(axes[1, column], mine, "excess")
        _heads(axes[2, column], drop, "share", named=True)
        axes[2, column].set_xlabel("step")
    for ax, label in zip(axes[:, 0], ("accuracy", "excess attention", "share that its\nablation costs"), strict=True):
        ax.set_ylabel(label)
    axes[0, 0].set_ylim(-0.03, 1.03)
    sns.despine(figure)
    return figure


def _heads(ax: Axes, frame: pd.DataFrame, column: str, *, named: bool = False) -> None:
    last = frame[frame["step"] == frame["step"].max()]
    tracking = {tuple(each) for each in last.loc[last["verdict"].isin(TRACKING), ["layer", "head"]].to_numpy()}
    few = sns.color_palette("colorblind")
    colours = iter(few if len(tracking) <= len(few) else sns.color_palette("husl", len(tracking)))
    for (layer, head), rows in frame.groupby(["layer", "head"]):
        tracks = (layer, head) in tracking
        style = {"color": next(colours), "linewidth": 1.8, "zorder": 3} if tracks else {"color": GREY, "linewidth": 0.8}
        ax.plot(rows["step"], rows[column], **POINTS, label=f"{layer}.{head}" if tracks else None, **style)
    ax.axhline(0, color="0.5", linewidth=0.6)
    if named and tracking:
        ax.legend(frameon=False, fontsize=8)
