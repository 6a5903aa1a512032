"""Does a head carry the feature that a task is about, and does the task need it there? Probes, then erasure.

1. A probe reads the task's ``feature`` out of what every head holds where it looks back, beside its controls
   (``probing.py``).
2. Where it can be read beyond them, LEACE erases it there, and random directions, as many, for comparison
   (``erasure.py``). Elsewhere there is nothing to erase.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from interp.interventions.sweep import Progress
from interp.methods.components import Head
from interp.methods.conclusions import against_minimum
from interp.methods.erasure import Method, erase
from interp.methods.probing import probe
from interp.methods.progress import part_of
from interp.runs.run import Run
from interp.stats.intervals import FEWEST_CLUSTERS
from interp.stats.permutation import FLIPS
from interp.tasks.task import Task

CELL = ["layer", "head"]
_OF_PROBES = {
    **{"score": "probe", "low": "probe_low", "high": "probe_high", "baseline": "probe_baseline"},
    **{"excess": "probe_excess", "excess_low": "probe_excess_low", "excess_high": "probe_excess_high"},
    **{"control": "probe_control", "selectivity": "selectivity", "selectivity_low": "selectivity_low"},
    **{"p": "probe_p", "q": "probe_q", "score_baseline": "probe_baseline_score", "excess_absent": "probe_absent"},
}
ERASURE = (
    *("erasure_effect", "erasure_low", "erasure_high", "erasure_random", "erasure_p", "erasure_absent", "erasure_se"),
)
COLUMNS = ("feature", *_OF_PROBES.values(), "n_probe_clusters", *ERASURE)
"""Of ``representation``, after ``layer`` and ``head``."""


def representation(
    model: Any,
    task: Task,
    *,
    minimum: float,
    minimum_effect: float,
    alpha: float,
    seed: int,
    flips: int = FLIPS,
    progress: Progress | None = None,
    run: Run | None = None,
) -> pd.DataFrame:
    """What every head carries of the task's feature.

    Args:
        model: Follows TransformerLens' protocol.
        task: Its units are probed, and scored where the feature is erased; erasers are fitted to its reference sets.
        minimum: Smallest excess of a probe that counts.
        minimum_effect: Smallest effect that counts, as a share of the base run's mean metric.
        alpha: Error rate of a verdict: where the probe's p is above it before any correction, nothing is erased.
        seed: Of folds, control labels, random subspaces and statistics.
        flips: Of signs, in a test.
        progress: Called with (steps done, steps in all).
        run: Where the erasure's sweep is kept; None for nowhere.

    Returns:
        One row a head: ``layer``, ``head`` and ``COLUMNS``. ``probe`` is the accuracy on unseen templates (or
        documents) and lemmas, ``probe_control`` that of the control task, ``selectivity`` what tells the two apart
        where words are known from training, ``probe_excess`` how far the probe is above its toughest control,
        ``probe_baseline``; ``n_probe_clusters`` the lexical draws, or the lemmas where they are fewer.
        ``erasure_effect`` is what erasing the feature does to the task's metric, ``erasure_random`` what erasing random
        directions does (the mean of some, which are taken as they were drawn); ``erasure_p`` is the larger of the p
        that the one is not 0 and that the two do not differ, and 1 where erasing is no drop or a smaller one than of
        random directions; ``erasure_absent`` says whether erasing is shown to do less than the minimum, and
        ``erasure_se`` how surely that is known. All is NaN where the task has no feature, too few clusters to decide
        anything, or not two examples of two values among the scored and among the reference examples; erasure also
        where the probe does not read the feature.

    Raises:
        KeyboardInterrupt: The erasure was interrupted: some of the examples are no evidence on the task.
    """
    first, rest = (part_of(progress, number, 2, model.cfg.n_layers * model.cfg.n_heads) for number in range(2))
    cells = pd.MultiIndex.from_product([range(model.cfg.n_layers), range(model.cfg.n_heads)], names=CELL)
    if task.feature is None or not _testable(task, task.feature):
        if rest is not None:
            rest(1, 1)
        return pd.DataFrame(np.nan, index=cells, columns=list(COLUMNS)).assign(feature=task.feature).reset_index()
    options: Any = {"minimum": minimum, "alpha": alpha, "seed": seed, "flips": flips}
    found = probe(model, task, task.feature, description_lengths=False, permuted=False, progress=first, **options).frame
    # As far as any correction might let it pass.
    room, selective = found["score_baseline"] <= 1 - minimum, ~(found["selectivity_low"] <= 0)
    carried = found[(found["p"] <= alpha) & (found["excess"] >= minimum) & selective & room]
    heads = [(int(layer), int(head)) for layer, head in zip(carried["layer"], carried["head"], strict=True)]
    how: Any = {"seed": seed, "progress": rest, "run": run}
    erased = _erased(model, task, heads, minimum_effect, flips, how)
    found = found.rename(columns=_OF_PROBES).assign(
        feature=task.feature, n_probe_clusters=found[["n_documents", "n_lemmas"]].min(axis=1)
    )
    return found.merge(erased, on=CELL, how="left")[[*CELL, *COLUMNS]]


def _testable(task: Task, feature: str) -> bool:
    """Whether there are enough clusters, and two examples of two values to judge and to fit erasers on."""
    if len({unit.cluster for unit in task.units}) < FEWEST_CLUSTERS:
        return False
    folds = {unit.fold for unit in task.units}
    if max(folds) >= len(task.references):
        return False
    for units in (task.units, *(task.references[fold] for fold in folds)):
        counts = Counter(each.example.features.get(feature) for unit in units for each in unit.examples)
        if len(counts) < 2 or min(counts.values()) < 2 or None in counts:
            return False
    return True


def _erased(
    model: Any,
    task: Task,
    heads: list[Head],
    minimum_effect: float,
    flips: int,
    how: Mapping[str, Any],
) -> pd.DataFrame:
    """What erasing the feature costs, at some heads; `how`: the options of ``erase``."""
    if not heads or task.feature is None:
        if how["progress"] is not None:
            how["progress"](1, 1)
        return pd.DataFrame(columns=[*CELL, *ERASURE], dtype=float)
    methods: tuple[Method, Method] = ("leace", "random")
    found = erase(model, task, task.feature, heads=heads, methods=methods, probes=False, **how)
    if not found.provenance["complete"]:
        raise KeyboardInterrupt
    summary = found.summary(flips=flips).set_index(CELL)
    ours, random = (summary[summary["method"] == method] for method in methods)
    p = np.maximum(ours["p"], ours["excess_p"]).where((ours["effect"] < 0) & (ours["excess"] < 0), 1.0)
    frame = found.frame[found.frame["method"] == "leace"]
    against = against_minimum(frame, "effect", CELL, share=minimum_effect, seed=how["seed"])
    columns = (ours["effect"], ours["low"], ours["high"], random["effect"], p, against["absent"], against["se"])
    return pd.DataFrame(dict(zip(ERASURE, columns, strict=True))).reset_index()
