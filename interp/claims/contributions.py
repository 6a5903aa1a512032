"""What does each cluster contribute to a mean's error? The mean in first order, as a sum over clusters.

1. A cluster's **contribution** is the sum of its units' deviations from the mean of their template (of their template
   and layout, where layouts are balanced), each with the weight that a unit has in the mean over templates. The mean
   deviates from the truth by the sum of the contributions, to first order.
2. A deviation is measured from a mean that it has itself drawn to it, so it is too small. It is divided by
   ``sqrt(1 - h)``, where ``h`` is the cluster's share of the units behind that mean (CR2). Then the sum of squares is
   the variance of the mean.
3. Of a ratio of two means: ``(contribution to the numerator - ratio x that to the denominator) / denominator``.

Bell & McCaffrey (2002), "Bias reduction in standard errors for linear regression with multi-stage samples" (CR2).
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from interp.claims.units import Table, UnitTable, balanced_layouts, cluster_sums, numbered, stratum_means


@dataclass(frozen=True)
class Contributions:
    """A mean, cell by cell, and what clusters contribute to its error.

    Attributes:
        estimate: NaN where nothing was measured.
        values: 0 for clusters in which a cell was not measured.
        measured: Whether a cell was measured in a cluster.
        stratum: Equal for clusters that occur in the same templates; they are drawn together.
        known: Whether the spread of a cell's estimate can be known: no template has a single cluster.
    """

    estimate: Float[np.ndarray, " cell"]
    values: Float[np.ndarray, "cluster cell"]
    measured: Bool[np.ndarray, "cluster cell"]
    stratum: Int[np.ndarray, " cluster"]
    known: Bool[np.ndarray, " cell"]

    @property
    def standard_error(self) -> Float[np.ndarray, " cell"]:
        """Of the estimate; NaN where its spread cannot be known."""
        return np.where(self.known, np.sqrt((self.values**2).sum(axis=0)), np.nan)

    @property
    def n_clusters(self) -> Int[np.ndarray, " cell"]:
        """How many clusters a cell was measured in."""
        return self.measured.sum(axis=0)


def contributions(table: Table, per: Table | None = None) -> Contributions:
    """The contributions to every cell's mean, or to a ratio of two.

    Args:
        table: One value per unit and cell.
        per: What the means are divided by, of the same units and cells; None for the means themselves. A ratio to 0
            is NaN.
    """
    found = _of_means(table)
    if per is None:
        return found
    below = _of_means(per)
    there = np.nan_to_num(below.estimate) != 0
    divisor = np.where(there, below.estimate, 1.0)
    ratio = np.where(there, found.estimate / divisor, np.nan)
    values = np.where(there, (found.values - np.nan_to_num(ratio) * below.values) / divisor, 0.0)
    return Contributions(ratio, values, found.measured, found.stratum, found.known & there)


def _of_means(table: Table) -> Contributions:
    sums, counts = cluster_sums(table)
    by_template = counts.sum(axis=1)  # [stratum cell]
    share = np.divide(1.0, by_template, out=np.zeros_like(by_template), where=by_template > 0)
    share /= np.maximum((by_template > 0).sum(axis=0), 1)  # what a unit of a template counts
    spread = (counts > 0).sum(axis=1)
    _, stratum = np.unique((counts > 0).any(axis=2), axis=1, return_inverse=True)
    return Contributions(
        stratum_means(sums.sum(axis=1), counts.sum(axis=1)),
        _deviations(table, sums, counts, share),
        np.asarray((counts > 0).any(axis=0)),
        stratum.ravel(),
        (spread > 0).any(axis=0) & (spread != 1).all(axis=0),
    )


def _deviations(
    table: Table,
    sums: Float[np.ndarray, "template cluster cell"],
    counts: Float[np.ndarray, "template cluster cell"],
    share: Float[np.ndarray, "template cell"],
) -> Float[np.ndarray, "cluster cell"]:
    """Each cluster's deviations from its strata's means, with the weights of its units, corrected for leverage."""
    found = _from_means(sums, counts, share)
    layouts = balanced_layouts(table) if isinstance(table, UnitTable) else None
    if layouts is None or not isinstance(table, UnitTable):
        return found
    template = np.zeros(layouts.max() + 1, dtype=int)
    template[layouts] = numbered(table.strata)
    within = _from_means(*cluster_sums(table, layouts), share[template])
    # What was measured of some units only is not balanced.
    return np.where(np.isfinite(table.values).all(axis=0), within, found)


def _from_means(
    sums: Float[np.ndarray, "stratum cluster cell"],
    counts: Float[np.ndarray, "stratum cluster cell"],
    share: Float[np.ndarray, "stratum cell"],
) -> Float[np.ndarray, "cluster cell"]:
    n_units = counts.sum(axis=1, keepdims=True)
    means = np.divide(sums.sum(axis=1, keepdims=True), n_units, out=np.zeros_like(n_units), where=n_units > 0)
    free = 1 - np.divide(counts, n_units, out=np.zeros_like(counts), where=n_units > 0)
    deviations = (sums - counts * means) * share[:, None]
    # A cluster that is alone in its stratum does not deviate from itself.
    return np.divide(deviations, np.sqrt(free), out=np.zeros_like(sums), where=free > 1e-9).sum(axis=0)
