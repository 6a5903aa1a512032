"""Did a cell change anything? What it did to all of its examples, in one word."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

CHANGED = "changed"


@dataclass(frozen=True)
class State:
    """Why a cell is hatched instead of coloured.

    Attributes:
        symbol: One character, for tables.
        hatch: For figures.
        meaning: For legends and sentences.
    """

    symbol: str
    hatch: str
    meaning: str


UNMEASURED = "not measured"
STATES = {
    UNMEASURED: State("—", "////", UNMEASURED),
    "identical input": State("=", "....", "both runs have the same activation there, so nothing can change"),
    "unreachable": State("⊘", "xxxx", "what is changed there cannot reach the answer"),
    "no-op": State("∅", "++++", "the intervention changed nothing"),
    "nothing to recover": State("?", "\\\\\\\\", "the clean and the corrupted run are not shown to differ"),
}
"""By status, as far as a cell has no other; the words of ``SweepResult``."""


def statuses(examples: pd.DataFrame, labels: Sequence[str]) -> pd.DataFrame:
    """What happened in each cell.

    Args:
        examples: One row per cell and example, with ``status``.
        labels: The columns that name a cell.

    Returns:
        One row per cell in the order of `examples`: the labels, ``status`` (in words, such as ``changed`` or ``changed
        in 12 of 48``) and ``state`` (one of ``STATES``; empty where something changed).
    """
    counts = examples.groupby([*labels, "status"], sort=False).size().unstack("status", fill_value=0)
    order = pd.MultiIndex.from_frame(examples[list(labels)].drop_duplicates())
    if len(labels) == 1:
        order = order.get_level_values(0)
    counts = counts.reindex(order)
    changed = counts[CHANGED] if CHANGED in counts else 0 * counts.sum(axis=1)
    n_examples = counts.sum(axis=1)
    commonest = counts.drop(columns=CHANGED, errors="ignore").reindex(columns=list(STATES), fill_value=0).idxmax(axis=1)
    words = [_words(*row) for row in zip(changed, n_examples, commonest, strict=True)]
    found = pd.DataFrame({"status": words, "state": commonest.where(changed == 0, "")}, index=counts.index)
    return found.reset_index()


def _words(changed: int, n_examples: int, commonest: str) -> str:
    if changed == n_examples:
        return CHANGED
    return f"changed in {changed} of {n_examples}" if changed else commonest
