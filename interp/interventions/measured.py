"""Where do measurements go? One place for each cell, draw and row, and from there to examples.

An example has one row, or two (the right and the wrong sentence) whose signed scores add up.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int, Num
from torch import Tensor

from interp.errors import InputError
from interp.interventions.metrics import MetricName
from interp.interventions.rows import Row


@dataclass(frozen=True)
class Outcome:
    """What was measured on each example; NaN where nothing was.

    Attributes:
        value: The metric, averaged over the draws.
        correct: 1 where the margin is above 0; the share of draws where it is, with several.
        fired: How often an intervention acted on the example, over its rows and the draws.
        change_norm: ``||a' - a||`` of the activation over the example's rows, averaged over the draws.
    """

    value: Float[np.ndarray, " example"]
    correct: Float[np.ndarray, " example"]
    fired: Int[np.ndarray, " example"]
    change_norm: Float[np.ndarray, " example"]


class Measured:
    """Scores by cell, draw and row, filled in any order.

    Attributes:
        value: What a row adds to its example's metric, before its sign; NaN until it is measured.
        margin: Likewise to its margin.
        squares: ``||a' - a||^2``.
        fired: How often an intervention acted.
    """

    def __init__(self, rows: Sequence[Row], draws: Sequence[int]):
        """Room for cells of `draws` draws each."""
        shape = (len(draws), max(draws), len(rows))
        self.draws = np.asarray(draws)
        self.value, self.margin = np.full(shape, np.nan), np.full(shape, np.nan)
        self.squares, self.fired = np.zeros(shape), np.zeros(shape, dtype=np.int64)
        self._example = np.array([row.example for row in rows])
        self._sign = np.array([row.sign for row in rows], dtype=float)
        self._n_examples = 1 + int(self._example.max())

    @property
    def complete(self) -> Bool[np.ndarray, " row"]:
        """Which rows are measured in every cell and draw."""
        draw = np.arange(self.value.shape[1])
        wanted = draw < self.draws[:, None]
        return (np.isfinite(self.value) | ~wanted[..., None]).all(axis=(0, 1))

    def outcome(self, cell: int, metric: MetricName) -> Outcome:
        """What was measured on each example in one cell."""
        draws = slice(self.draws[cell])
        value, margin = (self._by_example(each[cell, draws] * self._sign) for each in (self.value, self.margin))
        correct = np.where(np.isnan(margin), np.nan, margin > 0)
        if metric == "accuracy":
            value = correct
        norm = np.sqrt(self._by_example(self.squares[cell, draws]))
        fired = self._by_example(self.fired[cell, draws]).sum(axis=0)
        return Outcome(value.mean(axis=0), correct.mean(axis=0), fired.astype(np.int64), norm.mean(axis=0))

    def _by_example(self, rows: Num[np.ndarray, "draw row"]) -> Float[np.ndarray, "draw example"]:
        total = np.zeros((self._n_examples, len(rows)))
        np.add.at(total, self._example, rows.T)
        return total.T


def as_numbers(values: Tensor) -> Float[np.ndarray, " row"]:
    """Scores as 64-bit floats.

    Raises:
        InputError: One is infinite or no number: NaN means "not measured" in the statistics, and a measurement that
            failed must not pass for that.
    """
    numbers: np.ndarray = values.double().cpu().numpy()
    failed = int((~np.isfinite(numbers)).sum())
    if failed:
        raise InputError(
            f"the metric is NaN or infinite on {failed} of {len(numbers)} prompts or sentences: the weights, or a "
            "hook's result, are no finite numbers, or overflow in the model's dtype",
            "give dtype='float32' where that is less (of interp.load_model)",
            "take weights that are finite",
        )
    return numbers
