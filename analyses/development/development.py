"""When does a head begin to track? The report of every checkpoint of a training, one after the other.

1. Each checkpoint is loaded and judged as ``interp.heads`` judges a model without probes, on the same items.
2. A head *begins* to track a task at the first checkpoint from which on, up to the last one, each of its verdicts is
   ``attends and causal``, or ``tracks`` where the task names no feature. Where that is the first one that was judged,
   it may have begun before.

Corrections are made within a checkpoint, over heads and tasks, not over checkpoints: that a head begins at this step
and not at the one before is a description, not a test.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from interp.errors import InputError
from interp.interventions.sweep import Progress
from interp.methods.dossier import HeadsReport, heads
from interp.methods.progress import part_of
from interp.model.devices import documented
from interp.model.loading import load_model
from interp.report.drawing import Figure, short
from interp.report.heads_frames import shown_names
from interp.report.sections import Page, Picture, Sentences, Table
from interp.report.tables import columns_of
from interp.report.words import about, counted
from interp.result import Result
from interp.runs.run import Run
from interp.tasks.catalogue import TASKS
from interp.tasks.task import Task

TRACKS = "attends and causal"
TRACKING = ("tracks", TRACKS)
"""What a head is that does the task, as far as that is known without probes."""
GREY = "0.8"
POINTS: dict[str, Any] = {"marker": ".", "markersize": 4}
"""Of a single checkpoint, a line shows nothing."""


@dataclass(frozen=True, eq=False, repr=False)
class Development(Result):
    """What was found at every step.

    Attributes:
        examples: ``HeadsReport.examples`` of every checkpoint, with its ``step`` in front.
        provenance: That of the last report.
        cells: Likewise ``HeadsReport.summary()``.
        tasks: Likewise ``HeadsReport.tasks``.
        last: The report of the last checkpoint.
        unjudged: The steps that were left when it was interrupted; none where it was not.
    """

    cells: pd.DataFrame
    tasks: pd.DataFrame
    last: HeadsReport
    unjudged: tuple[int, ...] = ()

    shown_by: ClassVar[str] = "analyses.development.development"

    def __repr__(self) -> str:
        begun, left = self.begins(), f", {len(self.unjudged)} not judged" if self.unjudged else ""
        steps = f"{self.cells['step'].nunique()} steps{left}"
        return f"Development({steps}, {len(begun)} heads that track something at the end)"

    def summary(self) -> pd.DataFrame:
        """One row per step, task, layer and head."""
        return self.cells

    def begins(self) -> pd.DataFrame:
        """From when on each head tracks: ``task, layer, head, step``, for those that do at the last checkpoint."""
        steps = sorted(self.cells["step"].unique())
        found = []
        for (task, layer, head), rows in self.cells.groupby(["task", "layer", "head"], sort=False):
            tracks = rows.set_index("step")["verdict"].isin(TRACKING).reindex(steps, fill_value=False)
            since = [step for step in steps if tracks.loc[step:].all()]
            if since:
                found.append({"task": task, "layer": layer, "head": head, "step": since[0]})
        frame = pd.DataFrame(found, columns=["task", "layer", "head", "step"])
        return frame.sort_values(["step", "task", "layer", "head"], ignore_index=True)


@documented
def development(
    checkpoints: Mapping[int, str | Path],
    tasks: Sequence[str | Task] = TASKS,
    *,
    n: int | None = None,
    seed: int = 0,
    device: str = "cpu",
    dtype: str = "float32",
    progress: Progress | None = None,
    run: Run | str | PathLike[str] | None = None,
) -> Development:
    """Judge the heads of every checkpoint of a training.

    Interrupted (Ctrl-C), it returns the checkpoints that are judged and warns.

    Args:
        checkpoints: Folders that ``load_model`` reads, by step; ``model.checkpoints.checkpoints`` lists a training's.
        tasks: Tasks, or names for ``interp.load_task``.
        n: Units per named task; None for each task's own default.
        seed: Of every draw.
        device: Where the models compute.
        dtype: What they compute in.
        progress: Called with (steps done, steps in all).
        run: Where each checkpoint's report is kept, and found again, as of ``heads``; None to keep nothing.

    Raises:
        InputError: There are no checkpoints, or as ``heads``.
        LoadError: A checkpoint cannot be loaded; each is tried before the first is judged.
        KeyboardInterrupt: Interrupted before the first was judged.
    """
    if not checkpoints:
        raise InputError("checkpoints: expected at least one, by its step, got none; does the folder hold a training?")
    steps, loaded = sorted(checkpoints), partial(load_model, device=device, dtype=dtype)
    for step in steps:
        loaded(Path(checkpoints[step]))
    reports: dict[int, HeadsReport] = {}
    try:
        for step in steps:
            tell = part_of(progress, len(reports), len(steps))
            model = loaded(Path(checkpoints[step]))
            options: Any = {"n": n, "seed": seed, "probes": False, "run": run, "anyway": True}
            reports[step] = heads(model, tasks, **options, progress=tell)
    except KeyboardInterrupt:
        if not reports:
            raise
        warnings.warn("interrupted: the result holds the steps that were judged", RuntimeWarning, stacklevel=2)
    last, left = reports[max(reports)], tuple(steps[len(reports) :])
    examples, cells, described = (
        pd.concat([_at(step, table(each)) for step, each in reports.items()], ignore_index=True)
        for table in (attrgetter("examples"), HeadsReport.summary, attrgetter("tasks"))
    )
    return Development(examples, last.provenance, cells, described, last, left)


def _at(step: int, frame: pd.DataFrame) -> pd.DataFrame:
    found = frame.copy()
    found.insert(0, "step", step)
    return found


def partial_note(development: Development) -> str:
    """That an interrupted development holds less than was asked for; empty for a complete one."""
    left = development.unjudged
    if not left:
        return ""
    judged = development.cells["step"].nunique()
    return (
        f"Partial: it was interrupted after {judged} of {judged + len(left)} checkpoints; "
        f"step {left[0]:,} and later ones were not judged."
    )


def development_table(development: Development) -> pd.DataFrame:
    """One row a step: how often the model is right on each task, and the heads that track it."""
    frame, tasks = development.cells, development.tasks
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
        frame: ``Development.summary()``.
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


def page_of(result: Any) -> Page:
    """What a notebook shows of it, and what it is saved as: since when the heads track that track at the end."""
    begun, draw = result.begins(), lambda: development_figure(result.cells, result.tasks)
    tasks = shown_names(list(dict.fromkeys(result.cells["task"])))
    steps = sorted(result.cells["step"].unique())
    shown = begun.assign(
        head=[f"{layer}.{head}" for layer, head in zip(begun["layer"], begun["head"], strict=True)],
        task=begun["task"].map(tasks),
        since_step=begun["step"].map("{:,}".format),
    )
    said = (
        f"{len(steps)} checkpoints, steps {steps[0]:,} to {steps[-1]:,}. At the last, {len(begun)} heads are "
        f"“{TRACKS}” on a task; since when, without a break:"
    )
    sections = (
        Picture("Figure", "development", draw, "Each head's attention and effect by step", inline=True),
        Sentences("Findings", [said]),
        Table("Heads", "The first to begin first", shown, columns_of("head", "task", "since_step"), "begins.csv"),
    )
    return Page(
        title=f"Development: {', '.join(tasks.values())}",
        kind="heads",
        sections=sections,
        provenance=result.provenance,
        about=about(result.provenance, counted(len(steps), "checkpoint")),
        cautions=tuple(filter(None, [partial_note(result)])),
        call="development_figure(result.summary(), result.tasks)",
        frames={"begins": begun, "cells": result.cells, "tasks": result.tasks},
        draws={"development": draw},
    )
