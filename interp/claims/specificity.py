"""Is a head about this task, or does the model need it for anything? Its effect here against all other tasks.

A head can matter by its size alone: without it, the stream's norm is another one, or every later head looks elsewhere.
Such a head costs every task, whether or not it looks at the task's related word. So, of a head whose ablation is a
drop, with two other tasks or more that the model can do:

- *general*: a drop on all of them, too, and on some task it is shown not to look at the related word;
- *specific*: another task is shown not to need it, or it looks at the related word on all of them, and so is about
  what they share;
- *undecided*: neither is shown.
"""

from collections.abc import Sequence

import pandas as pd

from interp.claims.rules import Specificity

FEWEST_OTHERS = 2
"""Other tasks that it takes to call a head general or specific."""


def specificities(frame: pd.DataFrame) -> list[Specificity]:
    """Whether a head's effect is about the task, row by row.

    Args:
        frame: One row per layer, head and task, with ``attention_state``, ``effect_state`` and ``undecidable``.
    """
    by_head = dict(iter(frame.groupby(["layer", "head"])))
    return [
        _specificity(_others(by_head[row["layer"], row["head"]], row["task"]), row["attention_state"])
        for row in frame.to_dict("records")
    ]


def _others(rows: pd.DataFrame, task: str) -> list[tuple[str, str]]:
    """Attention and effect on the other tasks that can be judged."""
    found = rows[(rows["task"] != task) & (rows["undecidable"] == "")]
    return list(zip(found["attention_state"], found["effect_state"], strict=True))


def _specificity(others: Sequence[tuple[str, str]], attention: str) -> Specificity:
    if len(others) < FEWEST_OTHERS:
        return "not testable"
    effects = [effect for _, effect in others]
    if any(effect in ("none", "rise") for effect in effects):
        return "specific"
    looks = {attention, *(each for each, _ in others)}
    if looks == {"shown"}:  # whatever its effects are: it is about what the tasks share
        return "specific"
    return "general" if "none" in looks and all(effect == "drop" for effect in effects) else "undecided"
