"""Where would patching matter? Gradient estimates of a whole patching sweep, from a few backward passes.

1. Run every prompt and the prompt that it is patched from; the grid, the directions and the labels are those of
   ``interp.patch``.
2. Multiply the differences of their activations with the metric's gradients, and sum within each cell
   (``gradient_estimates.py`` has the formula, its two kinds and their papers).
3. The estimates are a ranking of where to look, with an interval over units; they are no measured effects. A screen
   (``interp.patch(..., screen=True)``) measures the first of them and says how many it has missed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import pandas as pd

from interp.claims.bootstrap import cluster_bootstrap
from interp.claims.units import UnitTable
from interp.errors import InputError, suggest
from interp.interventions.metrics import MetricName
from interp.interventions.provenance import model_provenance, task_provenance
from interp.interventions.rows import Direction
from interp.methods.gradient_estimates import STEPS, Method, estimate_cells
from interp.methods.grid import Axis, as_grid
from interp.methods.in_one_line import InOneLine
from interp.methods.patching import patch_cells
from interp.methods.task_arguments import as_pairs
from interp.model.devices import documented
from interp.tasks.task import Task


@dataclass(frozen=True, repr=False)
class AttributionResult(InOneLine):
    """First-order estimates of every patch on every example.

    Attributes:
        frame: One row per cell and example: the cell's labels, ``unit`` and ``example`` (their numbers in the task),
            ``cluster``, ``template`` and ``estimate``, in the metric's unit. A cell that an example does not have is
            absent.
        provenance: How the numbers were made. With integrated gradients, ``completeness``: the ``largest_gap``
            between an example's sum over the embeddings and the change of its metric, and the ``largest_change``.
        labels: The columns that name a cell.
    """

    frame: pd.DataFrame
    provenance: Mapping[str, Any]
    labels: tuple[str, ...]

    def _repr_html_(self) -> str:
        """What a notebook shows: the findings in words, the strongest with their intervals, and a figure if small."""
        from interp.report.glance import as_html
        from interp.report.results.estimates import estimates_glance

        return as_html(estimates_glance(self))

    def summary(self) -> pd.DataFrame:
        """One row per cell, over balanced units.

        Columns: the cell's labels, ``estimate`` (mean over templates of their means), ``low``, ``high`` (95 %, cluster
        bootstrap: of the estimate, not of the effect), ``n_units``, ``n_clusters``.
        """
        table = UnitTable.from_frame(self.frame, "estimate", by=self.labels)
        interval = cluster_bootstrap(table, seed=self.provenance["seed"])
        columns = {"estimate": interval.estimate, "low": interval.low, "high": interval.high}
        counts = {"n_units": table.n_units, "n_clusters": table.n_clusters}
        return pd.DataFrame(columns | counts, index=table.cells).reset_index()


@documented
def attribute(
    model: Any,
    task: Task | str,
    *,
    site: str = "z",
    by: Sequence[Axis] = ("layer", "head"),
    direction: Direction = "denoise",
    metric: MetricName | None = None,
    method: Method = "attribution",
    steps: int = STEPS,
    layers: Sequence[int] | None = None,
    n: int | None = None,
    seed: int = 0,
    memory_budget: int | None = None,
) -> AttributionResult:
    """Estimate what ``interp.patch`` with the same arguments would measure, by gradients.

    Args:
        model: Follows TransformerLens' protocol. Nothing on it is changed, and its weights need no gradients.
        task: A task, or the name of one.
        site: What would be patched; see ``patch``.
        by: What makes a cell; see ``patch``.
        direction: ``denoise`` or ``noise``.
        metric: What is estimated; None for the task's own. An accuracy has no gradient, and a KL divergence has one
            only away from the run: it takes integrated gradients.
        method: ``attribution`` (the gradient at the run) or ``integrated_gradients`` (averaged between the
            embeddings of the run and its source: `steps` times the work, nearer to the effect where the metric is
            curved).
        steps: Points of that average.
        layers: Layers that would be patched; None for all.
        n: Units to draw where `task` is a name; None for the task's own default.
        seed: Of the task's draw and the summary's resampling.
        memory_budget: Bytes beside the model's weights; None for the device's default.

    Raises:
        InputError: An unknown site, axis, direction, metric or method; a metric without a gradient; no steps; a unit
            without a counterfactual of its length; prompts that nothing aligns; a point that the model does not run; a
            budget too small for one row.
    """
    if direction not in get_args(Direction):
        raise InputError(f"direction: {direction!r} is unknown; {suggest(str(direction), get_args(Direction))}")
    grid = as_grid(site, by, layers)
    given = as_pairs(task, model, n=n, seed=seed, metric=metric)
    cells = patch_cells(model, given, grid, direction)
    found = estimate_cells(
        model,
        given,
        grid,
        cells,
        direction=direction,
        metric=metric,
        method=method,
        steps=steps,
        memory_budget=memory_budget,
    )
    how: dict[str, Any] = {
        "metric": metric or given.metric,
        "site": site,
        "direction": direction,
        "method": method,
        "seed": seed,
    }
    if method == "integrated_gradients":
        how |= {"steps": steps, "completeness": dict(found.completeness)}
    provenance = {**model_provenance(model), **task_provenance(given), **how}
    return AttributionResult(found.frame(), provenance, tuple(grid.by))
