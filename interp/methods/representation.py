"""What every head carries of a task's feature: the dossier's probes, one row a head."""

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd

from interp.claims.bootstrap import FEWEST_CLUSTERS
from interp.interventions.sweep import Progress
from interp.methods.ablation_looks import CELL
from interp.methods.probes.probe import probe
from interp.methods.progress import named
from interp.options import HeadsOptions, ProbeOptions
from interp.runs.run import Run
from interp.tasks.task import Task

_OF_PROBES = {
    **{"score": "probe", "low": "probe_low", "high": "probe_high", "baseline": "probe_baseline"},
    **{"score_baseline": "probe_baseline_score", "control": "probe_control"},
    **{name: name for name in ("selectivity", "selectivity_low", "selectivity_p", "selectivity_p_adjusted")},
    **{"excess": "probe_excess", "excess_low": "probe_excess_low", "excess_high": "probe_excess_high"},
    **{name: f"probe_excess_{name}" for name in ("standard_error", "p", "p_adjusted", "p_absent", "critical")},
}
_COUNTS = ("probe_excess_minimum", "probe_excess_n_units", "probe_excess_n_clusters")
PROBED = ("feature", *_OF_PROBES.values(), *_COUNTS)
"""Of ``representation``, after ``layer`` and ``head``."""


def representation(
    model: Any, task: Task, asked: HeadsOptions, *, run: Run | None = None, progress: Progress | None = None
) -> pd.DataFrame:
    """What every head carries of the task's feature: one row a head, ``layer``, ``head`` and ``PROBED``.

    ``probe`` is the accuracy on unseen templates (or documents) and lemmas, ``probe_control`` that of the control task,
    ``selectivity`` what tells the two apart where words are known from training, ``probe_excess`` how far the probe is
    above its toughest control, ``probe_baseline``, with what ``Claims.frame`` says of it, over the heads of the task;
    ``probe_excess_n_clusters`` are the lexical draws, or the lemmas where they are fewer. All is NaN where the task has
    no feature, too few clusters to decide anything, or not two examples of two values.
    """
    if task.feature is None or not can_be_probed(task, task.feature):
        if progress is not None:
            progress(1, 1)
        return unread(model, task, asked.min_probe)
    how: Any = {name: getattr(asked, name) for name in ("alpha", "seed", "memory_budget")}
    options = ProbeOptions(description_lengths=False, permuted_labels=False, min_effect=asked.min_probe, **how)
    step = named(progress, f"{task.name}: probes", "heads")
    found = probe(model, task, task.feature, options, progress=step, run=run).cells
    found = found.assign(
        feature=task.feature,
        probe_excess_minimum=asked.min_probe,
        probe_excess_n_units=len(task.units),
        probe_excess_n_clusters=found[["n_documents", "n_lemmas"]].min(axis=1),
    )
    return found.rename(columns=_OF_PROBES)[[*CELL, *PROBED]]


def unread(model: Any, task: Task, minimum: float) -> pd.DataFrame:
    """As ``representation``, where nothing can be told of any head."""
    cells = pd.MultiIndex.from_product([range(model.cfg.n_layers), range(model.cfg.n_heads)], names=CELL)
    empty = pd.DataFrame(np.nan, index=cells, columns=list(PROBED)).assign(feature=task.feature)
    return empty.assign(probe_excess_n_clusters=0, probe_excess_minimum=minimum).reset_index()


def can_be_probed(task: Task, feature: str) -> bool:
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
