"""When does a head begin to track? The dossier of every checkpoint of a training, one after the other.

1. Each checkpoint is loaded and judged as ``dossier.heads`` judges a model, on the same items.
2. A head *begins* to track a task at the first checkpoint from which on, up to the last one, each of its verdicts is
   ``attends and causal``.

Corrections are made within a checkpoint, over heads and tasks, not over checkpoints: that a head begins at this step
and not at the one before is a description, not a test.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from interp.errors import InputError
from interp.interventions.replacement import Kind
from interp.interventions.sweep import Progress
from interp.methods.dossier import TASKS, HeadsReport, heads
from interp.model.loading import load_model
from interp.report.development import TRACKS
from interp.tasks.task import Task


@dataclass(frozen=True, repr=False)
class Development:
    """What was found at every step.

    Attributes:
        frame: ``HeadsReport.frame`` of every checkpoint, with its ``step`` in front.
        tasks: Likewise ``HeadsReport.tasks``.
        last: The report of the last checkpoint.
    """

    frame: pd.DataFrame
    tasks: pd.DataFrame
    last: HeadsReport

    def __repr__(self) -> str:
        begun = self.begins()
        return f"Development({self.frame['step'].nunique()} steps, {len(begun)} heads that track something at the end)"

    def begins(self) -> pd.DataFrame:
        """From when on each head tracks: ``task, layer, head, step``, for those that do at the last checkpoint."""
        steps = sorted(self.frame["step"].unique())
        found = []
        for (task, layer, head), rows in self.frame.groupby(["task", "layer", "head"], sort=False):
            tracks = rows.set_index("step")["verdict"].eq(TRACKS).reindex(steps, fill_value=False)
            since = [step for step in steps if tracks.loc[step:].all()]
            if since:
                found.append({"task": task, "layer": layer, "head": head, "step": since[0]})
        frame = pd.DataFrame(found, columns=["task", "layer", "head", "step"])
        return frame.sort_values(["step", "task", "layer", "head"], ignore_index=True)


def development(
    checkpoints: Mapping[int, str | Path],
    tasks: Sequence[str | Task] = TASKS,
    *,
    n: int | None = None,
    seed: int = 0,
    ablation: Kind = "mean",
    device: str = "cpu",
    dtype: str = "float32",
    progress: Progress | None = None,
) -> Development:
    """Judge the heads of every checkpoint of a training.

    Args:
        checkpoints: Folders that ``load_model`` reads, by step; ``model.checkpoints.checkpoints`` lists a training's.
        tasks: Tasks, or names for ``interp.load_task``.
        n: Units per named task; None for each task's own default.
        seed: Of every draw.
        ablation: What replaces an ablated head's ``z``.
        device: Where the models compute.
        dtype: What they compute in.
        progress: Called with (steps done, steps in all).

    Raises:
        InputError: There are no checkpoints, or as ``heads``.
        LoadError: A checkpoint cannot be loaded.
    """
    if not checkpoints:
        raise InputError("checkpoints: expected at least one, by its step, got none; does the folder hold a training?")
    frames, described, last = [], [], None
    for number, step in enumerate(sorted(checkpoints)):
        model = load_model(Path(checkpoints[step]), device=device, dtype=dtype)
        tell = None if progress is None else _part(progress, number, len(checkpoints))
        last = heads(model, tasks, n=n, seed=seed, ablation=ablation, progress=tell)
        frames.append(last.frame.assign(step=step))
        described.append(last.tasks.assign(step=step))
    assert last is not None, "there is at least one checkpoint"
    return Development(_joined(frames), _joined(described), last)


def _joined(frames: list[pd.DataFrame]) -> pd.DataFrame:
    joined = pd.concat(frames, ignore_index=True)
    joined.insert(0, "step", joined.pop("step"))
    return joined


def _part(progress: Progress, number: int, n: int) -> Progress:
    """Progress of one checkpoint as progress of the whole; every one has as many steps."""

    def tell(done: int, total: int) -> None:
        progress(number * total + done, n * total)

    return tell
