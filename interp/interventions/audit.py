"""Are the engine's numbers those of the plain way? A random sample of cells and rows, measured again.

Differences are relative to the largest score of the sweep.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from interp.errors import AuditError
from interp.interventions.intervention import Intervention
from interp.interventions.measured import Measured
from interp.interventions.metrics import MetricName
from interp.interventions.reference import PlainRun
from interp.interventions.rows import Batch

TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 0.05, torch.bfloat16: 0.2}
"""The largest relative difference that rounding explains, by the model's dtype."""
ROWS = 8
"""Rows that a cell is run on again, at most."""


def audit(
    model: Any,
    metric: MetricName,
    batches: Sequence[Batch],
    cells: Sequence[Sequence[Intervention]],
    found: Measured,
    seed: int,
    budget: int,
) -> dict[str, Any]:
    """Measure a sample again by the plain way.

    Args:
        model: What was run.
        metric: What was measured.
        batches: All rows, in the order of `found`.
        cells: The interventions of every cell.
        found: What the engine has measured.
        seed: Of the sample.
        budget: Bytes; logits of the rows that are run together take a quarter of it at most.

    Returns:
        How many ``cells`` and ``rows`` were compared, the ``largest_difference`` and the ``tolerance``.

    Raises:
        AuditError: A difference is larger than the tolerance.
    """
    generator = np.random.default_rng(seed)
    starts = np.cumsum([0, *(len(batch.rows) for batch in batches)])
    done = [number for number, start in enumerate(starts[:-1]) if np.isfinite(found.value[:, 0, start]).all()]
    scale = max(float(np.nanmax(np.abs(found.value))), 1.0 if metric == "kl_divergence" else 0.0)
    largest, n_rows = 0.0, 0
    n_cells = min(len(cells), int(np.clip(len(cells) // 64, 2, 16)))
    for cell in generator.choice(len(cells), size=n_cells, replace=False):
        number = int(generator.choice(done))
        batch, draw = batches[number], int(generator.integers(found.draws[cell]))
        at_once = max(1, budget // (16 * batch.length * model.cfg.d_vocab))
        n = min(ROWS, len(batch.rows), at_once)
        rows = np.sort(generator.choice(len(batch.rows), size=n, replace=False))
        plain = PlainRun(model, batch.take(rows.tolist()), metric).scores(cells[cell], draw).value
        largest = float(np.max([largest, *np.abs(plain - found.value[cell, draw, starts[number] + rows])]))
        n_rows += len(rows)
    relative = largest / scale if scale else largest
    tolerance = TOLERANCE[next(model.parameters()).dtype]
    if not relative <= tolerance:
        raise AuditError(
            f"the sweep's own audit failed: {n_rows} prompts measured again one hooked forward at a time differ by "
            f"{relative:.1e} of the largest score, expected at most {tolerance:.0e}; run it with plainly=True and "
            "please report this"
        )
    return {"cells": n_cells, "rows": n_rows, "largest_difference": relative, "tolerance": tolerance}
