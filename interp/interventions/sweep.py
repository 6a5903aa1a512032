"""What does each intervention do to a task? The one loop over cells in the whole package.

1. Run the task once without interventions: the base run.
2. Measure it under every cell, a set of interventions with labels: on our own model, or our copy of a
   ``TransformerBridge``, by the incremental engine (``engine/``); on any other model by the plain way, one hooked
   forward per cell (``hooked_runs.py``). The provenance says which, and why.
3. Audit the engine: measure a random sample of cells again by the plain way, on the model that was given; a
   difference beyond the tolerance raises.
4. One row per cell and example: ``effect = value - base``; a drop is negative.

Every row says how often its interventions acted and how far they moved the activation. A cell that changed
nothing warns, and so do different heads with bit-identical results: a silent no-op is the commonest
wrong result in this field.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import pandas as pd

from interp.claims.bootstrap import cluster_bootstrap
from interp.claims.claim import Measured, claim
from interp.claims.effects import DIFFERENCES
from interp.claims.units import UnitTable, estimates
from interp.errors import InputError
from interp.interventions.intervention import Cell, warn_of_no_ops
from interp.interventions.metrics import as_metric
from interp.interventions.provenance import task_shown
from interp.interventions.rows import Source
from interp.interventions.sweep_run import Answer, Progress, SweepRun
from interp.model.devices import ordinary_modes
from interp.options import AskedMetric
from interp.result import Result
from interp.tasks.task import Task

__all__ = ["Cell", "Progress", "Sweep", "SweepResult"]


@dataclass(frozen=True, eq=False, repr=False)
class SweepResult(Result):
    """Effects of every cell on every example.

    Attributes:
        examples: One row per cell and example: the cell's labels, ``unit`` and ``example`` (their
            numbers in the task), ``cluster``, ``template``, ``layout``, ``base`` and ``value`` (the metric
            without and with the interventions), ``effect`` (value - base), ``base_correct`` and
            ``value_correct`` (0, 1, or a share of the draws), ``fired``, ``change_norm``, and
            ``status``: ``changed``; ``identical input`` (the other run has the same
            activation there); ``unreachable`` (cannot reach the metric); ``no-op``.
            Where activations are patched, ``source`` is the metric of the run that they come from.
        provenance: How the numbers were made.
        labels: The columns that name a cell.
    """

    labels: tuple[str, ...] = ("layer", "head")

    shown_by: ClassVar[str] = "sweep"

    def summary(self) -> pd.DataFrame:
        """One row per cell, over balanced units.

        Columns: the cell's labels, ``effect`` (mean over templates of their means), ``low``,
        ``high`` (95 %, cluster bootstrap; NaN where a template has a single cluster), ``p`` (that the mean is 0,
        two-sided), ``p_adjusted`` (family-wise over this sweep's cells, max-T; both are NaN where ``low`` is, and with
        fewer than 30 clusters), ``base``, ``value``, ``accuracy_base``, ``accuracy_intervened``, ``change_norm``,
        ``n_units``, ``n_clusters``. ``p`` and ``p_adjusted`` of a KL divergence are NaN: it is never below 0.
        """
        if self.provenance["metric"] == "kl_divergence":
            return self.estimates().assign(p=np.nan, p_adjusted=np.nan)[[*self.labels, *_SUMMARY]]
        (test,) = claim([Measured(self.table("effect"))], seed=self.provenance["seed"])
        tested = {"low": test.interval.low, "high": test.interval.high, "p": test.p, "p_adjusted": test.p_adjusted}
        return self.means().assign(**tested)[[*self.labels, *_SUMMARY]]

    def estimates(self) -> pd.DataFrame:
        """``summary`` without its tests, for who tests more than this sweep together."""
        interval = cluster_bootstrap(self.table("effect"), seed=self.provenance["seed"])
        return self.means().assign(low=interval.low, high=interval.high)

    def means(self) -> pd.DataFrame:
        """``estimates`` without intervals."""
        effects = self.table("effect")
        columns = {"effect": estimates(effects)}
        columns |= {name: estimates(self.table(column)) for name, column in _MEANS.items()}
        columns |= {"n_units": effects.n_units, "n_clusters": effects.n_clusters}
        return pd.DataFrame(columns, index=effects.cells).reset_index()

    def table(self, column: str) -> UnitTable:
        """A column of the examples by unit and cell.

        Args:
            column: One of numbers, such as ``effect``.

        Returns:
            A table ``[unit cell]``, for ``interp.claims.claim``.
        """
        return UnitTable.from_frame(self.examples, column, by=self.labels)

    def runs(self) -> pd.DataFrame:
        """The runs that cells are held against: the unablated model, or the clean and the corrupted run.

        Columns: ``run``, the metric's ``mean`` with ``low`` and ``high`` (95 %, cluster bootstrap), ``accuracy`` (NaN
        for a run that is patched from, where the metric does not tell it), ``above_chance`` (None where that is not
        known), ``n_units``, ``n_clusters``.
        """
        names = {"unablated": "base"}
        if "direction" in self.provenance:
            noised = self.provenance["direction"] == "noise"
            names = {"clean": "base" if noised else "source", "corrupted": "source" if noised else "base"}
        once = self.examples.drop_duplicates("example").assign(run="")
        return pd.DataFrame([self._run(name, column, once) for name, column in names.items()])

    def _run(self, name: str, column: str, examples: pd.DataFrame) -> dict[str, Any]:
        metric, seed = self.provenance["metric"], self.provenance["seed"]
        examples = examples.assign(correct=_correct(examples, column, metric))
        values, correct = (UnitTable.from_frame(examples, each, by=("run",)) for each in (column, "correct"))
        interval = cluster_bootstrap(values, seed=seed)
        # A difference of answers is above chance above 0, a share of right answers above a half.
        low = interval.low[0] if metric in DIFFERENCES else cluster_bootstrap(correct, seed=seed).low[0] - 0.5
        return {
            "run": name,
            "mean": interval.estimate[0],
            "low": interval.low[0],
            "high": interval.high[0],
            "accuracy": estimates(correct)[0],
            "above_chance": None if np.isnan(low) else bool(low > 0),
            "n_units": int(values.n_units[0]),
            "n_clusters": int(values.n_clusters[0]),
        }


def _correct(examples: pd.DataFrame, column: str, metric: str) -> pd.Series | float:
    if column == "base":
        return examples["base_correct"]
    if metric in DIFFERENCES:
        return (examples[column] > 0).astype(float)
    return examples[column] if metric == "accuracy" else np.nan


_MEANS = {
    "base": "base",
    "value": "value",
    "accuracy_base": "base_correct",
    "accuracy_intervened": "value_correct",
    "change_norm": "change_norm",
}
_SUMMARY = ("effect", "low", "high", "p", "p_adjusted", *_MEANS, "n_units", "n_clusters")


class Keeper(Protocol):
    """Has sweeps measured, and keeps them (``interp.Run``)."""

    def sweep(self, run: SweepRun) -> Answer:
        """The answer to ``run.request()``: what is kept, or what ``run.answer(...)`` gives, which is kept then."""
        ...


@dataclass(frozen=True)
class Sweep:
    """Cells to be measured on a task."""

    cells: Sequence[Cell]

    @ordinary_modes()
    def run(
        self,
        model: Any,
        task: Task,
        *,
        metric: AskedMetric | None = None,
        direction: Source | None = None,
        seed: int = 0,
        memory_budget: int | None = None,
        plainly: bool = False,
        progress: Progress | None = None,
        run: Keeper | None = None,
    ) -> SweepResult:
        """Measure every cell on every example of `task`.

        Interrupted (Ctrl-C), it returns the examples that are complete and warns; ``provenance["complete"]`` is False.

        Args:
            model: Follows TransformerLens' protocol.
            task: What is measured.
            metric: How: a name, or a function ``(logits, example) -> number``; None for the task's own metric.
            direction: Which run is patched from which, as in ``task_rows``; None where nothing is patched.
            seed: Of the summary's resampling and the audit; the replacements were drawn before.
            memory_budget: Bytes beside the model's weights; None for the device's default (``engine/plan.py``).
            plainly: Whether to run one hooked forward per cell where the engine could measure, too.
            progress: Called with (cells done, cells in all).
            run: Who measures, and where what was measured is kept and found again (``interp.Run``); None for here
                and nowhere.

        Raises:
            InputError: There is nothing to measure, two cells have the same labels, something is patched without a
                direction, a metric that the task has no answers for, a replacement that was made for other sites or for
                the rows of another metric, a budget too small for one cell, a model that
                cannot carry a row, or a sweep to be kept that no hash can tell from others.
            AuditError: The engine's numbers are not those of the plain way.
            OutputError: What is measured cannot be kept.
        """
        self._check(model, task, direction)
        asked = as_metric(task.metric if metric is None else metric)
        options: dict[str, Any] = {"memory_budget": memory_budget, "plainly": plainly, "progress": progress}
        sweep = SweepRun(model, task, self.cells, asked, direction, seed=seed, **options)
        answer = sweep.answer(sweep.measure_here) if run is None else run.sweep(sweep)
        labels = tuple(self.cells[0].labels)
        warn_of_no_ops(answer.frame, labels, twins=asked != "accuracy")
        shown = task_shown(task, getattr(model, "tokenizer", None), labels)
        return SweepResult(answer.frame, {**answer.provenance, **shown}, labels)

    def _check(self, model: Any, task: Task, direction: Source | None) -> None:
        if not self.cells or not task.units:
            raise InputError(
                f"a sweep of {len(self.cells)} cells over {len(task.units)} units of task {task.name!r}: "
                "expected at least one of each"
            )
        for each in (change for cell in self.cells for change in cell.interventions):
            each.check(model)
            if each.replacement.from_source and direction is None:
                raise InputError(
                    f"{each.site.name}: its replacement is taken from another run, expected direction='denoise', "
                    "'noise' or 'word', which says from which, got none"
                )
        names = tuple(self.cells[0].labels)
        known = ", ".join(names)
        if any(tuple(each.labels) != names or not each.interventions for each in self.cells):
            raise InputError(f"a sweep: expected every cell to be labelled by {known}, and to change something")
        twice = [label for label, n in Counter(tuple(each.labels.values()) for each in self.cells).items() if n > 1]
        if twice:
            raise InputError(f"a sweep: expected cells with different labels, got several of {known} {twice[0]}")
