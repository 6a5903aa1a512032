"""Attribution patching: gradient estimates of a whole patching sweep, from a few backward passes.

``estimate = sum over a cell's components of (source's activation - run's activation) * d metric / d activation``

- **attribution** takes the gradient at the run (Nanda 2023, "Attribution patching"; Syed et al. 2023, "Attribution
  patching outperforms automated circuit discovery"; Kramar et al. 2024, "AtP*"): exact where the metric is linear in
  the activation.
- **integrated gradients** averages it along the straight line of the embeddings from the run to the source
  (Sundararajan et al. 2017, "Axiomatic attribution"; Hanna et al. 2024, "Have faith in faithfulness", EAP-IG; Marks
  et al. 2024, "Sparse feature circuits"). The average is Gauss and Legendre's, at `steps` points. At the embeddings
  themselves it is **complete**: the estimates sum to what the metric changes between the run and its source. How far
  they miss it says whether there were enough steps.

The grid, the directions and the labels are those of ``interp.patch``. The estimates are a ranking of where to look,
with an interval over units; they are not measured effects. A screen (``interp.patch(..., screen=True)``) measures the
first of them and says how many it has missed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from interp.claims.bootstrap import cluster_bootstrap
from interp.claims.units import UnitTable, estimates
from interp.errors import InputError
from interp.interventions.hooked_runs import EMBEDDED, DifferentiableRun, differentiable_runs
from interp.interventions.metrics import AnyMetric, as_metric, as_numbers, name_of
from interp.interventions.provenance import task_provenance
from interp.interventions.rows import Batch, Row, example_labels, read_source, task_rows
from interp.interventions.sweep import Cell
from interp.methods.grid import Grid, as_grid, patch_cells
from interp.methods.task_arguments import as_pairs
from interp.model.devices import documented, sent
from interp.model.provenance import model_provenance
from interp.model.sites import SITES
from interp.options import AttributeOptions
from interp.residual.collecting import read
from interp.result import Result
from interp.tasks.task import Task

_OF_SITE = {"batch": "b", "pos": "p", "query_pos": "p", "key_pos": "k", "head": "h", "d_mlp": "n"}
_OF_CELL = {"pos": "t", "head": "h", "key": "k", "neuron": "n"}
"""Letters of axes in sums: a site's, of which the others are summed within a cell, and those that make a cell."""


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

    def means(self) -> pd.DataFrame:
        """The labels and the estimates of ``summary``, the cells in the order of the sweep."""
        table = UnitTable.from_frame(self.examples, "estimate", by=self.labels)
        found = pd.DataFrame({"estimate": estimates(table)}, index=table.cells).reset_index()
        return self.examples[list(self.labels)].drop_duplicates().merge(found, how="left", on=list(self.labels))


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
    metric = as_metric(asked.metric or given.metric)
    _check(metric, asked)
    how = {name: getattr(asked, name) for name in ("site", "direction", "method", "seed")} | {"metric": name_of(metric)}
    values, completeness = _estimated(model, given, grid, cells, metric, asked)
    if asked.method == "integrated_gradients":
        how |= {"steps": asked.steps, "completeness": completeness}
    provenance = {**model_provenance(model), **task_provenance(given), **how}
    cell, example = np.nonzero(np.isfinite(values))
    labels = pd.DataFrame([dict(each.labels) for each in cells], columns=list(grid.by))
    parts = [labels.iloc[cell], pd.DataFrame(example_labels(given)).iloc[example]]
    examples = pd.concat([each.reset_index(drop=True) for each in parts], axis=1)
    return AttributionResult(examples.assign(estimate=values[cell, example]), provenance, tuple(grid.by))


def _check(metric: AnyMetric, asked: AttributeOptions) -> None:
    if asked.steps < 1:
        raise InputError(f"steps: expected at least 1, got {asked.steps}")
    if metric == "kl_divergence" and asked.method == "attribution":
        raise InputError(
            "kl_divergence is smallest at the run itself, so its gradient there is 0 and estimates nothing; "
            "use another metric, or in Python screen='integrated_gradients' (patch) or method='integrated_gradients' "
            "(attribute)"
        )


def _estimated(
    model: Any, task: Task, grid: Grid, cells: Sequence[Cell], metric: AnyMetric, asked: AttributeOptions
) -> tuple[Float[np.ndarray, "cell example"], dict[str, float]]:
    """The estimates, NaN where an example does not have the positions of a cell, and how complete they are."""
    rows = task_rows(name_of(metric), task.units, asked.direction)
    by_cell = _ByCell(grid, cells)
    names = [site.hook_name for site in grid.sites(model)]
    path = _path(asked.steps) if asked.method == "integrated_gradients" else []
    values = np.zeros((len(task.examples), len(cells)))
    gaps, changes = np.zeros(len(values)), np.zeros(len(values))
    points = [*names, EMBEDDED] if path else names
    for batch, run in differentiable_runs(model, rows, metric, points, asked.memory_budget):
        signs = np.array([row.sign for row in batch.rows], dtype=float)
        apart, steep = _way(model, run, batch, path)
        found = by_cell([apart[name] for name in names], [steep[name] for name in names], batch)
        np.add.at(values, batch.examples, signs[:, None] * _finite(found))
        if path:
            change = run.scores(batch.source_tokens) - run.scores(batch.tokens)
            total = (apart[EMBEDDED] * steep[EMBEDDED]).flatten(1).sum(1)
            np.add.at(changes, batch.examples, signs * _finite(change))
            np.add.at(gaps, batch.examples, signs * _finite(total - change))
    values[~by_cell.present(rows, len(values))] = np.nan
    return values.T, {"largest_gap": float(np.abs(gaps).max()), "largest_change": float(np.abs(changes).max())}


