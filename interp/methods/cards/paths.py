"""Who writes what a head reads, and who reads what it writes? Direct paths, one by one.

1. **Feeds**: from the embeddings and every head and MLP before it, into the head's queries, keys and values.
2. **Readers**: from the head into the queries, keys and values of every later head, every later MLP, and the logits.
3. Each is denoised by itself (``path_patching.py``): the corrupted prompt, with the clean run's change along this path.
   MLPs between are frozen, so that a path is one edge: MLPs are among the feeds and the readers themselves, and what
   passes through them is told there.

Effects of single edges need not add up. On few units, drawn from the templates in turn, so that it stays fast: there
are up to three times as many paths as the model has heads.

Goldowsky-Dill et al. (2023), "Localizing model behavior with path patching".
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from interp.interventions.intervention import heads_at
from interp.interventions.sweep import Progress
from interp.methods.components import Head, head_name
from interp.methods.given_task import as_pairs
from interp.methods.path_nodes import paths_from, paths_to
from interp.methods.path_patching import path_patch
from interp.model.given_model import require_ours
from interp.tasks.task import Task, Unit

COLUMNS = (
    *("sender", "receiver", "reads", "normalised", "normalised_low", "normalised_high", "effect", "low", "high"),
    *("n_units", "n_clusters"),
)


def feeds(
    model: Any, head: Head, task: Task, *, most_units: int, seed: int, progress: Progress | None = None
) -> pd.DataFrame:
    """Patch every direct path into a head.

    Args:
        model: One of ours.
        head: Layer and head. Where several heads share keys and values, a path into its keys or values is one into
            those of all of them.
        task: What is measured.
        most_units: On how many units at most.
        seed: Of the units' draw and the statistics.
        progress: Called with (paths done, paths in all).

    Returns:
        One row a path, the largest effect first, columns as in ``COLUMNS``: ``sender``, ``receiver``, what the receiver
        ``reads`` there (``q``, ``k``, ``v``), ``normalised`` with its interval (0 is the corrupted, 1 the clean run),
        ``effect`` in the metric's units with its own.

    Raises:
        InputError: A model of others, or whose stream is no sum; or no unit has a counterfactual of its length.
        KeyboardInterrupt: The sweep was interrupted: some of the examples are no evidence on the task.
    """
    require_ours(model, "direct paths")
    shared = head[1] * heads_at("k_input", model) // model.cfg.n_heads
    receivers = (f"{head_name(head)}.q", f"{head[0]}.{shared}.k", f"{head[0]}.{shared}.v")
    paths = [path for receiver in receivers for path in paths_to(model, receiver)]
    return _measured(model, task, paths, most_units, seed, progress)


def readers(
    model: Any, head: Head, task: Task, *, most_units: int, seed: int, progress: Progress | None = None
) -> pd.DataFrame:
    """Patch every direct path from a head.

    Args:
        model: One of ours.
        head: Layer and head.
        task: What is measured.
        most_units: On how many units at most.
        seed: Of the units' draw and the statistics.
        progress: Called with (paths done, paths in all).

    Returns:
        As ``feeds``; ``reads`` is ``q``, ``k``, ``v`` of a head, ``mlp`` or ``logits``.

    Raises:
        InputError: As ``feeds``.
        KeyboardInterrupt: As ``feeds``.
    """
    require_ours(model, "direct paths")
    return _measured(model, task, paths_from(model, head_name(head)), most_units, seed, progress)


def some_units(task: Task, most: int, seed: int) -> Task:
    """The task with at most so many of its units, drawn from its templates in turn.

    Args:
        task: Any.
        most: How many units, at least one.
        seed: Of the draw.
    """
    if len(task.units) <= most:
        return task
    order = np.random.default_rng(seed).permutation(len(task.units))
    by_template: dict[str, list[Unit]] = {}
    for number in order:
        unit = task.units[number]
        by_template.setdefault(unit.item.example.template, []).append(unit)
    rounds = range(max(map(len, by_template.values())))
    in_turn = [units[each] for each in rounds for units in by_template.values() if each < len(units)]
    return replace(task, units=tuple(in_turn[:most]))


def _measured(
    model: Any, task: Task, paths: Sequence[Sequence[str]], most_units: int, seed: int, progress: Progress | None
) -> pd.DataFrame:
    given = some_units(as_pairs(task, model, n=None, seed=seed), most_units, seed)
    result = path_patch(model, given, paths, mlps="frozen", seed=seed, progress=progress)
    if not result.provenance["complete"]:
        raise KeyboardInterrupt
    labels = list(result.labels)
    found = result.estimates().merge(result.normalised(), on=labels)
    last = found["receiver"].str.split(".").str[-1]
    found["reads"] = last.where(~found["receiver"].str.startswith("mlp"), "mlp")
    return found.sort_values("effect", key=abs, ascending=False, kind="stable")[list(COLUMNS)].reset_index(drop=True)
