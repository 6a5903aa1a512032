"""Which verdicts do models of other seeds come to, too? A table and a sentence."""

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from interp.report.amounts import counted
from interp.report.verdicts import VERDICTS

REPLICATES = "replicates"
_IN_WORDS = {
    "no": "in none",
    "open": "in none, where heads are undecided",
    "not judged": "where no other seed is judged",
}


def replication_table(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per task and verdict: the heads of each model that get it, and whether it replicates.

    Args:
        frame: One row per task, verdict and model, the model in question first; as of
            ``interp.methods.replication.replication``.

    Returns:
        ``task``, ``verdict``, a column for each model, and ``replicates``: ``yes`` (in all others), ``in 1 of 2``,
        ``in 1 of 1 judged`` where another cannot be judged on the task, ``no``; ``open`` where no other model gets it
        and heads of one are undecided; ``not judged`` where no other model can be; or ``not here`` where only others
        get it. By task, the strongest verdicts first.
    """
    models = list(dict.fromkeys(frame["model"]))
    rows = []
    for (task, verdict), own in frame.groupby(["task", "verdict"], sort=False):
        by_model = own.set_index("model").loc[models]
        named = dict(zip(models, map(_found, by_model.to_dict("records")), strict=True))
        rows.append({"task": task, "verdict": verdict, **named, REPLICATES: _replicates(by_model)})
    table = pd.DataFrame(rows, columns=["task", "verdict", *models, REPLICATES])
    tasks = {task: number for number, task in enumerate(dict.fromkeys(frame["task"]))}
    place = {name: number for number, name in enumerate(VERDICTS)}
    order = table.assign(_task=table["task"].map(tasks), _place=table["verdict"].map(place))
    return order.sort_values(["_task", "_place"], kind="stable")[table.columns].reset_index(drop=True)


def _found(row: Mapping[Hashable, Any]) -> str | None:
    """One model's heads, or why none is named."""
    if row["heads"]:
        return ", ".join(row["heads"].split())
    if not row["judged"]:
        return "not judged"
    return f"{row['n_undecided']} undecided" if row["n_undecided"] else None


def _replicates(by_model: pd.DataFrame) -> str:
    if not by_model["heads"].iloc[0]:
        return "not here"
    others = by_model.iloc[1:]
    judged = others[others["judged"]]
    n_found = int((judged["heads"] != "").sum())
    if judged.empty:
        return "not judged"
    if n_found == len(others):
        return "yes"
    if n_found:
        return f"in {n_found} of {len(judged)}{'' if len(judged) == len(others) else ' judged'}"
    return "open" if (judged["n_undecided"] > 0).any() else "no"


def replication_sentence(table: pd.DataFrame) -> str:
    """How many of the first model's verdicts replicate.

    Args:
        table: As of ``replication_table``.
    """
    here = table[table[REPLICATES] != "not here"]
    found, n_others = int((here[REPLICATES] == "yes").sum()), table.shape[1] - 4
    whom = {1: "the other seed", 2: "both other seeds"}.get(n_others, f"all {n_others} other seeds")
    missing = here[here[REPLICATES] != "yes"]
    rest = "; ".join(
        f"{row['task']}: “{row['verdict']}” {_IN_WORDS.get(row[REPLICATES], row[REPLICATES])}"
        for row in missing.to_dict("records")
    )
    verb = "replicates" if found == 1 else "replicate"
    return f"Of {counted(len(here), 'verdict')} on tasks, {found} {verb} in {whom}.{f' Not so {rest}.' if rest else ''}"
