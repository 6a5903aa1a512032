"""Standard errors and intervals of means: the studentised cluster bootstrap.

1. A cluster's **contribution** is the sum of its units' deviations from the mean of their template (of their template
   and layout, where layouts are balanced), each with the weight that a unit has in the mean over templates. To first
   order, the estimate deviates from the truth by the sum of the contributions. Of a ratio of two means it is
   ``(contribution to the numerator - ratio x contribution to the denominator) / denominator``.
2. Deviations from a mean that was estimated from the same units are too small. They are divided by ``sqrt(1 - h)``,
   where ``h`` is the cluster's share of the units behind that mean (CR2). Then the sum of squared contributions
   estimates the variance of the mean.
3. Whole clusters are drawn with replacement, as many as there are, among the clusters that occur in the same templates.
   Clusters that share their templates with no other cluster are drawn among themselves.
4. In every resample the sum of the contributions is divided by **its own** standard error: a studentised error ``t``.
   Where contributions are skewed, a sum that is too large comes with a spread that is too large, and ``t`` takes
   account of that; Student's t and sign flips assume symmetry.
5. The interval is ``estimate +- max(|t_.025|, |t_.975|) se``: both ends are as far as the farther of the two. A sample
   that lacks the few clusters which deviate has a short tail where they would be: with each end at its own quantile,
   intervals of some heads without effect cover in 87 % (``analyses/false_claims``).
   Tests compare ``estimate / se`` with ``t`` (``claim.py``).
6. A cell is resampled over the clusters in which it was measured, so its interval is the one that it would have alone.
   Cells with the same clusters share their draws.
7. Where values are **predicted** as well (``PredictedTable``), the estimate is the measured mean plus ``b`` times the
   difference between the mean prediction of all units and that of those measured: the regression estimator of double
   sampling. Predictions that are wrong cost precision and not truth, as long as the measured units are a random part.
   ``b`` is what the predictions explain of the measured values, between 0 and 1: beyond, chance makes it and the
   tests of 60 heads at the minimum were false too often. A measured cluster contributes its deviation from what is
   predicted of it without itself, and its share of the mean prediction; the others contribute the latter. Where all
   predictions are spread wider than those of measured units, deviations count for as much more: the few units that
   differ are missing there. The two kinds of clusters are drawn apart.

Efron (1981), "Nonparametric standard errors and confidence intervals" (bootstrap-t); Hall (1992), "The bootstrap and
Edgeworth expansion"; Cameron, Gelbach & Miller (2008), "Bootstrap-based improvements for inference with clustered
errors"; Bell & McCaffrey (2002), "Bias reduction in standard errors for linear regression with multi-stage samples"
(CR2); Cochran (1977), "Sampling techniques", chapter 12 (double sampling); Angelopoulos et al. (2023),
"Prediction-powered inference"; MacKinnon & White (1985), "Some heteroskedasticity-consistent covariance matrix
estimators with improved finite sample properties" (without the cluster itself: HC3).
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from threadpoolctl import ThreadpoolController

from interp.claims.units import (
    ClusterTable,
    PredictedTable,
    Table,
    UnitTable,
    balanced_layouts,
    cluster_sums,
    numbered,
    stratum_means,
)

FEWEST_CLUSTERS = 30
"""With fewer clusters than this, nothing is decided: no test is made. An interval is given; do not trust it."""
_SHARED = 1.6
"""How many times more units it takes than in proportion, since more and more come in clusters that are there: of the
generated tasks 30 clusters take from 30 units (induction) to 46 (reflexive)."""
RESAMPLES = 2000
"""Of an interval, unless told otherwise."""
_BLOCK = 100
_LEAST_VARIANCE = 0.05
"""Floor of a resample's variance, as a share of the variance of the sample. A resample that misses the few clusters
which deviate has no variance, and its ``t`` would exceed any estimate, however far that lies beyond its minimum."""


@dataclass(frozen=True)
class Intervals:
    """A mean and its 95 % interval, by cell; NaN where not measured, or where a template has one cluster.

    Attributes:
        estimate: ``[cell]``, in the values' unit, as are both ends.
        low: ``[cell]``, where the interval begins.
        high: ``[cell]``, where it ends.
    """

    estimate: Float[np.ndarray, " cell"]
    low: Float[np.ndarray, " cell"]
    high: Float[np.ndarray, " cell"]


@dataclass(frozen=True)
class Contributions:
    """A mean, cell by cell, and what clusters contribute to its error."""

    estimate: Float[np.ndarray, " cell"]  # NaN where nothing was measured
    values: Float[np.ndarray, "cluster cell"]  # 0 for clusters in which a cell was not measured
    measured: Bool[np.ndarray, "cluster cell"]  # whether a cell was measured in a cluster
    # equal for clusters that occur in the same templates; these are drawn together
    stratum: Int[np.ndarray, " cluster"]
    known: Bool[np.ndarray, " cell"]  # whether the standard error can be estimated: no template has a single cluster
    # how many units without predictions a measured one is worth; None where nothing is predicted, and clusters in
    # which a cell was not measured do not contribute
    gain: Float[np.ndarray, " _"] | None = None

    @property
    def standard_error(self) -> Float[np.ndarray, " cell"]:
        """Of the estimate; NaN where it cannot be estimated."""
        return np.where(self.known, np.sqrt((self.values**2).sum(axis=0)), np.nan)

    @property
    def n_clusters(self) -> Int[np.ndarray, " cell"]:
        """Number of clusters in which a cell was measured."""
        return self.measured.sum(axis=0)


def few_clusters(n_clusters: int, n_units: int) -> str:
    """Why so few clusters decide nothing, and what would; empty where they are enough."""
    if n_clusters >= FEWEST_CLUSTERS:
        return ""
    advice = [] if n_clusters == 1 < n_units else ["draw more units"]  # the next would be of the same cluster, too
    if n_clusters < n_units:
        advice.append("give each unit of your own task its finest lexical draw as cluster, such as subject and verb")
    found = f"{n_clusters} cluster{'' if n_clusters == 1 else 's'}; at least {FEWEST_CLUSTERS} are needed"
    return f"{found}: {', or '.join(advice)}"


def units_for_clusters(n_clusters: int, n_units: int) -> int | None:
    """Units that probably come in ``FEWEST_CLUSTERS`` clusters; None where all are of one, as the next would be."""
    return None if n_clusters == 1 < n_units else math.ceil(_SHARED * n_units * FEWEST_CLUSTERS / n_clusters)


def cluster_bootstrap(
    table: Table, *, per: Table | None = None, resamples: int = RESAMPLES, seed: int = 0
) -> Intervals:
    """Interval of every cell's mean over templates: 95 %, as long on both sides.

    The caller decides nothing below ``FEWEST_CLUSTERS`` clusters.

    Source: Efron (1981), "Nonparametric standard errors and confidence intervals"; Hall (1992), "The bootstrap and
    Edgeworth expansion".

    Args:
        table: The values.
        per: A table of the same units and cells, for the ratio of the two means; a ratio to 0 is NaN. None for the
            mean itself.
        resamples: Number of bootstrap samples.
        seed: Of the draws.

    Returns:
        The means and their intervals, ``[cell]``, in the values' unit.

    Examples:
        >>> import pandas as pd
        >>> from interp.claims.bootstrap import cluster_bootstrap
        >>> from interp.claims.units import UnitTable
        >>> values = torch.linspace(-3, -2, 40)[:, None].numpy()
        >>> table = UnitTable(values, [f"noun {i}" for i in range(40)], ["simple"] * 40, pd.Index(["2.2"]))
        >>> found = cluster_bootstrap(table)
        >>> bool(found.low[0] < found.estimate[0] < found.high[0])
        True
    """
    found = contributions(table, per)
    error = np.full(len(found.estimate), np.nan)
    for group in groups_of(found):
        with one_thread():
            drawn = np.concatenate(list(group.blocks(resamples, np.random.default_rng(seed))))
        error[group.cells] = np.abs(np.quantile(drawn, (0.025, 0.975), axis=0)).max(axis=0) * group.standard_error
    return Intervals(found.estimate, found.estimate - error, found.estimate + error)


def contributions(table: Table, per: Table | None = None) -> Contributions:
    """The contributions to every cell's mean, or to its ratio to that of `per`, as in ``cluster_bootstrap``."""
    found = _of_predicted(table) if isinstance(table, PredictedTable) else _of_means(table)
    if per is None:
        return found
    below = contributions(per)
    there = np.nan_to_num(below.estimate) != 0
    divisor = np.where(there, below.estimate, 1.0)
    ratio = np.where(there, found.estimate / divisor, np.nan)
    values = np.where(there, (found.values - np.nan_to_num(ratio) * below.values) / divisor, 0.0)
    return Contributions(ratio, values, found.measured, found.stratum, found.known & there, found.gain)


