"""Which columns of the relations and heads does a page show? Sortable tables; all else is in the CSV files."""

import pandas as pd

from interp.report.relations.frames import DIRECTION, REASONS, RelationFrames
from interp.report.relations.leading import leading, ranked
from interp.report.relations.words import head_name
from interp.report.sortable import Table, sortable

MOST_ROWS = 200
_NUMBERS = ("accuracy", "attention", "accuracy_baseline", "excess", "excess_low", "excess_high", "p_adjusted")
_HEADS = (*DIRECTION, "name", "verdict", *_NUMBERS, "baseline", "accuracy_random_head", "n_scored", "n_documents")
_RELATIONS = (
    *(*DIRECTION, "best_head", "verdict", *_NUMBERS, "baseline", "n_pairs", "n_scored"),
    *(f"n_{reason.replace(' ', '_')}" for reason in REASONS),
    *("n_documents", "offset", "accuracy_offset", "nearest", "accuracy_nearest", "accuracy_random_head", "chance"),
)


def relations_table(frames: RelationFrames) -> Table:
    """Every direction with its best head, and what was not scored."""
    renamed = {reason: f"n_{reason.replace(' ', '_')}" for reason in REASONS}
    counted = frames.relations.rename(columns={"n": "n_scored", **renamed})
    best = _named(leading(frames.frame)).drop(columns=["n_scored", "n_documents"]).rename(columns={"name": "best_head"})
    return sortable(counted.merge(best, on=list(DIRECTION), how="left", validate="one_to_one"), _RELATIONS)


def heads_table(frames: RelationFrames) -> tuple[Table, str]:
    """The first heads in the order of ``leading.py``, and the table's caption."""
    order = ranked(frames.frame)
    caption = "Every head and relation: those that attend, then those with enough documents, by their excess"
    if len(order) > MOST_ROWS:
        caption = (
            f"The first {MOST_ROWS} of {len(order):,}: heads that attend, then those with enough documents, by their "
            "excess; all of them are in heads.csv"
        )
    return sortable(_named(order.head(MOST_ROWS)), _HEADS), caption


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    renamed = {"low": "excess_low", "high": "excess_high", "n": "n_scored"}
    return frame.rename(columns=renamed).assign(name=[head_name(row) for _, row in frame.iterrows()])
