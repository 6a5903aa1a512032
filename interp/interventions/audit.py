"""The audit of the engine: a random sample of cells and rows is measured again by the plain way.

The base run, and the run that is patched from, are compared as well. Differences of values are relative to the largest
value among a cell's rows and the base run's, those of margins to the largest margin.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from interp.errors import AuditError
from interp.interventions.hooked_runs import PlainRun
from interp.interventions.intervention import Intervention
from interp.interventions.metrics import Measured, RowScores
from interp.interventions.rows import Batch
from interp.model.devices import place_of
from interp.model.loading.agreement import TOLERANCE
from interp.options import MetricName

ROWS = 8
"""Rows that a cell is run on again, at most."""


def audit(
    model: Any,
    metric: MetricName,
    batches: Sequence[Batch],
    cells: Sequence[Sequence[Intervention]],
    measured: tuple[Measured, Measured, Measured | None],
    seed: int,
    budget: int,
) -> dict[str, Any]:
    """Measure a sample, drawn by `seed`, again by the plain way; raises AuditError beyond the tolerance.

    The `batches` hold all rows in the order of what the engine has `measured`: the cells, the base run and, where
    something is patched, its source. Logits of the rows that are run together take a quarter of the `budget` (bytes) at
    most. Returns how many ``cells`` and ``rows`` were compared, the ``largest_difference`` and the ``tolerance``.
    """
    generator = np.random.default_rng(seed)
    found, base, source = measured
    starts = np.cumsum([0, *(len(batch.rows) for batch in batches)])
    # One in 128; of a small sweep, where it costs little, two.
    n_cells = min(len(cells), int(np.clip(len(cells) // 128, 1 if len(cells) > 128 else 2, 16)))
    drawn: dict[int, list[int]] = {}
    for cell in generator.choice(len(cells), size=n_cells, replace=False).tolist():
        drawn.setdefault(int(generator.choice(len(batches))), []).append(cell)
    differences, n_rows = [], 0
    for number, its_cells in drawn.items():
        batch = batches[number]
        at_once = max(1, budget // (16 * batch.length * model.cfg.d_vocab))
        n = min(ROWS, len(batch.rows), at_once)
        chosen = np.sort(generator.choice(len(batch.rows), size=n, replace=False))
        plain = PlainRun(model, batch.take(chosen.tolist()), metric, patched=source is not None)
        rows, pairs = starts[number] + chosen, [(base, 0, 0, plain.row_scores())]
        if source is not None:
            pairs.append((source, 0, 0, plain.source_scores()))
        for cell in its_cells:
            draw = int(generator.integers(found.draws[cell]))
            pairs.append((found, cell, draw, plain.scores(cells[cell], draw)))
        scale = max(_largest(found.value[its_cells, 0], base.value), float(metric == "kl_divergence"))
        margin = _largest(found.margin[its_cells, 0], base.margin)
        differences += [_difference(each, rows, scale or 1.0, margin or 1.0) for each in pairs]
        n_rows += n * len(its_cells)
    relative, tolerance = float(np.max(differences)), TOLERANCE[place_of(model)[1]]
    if not relative <= tolerance:
        raise AuditError(
            f"the sweep's own audit failed: {n_rows} prompts measured again one hooked forward at a time differ by "
            f"{relative:.1e} of the largest score, expected at most {tolerance:.0e}; please report this, and measure "
            "without the engine meanwhile: Sweep(cells).run(model, task, plainly=True)"
        )
    return {"cells": n_cells, "rows": n_rows, "largest_difference": relative, "tolerance": tolerance}


def _largest(*scores: Float[np.ndarray, "..."]) -> float:
    return max(float(np.max(np.abs(each), where=~np.isnan(each), initial=0.0)) for each in scores)


def _difference(
    compared: tuple[Measured, int, int, RowScores], rows: Int[np.ndarray, " row"], scale: float, margin: float
) -> float:
    """The largest relative difference of values and margins; NaN is one, unless a margin is not known to either."""
    measured, cell, draw, plain = compared
    values = np.abs(measured.value[cell, draw, rows] - plain.value) / scale
    margins = np.abs(measured.margin[cell, draw, rows] - plain.margin) / margin
    unknown = np.isnan(plain.margin) & np.isnan(measured.margin[cell, draw, rows])
    return float(np.max([*values, *margins[~unknown]]))