def _of_predicted(table: PredictedTable) -> Contributions:
    """The measured mean, moved by the difference of predictions between all units and those measured."""
    whole, there = table.measured, np.isfinite(table.measured.values)
    some = there.any(axis=1)
    predictions = np.where(np.isfinite(table.predictions).all(axis=0), table.predictions, 0.0)
    values = _of_means(whole.rows(some))
    own = _of_means(whole.with_values(np.where(there, predictions, np.nan)).rows(some))
    every = _of_means(whole.with_values(predictions))
    square = (own.values**2).sum(axis=0)
    helps = (square > 0) & ~there.all(axis=0)
    slope = np.divide((values.values * own.values).sum(axis=0), square, out=np.zeros_like(square), where=helps)
    slope = np.clip(slope, 0.0, 1.0)
    used = slope > 0
    leverage = np.divide(own.values**2, square, out=np.zeros_like(own.values), where=used)
    residuals = (values.values - slope * own.values) / np.maximum(1 - leverage, 1e-6)
    # As much wider as all predictions are spread than those of the measured units.
    spread = (every.values**2).sum(axis=0) * every.n_clusters / np.maximum(own.n_clusters, 1)
    wider = np.divide(spread, square, out=np.ones_like(square), where=used)
    residuals *= np.sqrt(np.maximum(wider, 1.0))
    at = np.unique(numbered(whole.clusters)[some])
    moved, measured = slope * every.values, np.zeros_like(every.measured)
    moved[at] += residuals
    measured[at] = values.measured
    estimate = values.estimate + slope * (every.estimate - own.estimate)
    square = (moved**2).sum(axis=0)
    gain = np.divide(values.standard_error**2, square, out=np.ones_like(square), where=values.known & (square > 0))
    gain = np.minimum(gain, len(there) / np.maximum(there.sum(axis=0), 1))
    return Contributions(estimate, moved, measured, every.stratum, values.known, gain)


