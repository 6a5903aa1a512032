"""Could this mean be chance? Sign-flip tests over clusters, with family-wise correction.

1. A unit's value enters the stratified mean with its weight; a cluster contributes the sum of its
   units. Under the null hypothesis a contribution is as likely to have either sign.
2. A random sign is drawn per cluster and applied **jointly to all cells of a task**: cells measured
   on the same sentences stay as dependent as they are. Tasks are flipped independently.
3. The statistic is studentised by the spread of the contributions, so that cells with different
   scales can be compared.
4. Raw p: how often a cell's own flipped statistic reaches the observed one. Family-wise p (max-T):
   how often the largest flipped statistic **of all cells of all tasks** does. Both with +1 in the
   numerator and denominator, so that no p is 0.
5. Where a task has so few clusters that all its sign vectors are no more than the flips asked for, its raw p are exact:
   all of them are tried, each once.
6. A cell of fewer than 20 clusters is decided by nobody (``FEWEST_CLUSTERS``), so it is not in the family: with
   ``C`` clusters all signs agree in ``2^(1 - C)`` of the flips, and its t would raise every other cell's p.

Westfall & Young (1993), "Resampling-based multiple testing"; Winkler et al. (2014), "Permutation
inference for the general linear model"; Phipson & Smyth (2010) on the +1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float

from interp.stats.intervals import FEWEST_CLUSTERS
from interp.stats.units import ClusterTable, UnitTable, cluster_sums

Alternative = Literal["two-sided", "greater"]
FLIPS = 10_000
"""Of a test, unless it is told otherwise."""
MOST_EXACT = 1 << 13
"""Sign vectors that are all tried; with more, some are drawn."""
_BLOCK = 500


@dataclass(frozen=True)
class SignFlips:
    """P-values of one task's cells; NaN where a cell was not measured.

    Attributes:
        p: Of each cell by itself.
        p_family: Corrected over all cells of all tasks that were tested together; NaN where a cell has too few
            clusters to be one of them.
    """

    p: Float[np.ndarray, " cell"]
    p_family: Float[np.ndarray, " cell"]


def sign_flip_test(
    tables: Sequence[UnitTable | ClusterTable],
    *,
    alternative: Alternative = "two-sided",
    flips: int = FLIPS,
    seed: int = 0,
) -> list[SignFlips]:
    """Test every cell's stratified mean against 0, one family over all `tables`.

    Args:
        tables: One per task.
        alternative: ``"greater"`` asks only for means above 0.
        flips: How many random sign vectors; the smallest possible p is ``1 / (flips + 1)``, unless it is exact.
        seed: Of the signs.

    Returns:
        One result per table, in order. A cell that is exactly 0 in every unit has p = 1.
    """
    standards = [_standardised(table) for table in tables]
    observed = [_statistics(np.ones((1, len(each.unit))), each, alternative)[0] for each in standards]
    # Equal statistics reach each other whatever the order of the summation.
    thresholds = [value - 1e-9 * np.maximum(np.abs(value), 1.0) for value in observed]
    own = [np.zeros(len(value)) for value in observed]
    family = [np.zeros(len(value)) for value in observed]
    generators = np.random.default_rng(seed).spawn(len(tables))
    for done in range(0, flips, _BLOCK):
        n_block = min(_BLOCK, flips - done)
        flipped = [
            _statistics(generator.choice([-1.0, 1.0], size=(n_block, len(each.unit))), each, alternative)
            for generator, each in zip(generators, standards, strict=True)
        ]
        largest = np.sort(_largest(flipped, standards, n_block))
        for index, threshold in enumerate(thresholds):
            own[index] += (flipped[index] >= threshold).sum(axis=0)
            family[index] += n_block - np.searchsorted(largest, threshold)
    found = []
    for index, each in enumerate(standards):
        p = (own[index] + 1) / (flips + 1)
        if 2 ** len(each.unit) <= min(flips, MOST_EXACT):
            p = _exact(each, thresholds[index], alternative)
        family_p = (family[index] + 1) / (flips + 1)
        found.append(SignFlips(np.where(each.measured, p, np.nan), np.where(each.decidable, family_p, np.nan)))
    return found


def _exact(
    cells: "_Standardised", threshold: Float[np.ndarray, " cell"], alternative: Alternative
) -> Float[np.ndarray, " cell"]:
    """The share of all sign vectors whose statistic reaches the observed one."""
    signs = np.array(list(product([-1.0, 1.0], repeat=len(cells.unit))))
    return (_statistics(signs, cells, alternative) >= threshold).mean(axis=0)


@dataclass(frozen=True)
class _Standardised:
    """Cluster contributions, scaled to length 1 in every cell (0 where a cell is exactly 0)."""

    unit: Float[np.ndarray, "cluster cell"]
    n_clusters: Float[np.ndarray, " cell"]

    @property
    def measured(self) -> Bool[np.ndarray, " cell"]:
        """Whether anything is known of a cell."""
        return self.n_clusters > 0

    @property
    def decidable(self) -> Bool[np.ndarray, " cell"]:
        """Whether a cell is in the family."""
        return self.n_clusters >= FEWEST_CLUSTERS


def _standardised(table: UnitTable | ClusterTable) -> _Standardised:
    sums, counts = cluster_sums(table)
    n_units = counts.sum(axis=1, keepdims=True)
    contributions = np.divide(sums, n_units, out=np.zeros_like(sums), where=n_units > 0).sum(axis=0)
    length = np.sqrt((contributions**2).sum(axis=0))
    n_clusters = (counts.sum(axis=0) > 0).sum(axis=0)
    scaled = np.divide(contributions, length, out=np.zeros_like(contributions), where=length > 0)
    return _Standardised(scaled, n_clusters.astype(float))


def _statistics(
    signs: Float[np.ndarray, "flip cluster"], cells: _Standardised, alternative: Alternative
) -> Float[np.ndarray, "flip cell"]:
    """Student's t of the signed contributions.

    Flipping signs leaves the sum of squares alone, so t is a function of the signed sum ``r`` of
    contributions of length 1: ``t = r sqrt((C - 1) / (C - r^2))`` with ``C`` clusters.
    """
    r = signs @ cells.unit
    # r^2 reaches C where all contributions are equal: t would be infinite.
    spread = np.maximum(cells.n_clusters - r**2, 1e-9 * np.maximum(cells.n_clusters, 1))
    t = r * np.sqrt(np.maximum(cells.n_clusters - 1, 0) / spread)
    return t if alternative == "greater" else np.abs(t)


def _largest(
    flipped: list[Float[np.ndarray, "flip _"]], standards: list[_Standardised], n_flips: int
) -> Float[np.ndarray, " flip"]:
    """The family's largest statistic, flip by flip; cells that nobody can decide have no say."""
    largest = np.full(n_flips, -np.inf)
    for values, each in zip(flipped, standards, strict=True):
        if each.decidable.any():
            largest = np.maximum(largest, values[:, each.decidable].max(axis=1))
    return largest
