"""First-order estimates of what patching each cell would do: all cells of a grid from a few gradients.

``estimate = sum over a cell's components of (source's activation - run's activation) * d metric / d activation``

- **attribution** takes the gradient at the run (Nanda 2023, "Attribution patching"; Syed et al. 2023, "Attribution
  patching outperforms automated circuit discovery"; Kramar et al. 2024, "AtP*"): exact where the metric is linear in
  the activation.
- **integrated gradients** averages it along the straight line of the embeddings from the run to the source
  (Sundararajan et al. 2017, "Axiomatic attribution"; Hanna et al. 2024, "Have faith in faithfulness", EAP-IG; Marks
  et al. 2024, "Sparse feature circuits"). The average is Gauss and Legendre's, at `steps` points. At the embeddings
  themselves it is **complete**: the estimates sum to what the metric changes between the run and its source. How far
  they miss it says whether there were enough steps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from interp.claims.units import UnitTable, estimates
from interp.errors import InputError
from interp.interventions.hooked_runs import EMBEDDED, DifferentiableRun, differentiable_runs
from interp.interventions.metrics import as_numbers
from interp.interventions.rows import Batch, Row, example_labels, read_source, task_rows
from interp.interventions.sweep import Cell
from interp.methods.grid import SITE_AXIS, Grid
from interp.model.devices import documented
from interp.model.sites import SITES
from interp.options import AttributeOptions, GradientMethod, MetricName
from interp.residual.activations import read
from interp.shapes import Residual
from interp.tasks.task import Task

_LETTER = {"batch": "b", "pos": "p", "query_pos": "p", "key_pos": "k", "head": "h", "d_mlp": "n"}


@dataclass(frozen=True)
class Estimates:
    """What patching would do, to first order.

    Attributes:
        values: In the metric's unit; NaN where an example does not have the positions of a cell.
        cells: The cells' labels.
        examples: ``unit``, ``example``, ``cluster`` and ``template`` of every example.
        method: Where the gradients were taken.
        completeness: Of integrated gradients, in the metric's unit: the ``largest_gap`` between an example's sum over
            the embeddings and the change of its metric, and the ``largest_change``. Empty otherwise.
    """

    values: Float[np.ndarray, "cell example"]
    cells: pd.DataFrame
    examples: pd.DataFrame
    method: GradientMethod
    completeness: Mapping[str, float]

    def frame(self) -> pd.DataFrame:
        """One row per cell and example that has it: the labels of both, and ``estimate``."""
        n_cells, n_examples = self.values.shape
        cell, example = np.repeat(np.arange(n_cells), n_examples), np.tile(np.arange(n_examples), n_cells)
        there = np.flatnonzero(np.isfinite(self.values.ravel()))
        parts = [self.cells.iloc[cell[there]], self.examples.iloc[example[there]]]
        frame = pd.concat([each.reset_index(drop=True) for each in parts], axis=1)
        return frame.assign(estimate=self.values.ravel()[there])

    def means(self) -> Float[np.ndarray, " cell"]:
        """Each cell's mean over balanced units, as in the statistics of a sweep."""
        by_unit = pd.DataFrame(self.values.T).groupby(self.examples["unit"].to_numpy()).mean()
        first = self.examples.drop_duplicates("unit")
        table = UnitTable(by_unit.to_numpy(), tuple(first["cluster"]), tuple(first["template"]), by_unit.columns)
        return estimates(table)


