"""Which heads hide each other's effect? Those that could do a task's work, ablated two by two.

A head whose ablation costs nothing may have another one that does the same: the task then needs either, and neither
alone. So the heads that look at the related word or carry the task's feature are ablated in pairs
(``methods/redundancy.py``). Two of them **stand in for each other** if

1. ablating both is a drop: the minimum effect at least, and told from 0;
2. it costs more than one by one: the interaction is a drop, too, in the same sense.

A claim needs both, so its p is the larger of the two, Holm-corrected over all pairs and tasks. They are shown **not**
to if either is shown to be no drop as large as the minimum (which is an estimate, too); else that is undecided. Which
pairs are tested is chosen by attention and probes, never by an effect. What it says of one head is in
``methods/partners.py``.

McGrath et al. (2023), "The Hydra effect"; Wang et al. (2023), "Interpretability in the wild" (backup heads).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from interp.interventions.replacement import Kind, Means
from interp.interventions.sweep import Progress
from interp.methods.components import Head
from interp.methods.conclusions import no_drop
from interp.methods.redundancy import PAIR, pairwise
from interp.methods.verdict import READABLE
from interp.runs.run import Run
from interp.stats.intervals import cluster_bootstrap
from interp.stats.multiplicity import holm
from interp.stats.permutation import sign_flip_test
from interp.stats.units import UnitTable, estimates
from interp.tasks.task import Task

MOST_PAIRED = 12
"""Of a task, whose pairs are ablated: 66 of them."""
PAIR_COLUMNS = (
    *("task", *PAIR, "effect", "effect_low", "effect_high", "interaction", "interaction_low", "interaction_high"),
    *("q", "minimum", "stand_in"),
)
"""Of ``standing_in``."""


def could(frame: pd.DataFrame) -> pd.Series:
    """Row by row, whether a head could do the task's work: it looks at the related word, or carries the feature."""
    return (frame["attention_state"] == "shown") | frame["representation"].isin(READABLE)


def candidates(frame: pd.DataFrame, most: int) -> list[Head]:
    """The heads of one task that could do its work: what looks at the related word, then what carries the feature.

    Of either kind, those that do it most come first.

    Args:
        frame: One task's rows, with ``attention_state``, ``effect_state`` and ``representation``.
        most: How many at most.
    """
    found = frame[could(frame)]
    looks = found["attention_state"] == "shown"
    order = found.assign(first=~looks, size=-found["excess"].where(looks, found["probe_excess"]))
    best = order.sort_values(["first", "size", "layer", "head"]).head(most)
    return sorted((int(layer), int(head)) for layer, head in zip(best["layer"], best["head"], strict=True))


def paired(
    model: Any,
    task: Task,
    heads: Sequence[Head],
    *,
    kind: Kind | Means,
    draws: int,
    seed: int,
    minimum_effect: float,
    flips: int,
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
        seed: Of the resamples and the statistics.
        minimum_effect: As a share of the base run's mean metric.
        flips: Of signs, in a test.
        progress: Called with (cells done, cells in all).
        run: Where the sweep is kept; None for nowhere.

    Returns:
        One row per pair: ``task``, ``first``, ``second``; what ablating both does, what of it is more than the two one
        by one, both with their intervals; ``p`` that they stand in for each other, not corrected; the minimum in the
        metric's units; and ``absent``: whether either is shown to be no drop as large.

    Raises:
        KeyboardInterrupt: The sweep was interrupted.
    """
    if len(heads) < 2:
        if progress is not None:
            progress(1, 1)
        return pd.DataFrame(columns=[*PAIR_COLUMNS, "absent"])
    how: Any = {"kind": kind, "draws": draws, "seed": seed, "progress": progress}
    result = pairwise(model, task, heads=heads, **how, run=run)
    if not result.provenance["complete"]:
        raise KeyboardInterrupt
    frame = result.frame
    both, more = (_tested(frame, column, seed, flips) for column in ("effect", "interaction"))
    p = np.maximum(both.pop("effect_p"), more.pop("interaction_p"))
    minimum = minimum_effect * np.abs(estimates(UnitTable.from_frame(frame, "base", by=PAIR)))
    absent = np.any(
        [no_drop(frame, column, PAIR, share=minimum_effect, seed=seed) for column in ("effect", "interaction")], axis=0
    )
    found = pd.concat([both, more], axis=1)
    return found.assign(p=p, minimum=minimum, absent=absent, task=task.name).reset_index()


def standing_in(found: Sequence[pd.DataFrame], alpha: float) -> pd.DataFrame:
    """Which pairs stand in for each other, of all tasks.

    Args:
        found: As of ``paired``, task by task.
        alpha: Chance of any false claim that two heads stand in for each other, over all pairs and tasks.

    Returns:
        One row per task and pair; columns as in ``PAIR_COLUMNS``: those of ``paired``, with ``q``, the corrected p, and
        ``stand_in``: ``yes``, ``no`` or ``undecided``.
    """
    there = [each for each in found if not each.empty]
    if not there:
        return pd.DataFrame(columns=list(PAIR_COLUMNS))
    pairs = pd.concat(there, ignore_index=True)
    pairs = pairs.assign(q=holm(pairs["p"].to_numpy()))
    return pairs.assign(stand_in=stand_in(pairs, alpha))[list(PAIR_COLUMNS)]


def stand_in(rows: pd.DataFrame, alpha: float) -> np.ndarray:
    """``yes``, ``no`` or ``undecided`` of each pair; see the module.

    Args:
        rows: Columns as of ``paired``, and ``q``.
        alpha: Error rate.
    """
    least = -rows["minimum"]
    shown = (rows["q"] <= alpha) & (rows["effect"] <= least) & (rows["interaction"] <= least)
    return np.select([shown, rows["absent"]], ["yes", "no"], "undecided")


def _tested(frame: pd.DataFrame, column: str, seed: int, flips: int) -> pd.DataFrame:
    """Means, intervals and raw p, by pair."""
    table = UnitTable.from_frame(frame, column, by=PAIR)
    interval, (test,) = cluster_bootstrap(table, seed=seed), sign_flip_test([table], flips=flips, seed=seed)
    measured = {"": interval.estimate, "_low": interval.low, "_high": interval.high, "_p": test.p}
    return pd.DataFrame({f"{column}{name}": each for name, each in measured.items()}, index=table.cells)
