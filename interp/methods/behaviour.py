"""Can the model do the task at all? Its own answers, example by example, before anything is changed."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from interp.claims.bootstrap import cluster_bootstrap
from interp.claims.rules import NOT_ABLE
from interp.claims.units import UnitTable, estimates
from interp.errors import InputError
from interp.interventions.hooked_runs import run_plainly
from interp.interventions.rows import batches, example_labels, task_rows
from interp.methods.task_arguments import as_predicted
from interp.model.devices import documented
from interp.tasks.task import Task

_ALL = ["model"]
"""The column that puts all examples in one cell."""
FIRST = 60
"""Units that are asked first, where there are twice as many: if all were like these, would they show it?"""


@documented
def behaviour(model: Any, task: Task | str, *, n: int | None = None, seed: int = 0) -> pd.DataFrame:
    """Run `model` on every example of `task`.

    Args:
        model: Follows TransformerLens' protocol.
        task: A task, or the name of one.
        n: Units to draw of a task that is given by its name; None for the task's own number.
        seed: Seed of that draw.

    Returns:
        One row an example: ``unit``, ``example``, ``counterfactual`` (whether it is a unit's second half, which a
        published file does not hold), ``cluster``, ``template``, ``value`` (the task's metric, in logits or
        nats) and ``correct`` (1 where it is above 0).

    Raises:
        InputError: The model cannot carry a row, or is an encoder, which does not predict what the task asks for.
        TaskError: A named task cannot be loaded.

    Examples:
        >>> from interp.methods.behaviour import behaviour
        >>> float(behaviour(interp.load_model(), "agreement", n=12)["correct"].mean())
        1.0
    """
    given = as_predicted(task, model, n=n, seed=seed)
    counterfactual = [example is not unit.item for unit in given.units for example in unit.examples]
    found = _answers(model, given, range(len(given.units))).rename(columns={"base": "value", "base_correct": "correct"})
    columns = ["unit", "counterfactual", "cluster", "template", "example", "value", "correct"]
    return found.assign(counterfactual=counterfactual)[columns]


@documented
def require_able(model: Any, task: Task, *, seed: int = 0, anyway: bool = False) -> pd.DataFrame:
    """Refuse a task on which `model` is not shown to be above chance: below or across 0, all heads would be undecided.

    Of many units some are asked first. If as many as there are would not show it, were they like these, the others are
    not asked.

    Args:
        model: Follows TransformerLens' protocol.
        task: What it is to do.
        seed: Of the interval's resampling.
        anyway: Whether to let any task pass.

    Returns:
        One row an example: ``unit``, ``example``, ``cluster``, ``template``, ``layout``, ``base`` (the task's metric)
        and ``base_correct``; ``model`` is 0, one cell for all.

    Raises:
        InputError: It is not shown to be able.

    Examples:
        >>> from interp.methods.behaviour import require_able
        >>> model = interp.load_model()
        >>> len(require_able(model, interp.load_task("agreement", tokenizer=model.tokenizer, n=12)))
        24
    """
    n = len(task.units)
    first = range(0, n, max(1, n // FIRST)) if n >= 2 * FIRST and not anyway else range(0)
    asked = [_answers(model, task, list(first))] if first else []
    if asked:
        _require_able(asked[0], task, seed, n)
    asked.append(_answers(model, task, [number for number in range(n) if number not in first]))
    frame = pd.concat(asked).sort_values("example", ignore_index=True)
    if not anyway:
        _require_able(frame, task, seed, n)
    return frame


def _require_able(frame: pd.DataFrame, task: Task, seed: int, n_units: int) -> None:
    """Refuse examples that do not show it, or would not if there were so many units."""
    n = frame["unit"].nunique()
    found = cluster_bootstrap(UnitTable.from_frame(frame, "base", by=_ALL), seed=seed)
    base, low, high = (float(each[0]) for each in (found.estimate, found.low, found.high))
    if base - (base - low) * np.sqrt(n / n_units) <= 0:  # an interval that is not known says nothing
        right = estimates(UnitTable.from_frame(frame, "base_correct", by=_ALL))[0]
        of = f"{n} of {n_units}" if n < n_units else f"{n}"
        raise InputError(
            f"{task.name}: {NOT_ABLE}: {task.metric.replace('_', ' ')} {base:.2g} ({low:.2g} to {high:.2g}), "
            f"{right:.0%} right, on {of} units",
            "give tasks that it can do",
            "give anyway=True to measure it all the same: all heads will be undecided",
        )


def _answers(model: Any, task: Task, numbers: Sequence[int]) -> pd.DataFrame:
    """As of ``require_able``, of some of the units, in their order."""
    part = replace(task, units=tuple(task.units[number] for number in numbers))
    outcome = run_plainly(model, batches(model, task_rows(task.metric, part.units)), task.metric)
    labels = pd.DataFrame(example_labels(task)).assign(model=0)
    own = labels[labels["unit"].isin(numbers)].reset_index(drop=True)
    return own.assign(base=outcome.value, base_correct=outcome.correct)
