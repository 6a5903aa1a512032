"""Evidence that is gathered in looks: what is settled leaves, and the error rates hold all the same.

1. A **look** takes the first units of a random order, balanced by template and layout, up to a number of clusters; the
   last one takes them all. Each look has those of the looks before.
2. At each, cells are tested as in ``claim.py`` with an equal share of alpha: p is multiplied by the number of looks,
   and what stands in the end is the smallest so far.
3. A cell **leaves** where it is shown or absent (or can be neither, as one that was not declared): no more is measured
   of it. Its estimate and interval are those of the look at which it left.
4. The family stays that of the first look. A cell that has left, and was not rejected, takes part in the largest
   statistic with the units that it has: those that stay were chosen on the same data, and a maximum over them alone
   would be too small. Stepping down removes only what was rejected.

A true hypothesis is rejected at some look with a chance of at most alpha: until the first one is, all true ones are in
the family, and the largest of their statistics is beyond its critical value at a look with a chance of at most its
share of alpha. By Benjamini and Hochberg, the expected share of false claims at all looks is at most the sum of those
at each.

Jennison & Turnbull (1999), "Group sequential methods with applications to clinical trials", chapter 2; Romano & Wolf
(2005), "Exact and approximate stepdown methods for multiple hypothesis testing".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Int

from interp.claims.claim import Measured, claims_of_tasks
from interp.claims.units import numbered

ENOUGH = 0.75
"""A look of more than this share of the clusters is left out: the last one, of all, tells little more."""


def order_of(strata: Sequence[str], seed: int) -> Int[np.ndarray, " unit"]:
    """The units in a random order of which every beginning has its share of every stratum, but for one unit."""
    stratum = numbered(strata)
    generator = np.random.default_rng(seed)
    rank = np.zeros(len(stratum))
    for each in np.unique(stratum):
        own = np.flatnonzero(stratum == each)
        rank[own] = (generator.permutation(len(own)) + generator.random()) / len(own)
    return np.argsort(rank, kind="stable")


def sizes_of(clusters: Sequence[str], first: int, most: int | None = None) -> list[int]:
    """How many of the units, whose `clusters` are given in the order of measuring, each look has.

    Args:
        clusters: Of the units, in order.
        first: How many clusters the first look has; each that follows has twice as many, and the last one has all,
            once few are left. With 0 there is but the last.
        most: How many clusters the last one has at most; None for all.

    Returns:
        Rising numbers of units.
    """
    seen = np.zeros(len(clusters), dtype=int)
    seen[np.unique(numbered(clusters), return_index=True)[1]] = 1
    n_clusters, early = seen.cumsum(), []
    last = len(clusters) if most is None else int(np.searchsorted(n_clusters, most, side="right"))
    while 0 < first <= ENOUGH * n_clusters[last - 1]:
        early.append(int(np.searchsorted(n_clusters, first)) + 1)
        first *= 2
    return [*early, last]


Masks = Sequence[Bool[np.ndarray, " cell"]]
"""One by task, in the order in which they are measured."""


@dataclass(frozen=True)
class Looks:
    """Tests of one kind of evidence on the cells of all tasks, as of the last look.

    Attributes:
        kind: What is tested, such as ``effect``.
        by: The columns that name a cell, with their types.
        n: How many looks there are, of which each has its share of alpha.
        alpha: The chance of any false claim, at all looks together.
        how: More of ``interp.claims.claim``.
        frame: As of ``claims_of_tasks``, with p that take account of all looks; None before the first.
        open: Of which rows more is to be measured.
    """

    kind: str
    by: Mapping[str, type]
    n: int
    alpha: float
    how: Mapping[str, Any]
    frame: pd.DataFrame | None = None
    open: Bool[np.ndarray, " row"] | None = None

    def look(
        self, measured: Mapping[str, Measured], hypotheses: Masks | None = None, absences: Masks | None = None
    ) -> "Looks":
        """Test what is measured by now.

        Args:
            measured: By task, all cells of the first look, also those that have left; NaN where a unit was not measured
                under a cell.
            hypotheses: Which cells may be shown; None for all.
            absences: Which cells may be absent; None for all.
        """
        ends = np.cumsum([len(each.values.cells) for each in measured.values()])
        may = [_flat(each, ends) for each in (hypotheses, absences)]
        left = [of & ~rejected for of, rejected in zip(may, self._rejected(ends), strict=True)]
        masks = dict(zip(("hypotheses", "absences"), (np.split(each, ends[:-1]) for each in left), strict=True))
        found = claims_of_tasks(self.kind, measured, self.by, **{**self.how, **masks, "alpha": self.alpha / self.n})
        found[self._p] = np.minimum(1.0, self.n * found[self._p])
        if self.frame is not None and self.open is not None:
            found[self._p] = np.fmin(found[self._p], self.frame[self._p])
            found.loc[~self.open] = self.frame.loc[~self.open]
        now = replace(self, frame=found)
        return replace(now, open=(may[0] | may[1]) & ~np.any(now._rejected(ends), axis=0))

    @property
    def _p(self) -> list[str]:
        """Of shown and of absent."""
        return [f"{self.kind}_p_adjusted", f"{self.kind}_p_absent"]

    def _rejected(self, ends: Int[np.ndarray, " task"]) -> list[Bool[np.ndarray, " row"]]:
        if self.frame is None:
            return [_flat(None, ends) & False] * 2
        return [(self.frame[each] <= self.alpha).to_numpy() for each in self._p]


def _flat(masks: Masks | None, ends: Int[np.ndarray, " task"]) -> Bool[np.ndarray, " row"]:
    n_rows = int(ends[-1]) if len(ends) else 0
    return np.ones(n_rows, dtype=bool) if masks is None else np.concatenate([*masks, np.zeros(0, dtype=bool)])
