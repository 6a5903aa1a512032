"""What does a notebook show of a development? When the heads begin that track at the end."""

from typing import Any

import pandas as pd

from interp.report.development import TRACKS, development_figure, partial
from interp.report.drawing import Figure, require, require_rows
from interp.report.glance import Glance
from interp.report.heads_frames import shown_names

_COLUMNS = ("step", "layer", "head", "task", "excess", "effect", "verdict")
_MADE_BY = "interp.methods.development.development"


def development(result: Any) -> Figure:
    """Accuracy, excess attention and the share that ablation costs, by step; one column a task.

    Args:
        result: What ``interp.methods.development.development`` returns.

    Raises:
        InputError: It is something else, or has no step.
    """
    require(result, ("frame", "tasks", "unjudged"), "development", _MADE_BY)
    require_rows(result.frame, _COLUMNS, "development", _MADE_BY)
    return development_figure(result.frame, result.tasks)


def development_glance(result: Any) -> Glance:
    """What a notebook shows of it."""
    begun = result.begins()
    tasks = shown_names(list(dict.fromkeys(result.frame["task"])))
    steps = sorted(result.frame["step"].unique())
    shown = pd.DataFrame(
        {
            "head": [f"{layer}.{head}" for layer, head in zip(begun["layer"], begun["head"], strict=True)],
            "task": begun["task"].map(tasks),
            "since step": begun["step"].map("{:,}".format),
        }
    )
    said = (
        f"{len(steps)} checkpoints, steps {steps[0]:,} to {steps[-1]:,}. At the last, {len(begun)} heads are "
        f"“{TRACKS}” on a task; since when, without a break:"
    )
    return Glance(
        f"Development: {', '.join(tasks.values())}",
        [*filter(None, [partial(result)]), said],
        shown,
        len(begun),
        ".begins()",
        result.last.provenance,
        "interp.plots.development(result)",
        lambda: development(result),
    )
