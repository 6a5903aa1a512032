"""What was asked of heads? The few facts that a page says; the rest stands under `How it was made`."""

from collections.abc import Sequence

import pandas as pd

from interp.report.document import model_with_hash

_SAID = ("model", "seed", "device")


def asked(tasks: pd.DataFrame, provenance: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The tasks, the model with its hash, the seed and the device, as far as they are known.

    Args:
        tasks: One row per task: ``task``, ``n_units`` and ``n_clusters``.
        provenance: As ``document.flatten`` gives it.
    """
    counts = tasks[["task", "n_units", "n_clusters"]].itertuples(index=False, name=None)
    known = short_names(provenance)
    known |= model_with_hash(known)
    facts = [("Tasks", ", ".join(f"{task} ({n} units in {clusters} clusters)" for task, n, clusters in counts))]
    return facts + [(key.capitalize(), known[key]) for key in _SAID if key in known]


def short_names(provenance: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The facts by the last part of their names, the first of each: runs of several tasks keep them a level down."""
    return {name.rsplit(".", 1)[-1]: text for name, text in reversed(provenance)}