def _finite(found: Float[Tensor, "batch ..."]) -> Float[np.ndarray, "batch ..."]:
    return as_numbers(found.flatten()).reshape(found.shape)


def _path(steps: int) -> list[tuple[float, float]]:
    """Points between 0 and 1 and their weights, which sum to 1."""
    points, weights = np.polynomial.legendre.leggauss(steps)
    return [(float(point + 1) / 2, float(weight) / 2) for point, weight in zip(points, weights, strict=True)]


def _way(
    model: Any, run: DifferentiableRun, batch: Batch, path: Sequence[tuple[float, float]]
) -> tuple[Mapping[str, Tensor], Mapping[str, Tensor]]:
    """From the run of a batch to its source: how far each activation goes, and how steep the metric is there."""
    if path and batch.source_tokens.shape != batch.tokens.shape:
        raise InputError(
            f"integrated_gradients: no line leads from the embeddings of {batch.length} tokens to those of "
            f"{batch.source_tokens.shape[1]}; use method='attribution', or prompts of one length"
        )
    there = read_source(model, batch, run.names)
    here, steep = (read(model, batch.tokens, run.names), dict[str, Tensor]()) if path else run.gradients()
    for share, weight in path:
        _, found = run.gradients(torch.lerp(here[EMBEDDED], there[EMBEDDED], share))
        steep = {name: steep.get(name, 0) + weight * gradient for name, gradient in found.items()}
    # Where nothing of the source corresponds, nothing can be patched, and no cell is about it.
    known = np.array([row.source_positions for row in batch.rows]) >= 0
    apart = {name: there[name] - x for name, x in here.items()}
    if not known.all():
        kept = sent(known, batch.tokens.device)
        apart = {name: x.where(kept.reshape(*known.shape, *[1] * (x.ndim - 2)), 0) for name, x in apart.items()}
    return apart, steep


class _ByCell:
    """Sums products of difference and gradient over the components of each cell."""

    def __init__(self, grid: Grid, cells: Sequence[Cell]):
        self._by = grid.by
        labels = [cell.labels.get("pos") for cell in cells]
        # Cells of one position label change the same positions of a row, whatever their layer and head.
        self._places = {label: cell.interventions[0] for label, cell in zip(labels, cells, strict=True)}
        order = {label: number for number, label in enumerate(self._places)}
        self._place_of = [order[label] for label in labels]
        self._n_keys = len({cell.labels["key"] for cell in cells}) if "key" in grid.by else None
        resolved = "".join(_OF_CELL[axis] for axis in grid.by if axis != "layer")
        self._site = "".join(_OF_SITE.get(axis, "x") for axis in SITES[grid.site][1])
        self._tokens, self._cells = "bp" + resolved.replace("t", ""), "b" + resolved

    def __call__(
        self, differences: Sequence[Tensor], slopes: Sequence[Tensor], batch: Batch
    ) -> Float[Tensor, "batch cell"]:
        """The estimates of all cells on the rows of `batch`, from every layer's tensors."""
        where = torch.stack([each.where(batch) for each in self._places.values()], dim=1)
        layers = [self._layer(*each, where) for each in zip(differences, slopes, strict=True)]
        if "layer" not in self._by:
            return torch.stack(layers).sum(0).flatten(1)
        return torch.stack(layers, dim=1 + self._by.index("layer")).flatten(1)

    def _layer(
        self, difference: Tensor, slope: Tensor, where: Bool[Tensor, "batch place pos"]
    ) -> Float[Tensor, "batch ..."]:
        wide = torch.promote_types(difference.dtype, torch.float32)
        difference, slope = difference.to(wide), slope.to(wide)
        if self._n_keys is not None:
            difference, slope = difference[..., : self._n_keys], slope[..., : self._n_keys]
        by_token = torch.einsum(f"{self._site},{self._site}->{self._tokens}", difference, slope)
        return torch.einsum(f"{self._tokens},btp->{self._cells}", by_token, where.to(wide))

    def present(self, rows: Sequence[Row], n_examples: int) -> Bool[np.ndarray, "example cell"]:
        """Whether an example has the positions that a cell is about."""
        found = np.zeros((n_examples, len(self._places)), dtype=bool)
        for row in rows:
            found[row.example] |= [bool(each.at(row)) for each in self._places.values()]
        return found[:, self._place_of]
