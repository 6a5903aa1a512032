"""What does each intervention do to a task? The one loop over cells in the whole package.

1. Run the task once without interventions: the base run.
2. Run it once per cell, a set of interventions with labels.
3. One row per cell and example: ``effect = value - base``; a drop is negative.

Every row says how often its hooks fired and how far they moved the activation. A cell that changed
nothing warns, and so do different cells with bit-identical results: a silent no-op is the commonest
wrong result in this field.
"""

import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from interp.errors import InputError
from interp.interventions.intervention import Intervention
from interp.interventions.provenance import model_provenance, task_provenance
from interp.interventions.reference import Outcome, run_plainly
from interp.interventions.rows import BATCH_SIZE, batches, task_rows
from interp.stats.intervals import cluster_bootstrap
from interp.stats.permutation import sign_flip_test
from interp.stats.units import UnitTable, estimates
from interp.tasks.task import Task

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Cell:
    """Interventions that are made together.

    Attributes:
        layer: Label of the cell.
        head: Label of the cell.
        interventions: What is changed.
    """

    layer: int
    head: int
    interventions: tuple[Intervention, ...]


@dataclass(frozen=True)
class SweepResult:
    """Effects of every cell on every example.

    Attributes:
        frame: One row per cell and example: ``layer``, ``head``, ``unit`` and ``example`` (their
            numbers in the task), ``cluster``, ``template``, ``base`` and ``value`` (the metric
            without and with the interventions), ``effect`` (value - base), ``base_correct`` and
            ``value_correct`` (0, 1, or a share of the draws), ``fired``, ``change_norm``, and
            ``status``: ``changed``; ``identical input`` (the other example has the same
            activation there); ``unreachable`` (cannot reach the metric); ``no-op``.
        provenance: How the numbers were made.
    """

    frame: pd.DataFrame
    provenance: Mapping[str, Any]

    def summary(self) -> pd.DataFrame:
        """One row per cell, over balanced units.

        Columns: ``layer``, ``head``, ``effect`` (mean over templates of their means), ``low``,
        ``high`` (95 %, cluster bootstrap), ``p`` (two-sided, sign flips), ``q`` (family-wise over
        this sweep's cells, max-T; NaN below 20 clusters), ``base``, ``value``, ``accuracy_base``,
        ``accuracy_intervened``, ``change_norm``, ``n_units``, ``n_clusters``.
        """
        effects = UnitTable.from_frame(self.frame, "effect")
        (test,) = sign_flip_test([effects], seed=self.provenance["seed"])
        estimated = self.estimates()
        return estimated.assign(p=test.p, q=test.p_family)[["layer", "head", *_SUMMARY]]

    def estimates(self) -> pd.DataFrame:
        """``summary`` without its tests, for who tests more than this sweep together."""
        effects = UnitTable.from_frame(self.frame, "effect")
        interval = cluster_bootstrap(effects, seed=self.provenance["seed"])
        columns = {"effect": interval.estimate, "low": interval.low, "high": interval.high}
        for name, column in _MEANS.items():
            columns[name] = estimates(UnitTable.from_frame(self.frame, column))
        columns |= {"n_units": effects.n_units, "n_clusters": effects.n_clusters}
        return pd.DataFrame(columns, index=effects.cells).reset_index()


_MEANS = {
    "base": "base",
    "value": "value",
    "accuracy_base": "base_correct",
    "accuracy_intervened": "value_correct",
    "change_norm": "change_norm",
}
_SUMMARY = ("effect", "low", "high", "p", "q", *_MEANS, "n_units", "n_clusters")


