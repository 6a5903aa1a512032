"""What do the statistics count? Balanced units in clusters and strata, one column per cell.

1. The values of one unit (an item and its counterfactual) are averaged: a unit counts once.
2. Units with the same lexical draw form a **cluster**: they are not independent of each other.
3. Templates are fixed **strata**: an estimate is the mean over strata of the stratum means, so that
   no template counts more because it has more items.

A cell is what one hypothesis is about, for example one head. What was not measured is NaN.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from interp.errors import InputError


@dataclass(frozen=True)
class UnitTable:
    """One value per unit and cell.

    Attributes:
        values: NaN where a unit was not measured.
        clusters: Each unit's lexical draw.
        strata: Each unit's template.
        cells: Labels of the columns, for example ``(layer, head)``.

    Raises:
        InputError: The parts differ in length.
    """

    values: Float[np.ndarray, "unit cell"]
    clusters: Sequence[str]
    strata: Sequence[str]
    cells: pd.Index

    def __post_init__(self) -> None:
        expected = (len(self.clusters), len(self.cells))
        if self.values.shape != expected or len(self.strata) != len(self.clusters):
            raise InputError(
                f"a table of units: expected values {expected} (units, cells) and {expected[0]} strata, "
                f"got values {self.values.shape} and {len(self.strata)} strata"
            )

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, column: str, by: Sequence[str] = ("layer", "head")) -> "UnitTable":
        """Average `column` of a tidy frame over each unit's examples.

        Args:
            frame: One row per cell and example, with ``unit``, ``cluster`` and ``template``.
            column: What to average; NaN is left out.
            by: The columns that name a cell.
        """
        wide = frame.groupby([*by, "unit"], sort=True)[column].mean().unstack(list(by))
        labels = frame.drop_duplicates("unit").set_index("unit").loc[wide.index]
        return cls(
            wide.to_numpy(dtype=float),
            tuple(labels["cluster"].astype(str)),
            tuple(labels["template"].astype(str)),
            wide.columns,
        )

    def only(self, cells: Bool[np.ndarray, " cell"]) -> "UnitTable":
        """The table with the other cells as if they had not been measured."""
        return UnitTable(np.where(cells, self.values, np.nan), self.clusters, self.strata, self.cells)

    @property
    def n_units(self) -> np.ndarray:
        """How many units were measured, by cell."""
        return np.isfinite(self.values).sum(axis=0)

    @property
    def n_clusters(self) -> np.ndarray:
        """How many clusters the measured units come from, by cell."""
        return (cluster_sums(self)[1].sum(axis=0) > 0).sum(axis=0)


@dataclass(frozen=True)
class ClusterTable:
    """What ``UnitTable`` comes down to, for who adds up units as they come: one stratum, sums by cluster.

    Attributes:
        sums: Of the values of a cluster's units.
        counts: How many these are; 0 where a cluster was not measured.
        cells: Labels of the columns.
    """

    sums: Float[np.ndarray, "cluster cell"]
    counts: Float[np.ndarray, "cluster cell"]
    cells: pd.Index


def cluster_sums(
    table: UnitTable | ClusterTable,
) -> tuple[Float[np.ndarray, "stratum cluster cell"], Float[np.ndarray, "stratum cluster cell"]]:
    """Sums of the measured values, and how many they are, by stratum and cluster."""
    if isinstance(table, ClusterTable):
        return table.sums[None], table.counts[None]
    strata, stratum = np.unique(np.asarray(table.strata, dtype=str), return_inverse=True)
    clusters, cluster = np.unique(np.asarray(table.clusters, dtype=str), return_inverse=True)
    shape = (len(strata), len(clusters), table.values.shape[1])
    measured = np.isfinite(table.values)
    sums, counts = np.zeros(shape), np.zeros(shape)
    np.add.at(sums, (stratum, cluster), np.where(measured, table.values, 0.0))
    np.add.at(counts, (stratum, cluster), measured.astype(float))
    return sums, counts


def has_spread(counts: Float[np.ndarray, "stratum cluster cell"]) -> Bool[np.ndarray, " cell"]:
    """Whether the spread of a cell's estimate can be known: there are values, and no stratum has a single cluster."""
    clusters = (counts > 0).sum(axis=1)
    return (clusters > 0).any(axis=0) & (clusters != 1).all(axis=0)


def within_strata(
    sums: Float[np.ndarray, "stratum ..."], counts: Float[np.ndarray, "stratum ..."]
) -> Float[np.ndarray, "stratum ..."]:
    """Each stratum's mean; NaN where it has no value."""
    return np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)


def stratum_means(
    sums: Float[np.ndarray, "stratum ..."], counts: Float[np.ndarray, "stratum ..."]
) -> Float[np.ndarray, "..."]:
    """Mean over the strata of the stratum means; NaN where no stratum has a value.

    A stratum without a value leaves the mean, it does not pull it to 0.
    """
    n_strata = (counts > 0).sum(axis=0)
    total = np.nansum(within_strata(sums, counts), axis=0)
    return np.divide(total, n_strata, out=np.full(n_strata.shape, np.nan), where=n_strata > 0)


def by_stratum(table: UnitTable) -> Float[np.ndarray, "stratum cell"]:
    """The mean of every cell in every stratum; NaN where it was not measured."""
    sums, counts = cluster_sums(table)
    return within_strata(sums.sum(axis=1), counts.sum(axis=1))


def estimates(table: UnitTable | ClusterTable) -> Float[np.ndarray, " cell"]:
    """The stratified mean of every cell."""
    sums, counts = cluster_sums(table)
    return stratum_means(sums.sum(axis=1), counts.sum(axis=1))


def standard_errors(table: UnitTable | ClusterTable) -> Float[np.ndarray, " cell"]:
    """Standard error of the stratified mean from the spread between clusters; NaN with fewer than two in a stratum.

    The linearised ratio estimator: clusters may differ in size.
    """
    sums, counts = cluster_sums(table)
    n_units = counts.sum(axis=1, keepdims=True)
    means = np.divide(sums.sum(axis=1, keepdims=True), n_units, out=np.zeros_like(n_units), where=n_units > 0)
    shares = np.divide(sums - counts * means, n_units, out=np.zeros_like(sums), where=n_units > 0)
    n_strata = (n_units > 0).sum(axis=0)
    n_clusters = (counts.sum(axis=0) > 0).sum(axis=0)
    residuals = shares.sum(axis=0) / np.maximum(n_strata, 1)
    factor = n_clusters / np.maximum(n_clusters - 1, 1)
    return np.where(has_spread(counts), np.sqrt(factor * (residuals**2).sum(axis=0)), np.nan)
