"""Conclusions from effects by themselves: a state for each cell: drop, rise, none or undecided.

1. The mean over balanced units, its interval, and the tests of ``claim.py``, corrected over all cells.
2. Means are tested against a minimum: a share of the base run's metric, unit by unit.
3. Where the base run is not shown to be above chance (``above_chance``), all is undecided: there is nothing to lose.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Bool

from interp.claims.bootstrap import cluster_bootstrap
from interp.claims.claim import Measured, claim
from interp.claims.units import PredictedTable, UnitTable, estimates
from interp.errors import InputError

DIFFERENCES = ("logit_difference", "sentence_log_probability", "probability_difference", "best_logit_difference")
"""The metrics that compare the right with the wrong answer: guessing scores 0."""


def conclusions(
    frame: pd.DataFrame, column: str, by: Sequence[str], *, metric: str, min_effect: float, alpha: float, seed: int
) -> pd.DataFrame:
    """Estimate, test and judge the mean of a column by cell (the columns `by` name it); the cells are one family.

    The `frame` is as a sweep's, with ``base``, ``base_correct`` and `column`: effects, of which a negative one is a
    drop. `min_effect` is a share of the base run's mean metric; `alpha` the chance of any false drop or rise, and
    of any false none.

    Returns:
        One row per cell: its labels, `column` (the mean), ``low``, ``high`` (95 %, cluster bootstrap), ``p`` (that it
        is no larger than the minimum, in size), ``p_adjusted`` (family-wise), ``p_absent`` (that it is at least as
        large, family-wise), ``base``, ``minimum`` (in the metric's units), ``state``, ``n_units``, ``n_clusters``.
    """
    (found,) = claim([against_base(frame, column, by, min_effect)], alpha=alpha, seed=seed)
    above = above_chance(frame, by, metric=metric, seed=seed)
    columns = {
        column: found.estimate,
        "low": found.interval.low,
        "high": found.interval.high,
        **{name: getattr(found, name) for name in ("p", "p_adjusted", "p_absent")},
        "base": estimates(UnitTable.from_frame(frame, "base", by=by)),
        "minimum": found.minimum,
        "state": np.where(above, found.states(alpha), "undecided"),
        "n_units": found.n_units,
        "n_clusters": found.n_clusters,
    }
    return pd.DataFrame(columns, index=found.values.cells).reset_index()


def against_base(
    frame: pd.DataFrame, column: str, by: Sequence[str], share: float, predicted: pd.DataFrame | None = None
) -> Measured:
    """The effects in `column` of cells named by the columns `by`.

    The minimum is a `share` of their ``base``, unit by unit, with the sign that makes its mean positive. `predicted`
    has a row for each cell and example, whether or not it was measured: its labels, ``base`` and ``predicted``, the
    effect that it should have.
    """
    base = UnitTable.from_frame(frame if predicted is None else predicted, "base", by=by)
    minimum = base.with_values(share * np.sign(estimates(base)) * base.values)
    if predicted is None:
        return Measured(UnitTable.from_frame(frame, column, by=by), minimum)
    whole = predicted.merge(frame[[*by, "example", column]], how="left", on=[*by, "example"])
    values, foretold = (UnitTable.from_frame(whole, each, by=by) for each in (column, "predicted"))
    return Measured(PredictedTable(values, foretold.values), minimum)


def above_chance(frame: pd.DataFrame, by: Sequence[str], *, metric: str, seed: int) -> Bool[np.ndarray, " cell"]:
    """Whether the base run is shown to be above chance, cell by cell: the whole interval is.

    A difference of answers has to lie above 0. Other metrics say nothing about chance by themselves (a probability is
    above 0 in any model), so for these the share of right answers has to lie above a half. Where that share is not
    known, because the answers have several tokens, or the interval is not known, nothing is shown.
    """
    column, chance = ("base", 0.0) if metric in DIFFERENCES else ("base_correct", 0.5)
    return cluster_bootstrap(UnitTable.from_frame(frame, column, by=by), seed=seed).low > chance


def check_judged(metric: object) -> None:
    """Refuse a KL divergence, which is 0 for the base run."""
    if metric == "kl_divergence":
        raise InputError(
            "kl_divergence: effects are judged as shares of the base run's metric, and that is 0 here; choose another "
            "metric, or read the divergences themselves with ablate(metric='kl_divergence')"
        )