@dataclass(frozen=True)
class Sweep:
    """Cells to be measured on a task."""

    cells: Sequence[Cell]

    def run(
        self,
        model: Any,
        task: Task,
        *,
        seed: int = 0,
        batch_size: int = BATCH_SIZE,
        progress: Progress | None = None,
    ) -> SweepResult:
        """Measure every cell on every example of `task`.

        Args:
            model: Follows TransformerLens' protocol.
            task: What is measured, and how.
            seed: Of the summary's resampling; the replacements were drawn before.
            batch_size: Rows of one forward pass.
            progress: Called with (cells done, cells in all).

        Raises:
            InputError: There is nothing to measure, two cells have the same labels, or the model cannot carry a row.
        """
        if not self.cells or not task.units:
            raise InputError(
                f"a sweep of {len(self.cells)} cells over {len(task.units)} units of task {task.name!r}: "
                "expected at least one of each"
            )
        twice = [label for label, count in Counter((each.layer, each.head) for each in self.cells).items() if count > 1]
        if twice:
            raise InputError(f"a sweep: expected cells with different labels, got several of layer, head {twice[0]}")
        rows = batches(model, task_rows(task.metric, task.units), size=batch_size)
        base = run_plainly(model, rows, task.metric)
        labels = _labels(task)
        parts = []
        for done, cell in enumerate(self.cells, start=1):
            outcome = run_plainly(model, rows, task.metric, cell.interventions)
            status = _status(cell, outcome, task, model.cfg.n_layers)
            parts.append(_cell_frame(cell, base, outcome, labels, status))
            if progress is not None:
                progress(done, len(self.cells))
        frame = pd.concat(parts, ignore_index=True)
        _warn_of_no_ops(frame)
        return SweepResult(frame, self._provenance(model, task, seed, batch_size))

    def _provenance(self, model: Any, task: Task, seed: int, batch_size: int) -> dict[str, Any]:
        interventions = [each for cell in self.cells for each in cell.interventions]
        return {
            **model_provenance(model),
            **task_provenance(task),
            "site": "z",
            "replacement": sorted({each.replacement.kind for each in interventions}),
            "draws": max((each.replacement.draws for each in interventions), default=1),
            "seed": seed,
            "batch_size": batch_size,
        }


def _labels(task: Task) -> dict[str, np.ndarray]:
    """What is known of every example before anything is measured."""
    owners = [(number, unit) for number, unit in enumerate(task.units) for _ in unit.examples]
    return {
        "unit": np.array([number for number, _ in owners]),
        "example": np.arange(len(owners)),
        "cluster": np.array([unit.cluster for _, unit in owners], dtype=object),
        "template": np.array([each.example.template for each in task.examples], dtype=object),
    }


def _cell_frame(
    cell: Cell, base: Outcome, outcome: Outcome, labels: Mapping[str, np.ndarray], status: np.ndarray
) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "layer": cell.layer,
            "head": cell.head,
            **labels,
            "base": base.value,
            "value": outcome.value,
            "effect": outcome.value - base.value,
            "base_correct": base.correct,
            "value_correct": outcome.correct,
            "fired": outcome.fired,
            "change_norm": outcome.change_norm,
            "status": status,
        }
    )


def _status(cell: Cell, outcome: Outcome, task: Task, n_layers: int) -> np.ndarray:
    """One status per example; see ``SweepResult``."""
    from_another_run = any(each.replacement.kind == "resample" for each in cell.interventions)
    reached = np.array(
        [any(each.reaches(row.critical, n_layers) for each in cell.interventions) for row in task.examples]
    )
    unmoved = "identical input" if from_another_run else "no-op"
    status = np.where(outcome.change_norm > 0, "changed", unmoved)
    status = np.where(reached, status, "unreachable")
    return np.where(outcome.fired == 0, "no-op", status).astype(object)


def _warn_of_no_ops(frame: pd.DataFrame) -> None:
    seen: dict[bytes, str] = {}
    for (layer, head), cell in frame.groupby(["layer", "head"]):
        name = f"{layer}.{head}"
        if (cell["status"] == "no-op").all():
            warnings.warn(
                f"head {name}: the intervention changed nothing on any example (hooks fired "
                f"{int(cell['fired'].sum())} times); a dead head, or a replacement equal to what it writes",
                RuntimeWarning,
                stacklevel=3,
            )
        elif (cell["status"] == "changed").any():
            twin = seen.setdefault(cell["value"].to_numpy().tobytes(), name)
            if twin != name:
                warnings.warn(
                    f"heads {twin} and {name} give bit-identical results although both changed; "
                    "do their interventions reach the metric?",
                    RuntimeWarning,
                    stacklevel=3,
                )
