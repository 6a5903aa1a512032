"""Can the model do the task at all? Its own answers, example by example, before anything is changed."""

from typing import Any

import pandas as pd

from interp.interventions.hooked_runs import run_plainly
from interp.interventions.rows import batches, example_labels, task_rows
from interp.methods.task_arguments import require_prediction
from interp.model.devices import documented
from interp.tasks.task import Task


@documented
def behaviour(model: Any, task: Task) -> pd.DataFrame:
    """Run `model` on every example of `task`.

    Args:
        model: Follows TransformerLens' protocol.
        task: What is measured, and how.

    Returns:
        One row an example: ``unit``, ``example``, ``counterfactual`` (whether it is a unit's second half, which a
        published file does not hold), ``cluster``, ``template``, ``value`` (the task's metric, in logits or
        nats) and ``correct`` (1 where it is above 0).

    Raises:
        InputError: The model cannot carry a row, or is an encoder, which does not predict what the task asks for.

    Examples:
        >>> from interp.methods.behaviour import behaviour
        >>> model = interp.load_model()
        >>> behaviour(model, interp.load_task("agreement", tokenizer=model.tokenizer, n=24))["correct"].mean() > 0.9
        np.True_
    """
    require_prediction(model, task)
    outcome = run_plainly(model, batches(model, task_rows(task.metric, task.units)), task.metric)
    counterfactual = [example is not unit.item for unit in task.units for example in unit.examples]
    labels = pd.DataFrame(example_labels(task)).assign(counterfactual=counterfactual)
    labels = labels[["unit", "counterfactual", "cluster", "template", "example"]]
    return labels.assign(value=outcome.value, correct=outcome.correct)
