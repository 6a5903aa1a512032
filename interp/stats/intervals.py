"""How sure is a mean over units that are not independent? The cluster bootstrap.

1. Clusters (lexical draws) are resampled with replacement; their units come along whole.
2. In every resample the stratified mean is computed: strata (templates) are fixed.
3. The interval is the percentile interval of these means, expanded so that it is as wide as
   Student's t would ask for at this number of clusters (the plain one covers too little when
   clusters are few).
4. Clusters in which a cell was not measured are none of its own: its interval is the one that it would
   have if it were tabulated alone. Cells with the same clusters share their draws.

Cameron, Gelbach & Miller (2008), "Bootstrap-based improvements for inference with clustered
errors"; Hesterberg (2015), "What teachers should know about the bootstrap", section 5.3 (expanded
percentile interval).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from scipy import stats

from interp.stats.units import ClusterTable, UnitTable, cluster_sums, estimates, has_spread, stratum_means

FEWEST_CLUSTERS = 20
"""With fewer clusters than this, nothing is decided: neither interval nor test can be trusted."""


@dataclass(frozen=True)
class Intervals:
    """A stratified mean and its interval, by cell; NaN where not measured, or where a stratum has one cluster."""

    estimate: Float[np.ndarray, " cell"]
    low: Float[np.ndarray, " cell"]
    high: Float[np.ndarray, " cell"]


def cluster_bootstrap(
    table: UnitTable | ClusterTable,
    *,
    per: UnitTable | ClusterTable | None = None,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Intervals:
    """Interval of every cell's stratified mean, or of a ratio of two.

    Args:
        table: One value per unit and cell.
        per: What the means are divided by, of the same units and cells; None for the means themselves. A ratio to 0
            is NaN.
        confidence: Share of intervals that cover the truth.
        resamples: How often the clusters are drawn.
        seed: Of the draws.

    Returns:
        Estimates with intervals. The caller decides nothing below ``FEWEST_CLUSTERS`` clusters.
    """
    sums, counts = cluster_sums(table)
    measured = has_spread(counts)
    estimate, divisors = estimates(table), None
    if per is not None:
        divisor, divisors = estimates(per), cluster_sums(per)[0]
        there = np.nan_to_num(divisor) != 0
        measured &= there
        estimate = np.divide(estimate, divisor, out=np.full(len(divisor), np.nan), where=there)
    low, high = np.full(len(estimate), np.nan), np.full(len(estimate), np.nan)
    for clusters, cells in _alike(counts, measured):
        low[cells], high[cells] = _bootstrap(
            sums[..., cells][:, clusters],
            counts[..., cells][:, clusters],
            None if divisors is None else divisors[..., cells][:, clusters],
            confidence=confidence,
            resamples=resamples,
            seed=seed,
        )
    return Intervals(estimate, low, high)


def _alike(
    counts: Float[np.ndarray, "stratum cluster cell"], measured: Bool[np.ndarray, " cell"]
) -> Iterator[tuple[Bool[np.ndarray, " cluster"], Bool[np.ndarray, " cell"]]]:
    """The measured cells, those with the same clusters together: their clusters, and which cells they are."""
    patterns: dict[bytes, list[int]] = {}
    has: np.ndarray = counts.sum(axis=0) > 0
    for cell in np.flatnonzero(measured):
        patterns.setdefault(has[:, cell].tobytes(), []).append(int(cell))
    for numbers in patterns.values():
        cells = np.zeros(len(measured), dtype=bool)
        cells[numbers] = True
        yield has[:, numbers[0]], cells


def _bootstrap(
    sums: Float[np.ndarray, "stratum cluster cell"],
    counts: Float[np.ndarray, "stratum cluster cell"],
    divisors: Float[np.ndarray, "stratum cluster cell"] | None,
    *,
    confidence: float,
    resamples: int,
    seed: int,
) -> tuple[Float[np.ndarray, " cell"], Float[np.ndarray, " cell"]]:
    """Both ends of the interval of cells that have values in every cluster, at least two."""
    n_clusters = sums.shape[1]

    def means(drawn: np.ndarray, axis: int = -1) -> np.ndarray:
        """Stratified means, cell by resample: one matrix product, instead of a loop over cells."""
        drawn = np.atleast_2d(drawn)
        weights = np.zeros((len(drawn), n_clusters))
        np.add.at(weights, (np.arange(len(drawn))[:, None], drawn), 1.0)
        drawn_means = stratum_means(weights @ sums, weights @ counts)
        return (
            drawn_means if divisors is None else drawn_means / stratum_means(weights @ divisors, weights @ counts)
        ).T

    tail = stats.t.ppf((1 + confidence) / 2, n_clusters - 1) * np.sqrt(n_clusters / (n_clusters - 1))
    found = stats.bootstrap(
        (np.arange(n_clusters),),
        means,
        n_resamples=resamples,
        batch=250,
        vectorized=True,
        confidence_level=1 - 2 * stats.norm.sf(tail),
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return found.low, found.high
