"""What a task loses when all heads that could do its work are gone, and what each of them is worth then.

1. All heads of a set are ablated together, under both replacements.
2. The others' means stand in their places, and of the one that is left the effect is measured, under both again: its
   **share**. (Another example's output in the others' places would be loud with a wrong answer; a mean says nothing.)
3. The same with the heads gone, too, that are missed by themselves: what a head is worth as a **backup** of these.

``claims/groups.py`` says which sets are ablated, and judges the numbers.

McGrath et al. (2023), "The Hydra effect"; Wang et al. (2022), "Interpretability in the wild" (backup heads).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from interp.interventions.intervention import Cell, Intervention
from interp.interventions.reference_set import make_replacement
from interp.interventions.replacement import Means, Replacement
from interp.interventions.sweep import Progress, Sweep
from interp.methods.ablation import Head, complete, head_name, set_name
from interp.model.sites import Site
from interp.runs.run import Run
from interp.tasks.task import Task


def ablated_together(
    model: Any,
    task: Task,
    heads: Sequence[Head],
    missed: Sequence[Head],
    *,
    means: Means,
    draws: int,
    seed: int,
    progress: Progress | None = None,
    run: Run | None = None,
) -> pd.DataFrame:
    """Ablate heads that could stand in for each other together, and each with the others gone.

    `means` take the place of those that are gone. One row per head and example: ``heads`` (the set), ``missed``,
    ``head``, what is known of the example, ``together`` (the effect of resampling all of `heads`) and ``mean_together``
    (of their means), ``share`` and ``mean_share``, ``backup`` and ``mean_backup``; NaN where it was not asked for.
    Empty where there is no set: fewer than two heads, and one where none is `missed` by itself.
    """
    if len(heads) < 2 and not (heads and missed):
        if progress is not None:
            progress(1, 1)
        return pd.DataFrame()
    sites = [Site("z", layer) for layer in sorted({layer for layer, _ in (*heads, *missed)})]
    resample = make_replacement("resample", model, task, sites=sites, draws=draws, seed=seed)
    changes: dict[str, dict[Head, Replacement]] = {}
    if len(heads) > 1:
        changes |= {"resampled": dict.fromkeys(heads, resample), **_one_by_one(heads, [], means, resample)}
    if missed:
        changes |= {f"missed, {name}": each for name, each in _one_by_one(heads, missed, means, resample).items()}
    cells = [Cell({"cell": name}, _interventions(each)) for name, each in changes.items()]
    result = complete(Sweep(cells).run(model, task, seed=seed, progress=progress, run=run))
    by_cell = {str(name): rows for name, rows in result.examples.groupby("cell", sort=False)}
    return pd.concat([_rows(by_cell, head, heads, missed) for head in heads], ignore_index=True)


def _one_by_one(
    heads: Sequence[Head], missed: Sequence[Head], means: Means, resample: Replacement
) -> dict[str, dict[Head, Replacement]]:
    """All gone; all but one; and that one resampled, with the others gone."""
    gone: dict[Head, Replacement] = dict.fromkeys((*heads, *missed), means)
    found: dict[str, dict[Head, Replacement]] = {"gone": gone}
    for head in heads:
        others = {each: made for each, made in gone.items() if each != head}
        found[f"all but {head_name(head)}"] = others
        found[f"all but {head_name(head)}, resampled"] = {**others, head: resample}
    return found


def _interventions(change: Mapping[Head, Replacement]) -> tuple[Intervention, ...]:
    """By layer and replacement."""
    found: dict[tuple[int, int], list[Head]] = {}
    for head, made in sorted(change.items(), key=lambda each: each[0]):
        found.setdefault((head[0], id(made)), []).append(head)
    return tuple(
        Intervention(Site("z", layer), change[own[0]], heads=tuple(head for _, head in own))
        for (layer, _), own in found.items()
    )


def _rows(
    by_cell: Mapping[str, pd.DataFrame], head: Head, heads: Sequence[Head], missed: Sequence[Head]
) -> pd.DataFrame:
    """One head's rows; a sweep has its examples in the same order in every cell."""
    first = next(iter(by_cell.values()))
    found = first[["unit", "example", "cluster", "template", "layout", "base", "base_correct"]].reset_index(drop=True)
    n = len(found)

    def effect(name: str) -> np.ndarray:
        return by_cell[name]["effect"].to_numpy() if name in by_cell else np.full(n, np.nan)

    def worth(among: str) -> tuple[np.ndarray, np.ndarray]:
        """What ablating the head costs where the others are gone."""
        left = effect(f"{among}all but {head_name(head)}")
        return effect(f"{among}all but {head_name(head)}, resampled") - left, effect(f"{among}gone") - left

    share, mean_share = worth("")
    backup, mean_backup = worth("missed, ")
    return found.assign(
        heads=set_name(heads),
        missed=set_name(missed),
        head=head_name(head),
        together=effect("resampled"),
        mean_together=effect("gone"),
        share=share,
        mean_share=mean_share,
        backup=backup,
        mean_backup=mean_backup,
    )
