"""Which heads hide each other's effect? Those that could do a task's work, ablated two by two.

A head whose ablation costs nothing may have another one that does the same: the task then needs either, and neither
alone. So the heads that look at the related word or carry the task's feature are ablated in pairs
(``methods/redundancy.py``). Two of them **stand in for each other** if

1. ablating both is a drop: the minimum effect at least, and told from 0;
2. it costs more than one by one: the interaction is a drop, too, in the same sense.

A claim needs both, so its p is the larger of the two, Holm-corrected over all pairs and tasks. They are shown **not**
to if either is shown to be smaller than the minimum; else that is undecided. Which pairs are tested is chosen by
attention and probes, never by an effect. What it says of one head is in ``methods/partners.py``.

McGrath et al. (2023), "The Hydra effect"; Wang et al. (2023), "Interpretability in the wild" (backup heads).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from interp.interventions.replacement import Kind
from interp.interventions.sweep import Progress
from interp.methods.components import Head
from interp.methods.progress import part_of
from interp.methods.redundancy import PAIR, pairwise
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
    return (frame["attention_state"] == "shown") | frame["representation"].isin(["used", "carried"])


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


def standing_in(
    model: Any,
    tasks: Sequence[Task],
    heads: Mapping[str, Sequence[Head]],
    *,
    kind: Kind,
    draws: int,
    seed: int,
    minimum_effect: float,
    alpha: float,
    flips: int,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Ablate the pairs of some heads, task by task.

    Args:
        model: Follows TransformerLens' protocol.
        tasks: What is measured.
        heads: By task, those whose pairs are taken; a task with fewer than two is left out.
        kind: What takes an ablated head's place.
        draws: How many resamples to average the effects of.
        seed: Of the resamples and the statistics.
        minimum_effect: As a share of the base run's mean metric.
        alpha: Chance of any false claim that two heads stand in for each other, over all pairs and tasks.
        flips: Of signs, in a test; more where there are so many pairs that no p could pass.
        progress: Called with (cells done, cells in all).

    Returns:
        One row per task and pair; columns as in ``PAIR_COLUMNS``: what ablating both does, what of it is more than the
        two one by one, both with their intervals; ``q``, the corrected p of the claim; the minimum in the metric's
        units; and ``stand_in``: ``yes``, ``no`` or ``undecided``.

    Raises:
        KeyboardInterrupt: The sweep was interrupted.
    """
    asked = [task for task in tasks if len(heads.get(task.name, ())) > 1]
    frames = []
    for number, task in enumerate(asked):
        chosen, step = heads[task.name], part_of(progress, number, len(asked))
        result = pairwise(model, task, heads=chosen, kind=kind, draws=draws, seed=seed, progress=step)
        if not result.provenance["complete"]:
            raise KeyboardInterrupt
        frames.append(result.frame)
    if not frames:
        if progress is not None:
            progress(1, 1)
        return pd.DataFrame(columns=list(PAIR_COLUMNS))
    flips = max(flips, int(np.ceil(2 * sum(map(_n_pairs, frames)) / alpha)))
    both, more = (_tested(frames, column, seed, flips) for column in ("effect", "interaction"))
    p = [np.maximum(one.pop("effect_p"), other.pop("interaction_p")) for one, other in zip(both, more, strict=True)]
    corrected = np.split(holm(np.concatenate(p)), np.cumsum([len(each) for each in p])[:-1])
    found = []
    for task, frame, q, *parts in zip(asked, frames, corrected, both, more, strict=True):
        minimum = minimum_effect * np.abs(estimates(UnitTable.from_frame(frame, "base", by=PAIR)))
        rows = pd.concat(parts, axis=1).assign(q=q, minimum=minimum, task=task.name)
        found.append(rows.assign(stand_in=stand_in(rows, alpha)).reset_index())
    return pd.concat(found, ignore_index=True)[list(PAIR_COLUMNS)]


def _n_pairs(frame: pd.DataFrame) -> int:
    return len(frame[list(PAIR)].drop_duplicates())


def stand_in(rows: pd.DataFrame, alpha: float) -> np.ndarray:
    """``yes``, ``no`` or ``undecided`` of each pair; see the module.

    Args:
        rows: Columns as of ``PAIR_COLUMNS``.
        alpha: Error rate.
    """
    least, lowest = (-rows["minimum"], rows[["effect_low", "interaction_low"]])
    shown = (rows["q"] <= alpha) & (rows["effect"] <= least) & (rows["interaction"] <= least)
    absent = (lowest["effect_low"] > least) | (lowest["interaction_low"] > least)
    return np.select([shown, absent], ["yes", "no"], "undecided")


def _tested(frames: Sequence[pd.DataFrame], column: str, seed: int, flips: int) -> list[pd.DataFrame]:
    """Means, intervals and raw p, by pair."""
    tables = [UnitTable.from_frame(frame, column, by=PAIR) for frame in frames]
    found = []
    for table, test in zip(tables, sign_flip_test(tables, flips=flips, seed=seed), strict=True):
        interval = cluster_bootstrap(table, seed=seed)
        measured = {"": interval.estimate, "_low": interval.low, "_high": interval.high, "_p": test.p}
        found.append(pd.DataFrame({f"{column}{name}": each for name, each in measured.items()}, index=table.cells))
    return found