def _of_means(table: UnitTable | ClusterTable) -> Contributions:
    sums, counts = cluster_sums(table)
    by_template = counts.sum(axis=1)  # [template cell]
    weight = np.divide(1.0, by_template, out=np.zeros_like(by_template), where=by_template > 0)
    weight /= np.maximum((by_template > 0).sum(axis=0), 1)  # of a unit, in the mean over templates
    values = _deviations(sums, counts, weight)
    if isinstance(table, UnitTable) and (layouts := balanced_layouts(table)) is not None:
        template = np.zeros(layouts.max() + 1, dtype=int)
        template[layouts] = numbered(table.strata)
        within = _deviations(*cluster_sums(table, layouts), weight[template])
        # A cell that was measured in some of the units only is not balanced.
        values = np.where(np.isfinite(table.values).all(axis=0), within, values)
    n_clusters = (counts > 0).sum(axis=1)
    _, stratum = np.unique((counts > 0).any(axis=2), axis=1, return_inverse=True)
    return Contributions(
        stratum_means(sums.sum(axis=1), by_template),
        values,
        np.asarray((counts > 0).any(axis=0)),
        stratum.ravel(),
        (n_clusters > 0).any(axis=0) & (n_clusters != 1).all(axis=0),
    )


def _deviations(
    sums: Float[np.ndarray, "stratum cluster cell"],
    counts: Float[np.ndarray, "stratum cluster cell"],
    weight: Float[np.ndarray, "stratum cell"],
) -> Float[np.ndarray, "cluster cell"]:
    """Each cluster's weighted deviations from its strata's means, divided by ``sqrt(1 - h)``."""
    n_units = counts.sum(axis=1, keepdims=True)
    means = np.divide(sums.sum(axis=1, keepdims=True), n_units, out=np.zeros_like(n_units), where=n_units > 0)
    free = 1 - np.divide(counts, n_units, out=np.zeros_like(counts), where=n_units > 0)
    deviations = (sums - counts * means) * weight[:, None]
    # A cluster that is alone in its stratum does not deviate from itself.
    return np.divide(deviations, np.sqrt(free), out=np.zeros_like(sums), where=free > 1e-9).sum(axis=0)


