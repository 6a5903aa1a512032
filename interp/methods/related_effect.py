"""Does the task need what a head finds at the related word? Its values are ablated there, and nowhere else.

A head can look at the related word and be needed for what it finds elsewhere. So, of a head whose excess attention is
at least the minimum and whose ablation costs at least the minimum, the values (``v``) at the related word's tokens are
replaced, by what whole heads are replaced by; what it finds at all other words, and how much it looks where, stays.
They are gone for all words that read them through this head, not for the task's query alone.

Not testable where heads share their values (grouped queries), so that those of one head cannot be ablated by
themselves, and where the related word stands in the answer and not in the prompt.

As Geva et al. (2023), "Dissecting recall of factual associations", who block the attention instead: then what is left
of it grows.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from interp.interventions.cell import Cell
from interp.interventions.intervention import Intervention, heads_at
from interp.interventions.preparing import make_replacement
from interp.interventions.replacement import Kind, Means
from interp.interventions.sweep import Sweep
from interp.methods.components import Head
from interp.methods.conclusions import against_minimum
from interp.methods.erasing.place import task_positions
from interp.methods.task_attention import is_testable
from interp.model.sites import Site
from interp.runs.run import Run
from interp.stats.intervals import cluster_bootstrap
from interp.stats.permutation import sign_flip_test
from interp.stats.units import UnitTable, estimates
from interp.tasks.task import Task, Unit

CELL = ["layer", "head"]
COLUMNS = (
    *("related_effect", "related_low", "related_high", "related_p", "related_se", "related_absent"),
    *("related_minimum", "n_related_units", "n_related_clusters"),
)
"""Of ``related_effects``, after ``layer`` and ``head``."""


def related_effects(
    model: Any,
    task: Task,
    heads: Sequence[Head],
    *,
    kind: Kind | Means,
    draws: int,
    seed: int,
    minimum_effect: float,
    flips: int,
    run: Run | None = None,
) -> pd.DataFrame | None:
    """Ablate the values of some heads at the related word, one head at a time.

    Args:
        model: Follows TransformerLens' protocol.
        task: Measured is what has a related word in its prompts to look at, in whole units.
        heads: ``(layer, head)`` pairs.
        kind: What takes the values' place.
        draws: How many resamples to average the effects of.
        seed: Of the resamples and the statistics.
        minimum_effect: As a share of the base run's mean metric.
        flips: Of signs, in a test.
        run: Where the sweep is kept; None for nowhere.

    Returns:
        One row a head: ``layer``, ``head`` and ``COLUMNS``: the mean effect, its interval (95 %, cluster bootstrap),
        its two-sided p, not corrected, its standard error, whether it is shown to be smaller than the minimum, that
        minimum, and how many units and clusters were measured. None where it is not testable: heads share their
        values, the model has no point for them, or no unit has such a word.

    Raises:
        KeyboardInterrupt: The sweep was interrupted: some of the examples are no evidence on the task.
    """
    there = replace(task, units=tuple(unit for unit in task.units if _in_the_prompt(unit)))
    if not there.units or not has_values_by_head(model):
        return None
    if not heads:
        return pd.DataFrame(columns=[*CELL, *COLUMNS])
    sites = {layer: Site("v", layer) for layer, _ in heads}
    replacement = make_replacement(kind, model, there, sites=tuple(sites.values()), draws=draws, seed=seed)
    where = task_positions("related", there)
    cells = [
        Cell(
            {"layer": layer, "head": head},
            (Intervention(sites[layer], replacement, heads=(head,), positions=where),),
        )
        for layer, head in heads
    ]
    result = Sweep(cells).run(model, there, seed=seed, run=run)
    if not result.provenance["complete"]:
        raise KeyboardInterrupt
    effects = UnitTable.from_frame(result.frame, "effect", by=CELL)
    interval, (test,) = cluster_bootstrap(effects, seed=seed), sign_flip_test([effects], flips=flips, seed=seed)
    against = against_minimum(result.frame, "effect", CELL, share=minimum_effect, seed=seed)
    minimum = minimum_effect * np.abs(estimates(UnitTable.from_frame(result.frame, "base", by=CELL)))
    estimated = (interval.estimate, interval.low, interval.high, test.p, against["se"], against["absent"])
    counted = (minimum, effects.n_units, effects.n_clusters)
    columns = dict(zip(COLUMNS, estimated + counted, strict=True))
    return pd.DataFrame(columns, index=effects.cells).reset_index()


def _in_the_prompt(unit: Unit) -> bool:
    return all(is_testable(each) and max(each.related) < len(each.prompt) for each in unit.examples)


def has_values_by_head(model: Any) -> bool:
    """Whether the model shows each head's own values."""
    known = getattr(model, "hook_dict", None)  # TransformerLens' protocol does not promise one
    return heads_at("v", model) == model.cfg.n_heads and (known is None or Site("v", 0).hook_name in known)
