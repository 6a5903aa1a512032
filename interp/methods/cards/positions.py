"""At which words does the task need what a head writes? Its ``z`` patched at one kind of word after the other.

Denoising: the corrupted prompt runs with the head's ``z`` of the clean prompt at the positions that the task calls by
one name (``role_positions``): BOS, the related word, each distractor, the query, the last token, and all others. The
prompts may differ in length. Last, at all positions together.
"""

from typing import Any

import pandas as pd

from interp.interventions.intervention import Intervention
from interp.interventions.replacement import Patch
from interp.interventions.sweep import Cell, Progress, Sweep
from interp.methods.components import Head
from interp.methods.given_task import as_pairs
from interp.methods.grid import role_positions
from interp.methods.patching import PatchResult, run_examples
from interp.model.sites import Site
from interp.tasks.task import Task

COLUMNS = (
    *("position", "normalised", "normalised_low", "normalised_high", "effect", "low", "high"),
    *("n_changed", "n_examples", "n_units", "n_clusters"),
)
EVERYWHERE = "all"


def positions(model: Any, head: Head, task: Task, *, seed: int, progress: Progress | None = None) -> pd.DataFrame:
    """Patch a head's ``z`` by what the task calls the positions.

    Args:
        model: Follows TransformerLens' protocol.
        head: Layer and head.
        task: What is measured; its units need counterfactuals.
        seed: Of the statistics and the audit.
        progress: Called with (cells done, cells in all).

    Returns:
        One row a name, columns as in ``COLUMNS``: ``position`` (``query`` is the last token where all queries are),
        ``normalised`` with its interval (0 is the corrupted, 1 the clean run; ``PatchResult.summary``), ``effect`` in
        the metric's units with its own, and in how many examples anything changed: what cannot reach the answer, or is
        the same in both runs, changes in none.

    Raises:
        InputError: No unit has a counterfactual.
        KeyboardInterrupt: The sweep was interrupted: some of the examples are no evidence on the task.
    """
    given = as_pairs(task, model, n=None, seed=seed)
    cells = _cells(model, head, given)
    result = _measured(model, given, cells, seed, progress)
    found = pd.DataFrame({"position": [each.labels["position"] for each in cells]})
    found = found.merge(result.estimates(), on="position").merge(result.normalised(), on="position")
    changed = (result.frame["status"] == "changed").groupby(result.frame["position"])
    found = found.merge(pd.DataFrame({"n_changed": changed.sum(), "n_examples": changed.size()}).reset_index())
    queries = {each.query == each.critical for each in given.examples}
    found["position"] = found["position"].replace({"last": "query"} if queries == {True} else {})
    return found[list(COLUMNS)]


def _measured(model: Any, task: Task, cells: list[Cell], seed: int, progress: Progress | None) -> PatchResult:
    """Denoise with these cells."""
    result = Sweep(cells).run(model, task, direction="denoise", seed=seed, progress=progress)
    if not result.provenance["complete"]:
        raise KeyboardInterrupt
    return PatchResult(result.frame, {**result.provenance, "direction": "denoise"}, result.labels)


def _cells(model: Any, head: Head, task: Task) -> list[Cell]:
    site = Site("z", head[0])
    replacement = Patch(model, (site,))
    named = role_positions(task, run_examples(task, "denoise").__getitem__, run_examples(task, "noise").__getitem__)
    return [
        Cell({"position": name}, (Intervention(site, replacement, heads=(head[1],), positions=where),))
        for name, where in (*named, (EVERYWHERE, None))
    ]