def studentised(found: Contributions, resamples: int, generator: np.random.Generator) -> Iterator[np.ndarray]:
    """Blocks [resample cell] of studentised errors; NaN where the standard error is not known."""
    groups = list(groups_of(found))
    blocks = [group.blocks(resamples, each) for group, each in zip(groups, generator.spawn(len(groups)), strict=True)]
    for start in range(0, resamples, _BLOCK):
        block = np.full((min(_BLOCK, resamples - start), len(found.estimate)), np.nan, dtype=np.float32)
        for group, own in zip(groups, blocks, strict=True):
            block[:, group.cells] = next(own)
        yield block


@dataclass(frozen=True)
class Group:
    """Cells that were measured in the same clusters, and so share their draws."""

    cells: Int[np.ndarray, " cell"]  # their numbers
    standard_error: Float[np.ndarray, " cell"]  # of each
    # by set of clusters that are drawn among each other: their contributions, less their mean, in units of the cell's
    # standard error
    strata: Sequence[Float[np.ndarray, "_ cell"]]

    def blocks(self, resamples: int, generator: np.random.Generator) -> Iterator[Float[np.ndarray, "resample cell"]]:
        """Studentised errors, some resamples at a time."""
        # The factor of a variance around an estimated mean.
        unbiased = [len(each) / (len(each) - 1) for each in self.strata]
        squares = np.concatenate([factor * each**2 for factor, each in zip(unbiased, self.strata, strict=True)])
        for start in range(0, resamples, _BLOCK):
            n = min(_BLOCK, resamples - start)
            times = [_times_drawn(len(each), n, generator) for each in self.strata]
            variances, errors = np.concatenate(times, axis=1) @ squares, np.zeros((n, len(self.cells)), np.float32)
            for drawn, values, factor in zip(times, self.strata, unbiased, strict=True):
                summed = drawn @ values
                errors += summed
                np.square(summed, out=summed)
                summed *= factor / len(values)
                variances -= summed
            np.maximum(variances, _LEAST_VARIANCE, out=variances)
            yield np.divide(errors, np.sqrt(variances, out=variances), out=errors)


def _times_drawn(n_clusters: int, n: int, generator: np.random.Generator) -> Float[np.ndarray, "resample cluster"]:
    """How often each cluster is drawn, in each of `n` resamples."""
    drawn = generator.integers(0, n_clusters, (n, n_clusters)) + n_clusters * np.arange(n)[:, None]
    return np.bincount(drawn.ravel(), minlength=n * n_clusters).reshape(n, n_clusters).astype(np.float32)


def groups_of(found: Contributions) -> Iterator[Group]:
    """The cells whose standard error is known, those with the same clusters together."""
    patterns: dict[bytes, list[int]] = {}
    for cell in np.flatnonzero(found.known):
        patterns.setdefault(found.measured[:, cell].tobytes(), []).append(int(cell))
    error = found.standard_error
    for numbers in patterns.values():
        cells = np.array(numbers)
        own, stratum = found.measured[:, cells[0]], found.stratum
        if found.gain is not None:  # those that were measured are drawn among each other, and so are the others
            own, stratum = np.ones_like(own), 2 * stratum + own
        values, scale = found.values[np.ix_(own, cells)], np.where(error[cells] > 0, error[cells], 1.0)
        strata = [
            ((part - part.mean(axis=0)) / scale).astype(np.float32)
            for part in (values[each] for each in _drawn_together(stratum[own]))
        ]
        yield Group(cells, error[cells], strata)


def _drawn_together(stratum: Int[np.ndarray, " cluster"]) -> list[Bool[np.ndarray, " cluster"]]:
    """Masks of clusters by stratum. Clusters alone in theirs are drawn with each other; a single one, with the most."""
    sizes = np.bincount(stratum)[stratum]
    alone = sizes == 1
    strata = np.where(alone, -1, stratum)
    if alone.sum() == 1 and len(stratum) > 1:
        strata[alone] = strata[sizes.argmax()]
    return [strata == each for each in np.unique(strata)]


_threads = cache(ThreadpoolController)


def one_thread() -> AbstractContextManager[Any]:
    """One BLAS thread: with many products of small matrices, threads wait for each other longer than they work."""
    limits: AbstractContextManager[Any] = _threads().limit(limits=1, user_api="blas")
    return limits
