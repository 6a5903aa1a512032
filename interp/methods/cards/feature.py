"""Does the task need what a head holds at one place? Its values at the related word, and the feature where it is read.

1. **Values**: what the head reads at the related word is replaced by its mean over all positions of the reference
   examples, for all words that read it through this head; how much it looks where stays. Not testable where heads
   share their values.
2. **Erasure**: where a probe reads the task's feature, LEACE erases it there, and as many random directions beside it.

They describe: a verdict rests on exchanging the word (``word_exchange.py``), which moves keys as well, and on ablation.

As Geva et al. (2023), "Dissecting recall of factual associations", who block the attention instead: then what is left
of it grows. Belrose et al. (2023), "LEACE".
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pandas as pd

from interp.errors import InputError
from interp.interventions.cell import Cell
from interp.interventions.intervention import Intervention, heads_at
from interp.interventions.preparing import make_replacement
from interp.interventions.sweep import Sweep, SweepResult
from interp.methods.components import Head
from interp.methods.erasing.place import task_positions
from interp.methods.erasure import erase
from interp.methods.task_attention import is_testable
from interp.model.sites import Site
from interp.tasks.task import Task, Unit

COLUMNS = ("what", "effect", "low", "high", "n_units", "n_clusters")


def feature_there(model: Any, head: Head, task: Task, *, reads: bool, seed: int) -> pd.DataFrame:
    """What the task loses without the head's values at the related word, and without the feature in what it writes.

    Args:
        model: Follows TransformerLens' protocol.
        head: Layer and head.
        task: What is measured.
        reads: Whether a probe reads the task's feature there; else nothing is erased.
        seed: Of random directions and statistics.

    Returns:
        One row each, columns as in ``COLUMNS``: ``what`` is ``values at the related word``, ``feature``, ``random
        directions``; the effect on the metric with its interval.

    Raises:
        InputError: Nothing can be measured; it says why.
        KeyboardInterrupt: It was interrupted.
    """
    results = list(_measured(model, head, task, reads, seed))
    if not results:
        raise InputError(
            "values at the related word: heads of this model share theirs, or no related word stands before the query; "
            "and no feature is read there that could be erased"
        )
    rows = []
    for what, result in results:
        if not result.provenance["complete"]:
            raise KeyboardInterrupt
        found = result.estimates()[["effect", "low", "high", "n_units", "n_clusters"]]
        rows.append(found.assign(what=what))
    return pd.concat(rows, ignore_index=True)[list(COLUMNS)]


def _measured(model: Any, head: Head, task: Task, reads: bool, seed: int) -> Iterator[tuple[str, SweepResult]]:
    there = replace(task, units=tuple(unit for unit in task.units if _in_the_prompt(unit)))
    if there.units and has_values_by_head(model):
        yield "values at the related word", _without_values(model, head, there, seed)
    if reads and task.feature is not None:
        found = erase(model, task, task.feature, heads=[head], methods=("leace", "random"), probes=False, seed=seed)
        for method, name in (("leace", "feature"), ("random", "random directions")):
            yield name, SweepResult(found.frame[found.frame["method"] == method], found.provenance, found.labels)


def _without_values(model: Any, head: Head, task: Task, seed: int) -> SweepResult:
    site = Site("v", head[0])
    means = make_replacement("mean", model, task, sites=[site])
    change = Intervention(site, means, heads=(head[1],), positions=task_positions("related", task))
    return Sweep([Cell({"layer": head[0], "head": head[1]}, (change,))]).run(model, task, seed=seed)


def _in_the_prompt(unit: Unit) -> bool:
    return all(is_testable(each) and max(each.related) < len(each.prompt) for each in unit.examples)


def has_values_by_head(model: Any) -> bool:
    """Whether the model shows each head's own values."""
    known = getattr(model, "hook_dict", None)  # TransformerLens' protocol does not promise one
    return heads_at("v", model) == model.cfg.n_heads and (known is None or Site("v", 0).hook_name in known)
