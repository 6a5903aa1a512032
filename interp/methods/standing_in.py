"""Which heads hide each other's effect? Those that could do a task's work, ablated two by two.

A head whose ablation costs nothing may have another one that does the same: the task then needs either, and neither
alone. So the heads that look at the related word or carry the task's feature are ablated in pairs
(``methods/redundancy.py``). Two of them **stand in for each other** if

1. ablating both is a drop: the minimum effect at least, and told from 0;
2. it costs more than one by one: the interaction is a drop, too, in the same sense.

Either test is corrected over all pairs and tasks (max-T); a claim needs both, so its error rate is no larger than
theirs. Which pairs are tested is chosen by attention and probes, never by an effect.

McGrath et al. (2023), "The Hydra effect"; Wang et al. (2023), "Interpretability in the wild" (backup heads).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from interp.interventions.replacement import Kind
from interp.interventions.sweep import Progress
from interp.methods.components import Head, head_name
from interp.methods.progress import part_of
from interp.methods.redundancy import PAIR, pairwise
from interp.stats.intervals import cluster_bootstrap
from interp.stats.permutation import sign_flip_test
from interp.stats.units import UnitTable, estimates
from interp.tasks.task import Task

MOST_PAIRED = 12
"""Of a task, whose pairs are ablated: 66 of them."""
PAIR_COLUMNS = (
    *("task", *PAIR, "effect", "effect_low", "effect_high", "effect_q"),
    *("interaction", "interaction_low", "interaction_high", "interaction_q", "minimum", "redundant"),
)
"""Of ``standing_in``."""
PARTNER_COLUMNS = ("partners", "pair_effect", "pair_low", "pair_high")
"""Of ``partners``."""


def candidates(frame: pd.DataFrame, most: int) -> list[Head]:
    """The heads of one task that could do its work: what looks at the related word, then what carries the feature.

    Of either kind, those that do it most come first.

    Args:
        frame: One task's rows, with ``attention_state``, ``effect_state`` and ``representation``.
        most: How many at most.
    """
    found = frame[_could(frame)]
    looks = found["attention_state"] == "shown"
    order = found.assign(first=~looks, size=-found["excess"].where(looks, found["probe_excess"]))
    best = order.sort_values(["first", "size", "layer", "head"]).head(most)
    return sorted((int(layer), int(head)) for layer, head in zip(best["layer"], best["head"], strict=True))


def _could(frame: pd.DataFrame) -> pd.Series:
    return (frame["attention_state"] == "shown") | frame["representation"].isin(["used", "carried"])


def unpaired(frame: pd.DataFrame, heads: Mapping[str, Sequence[Head]]) -> pd.Series:
    """Row by row, whether a head that could do the task's work is not ablated with others.

    Args:
        frame: One row per layer, head and task, as of ``candidates``.
        heads: By task, those whose pairs are taken.
    """
    taken = {(task, *head) for task, chosen in heads.items() if len(chosen) > 1 for head in chosen}
    alone = {task for task, rows in frame[_could(frame)].groupby("task") if len(rows) == 1}
    cells = zip(frame["task"], frame["layer"], frame["head"], strict=True)
    here = [(task, int(layer), int(head)) in taken or task in alone for task, layer, head in cells]
    return _could(frame) & ~pd.Series(here, index=frame.index)


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
        flips: Of signs, in a test.
        progress: Called with (cells done, cells in all).

    Returns:
        One row per task and pair; columns as in ``PAIR_COLUMNS``: what ablating both does, what of it is more than the
        two one by one, both with their intervals and corrected p, the minimum in the metric's units, and ``redundant``:
        whether they stand in for each other.

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
    both, more = (_tested(frames, column, seed, flips) for column in ("effect", "interaction"))
    found = []
    for task, frame, *parts in zip(asked, frames, both, more, strict=True):
        minimum = minimum_effect * np.abs(estimates(UnitTable.from_frame(frame, "base", by=PAIR)))
        rows = pd.concat(parts, axis=1).assign(minimum=minimum, task=task.name)
        drops = [(rows[name] <= -minimum) & (rows[f"{name}_q"] <= alpha) for name in ("effect", "interaction")]
        found.append(rows.assign(redundant=drops[0] & drops[1]).reset_index())
    return pd.concat(found, ignore_index=True)[list(PAIR_COLUMNS)]


def _tested(frames: Sequence[pd.DataFrame], column: str, seed: int, flips: int) -> list[pd.DataFrame]:
    """Means, intervals and p corrected over the pairs of all tasks."""
    tables = [UnitTable.from_frame(frame, column, by=PAIR) for frame in frames]
    found = []
    for table, test in zip(tables, sign_flip_test(tables, flips=flips, seed=seed), strict=True):
        interval = cluster_bootstrap(table, seed=seed)
        measured = {"": interval.estimate, "_low": interval.low, "_high": interval.high, "_q": test.p_family}
        found.append(pd.DataFrame({f"{column}{name}": each for name, each in measured.items()}, index=table.cells))
    return found


def partners(frame: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """Who stands in for each head, and what it costs to ablate both.

    Args:
        frame: One row per layer, head and task.
        pairs: As of ``standing_in``.

    Returns:
        Row by row ``partners``, the heads whose interaction with this one is largest first, separated by spaces (empty
        where there is none); and of the first of them ``pair_effect``, with its interval ``pair_low``, ``pair_high``.
    """
    found = pairs[pairs["redundant"].astype(bool)].sort_values("interaction", kind="stable")
    turned = found.rename(columns=dict(zip(PAIR, PAIR[::-1], strict=True)))
    by_head = dict(iter(pd.concat([found, turned]).sort_index(kind="stable").groupby(["task", "first"], sort=False)))
    rows = []
    for row in frame.to_dict("records"):
        name = head_name((int(row["layer"]), int(row["head"])))
        own = by_head.get((row["task"], name), found.head(0)).sort_values("interaction", kind="stable")
        costs = own[["effect", "effect_low", "effect_high"]].head(1).to_numpy(dtype=float)
        rows.append((" ".join(own["second"]), *(costs[0] if len(costs) else [np.nan] * 3)))
    return pd.DataFrame(rows, columns=list(PARTNER_COLUMNS), index=frame.index)
