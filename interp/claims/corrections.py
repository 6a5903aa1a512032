"""How are p-values corrected for how many there are? Two standard ways; NaN stays NaN.

Holm (1979) bounds the probability of any false claim, under any dependence; Benjamini & Hochberg
(1995) bounds the expected share of false claims. A p that was not measured is no hypothesis: it is
not counted.
"""

from typing import Literal

import numpy as np
from jaxtyping import Float
from scipy.stats import false_discovery_control

Correction = Literal["max-T", "fdr"]
"""Over a family of tests: max-T bounds the chance of any false claim, fdr (Benjamini & Hochberg) the share of them."""


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
