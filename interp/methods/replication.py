"""Do other seeds of the same training come to the same verdicts? Which heads have them there.

Heads of two models have nothing to do with each other's numbers, so a verdict on a task replicates where *some* head of
the other model gets it on the same examples. What no head of either gets, or is undecided, says nothing: so it is
noted of every model how many of its heads are, and a model that is not judged on a task is not held against anyone.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from interp.errors import InputError
from interp.interventions.given_numbers import as_list
from interp.interventions.provenance import model_provenance
from interp.methods.components import head_name

COLUMNS = ("task", "verdict", "model", "heads", "n_heads", "n_undecided", "judged")
SILENT = ("none", "undecided")
"""Verdicts that are no finding."""


def replication(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Which heads of which model get each verdict.

    Args:
        frames: ``HeadsReport.frame`` by the name of its model, the model in question first.

    Returns:
        One row per task, verdict that some head of some model gets, and model: ``heads``, such as ``2.1 2.2`` (empty
        where none does), and ``n_heads``; ``n_undecided``: the heads of which nothing is known on the task; and
        ``judged``: whether the model can be judged on it at all.
    """
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    for name, frame in frames.items():
        for row in frame[~frame["verdict"].isin(SILENT)].to_dict("records"):
            by_model = found.setdefault((row["task"], row["verdict"]), {})
            by_model.setdefault(name, []).append(head_name((int(row["layer"]), int(row["head"]))))
    states = {(name, task): _state(rows) for name, frame in frames.items() for task, rows in frame.groupby("task")}
    rows = []
    for (task, verdict), by_model in found.items():
        for name in frames:
            heads, state = by_model.get(name, []), states.get((name, task), (0, False))
            rows.append((task, verdict, name, " ".join(heads), len(heads), *state))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _state(rows: pd.DataFrame) -> tuple[int, bool]:
    """Of a model's heads on one task."""
    return int((rows["verdict"] == "undecided").sum()), bool((rows["undecidable"] == "").any())


def check_siblings(model: Any, siblings: Sequence[Any]) -> None:
    """Refuse siblings that read other tokens than the model, or are no other models.

    Raises:
        InputError: They are no list, some is no model, a tokenizer is another one, or the weights of two models are
            the same.
    """
    if as_list(siblings) is None:
        raise InputError(f"siblings: expected a list of models, got {type(siblings).__name__}; give [model]")
    for each in siblings:
        if not hasattr(each, "cfg"):
            raise InputError(f"siblings: expected models, got {each!r:.60}; load them with interp.load_model")
    first, *others = (model_provenance(each) for each in (model, *siblings))
    known = {first["model_hash"]}
    for name, sibling in zip(names(siblings), others, strict=True):
        own = sibling["model_hash"]
        if own is not None and own in known:
            raise InputError(
                f"siblings: expected models that differ, got {name} with the weights of one before it ({own[:12]}); "
                "give models of other seeds, each once"
            )
        known.add(own)
        if sibling["tokenizer_hash"] != first["tokenizer_hash"]:
            raise InputError(
                f"siblings: expected models with the first one's tokenizer ({str(first['tokenizer_hash'])[:12]}), "
                f"reading the same tokens, got {name} with another ({str(sibling['tokenizer_hash'])[:12]}); give "
                "models of the same training"
            )


def names(models: Sequence[Any]) -> list[str]:
    """A different name for each model: its own, with a number where that is taken."""
    found: list[str] = []
    for model in models:
        own = str(model_provenance(model)["model"])
        found.append(next(name for name in (own, *(f"{own} ({n})" for n in range(2, 99))) if name not in found))
    return found
