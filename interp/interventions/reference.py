"""What does the model do under an intervention? The plain way: one hooked forward per cell.

1. Run every batch with a hook at each intervention's point.
2. The hook puts the replacement in place and notes that it fired and how far it moved the
   activation, ``||z' - z||`` over positions and components.
3. Score the logits; add up the rows of each example; average over the replacement's draws.

Works on any model that follows TransformerLens' protocol. It is slow, and the measure of every
faster way.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from interp.errors import InputError
from interp.interventions.intervention import Intervention
from interp.interventions.metrics import row_scores
from interp.interventions.rows import Batch
from interp.tasks.task import Metric


@dataclass(frozen=True)
class Outcome:
    """What was measured on each example.

    Attributes:
        value: The metric, averaged over the draws.
        correct: 1 where the metric is above 0; the share of draws where it is, with several.
        fired: How often a hook acted on the example, over its rows, interventions and draws.
        change_norm: ``||z' - z||`` over the example's rows, averaged over the draws.
    """

    value: Float[np.ndarray, " example"]
    correct: Float[np.ndarray, " example"]
    fired: Int[np.ndarray, " example"]
    change_norm: Float[np.ndarray, " example"]


def run_plainly(
    model: Any, batches: Sequence[Batch], metric: Metric, interventions: Sequence[Intervention] = ()
) -> Outcome:
    """Measure `metric` on every example of `batches`, with `interventions` in place.

    Args:
        model: Follows TransformerLens' protocol (``run_with_hooks``).
        batches: All rows of the task.
        metric: What to measure.
        interventions: Applied together; none for the base run.

    Raises:
        InputError: The metric is NaN or infinite on some example.
    """
    n_examples = 1 + max(example for batch in batches for example in batch.examples)
    draws = max((each.replacement.draws for each in interventions), default=1)
    value, squares = np.zeros((draws, n_examples)), np.zeros((draws, n_examples))
    fired = np.zeros(n_examples, dtype=np.int64)

    for draw in range(draws):

        def note(batch: Batch, squared_norms: Tensor, draw: int = draw) -> None:
            np.add.at(fired, batch.examples, 1)
            np.add.at(squares[draw], batch.examples, squared_norms.cpu().double().numpy())

        for batch in batches:
            hooks = [(each.hook_name, _hook(each, batch, draw, note)) for each in interventions]
            with torch.inference_mode():
                logits = model.run_with_hooks(batch.tokens, fwd_hooks=hooks)
                scores = row_scores(metric, logits, batch).cpu().double().numpy()
            np.add.at(value[draw], batch.examples, scores * [row.sign for row in batch.rows])
    _require_finite(value)
    return Outcome(value.mean(axis=0), (value > 0).mean(axis=0), fired, np.sqrt(squares).mean(axis=0))


def _require_finite(value: Float[np.ndarray, "draw example"]) -> None:
    """NaN means "not measured" in the statistics; a measurement that failed must not pass for that."""
    failed = int((~np.isfinite(value)).any(axis=0).sum())
    if failed:
        raise InputError(
            f"the metric is NaN or infinite on {failed} of {value.shape[1]} examples: the weights, or a hook's "
            "result, are no finite numbers, or overflow in the model's dtype; use float32"
        )


def _hook(
    intervention: Intervention, batch: Batch, draw: int, note: Callable[[Batch, Tensor], None]
) -> Callable[..., Tensor]:
    def replace(z: Tensor, *, hook: Any) -> Tensor:
        changed = intervention.apply(z, batch, draw)
        # In 16 bits the squares of small changes would vanish.
        difference = (changed - z).to(torch.promote_types(z.dtype, torch.float32))
        note(batch, difference.square().sum(dim=(1, 2, 3)))
        return changed

    return replace
