"""How many units would decide? The sample size of the test that is made.

A cell is shown or absent where it is ``critical`` standard errors clear of its minimum. With power .8 it gets there if
the truth is ``critical + z(.8)`` of them away. A head without any effect, and one with **twice** the minimum, are one
minimum away from it, so both are decided by ``n = n_now ((critical + z) se / minimum)^2`` units; one with **1.5** times
the minimum needs four times as many. The spread is taken to stay as it was observed, and new units to come in new
clusters. ``critical`` is that of what is shown or of what is absent, whichever asks for more, by max-T.

Cohen (1988), "Statistical power analysis for the behavioral sciences", chapter 2.
"""

import math

from scipy.stats import norm


def required_units(
    standard_error: float, n_units: int, minimum: float, *, critical: float, power: float = 0.8
) -> float:
    """Units that decide a cell whose effect is none, or twice the minimum; NaN where something is unknown or 0.

    Args:
        standard_error: Of the mean over the present units, less the minimum.
        n_units: How many these are.
        minimum: The smallest effect that counts, in the values' units.
        critical: Standard errors that the test asks for (``Claims.critical``).
        power: Chance to decide it.
    """
    if not (math.isfinite(standard_error) and standard_error > 0 and minimum > 0 and math.isfinite(critical)):
        return math.nan
    return float(math.ceil(n_units * ((critical + norm.ppf(power)) * standard_error / minimum) ** 2))
