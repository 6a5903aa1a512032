"""Which head speaks for a relation, and which relations come first?

1. Of each relation and direction the head with the largest excess: of those that track, where any does.
2. Directions in which a head attends come first, then those with enough documents for a verdict, each by their excess.
"""

import pandas as pd

from interp.report.relations.frames import DIRECTION
from interp.report.relations.verdicts import ATTENDS, FEWEST_DOCUMENTS


def leading(frame: pd.DataFrame) -> pd.DataFrame:
    """One row of `frame` for each direction in which anything was scored, the most telling first.

    Args:
        frame: One row per relation, direction, layer and head; see ``frames.FRAME_COLUMNS``.
    """
    tested = ranked(frame[frame["chosen"].astype(bool)])
    return tested.drop_duplicates(list(DIRECTION)).reset_index(drop=True)


def ranked(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows in which anything was scored, in the order of step 2."""
    scored = frame.dropna(subset="excess")
    order = scored.assign(_attends=scored["verdict"] == ATTENDS, _enough=scored["n_documents"] >= FEWEST_DOCUMENTS)
    order = order.sort_values(["_attends", "_enough", "excess"], ascending=False, kind="stable")
    return order.drop(columns=["_attends", "_enough"])
