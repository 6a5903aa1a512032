"""Can the model do the task at all? Its own answers, example by example, before anything is changed."""

from typing import Any

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
    found = _answers(model, given).rename(columns={"base": "value", "base_correct": "correct"})
    columns = ["unit", "counterfactual", "cluster", "template", "example", "value", "correct"]
    return found.assign(counterfactual=counterfactual)[columns]


@documented
def require_able(model: Any, task: Task, *, seed: int = 0, anyway: bool = False) -> pd.DataFrame:
    """Refuse a task on which `model` is not shown to be above chance: below or across 0, all heads would be undecided.

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
    frame = _answers(model, task)
    found = cluster_bootstrap(UnitTable.from_frame(frame, "base", by=_ALL), seed=seed)
    if found.low[0] <= 0 and not anyway:  # an interval that is not known says nothing
        right = estimates(UnitTable.from_frame(frame, "base_correct", by=_ALL))[0]
        raise InputError(
            f"{task.name}: {NOT_ABLE}: {task.metric.replace('_', ' ')} {found.estimate[0]:.2g} "
            f"({found.low[0]:.2g} to {found.high[0]:.2g}), {right:.0%} right, on {len(task.units)} units",
            "give tasks that it can do",
            "give anyway=True to measure it all the same: all heads will be undecided",
        )
    return frame


def _answers(model: Any, task: Task) -> pd.DataFrame:
    """As of ``require_able``."""
    outcome = run_plainly(model, batches(model, task_rows(task.metric, task.units)), task.metric)
    labels = pd.DataFrame(example_labels(task)).assign(model=0)
    return labels.assign(base=outcome.value, base_correct=outcome.correct)