@documented
def estimate_cells(
    model: Any, task: Task, grid: Grid, cells: Sequence[Cell], options: AttributeOptions | None = None, **fields: Any
) -> Estimates:
    """Estimate the effect of every cell (all of them, in the grid's order) on every example of `task`.

    `options` are ``direction``, ``metric``, ``method``, ``steps`` and ``memory_budget`` of ``AttributeOptions``.
    """
    how = AttributeOptions.of(options, fields)
    asked: MetricName = how.metric or task.metric
    _check(asked, how)
    rows = task_rows(asked, task.units, how.direction)
    by_cell = _ByCell(grid, cells)
    names = [site.hook_name for site in grid.sites(model)]
    path = _path(how.steps) if how.method == "integrated_gradients" else None
    points = names if path is None else [*names, EMBEDDED]
    values = np.zeros((len(task.examples), len(cells)))
    gaps, changes = np.zeros(len(values)), np.zeros(len(values))
    for batch, run in differentiable_runs(model, rows, asked, points, how.memory_budget):
        signs = np.array([row.sign for row in batch.rows], dtype=float)
        apart, steep = _at_the_run(model, run, batch) if path is None else _along_the_way(model, run, batch, path)
        found = by_cell([apart[name] for name in names], [steep[name] for name in names], batch)
        np.add.at(values, batch.examples, signs[:, None] * _finite(found))
        if path is not None:
            change = run.scores(batch.source_tokens) - run.scores(batch.tokens)
            total = (apart[EMBEDDED] * steep[EMBEDDED]).flatten(1).sum(1)
            np.add.at(changes, batch.examples, signs * _finite(change))
            np.add.at(gaps, batch.examples, signs * _finite(total - change))
    values[~by_cell.present(rows, len(values))] = np.nan
    labels = pd.DataFrame([dict(cell.labels) for cell in cells], columns=list(grid.by))
    completeness = {"largest_gap": float(np.abs(gaps).max()), "largest_change": float(np.abs(changes).max())}
    return Estimates(
        values.T, labels, pd.DataFrame(example_labels(task)), how.method, {} if path is None else completeness
    )


def _check(metric: MetricName, asked: AttributeOptions) -> None:
    if asked.steps < 1:
        raise InputError(f"steps: expected at least 1, got {asked.steps}")
    if metric == "kl_divergence" and asked.method == "attribution":
        raise InputError(
            "kl_divergence is smallest at the run itself, so its gradient there is 0 and estimates nothing; "
            "use another metric, or in Python screen='integrated_gradients' (patch) or method='integrated_gradients' "
            "(attribute)"
        )


def _finite(found: Float[Tensor, "batch ..."]) -> Float[np.ndarray, "batch ..."]:
    return as_numbers(found.flatten()).reshape(found.shape)


def _path(steps: int) -> list[tuple[float, float]]:
    """Points between 0 and 1 and their weights, which sum to 1."""
    points, weights = np.polynomial.legendre.leggauss(steps)
    return [(float(point + 1) / 2, float(weight) / 2) for point, weight in zip(points, weights, strict=True)]


_Way = tuple[Mapping[str, Tensor], Mapping[str, Tensor]]
"""From the run of a batch to its source: how far each activation goes, and how steep the metric is there."""


def _at_the_run(model: Any, run: DifferentiableRun, batch: Batch) -> _Way:
    here, slopes = run.gradients()
    there = read_source(model, batch, here)
    # Where nothing of the source corresponds, nothing can be patched, and no cell is about it.
    known = torch.tensor([row.source_positions for row in batch.rows], device=batch.tokens.device) >= 0
    if known.all():
        return {name: there[name] - x for name, x in here.items()}, slopes
    shapes = {name: (*known.shape, *[1] * (x.ndim - 2)) for name, x in here.items()}
    return {name: torch.where(known.reshape(shapes[name]), there[name] - x, 0) for name, x in here.items()}, slopes


def _along_the_way(model: Any, run: DifferentiableRun, batch: Batch, path: list[tuple[float, float]]) -> _Way:
    if batch.source_tokens.shape != batch.tokens.shape:
        raise InputError(
            f"integrated_gradients: no line leads from the embeddings of {batch.length} tokens to those of "
            f"{batch.source_tokens.shape[1]}; use method='attribution', or prompts of one length"
        )
    there = read_source(model, batch, run.names)
    here = read(model, batch.tokens, run.names)
    slopes = _averaged(run, here[EMBEDDED], there[EMBEDDED], path)
    return {name: there[name] - x for name, x in here.items()}, slopes


def _averaged(
    run: DifferentiableRun, here: Residual, there: Residual, path: list[tuple[float, float]]
) -> Mapping[str, Tensor]:
    """Gradients averaged along the straight line between two embeddings."""
    total: dict[str, Tensor] = {}
    for share, weight in path:
        _, found = run.gradients(torch.lerp(here, there, share))
        total = {name: total.get(name, 0) + weight * gradient for name, gradient in found.items()}
    return total


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
        self._site = "".join(_LETTER.get(axis, "x") for axis in SITES[grid.site][1])
        resolved = "".join(_LETTER[SITE_AXIS.get(axis, axis)] for axis in grid.by if axis not in ("layer", "pos"))
        self._tokens = "bp" + resolved
        self._cells = "b" + "".join(
            "t" if axis == "pos" else _LETTER[SITE_AXIS[axis]] for axis in grid.by if axis != "layer"
        )

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
