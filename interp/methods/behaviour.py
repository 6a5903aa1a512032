"""Can the model do the task at all? Its own answers, example by example, before anything is changed."""

from typing import Any

import pandas as pd

from interp.interventions.hooked_runs import run_plainly
from interp.interventions.rows import batches, example_labels, task_rows
from interp.methods.task_arguments import as_predicted
from interp.model.devices import documented
from interp.tasks.task import Task


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
    outcome = run_plainly(model, batches(model, task_rows(given.metric, given.units)), given.metric)
    counterfactual = [example is not unit.item for unit in given.units for example in unit.examples]
    labels = pd.DataFrame(example_labels(given)).assign(counterfactual=counterfactual)
    labels = labels[["unit", "counterfactual", "cluster", "template", "example"]]
    return labels.assign(value=outcome.value, correct=outcome.correct)
