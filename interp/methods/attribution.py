"""Attribution patching: gradient estimates of a whole patching sweep, from a few backward passes.

1. Run every prompt and the prompt that it is patched from; the grid, the directions and the labels are those of
   ``interp.patch``.
2. Multiply the differences of their activations with the metric's gradients, and sum within each cell
   (``gradient_estimates.py`` has the formula, its two kinds and their papers).
3. The estimates are a ranking of where to look, with an interval over units; they are no measured effects. A screen
   (``interp.patch(..., screen=True)``) measures the first of them and says how many it has missed.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from interp.claims.bootstrap import cluster_bootstrap
from interp.claims.units import UnitTable
from interp.interventions.provenance import task_provenance
from interp.methods.gradient_estimates import estimate_cells
from interp.methods.grid import as_grid
from interp.methods.patching import patch_cells
from interp.methods.task_arguments import as_pairs
from interp.model.devices import documented
from interp.model.provenance import model_provenance
from interp.options import AttributeOptions
from interp.result import Result
from interp.tasks.task import Task


@dataclass(frozen=True, eq=False, repr=False)
class AttributionResult(Result):
    """First-order estimates of every patch on every example.

    Attributes:
        examples: One row per cell and example: the cell's labels, ``unit`` and ``example`` (their numbers in the task),
            ``cluster``, ``template`` and ``estimate``, in the metric's unit. A cell that an example does not have is
            absent.
        provenance: How the numbers were made. With integrated gradients, ``completeness``: the ``largest_gap``
            between an example's sum over the embeddings and the change of its metric, and the ``largest_change``.
        labels: The columns that name a cell.
    """

    labels: tuple[str, ...] = ("layer", "head")

    shown_by: ClassVar[str] = "results.effects"

    def summary(self) -> pd.DataFrame:
        """One row per cell, over balanced units.

        Columns: the cell's labels, ``estimate`` (mean over templates of their means), ``low``, ``high`` (95 %, cluster
        bootstrap: of the estimate, not of the effect), ``n_units``, ``n_clusters``.
        """
        table = UnitTable.from_frame(self.examples, "estimate", by=self.labels)
        interval = cluster_bootstrap(table, seed=self.provenance["seed"])
        columns = {"estimate": interval.estimate, "low": interval.low, "high": interval.high}
        counts = {"n_units": table.n_units, "n_clusters": table.n_clusters}
        return pd.DataFrame(columns | counts, index=table.cells).reset_index()


@documented
def attribute(
    model: Any, task: Task | str, options: AttributeOptions | None = None, **fields: Any
) -> AttributionResult:
    """Estimate what ``interp.patch`` with the same options would measure, by gradients.

    An accuracy has no gradient, and a KL divergence has one only away from the run: it takes integrated gradients.

    Args:
        model: Follows TransformerLens' protocol. Nothing on it is changed, and its weights need no gradients.
        task: A task, or the name of one.
        options: What is asked; or its fields by name: see ``AttributeOptions``.
        fields: Those of `options` that are given by name.

    Returns:
        One row per cell and example; ``summary()`` has one row per cell.

    Raises:
        InputError: An unknown site, axis, direction, metric or method; a metric without a gradient; no steps; a unit
            without a counterfactual of its length; prompts that nothing aligns; a point that the model does not run; a
            budget too small for one row.

    Examples:
        >>> from interp.methods.attribution import attribute
        >>> len(attribute(interp.load_model(), "agreement", n=24).summary())
        12
    """
    asked = AttributeOptions.of(options, fields)
    grid = as_grid(asked.site, asked.by, asked.layers)
    given = as_pairs(task, model, n=asked.n, seed=asked.seed, metric=asked.metric)
    cells = patch_cells(model, given, grid, asked.direction)
    found = estimate_cells(model, given, grid, cells, asked)
    how = {name: getattr(asked, name) for name in ("site", "direction", "method", "seed")}
    how["metric"] = asked.metric or given.metric
    if asked.method == "integrated_gradients":
        how |= {"steps": asked.steps, "completeness": dict(found.completeness)}
    provenance = {**model_provenance(model), **task_provenance(given), **how}
    return AttributionResult(found.frame(), provenance, tuple(grid.by))
