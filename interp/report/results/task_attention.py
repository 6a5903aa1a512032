"""Which heads look from the query to the related word? The excess over each head's best baseline, in its place."""

from typing import Any

import pandas as pd

from interp.report.drawing import Figure, require
from interp.report.glance import MOST_DRAWN, Glance, numbers, with_interval
from interp.report.heads_figures import head_map
from interp.report.results.words import task_of

_MADE_BY = "interp.methods.task_attention.task_attention"


def task_attention(result: Any) -> Figure:
    """How much more of each head's attention goes to the related word than to its best baseline.

    Where the task names a feature: at the value at which that is most.

    Args:
        result: What ``interp.methods.task_attention.task_attention`` returns.

    Raises:
        InputError: It is something else.
    """
    require(result, ("frame", "summary", "testable", "provenance"), "task_attention", _MADE_BY)
    title = f"{task_of(result.provenance)}: attention to the related word, less the best baseline's"
    return head_map(result.strongest(), "excess", title=title, signed=True, bound=1.0)


def task_attention_glance(result: Any) -> Glance:
    """What a notebook shows of it."""
    table = result.summary().sort_values("excess", ascending=False, kind="stable")
    first, how = table.iloc[0], result.provenance
    if result.testable:
        said = (
            f"{int(first['n'])} units in {int(first['n_clusters'])} clusters; p is of one head by itself, not "
            "corrected for their number."
        )
    else:
        said = (
            "Not testable: the related word is the first token, or does not stand before the query, or no baseline "
            "could be chosen."
        )
    shown = pd.DataFrame(
        {
            "head": [f"{layer}.{head}" for layer, head in zip(table["layer"], table["head"], strict=True)],
            "excess attention": with_interval(table, "excess", "low", "high"),
            **({"where": table["feature_value"]} if table["feature_value"].any() else {}),
            "attention": numbers(table["attention"], 2),
            "best baseline": numbers(table["attention_baseline"], 2),
            "which": table["baseline"].fillna("—"),
            "p": numbers(table["p"], 4),
        }
    )
    return Glance(
        f"Attention to the related word: {task_of(result.provenance)}",
        [said],
        shown,
        len(table),
        ".summary()",
        how,
        "interp.plots.task_attention(result)",
        (lambda: task_attention(result)) if len(table) <= MOST_DRAWN else None,
    )
