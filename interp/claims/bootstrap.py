"""How far may a mean lie from the truth? The studentised cluster bootstrap.

1. A mean's error is a sum of its clusters' contributions (``contributions.py``).
2. Whole clusters are drawn with replacement, as many as there are, among those that occur in the same templates; what
   occurs in templates as no other cluster does is drawn with the others of its kind.
3. In every resample the sum of the contributions is divided by **its own** standard error: a studentised error ``t``.
   Where contributions are skewed, a sum that is too large comes with a spread that is too large, and ``t`` knows
   it; Student's t and sign flips take both sides to be alike.
4. The truth lies within ``estimate - t se``, for ``t`` between the quantiles; the interval's ends are both as far as
   the farther of the two. A sample that lacks the few clusters which deviate has a short tail where they would be: with
   each end at its own quantile, intervals of some heads without effect cover in 87 % (``analyses/false_claims``).
   Tests compare ``estimate / se`` with ``t`` (``claim.py``).
5. Clusters in which a cell was not measured are none of its own: it has the draws that it would have alone. Cells with
   the same clusters share their draws.

Efron (1981), "Nonparametric standard errors and confidence intervals" (bootstrap-t); Hall (1992), "The bootstrap and
Edgeworth expansion"; Cameron, Gelbach & Miller (2008), "Bootstrap-based improvements for inference with clustered
errors".
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from threadpoolctl import ThreadpoolController

from interp.claims.contributions import Contributions, contributions
from interp.claims.units import Table

FEWEST_CLUSTERS = 30
"""With fewer clusters than this, nothing is decided: neither interval nor test can be trusted."""
RESAMPLES = 2000
"""Of an interval, unless it is told otherwise."""
_BLOCK = 100
_LEAST_VARIANCE = 0.05
"""Of a resample, as a share of the variance: one that misses the few clusters that deviate has none, and would outdo
any mean, however far it lies beyond its minimum."""


@dataclass(frozen=True)
class Intervals:
    """A mean and its interval, by cell; NaN where not measured, or where a template has one cluster."""

    estimate: Float[np.ndarray, " cell"]
    low: Float[np.ndarray, " cell"]
    high: Float[np.ndarray, " cell"]


def few_clusters(n_clusters: int, n_units: int) -> str:
    """Why so few clusters decide nothing, and what would; empty where they are enough."""
    if n_clusters >= FEWEST_CLUSTERS:
        return ""
    advice = [] if n_clusters == 1 < n_units else ["draw more units"]  # the next would be of the same cluster, too
    if n_clusters < n_units:
        advice.append("give each unit of your own task its finest lexical draw as cluster, such as subject and verb")
    found = f"{n_clusters} cluster{'' if n_clusters == 1 else 's'}; at least {FEWEST_CLUSTERS} are needed"
    return f"{found}: {', or '.join(advice)}"


def cluster_bootstrap(
    table: Table,
    *,
    per: Table | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Intervals:
    """Interval of every cell's mean over templates, or of a ratio of two: 95 %, as long on both sides.

    Args:
        table: One value per unit and cell.
        per: What the means are divided by, of the same units and cells; None for the means themselves. A ratio to 0
            is NaN.
        resamples: How often the clusters are drawn.
        seed: Of the draws.

    Returns:
        Estimates with intervals. The caller decides nothing below ``FEWEST_CLUSTERS`` clusters.
    """
    found = contributions(table, per)
    error = np.full(len(found.estimate), np.nan)
    for group in groups_of(found):
        with one_thread():
            drawn = np.concatenate(list(group.blocks(resamples, np.random.default_rng(seed))))
        error[group.cells] = np.abs(np.quantile(drawn, (0.025, 0.975), axis=0)).max(axis=0) * group.standard_error
    return Intervals(found.estimate, found.estimate - error, found.estimate + error)


def studentised(found: Contributions, resamples: int, generator: np.random.Generator) -> Iterator[np.ndarray]:
    """Studentised errors of all cells, resample by resample, in blocks; NaN where the spread is not known."""
    groups = list(groups_of(found))
    blocks = [group.blocks(resamples, each) for group, each in zip(groups, generator.spawn(len(groups)), strict=True)]
    for start in range(0, resamples, _BLOCK):
        block = np.full((min(_BLOCK, resamples - start), len(found.estimate)), np.nan, dtype=np.float32)
        for group, own in zip(groups, blocks, strict=True):
            block[:, group.cells] = next(own)
        yield block


@dataclass(frozen=True)
class Group:
    """Cells that were measured in the same clusters, and so are drawn for together.

    Attributes:
        cells: Which they are.
        estimate: Of each.
        standard_error: Of each.
        strata: The contributions of the clusters that are drawn among each other, less their mean, in units of the
            cell's standard error.
    """

    cells: Int[np.ndarray, " cell"]
    estimate: Float[np.ndarray, " cell"]
    standard_error: Float[np.ndarray, " cell"]
    strata: Sequence[Float[np.ndarray, "_ cell"]]

    def blocks(self, resamples: int, generator: np.random.Generator) -> Iterator[Float[np.ndarray, "resample cell"]]:
        """Studentised errors, some resamples at a time."""
        squares = np.concatenate([_unbiased(len(each)) * each**2 for each in self.strata])
        for start in range(0, resamples, _BLOCK):
            yield self._drawn(min(_BLOCK, resamples - start), squares, generator)

    def _drawn(
        self, n: int, squares: Float[np.ndarray, "cluster cell"], generator: np.random.Generator
    ) -> Float[np.ndarray, "resample cell"]:
        times = [_drawn_times(len(each), n, generator) for each in self.strata]
        variances, errors = np.concatenate(times, axis=1) @ squares, np.zeros((n, len(self.cells)), dtype=np.float32)
        for drawn, values in zip(times, self.strata, strict=True):
            summed = drawn @ values
            errors += summed
            np.square(summed, out=summed)
            summed *= _unbiased(len(values)) / len(values)
            variances -= summed
        np.maximum(variances, _LEAST_VARIANCE, out=variances)
        return np.divide(errors, np.sqrt(variances, out=variances), out=errors)


def one_thread() -> AbstractContextManager[Any]:
    """Products of small matrices are many here, and threads that wait for each other take longer than one."""
    limits: AbstractContextManager[Any] = _threads().limit(limits=1, user_api="blas")
    return limits


@cache
def _threads() -> ThreadpoolController:
    return ThreadpoolController()


def _unbiased(n_clusters: int) -> float:
    """What a variance among so many is multiplied by, since its mean is drawn from them."""
    return n_clusters / (n_clusters - 1)


def _drawn_times(n_clusters: int, n: int, generator: np.random.Generator) -> Float[np.ndarray, "resample cluster"]:
    """How often each cluster is drawn, in each of `n` resamples."""
    drawn = generator.integers(0, n_clusters, (n, n_clusters)) + n_clusters * np.arange(n)[:, None]
    return np.bincount(drawn.ravel(), minlength=n * n_clusters).reshape(n, n_clusters).astype(np.float32)


def groups_of(found: Contributions) -> Iterator[Group]:
    """The cells whose spread is known, those with the same clusters together."""
    patterns: dict[bytes, list[int]] = {}
    for cell in np.flatnonzero(found.known):
        patterns.setdefault(found.measured[:, cell].tobytes(), []).append(int(cell))
    error = found.standard_error
    for numbers in patterns.values():
        cells = np.array(numbers)
        own = found.measured[:, cells[0]]
        values, scale = found.values[np.ix_(own, cells)], np.where(error[cells] > 0, error[cells], 1.0)
        strata = [
            ((part - part.mean(axis=0)) / scale).astype(np.float32)
            for part in (values[each] for each in _drawn_together(found.stratum[own]))
        ]
        yield Group(cells, found.estimate[cells], error[cells], strata)


def _drawn_together(stratum: Int[np.ndarray, " cluster"]) -> list[Bool[np.ndarray, " cluster"]]:
    """Clusters of one stratum; those that are alone in theirs are drawn with each other, or with the most."""
    sizes = np.bincount(stratum)[stratum]
    alone = sizes == 1
    strata = np.where(alone, -1, stratum)
    if alone.sum() == 1 and len(stratum) > 1:
        strata[alone] = strata[sizes.argmax()]
    return [strata == each for each in np.unique(strata)]
