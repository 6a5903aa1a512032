"""Which verdicts do models of other seeds come to, too? A table and a sentence."""

import pandas as pd

from interp.report.verdicts import VERDICTS

REPLICATES = "replicates"


def replication_table(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per task and verdict: the heads of each model that get it, and whether it replicates.

    Args:
        frame: One row per task, verdict and model, the model in question first: ``heads``, ``n_heads``.

    Returns:
        ``task``, ``verdict``, a column for each model, and ``replicates``: ``yes``, ``in 1 of 2``, ``no``; or ``not
        here`` where only others get it. By task, the strongest verdicts first.
    """
    models = list(dict.fromkeys(frame["model"]))
    rows = []
    for (task, verdict), own in frame.groupby(["task", "verdict"], sort=False):
        by_model = own.set_index("model")["heads"]
        named = {model: ", ".join(by_model[model].split()) or None for model in models}
        rows.append({"task": task, "verdict": verdict, **named, REPLICATES: _replicates([*named.values()])})
    table = pd.DataFrame(rows, columns=["task", "verdict", *models, REPLICATES])
    tasks = {task: number for number, task in enumerate(dict.fromkeys(frame["task"]))}
    place = {name: number for number, name in enumerate(VERDICTS)}
    order = table.assign(_task=table["task"].map(tasks), _place=table["verdict"].map(place))
    return order.sort_values(["_task", "_place"], kind="stable")[table.columns].reset_index(drop=True)


def _replicates(heads: list[str | None]) -> str:
    first, *others = (each is not None for each in heads)
    if not first:
        return "not here"
    if all(others):
        return "yes"
    return f"in {sum(others)} of {len(others)}" if any(others) else "no"


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
        f"{row['task']}: “{row['verdict']}” {row[REPLICATES].replace('no', 'in none')}"
        for row in missing.to_dict("records")
    )
    verb = "replicates" if found == 1 else "replicate"
    return f"Of {len(here)} verdicts on tasks, {found} {verb} in {whom}.{f' Not so {rest}.' if rest else ''}"
