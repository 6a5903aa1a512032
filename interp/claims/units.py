"""Tables of balanced units: one row per unit, one column per cell, with clusters, templates and layouts.

1. The values of one unit (an item and its counterfactual) are averaged: a unit counts once.
2. Units with the same lexical draw form a **cluster**: they are not independent of each other.
3. **Templates** are fixed strata: an estimate is the mean over templates of their means, so that no template counts
   more because it has more items.
4. **Layouts** (where the words stand) are fixed, too, if the generator drew each layout of a template equally often:
   then the differences between layouts are no part of the sampling error.

A cell is what one hypothesis is about, for example one head. A value that was not measured is NaN.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from interp.errors import InputError


@dataclass(frozen=True)
class UnitTable:
    """One value per unit and cell.

    Attributes:
        values: ``[unit cell]``, in any unit; NaN where a unit was not measured.
        clusters: Each unit's lexical draw.
        strata: Each unit's template.
        cells: Labels of the columns, for example ``(layer, head)``.
        layouts: Where each unit's words stand; empty if that is not known.

    Raises:
        InputError: The parts differ in length.

    Examples:
        >>> from interp.claims.units import UnitTable
        >>> result = interp.ablate(interp.load_model(), "agreement", heads=[(2, 2)], n=24)
        >>> UnitTable.from_frame(result.examples, "effect").values.shape
        (24, 1)
    """

    values: Float[np.ndarray, "unit cell"]
    clusters: Sequence[str]
    strata: Sequence[str]
    cells: pd.Index
    layouts: Sequence[str] = ()

    def __post_init__(self) -> None:
        expected = (len(self.clusters), len(self.cells))
        if self.values.shape != expected or len(self.strata) != len(self.clusters):
            raise InputError(
                f"a table of units: expected values {expected} (units, cells) and {expected[0]} strata, "
                f"got values {self.values.shape} and {len(self.strata)} strata"
            )

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, column: str, by: Sequence[str] = ("layer", "head")) -> "UnitTable":
        """Average a column of a tidy frame over each unit's examples; NaN is left out.

        Args:
            frame: One row per cell and example, with ``unit``, ``cluster``, ``template`` and, if known, ``layout``.
            column: One of numbers.
            by: The columns that name a cell.

        Returns:
            The table ``[unit cell]``, in the column's unit.
        """
        wide = frame.groupby([*by, "unit"], sort=True)[column].mean().unstack(list(by))
        labels = frame.drop_duplicates("unit").set_index("unit").loc[wide.index]
        return cls(
            wide.to_numpy(dtype=float),
            tuple(labels["cluster"].astype(str)),
            tuple(labels["template"].astype(str)),
            wide.columns,
            tuple(labels["layout"].astype(str)) if "layout" in labels else (),
        )

    def with_values(self, values: Float[np.ndarray, "unit cell"]) -> "UnitTable":
        """Other values of the same units and cells."""
        return replace(self, values=values)

    def rows(self, units: Bool[np.ndarray, " unit"]) -> "UnitTable":
        """The table of some of its units."""
        named = (tuple(itertools.compress(each, units)) for each in (self.clusters, self.strata, self.layouts))
        clusters, strata, layouts = named
        return UnitTable(self.values[units], clusters, strata, self.cells, layouts)

    def only(self, cells: Bool[np.ndarray, " cell"]) -> "UnitTable":
        """The table with all other cells set to NaN."""
        return self.with_values(np.where(cells, self.values, np.nan))

    @property
    def n_units(self) -> np.ndarray:
        """Number of measured units, by cell."""
        return np.isfinite(self.values).sum(axis=0)

    @property
    def n_clusters(self) -> np.ndarray:
        """Number of clusters with a measured unit, by cell."""
        return (cluster_sums(self)[1].sum(axis=0) > 0).sum(axis=0)


@dataclass(frozen=True)
class ClusterTable:
    """Sums by cluster, for callers that add units up as they come; there is one stratum.

    Attributes:
        sums: ``[cluster cell]``, of the values of a cluster's units.
        counts: ``[cluster cell]``, the number of these units; 0 where a cluster was not measured.
        cells: Labels of the columns.
    """

    sums: Float[np.ndarray, "cluster cell"]
    counts: Float[np.ndarray, "cluster cell"]
    cells: pd.Index

    @property
    def n_units(self) -> np.ndarray:
        """Number of measured units, by cell."""
        return self.counts.sum(axis=0)

    @property
    def n_clusters(self) -> np.ndarray:
        """Number of clusters with a measured unit, by cell."""
        return (self.counts > 0).sum(axis=0)


@dataclass(frozen=True)
class PredictedTable:
    """Values of some units, with what is predicted of all of them.

    Attributes:
        measured: One value per unit and cell; NaN where it was not measured.
        predictions: ``[unit cell]``, of the same units, in any unit; they need not be right. What is measured is to be
            a random part of the units.

    Examples:
        >>> import numpy as np
        >>> import pandas as pd
        >>> from interp.claims.bootstrap import cluster_bootstrap
        >>> from interp.claims.units import PredictedTable, UnitTable
        >>> values = torch.linspace(-3, -2, 40)[:, None].numpy()
        >>> part = UnitTable(values.copy(), [f"noun {i}" for i in range(40)], ["simple"] * 40, pd.Index(["2.2"]))
        >>> part.values[1::2] = np.nan
        >>> cluster_bootstrap(PredictedTable(part, values)).estimate.round(3)
        array([-2.5])
    """

    measured: UnitTable
    predictions: Float[np.ndarray, "unit cell"]

    @property
    def cells(self) -> pd.Index:
        """Labels of the columns."""
        return self.measured.cells

    @property
    def n_units(self) -> np.ndarray:
        """Number of measured units, by cell."""
        return self.measured.n_units

    @property
    def n_clusters(self) -> np.ndarray:
        """Number of clusters with a measured unit, by cell."""
        return self.measured.n_clusters


Table = UnitTable | ClusterTable | PredictedTable


def cluster_sums(
    table: UnitTable | ClusterTable, strata: Int[np.ndarray, " unit"] | None = None
) -> tuple[Float[np.ndarray, "stratum cluster cell"], Float[np.ndarray, "stratum cluster cell"]]:
    """Sums of the measured values and their number, by stratum (each unit's, as a number; else its template)."""
    if isinstance(table, ClusterTable):
        return table.sums[None], table.counts[None]
    stratum = numbered(table.strata) if strata is None else strata
    cluster = numbered(table.clusters)
    shape = (stratum.max() + 1, cluster.max() + 1, table.values.shape[1])
    measured = np.isfinite(table.values)
    sums, counts = np.zeros(shape), np.zeros(shape)
    np.add.at(sums, (stratum, cluster), np.where(measured, table.values, 0.0))
    np.add.at(counts, (stratum, cluster), measured.astype(float))
    return sums, counts


def numbered(names: Sequence[str]) -> Int[np.ndarray, " unit"]:
    """The number of each name in the sorted list of names."""
    return np.unique(np.asarray(names, dtype=str), return_inverse=True)[1]


def balanced_layouts(table: UnitTable) -> Int[np.ndarray, " unit"] | None:
    """The number of each unit's template and layout if layouts are balanced, else None.

    Balanced means that the layouts of a template occur equally often (up to one unit, where the schedule ends), at
    least twice, and in at least two clusters. Otherwise the number of units in a layout is random as well.
    """
    if not table.layouts:
        return None
    template, layout = numbered(table.strata), numbered(table.layouts)
    _, stratum, counts = np.unique(np.stack([template, layout]), axis=1, return_inverse=True, return_counts=True)
    stratum = stratum.ravel()
    of_template = np.zeros(len(counts), dtype=int)
    of_template[stratum] = template
    spread = [np.ptp(counts[of_template == each]) for each in range(template.max() + 1)]
    n_clusters = np.bincount(np.unique(np.stack([stratum, numbered(table.clusters)]), axis=1)[0])
    balanced = counts.min() >= 2 and max(spread) <= 1 and n_clusters.min() >= 2
    return stratum if balanced else None


def stratum_means(
    sums: Float[np.ndarray, "stratum ..."], counts: Float[np.ndarray, "stratum ..."]
) -> Float[np.ndarray, "..."]:
    """Mean over the strata with a value of the stratum means; NaN where there is none."""
    n_strata = (counts > 0).sum(axis=0)
    total = np.nansum(_within_strata(sums, counts), axis=0)
    return np.divide(total, n_strata, out=np.full(n_strata.shape, np.nan), where=n_strata > 0)


def _within_strata(
    sums: Float[np.ndarray, "stratum ..."], counts: Float[np.ndarray, "stratum ..."]
) -> Float[np.ndarray, "stratum ..."]:
    return np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)


def by_stratum(table: UnitTable) -> Float[np.ndarray, "stratum cell"]:
    """The mean of every cell in every template; NaN where it was not measured."""
    sums, counts = cluster_sums(table)
    return _within_strata(sums.sum(axis=1), counts.sum(axis=1))


def estimates(table: UnitTable | ClusterTable) -> Float[np.ndarray, " cell"]:
    """The mean over templates of the template means, of every cell.

    Args:
        table: The values.

    Returns:
        ``[cell]``, in the values' unit; NaN where nothing was measured.

    Examples:
        >>> import pandas as pd
        >>> from interp.claims.units import UnitTable, estimates
        >>> values = torch.tensor([[-2.0], [-1.0], [-3.0]]).numpy()
        >>> estimates(UnitTable(values, ["key", "cat", "dog"], ["simple", "simple", "relative"], pd.Index(["2.2"])))
        array([-2.25])
    """
    sums, counts = cluster_sums(table)
    return stratum_means(sums.sum(axis=1), counts.sum(axis=1))
