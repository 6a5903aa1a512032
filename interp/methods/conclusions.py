"""What may be concluded from a sweep's effects by themselves? A state for each cell: drop, rise, none or undecided.

1. The mean over balanced units, its interval, and sign flips corrected over all cells (max-T).
2. It is compared with a minimum: a share of the base run's mean metric, which is an estimate from the same units.
3. ``methods/verdict.py`` turns that into a state. Where the base run is not shown to be above chance
   (``above_chance``), there is nothing to lose, and all is undecided.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Bool

from interp.errors import InputError
from interp.interventions.metrics import MetricName
from interp.methods.verdict import Evidence, effect_state
from interp.stats.intervals import cluster_bootstrap
from interp.stats.permutation import sign_flip_test
from interp.stats.units import UnitTable, estimates, standard_errors

DIFFERENCES: tuple[MetricName, ...] = ("logit_difference", "sentence_log_probability")
"""The metrics that compare the right with the wrong answer: guessing scores 0."""


def conclusions(
    frame: pd.DataFrame,
    column: str,
    by: Sequence[str],
    *,
    metric: MetricName,
    minimum_effect: float,
    alpha: float,
    seed: int,
) -> pd.DataFrame:
    """Estimate, test and judge the mean of a column, cell by cell; the cells are one family.

    Args:
        frame: As a sweep's, with ``base``, ``base_correct`` and `column`.
        column: Effects; negative is a drop.
        by: The columns that name a cell.
        metric: What was measured; it says how chance is told (``above_chance``).
        minimum_effect: The smallest effect that counts, as a share of the base run's mean metric.
        alpha: Chance of any false drop or rise.
        seed: Of resamples and sign flips.

    Returns:
        One row per cell: its labels, `column` (the mean), ``low``, ``high`` (95 %, cluster bootstrap), ``p``, ``q``
        (family-wise), ``base``, ``minimum`` (in the metric's units), ``state``, ``n_units``, ``n_clusters``.
    """
    values = UnitTable.from_frame(frame, column, by=by)
    base = estimates(UnitTable.from_frame(frame, "base", by=by))
    interval = cluster_bootstrap(values, seed=seed)
    (test,) = sign_flip_test([values], seed=seed)
    against = against_minimum(frame, column, by, share=minimum_effect, seed=seed)
    found = pd.DataFrame(
        {
            column: interval.estimate,
            "low": interval.low,
            "high": interval.high,
            "p": test.p,
            "q": test.p_family,
            "base": base,
            "minimum": minimum_effect * np.abs(base),
            "n_units": values.n_units,
            "n_clusters": values.n_clusters,
        },
        index=values.cells,
    ).reset_index()
    evidence = [
        Evidence(row[column], row["se"], row["absent"], row["q"], row["minimum"], row["n_clusters"])
        for row in found.join(against, on=list(by)).to_dict("records")
    ]
    above = above_chance(frame, by, metric=metric, seed=seed)
    states = [effect_state(each, alpha) if known else "undecided" for each, known in zip(evidence, above, strict=True)]
    found.insert(found.columns.get_loc("n_units"), "state", states)
    return found


def above_chance(frame: pd.DataFrame, by: Sequence[str], *, metric: MetricName, seed: int) -> Bool[np.ndarray, " cell"]:
    """Whether the base run is shown to be above chance, cell by cell: the whole interval is.

    A difference of answers has to lie above 0. All else says nothing about chance by itself (a probability is above 0
    in any model), so there the share of right answers has to lie above a half. Where that share is not known, because
    the answers have several tokens, nothing is shown; nor is it where the interval is not known.

    Args:
        frame: With ``base`` and ``base_correct``.
        by: The columns that name a cell.
        metric: What ``base`` is.
        seed: Of the resamples.
    """
    column, chance = ("base", 0.0) if metric in DIFFERENCES else ("base_correct", 0.5)
    return cluster_bootstrap(UnitTable.from_frame(frame, column, by=by), seed=seed).low > chance


def against_minimum(frame: pd.DataFrame, column: str, by: Sequence[str], *, share: float, seed: int) -> pd.DataFrame:
    """Whether each cell's effect is shown to be smaller than a share of the base run's metric, and how surely.

    The base run's mean is an estimate from the same units: ``effect + share * base`` has to be clear of 0 above,
    and ``effect - share * base`` below.

    Args:
        frame: With ``base`` and `column`.
        column: The effects.
        by: The columns that name a cell.
        share: Of the base run's mean metric.
        seed: Of the resamples.

    Returns:
        By cell: ``absent``, and ``se``, the larger of the two standard errors.
    """
    above, below = (_beyond(frame, column, by, sign * share) for sign in (1, -1))
    low, high = cluster_bootstrap(above, seed=seed).low, cluster_bootstrap(below, seed=seed).high
    error = np.maximum(standard_errors(above), standard_errors(below))
    return pd.DataFrame({"absent": (low > 0) & (high < 0), "se": error}, index=above.cells)


def no_drop(
    frame: pd.DataFrame, column: str, by: Sequence[str], *, share: float, seed: int
) -> Bool[np.ndarray, " cell"]:
    """Whether each cell's effect is shown to be no drop that counts; arguments as of ``against_minimum``."""
    return cluster_bootstrap(_beyond(frame, column, by, share), seed=seed).low > 0


def _beyond(frame: pd.DataFrame, column: str, by: Sequence[str], share: float) -> UnitTable:
    """By how much each unit's value is above minus a share of its base."""
    return UnitTable.from_frame(frame.assign(rest=frame[column] + share * frame["base"]), "rest", by=by)


def check_judged(metric: MetricName, minimum_effect: float, alpha: float) -> None:
    """Refuse what nothing can be judged by.

    Raises:
        InputError: A share outside 0 and 1, or a KL divergence, which is 0 for the base run.
    """
    check_share("minimum_effect", minimum_effect)
    check_share("alpha", alpha)
    if metric == "kl_divergence":
        raise InputError(
            "kl_divergence: effects are judged as shares of the base run's metric, and that is 0 here; choose another "
            "metric, or read the divergences themselves with ablate(metric='kl_divergence')"
        )


def check_share(name: str, value: float) -> None:
    """Refuse what is no share.

    Raises:
        InputError: `value` is not between 0 and 1.
    """
    if not 0 < value < 1:
        raise InputError(f"{name}: expected a share between 0 and 1, got {value}")


def means_of(frame: pd.DataFrame, columns: Sequence[str], by: Sequence[str]) -> pd.DataFrame:
    """The means of other columns over balanced units, one row per cell as in ``conclusions``."""
    tables = {name: UnitTable.from_frame(frame, name, by=by) for name in columns}
    cells = next(iter(tables.values())).cells
    return pd.DataFrame({name: estimates(table) for name, table in tables.items()}, index=cells).reset_index()
