"""How many units would decide? The normal approximation to a z-test's sample size.

``n = n_now ((z_{1 - alpha/2} + z_power) SE_now / margin)^2``: the number at which a true effect as
large as the margin is found with the wanted power, if the spread stays as observed. The standard
error is the one between clusters, so the answer assumes new units in new clusters.

Cohen (1988), "Statistical power analysis for the behavioral sciences", chapter 2.
"""

import math

from scipy.stats import norm


def required_units(
    standard_error: float, n_units: int, margin: float, *, alpha: float = 0.05, power: float = 0.8
) -> float:
    """Units that decide an effect of size `margin`; NaN where spread or margin are unknown or 0.

    Args:
        standard_error: Of the mean over the present units.
        n_units: How many these are.
        margin: The effect to be told apart from 0, in the values' units.
        alpha: Two-sided error rate.
        power: Chance to find an effect of this size.
    """
    if not (math.isfinite(standard_error) and standard_error > 0 and margin > 0):
        return math.nan
    z = norm.ppf(1 - alpha / 2) + norm.ppf(power)
    return float(math.ceil(n_units * (z * standard_error / margin) ** 2))
