"""Which heads are worth a test? Chosen on other items, so that only they have to be corrected for.

1. The evidence is gathered on choosing tasks: the same tasks, of other items.
2. For each kind of evidence, a head and task is chosen if its raw p is at most alpha: it is beyond its minimum there.
   What exchanging its related word does can be shown if both its attention and its effect are chosen.
3. On the items in question only what was chosen can be shown, and is corrected for. That a kind of evidence is absent
   is tested of every head; heads are ablated together as they always are.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from jaxtyping import Bool

Chosen = Mapping[str, Bool[np.ndarray, " cell"]]
"""By kind of evidence (``effect``, ``excess``, ``probe``, ``exchange``), the rows that may be shown; as
``absent``, if it is there, those that may be absent. What is not there is all rows."""


def choose(frame: pd.DataFrame, alpha: float) -> Chosen:
    """The rows that are worth a test, by kind of evidence; an effect under both replacements.

    Args:
        frame: Of the choosing tasks: one row per layer, head and task, with raw p.
        alpha: Error rate, uncorrected.
    """
    effect = ((frame["effect_p"] <= alpha) & (frame["mean_effect_p"] <= alpha)).to_numpy()
    excess = (frame["excess_p"] <= alpha).to_numpy()
    return {
        "effect": effect,
        "excess": excess,
        "exchange": effect & excess,
        "probe": (frame["probe_excess_p"] <= alpha).to_numpy(),
    }
