"""When does a head begin to track? The dossier of every checkpoint of a training, one after the other.

1. Each checkpoint is loaded and judged as ``dossier.heads`` judges a model without probes, on the same items.
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
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from interp.errors import InputError
from interp.interventions.sweep import Progress
from interp.methods.dossier import TASKS, HeadsReport, heads
from interp.methods.progress import part_of
from interp.model.devices import documented
from interp.model.loading import load_model
from interp.report.development import TRACKING
from interp.runs.run import Run
from interp.tasks.task import Task


@dataclass(frozen=True, repr=False)
class Development:
    """What was found at every step.

    Attributes:
        frame: ``HeadsReport.frame`` of every checkpoint, with its ``step`` in front.
        tasks: Likewise ``HeadsReport.tasks``.
        last: The report of the last checkpoint.
        unjudged: The steps that were left when it was interrupted; none where it was not.
    """

    frame: pd.DataFrame
    tasks: pd.DataFrame
    last: HeadsReport
    unjudged: tuple[int, ...] = ()

    def __repr__(self) -> str:
        begun, left = self.begins(), f", {len(self.unjudged)} not judged" if self.unjudged else ""
        steps = f"{self.frame['step'].nunique()} steps{left}"
        return f"Development({steps}, {len(begun)} heads that track something at the end)"

    def _repr_html_(self) -> str:
        """What a notebook shows: the findings in words, the strongest with their intervals, and a figure if small."""
        from interp.report.development_glance import development_glance
        from interp.report.glance import as_html

        return as_html(development_glance(self))

    def begins(self) -> pd.DataFrame:
        """From when on each head tracks: ``task, layer, head, step``, for those that do at the last checkpoint."""
        steps = sorted(self.frame["step"].unique())
        found = []
        for (task, layer, head), rows in self.frame.groupby(["task", "layer", "head"], sort=False):
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
            options: Any = {"n": n, "seed": seed, "probes": False, "run": run}
            reports[step] = heads(model, tasks, **options, progress=tell)
    except KeyboardInterrupt:
        if not reports:
            raise
        warnings.warn("interrupted: the result holds the steps that were judged", RuntimeWarning, stacklevel=2)
    frame = pd.concat([_at(step, each.frame) for step, each in reports.items()], ignore_index=True)
    described = pd.concat([_at(step, each.tasks) for step, each in reports.items()], ignore_index=True)
    return Development(frame, described, reports[max(reports)], tuple(steps[len(reports) :]))


def _at(step: int, frame: pd.DataFrame) -> pd.DataFrame:
    found = frame.copy()
    found.insert(0, "step", step)
    return found
