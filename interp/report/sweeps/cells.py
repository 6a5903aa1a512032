"""What is shown of each cell? Its name, the quantity that is coloured, what is claimed of it and why it may have none.

1. Of an ablation the effect is shown; of patching the normalised effect: 0 is the corrupted run, 1 the clean one.
2. Colours and sizes count from the run that is changed, the ``origin``: 0, or 1 where the clean run is.
3. A cell is a finding where its effect is beyond the correction (``p_adjusted`` at most ``ALPHA``); a large one from a
   tenth of the difference between clean and corrupted, or of the model's own metric on.
4. Where no example changed, what is left of the effect is rounding: no number, and no finding.
"""

import numpy as np
import pandas as pd

from interp.report.sweeps.frames import SweepFrames
from interp.report.sweeps.names import Names
from interp.report.sweeps.states import UNMEASURED, statuses

ALPHA = 0.05
MINIMUM = 0.1
"""From what share on an effect is large; as ``interp.heads`` has it."""
LARGE, SMALL = "large", "small"
MARKS = {LARGE: "●", SMALL: "○"}
MEANINGS = {LARGE: "beyond the correction, and large", SMALL: "beyond the correction, but small"}


def described(frames: SweepFrames) -> pd.DataFrame:
    """The cells in the order of the sweep, with what is shown of them.

    Returns:
        The columns of ``frames.cells`` and ``name``, ``status``, ``state`` (see ``states.statuses``), ``shown``,
        ``shown_low``, ``shown_high`` (the quantity; NaN where there is a state), ``size`` (of the effect, in units of
        the metric; NaN likewise) and ``found`` (``large``, ``small`` or empty). After a screen also the cells that were
        not measured, and ``estimate`` and ``chosen`` of each. What is rounding alone is NaN.
    """
    labels = list(frames.labels)
    cells = statuses(frames.examples, labels).merge(frames.cells, on=labels, how="left", validate="one_to_one")
    if frames.estimates is not None:
        cells = frames.estimates.merge(cells, on=labels, how="left", validate="one_to_one")
        cells = cells.fillna({"status": UNMEASURED, "state": UNMEASURED})
    names = Names(frames.tokens)
    cells["name"] = [names.cell(dict(zip(labels, row, strict=True))) for row in cells[labels].itertuples(index=False)]
    shown = ("normalised", "normalised_low", "normalised_high") if frames.patched else ("effect", "low", "high")
    if frames.patched:
        lost = (cells["state"] == "") & cells["normalised"].isna()
        cells["state"] = cells["state"].mask(lost, "nothing to recover")
    moved = cells["state"] == ""
    for name, column in zip(("shown", "shown_low", "shown_high"), shown, strict=True):
        cells[name] = cells[column].where(moved)
    numbers = [name for name in cells if name in (*shown, "effect", "low", "high", "p", "p_adjusted")]
    cells[numbers] = cells[numbers].where(moved | (cells["state"] == "nothing to recover"))
    cells["size"] = cells["effect"].abs().where(moved)
    beyond = moved & (cells["p_adjusted"] <= ALPHA)
    cells["found"] = np.select([beyond & is_large(frames, cells), beyond], [LARGE, SMALL], "")
    return cells


def is_large(frames: SweepFrames, cells: pd.DataFrame) -> pd.Series:
    """Whether each effect reaches the minimum, tested or not."""
    return (cells["shown"] - origin(frames)).abs() >= minimum(frames)


def origin(frames: SweepFrames) -> float:
    """What is shown of the run that is changed: 1 where that is the clean run, else 0."""
    return 1.0 if frames.provenance.get("direction") == "noise" else 0.0


def minimum(frames: SweepFrames) -> float:
    """From what distance from the origin on a cell is large, in what is shown.

    A KL divergence has nothing to be a share of: it has no minimum.
    """
    if frames.patched:
        return MINIMUM
    return 0.0 if frames.metric == "kl_divergence" else MINIMUM * abs(float(frames.runs["mean"].iloc[0]))


def strongest_first(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells by the size of their effects; then, by their estimates, those that have none."""
    estimate = cells["estimate"].abs() if "estimate" in cells else 0.0
    order = cells.assign(_estimate=estimate).sort_values(["size", "_estimate"], ascending=False, na_position="last")
    return order.drop(columns="_estimate")
