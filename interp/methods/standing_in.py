"""Which heads hide each other's effect? Those that could do a task's work, ablated two by two.

What that says of a pair, and of a head, is in ``claims/partners.py``.
"""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from interp.interventions.replacement import Kind, Means
from interp.interventions.sweep import Progress
from interp.methods.components import Head
from interp.methods.redundancy import pairwise
from interp.runs.run import Run
from interp.tasks.task import Task

MOST_PAIRED = 12
"""Of a task, whose pairs are ablated: 66 of them."""


def paired(
    model: Any,
    task: Task,
    heads: Sequence[Head],
    *,
    kind: Kind | Means,
    draws: int,
    seed: int,
    progress: Progress | None = None,
    run: Run | None = None,
) -> pd.DataFrame:
    """Ablate some heads of one task two by two.

    Args:
        model: Follows TransformerLens' protocol.
        task: What is measured.
        heads: Whose pairs are taken; there are none of fewer than two.
        kind: What takes an ablated head's place.
        draws: How many resamples to average the effects of.
        seed: Of the resamples.
        progress: Called with (cells done, cells in all).
        run: Where the sweep is kept; None for nowhere.

    Returns:
        As of ``PairwiseResult.frame``; empty where there are no pairs.

    Raises:
        KeyboardInterrupt: The sweep was interrupted.
    """
    if len(heads) < 2:
        if progress is not None:
            progress(1, 1)
        return pd.DataFrame()
    result = pairwise(model, task, heads=heads, kind=kind, draws=draws, seed=seed, progress=progress, run=run)
    if not result.provenance["complete"]:
        raise KeyboardInterrupt
    return result.frame
