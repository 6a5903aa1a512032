"""Which heads are worth a test? Chosen on other items, so that only they have to be corrected for.

1. The evidence is gathered on choosing tasks: the same tasks, of other items.
2. For each kind of evidence, a head and task is chosen if it passes its minimum there and its raw p is at most alpha.
3. On the items in question only what was chosen is tested, and corrected for. The rest is never claimed; that it is
   absent can still be shown.

This is the third way beside max-T and Benjamini-Hochberg over all heads; never two of them at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from jaxtyping import Bool

from interp.errors import InputError
from interp.tasks.task import Task

Chosen = Mapping[str, Bool[np.ndarray, " cell"]]


def choose(frame: pd.DataFrame, alpha: float) -> Chosen:
    """The rows that are worth a test, by kind of evidence: ``effect``, ``attention`` and ``probe``.

    Args:
        frame: Of the choosing tasks: one row per layer, head and task, with estimates, minimums and raw p.
        alpha: Error rate, uncorrected.
    """
    effect = (frame["effect_p"] <= alpha) & (frame["effect"].abs() >= frame["minimum_effect"])
    attention = (frame["attention_p"] <= alpha) & (frame["excess"] >= frame["minimum_attention"])
    probe = (frame["probe_p"] <= alpha) & (frame["probe_excess"] >= frame["minimum_probe"])
    return {"effect": effect.to_numpy(), "attention": attention.to_numpy(), "probe": probe.to_numpy()}


def apart(tasks: Sequence[Task], choosing: Sequence[Task]) -> list[Task]:
    """The choosing tasks without the units whose cluster or prompt is scored, too.

    Raises:
        InputError: Their names differ from the tasks', or no unit is left.
    """
    names, others = ([task.name for task in each] for each in (tasks, choosing))
    if names != others:
        raise InputError(
            f"choose_on: expected the same tasks, {', '.join(names)}, in this order; got {', '.join(others)}"
        )
    return [_apart(task, other) for task, other in zip(tasks, choosing, strict=True)]


def _apart(task: Task, choosing: Task) -> Task:
    clusters, prompts = {unit.cluster for unit in task.units}, {each.prompt for each in task.examples}
    units = tuple(
        unit
        for unit in choosing.units
        if unit.cluster not in clusters and not prompts & {each.prompt for each in unit.examples}
    )
    if not units:
        raise InputError(
            f"choose_on: every unit of {task.name} has a cluster or a prompt that is scored, too, and would choose "
            "what flatters it; give other items, such as those of load_task(..., split='select')"
        )
    shared = {**choosing.dropped, "scored, too": len(choosing.units) - len(units)}
    return replace(choosing, units=units, dropped=shared)
