"""Multiple testing: corrections of p-values, and the choice of hypotheses on other items.

Holm (1979) bounds the probability of any false claim, under any dependence; Benjamini & Hochberg (1995) bounds the
expected share of false claims. A p that is NaN was not measured and is not counted.

Fewer hypotheses need less correction. So heads can be chosen beforehand:

1. The evidence is gathered on choosing tasks: the same tasks, of other items.
2. For each kind of evidence, a head and task is chosen if its raw p is at most alpha there. The exchange of the related
   word is tested if both attention and effect are chosen.
3. On the items in question only chosen rows can be shown, and only these are corrected for. Absence is tested of every
   head; heads are ablated together as they always are.
"""

from collections.abc import Mapping
from typing import Literal

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from scipy.stats import false_discovery_control

Correction = Literal["max-T", "fdr"]
"""Over a family of tests: max-T bounds the chance of any false claim, fdr (Benjamini & Hochberg) the share of them."""
Chosen = Mapping[str, Bool[np.ndarray, " cell"]]
"""By kind of evidence (``effect``, ``excess``, ``probe``, ``exchange``), the rows that may be shown; under ``absent``,
the rows that may be absent. A key that is missing stands for all rows."""


def holm(p: Float[np.ndarray, " cell"]) -> Float[np.ndarray, " cell"]:
    """Family-wise corrected p-values: the k-th smallest of m times ``m - k + 1``, made monotone."""
    adjusted = np.full(p.shape, np.nan)
    tested = np.flatnonzero(np.isfinite(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    steps = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def benjamini_hochberg(p: Float[np.ndarray, " cell"]) -> Float[np.ndarray, " cell"]:
    """P-values corrected for the false discovery rate."""
    adjusted = np.full(p.shape, np.nan)
    tested = np.isfinite(p)
    if tested.any():
        adjusted[tested] = false_discovery_control(p[tested], method="bh")
    return adjusted


def choose(frame: pd.DataFrame, alpha: float) -> Chosen:
    """The rows of the choosing tasks' frame, with raw p, that are worth a test at `alpha`, by kind of evidence.

    An effect has to be chosen under both replacements.
    """
    chosen = {
        kind: (frame[f"{kind}_p"] <= alpha).to_numpy() for kind in ("effect", "mean_effect", "excess", "probe_excess")
    }
    effect, excess = chosen["effect"] & chosen["mean_effect"], chosen["excess"]
    return {"effect": effect, "excess": excess, "exchange": effect & excess, "probe": chosen["probe_excess"]}
