"""Tests of means against a minimum: is an effect shown to be larger, or shown to be smaller? One test for all methods.

1. **Shown**: the hypothesis "no more than the minimum, in that direction" is rejected. Tested is the mean of
   ``value - minimum`` (of a rise) or ``value + minimum`` (of a drop) over units. The minimum is a number, or a share of
   the base run's metric, which is measured on the same units; values are never divided by it.
2. **Absent**: the hypothesis "at least the minimum" is rejected on both sides (two one-sided tests).
3. Both by the studentised cluster bootstrap (``bootstrap.py``): ``mean / se`` is compared with its distribution under
   the boundary of the hypothesis. The cells of a task are drawn together, tasks independently.
4. Family-wise (``p_adjusted``) over all cells, both sides and all tasks: the largest statistic of the family (max-T),
   step-down: a rejected hypothesis leaves the family of the rest. Shown and absent are a family each.
5. A cell of fewer than ``FEWEST_CLUSTERS`` clusters is no hypothesis: it stays undecided.
6. Where all clusters are alike, resamples have no spread. For counts of right answers, whose differences lie within 1
   of each other, that may be chance: the mean can be beyond the minimum only if a share of all clusters is of another
   kind, and p is at least the chance that none of these was drawn, times the number of cells where it is corrected.
   Attention and effects are the same to the last digit only if nothing that differs between clusters matters to them.

Where other tests are corrected, Holm (1979) bounds the probability of any false claim, under any dependence; Benjamini
& Hochberg (1995) bounds the expected share of false claims. A p that is NaN was not measured and is not counted.

Romano & Wolf (2005), "Exact and approximate stepdown methods for multiple hypothesis testing"; Westfall & Young (1993),
"Resampling-based multiple testing"; Schuirmann (1987) on two one-sided tests; Phipson & Smyth (2010) on the +1 that
keeps a p from being 0.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Shaped
from scipy.stats import false_discovery_control

from interp.claims.bootstrap import (
    FEWEST_CLUSTERS,
    Contributions,
    Intervals,
    cluster_bootstrap,
    contributions,
    one_thread,
    studentised,
)
from interp.claims.units import Table, UnitTable
from interp.errors import InputError
from interp.options import Correction

Alternative = Literal["two-sided", "greater"]
State = Literal["rise", "drop", "none", "undecided"]
RESAMPLES = 10_000
"""Of a test, unless told otherwise; no p is below 1 / (1 + this)."""

Cells = Float[np.ndarray, " cell"]
Several = Float[np.ndarray, " _"]
"""The cells of several tasks."""
Draws = Float[np.ndarray, "resample cell"]
_TESTED = (
    *("standard_error", "minimum", "p", "p_adjusted", "p_absent"),
    *("n_units", "n_clusters", "n_effective", "critical"),
)


@dataclass(frozen=True)
class Measured:
    """One task's cells, and the minimum that they are tested against.

    Attributes:
        values: Effects, or excesses, in any unit.
        minimum: The smallest size that counts, in the same unit and not negative: a number, or one for every unit and
            cell, such as a share of the base run's metric.
        counted: Whether values are differences of shares of right answers, between -1 and 1; with ``"greater"`` only.

    Examples:
        >>> import pandas as pd
        >>> from interp.claims.claim import Measured
        >>> from interp.claims.units import UnitTable
        >>> values = torch.tensor([[-2.0], [-1.0]]).numpy()
        >>> table = UnitTable(values, clusters=["key", "cat"], strata=["simple"] * 2, cells=pd.Index(["2.2"]))
        >>> Measured(table, minimum=0.5).counted
        False
    """

    values: Table
    minimum: float | UnitTable = 0.0
    counted: bool = False


@dataclass(frozen=True)
class Claims:
    """The tests of one task's cells; NaN where a cell was not measured or its standard error is not known.

    Attributes:
        estimate: The mean over templates of the template means; this and what follows is ``[cell]``.
        standard_error: Of the estimate, less the minimum: the larger, of the two sides.
        minimum: The mean of the minimum.
        p: Of "the mean is no larger than the minimum" (two-sided: in size).
        p_adjusted: The same, corrected over the family; NaN where a cell is no hypothesis.
        p_absent: Of "the mean is at least the minimum" (two-sided: in size), corrected likewise; 1 without a minimum.
        n_units: Number of measured units.
        n_clusters: Number of their clusters.
        n_effective: How many measured units would say as much if nothing were predicted of others.
        critical: What ``(estimate - minimum) / standard_error`` has to reach, at the given alpha, to be shown in the
            first step (or absent, where that is more): the same for all cells.
        values: What was tested.
        seed: Of the draws.
    """

    estimate: Cells
    standard_error: Cells
    minimum: Cells
    p: Cells
    p_adjusted: Cells
    p_absent: Cells
    n_units: np.ndarray
    n_clusters: np.ndarray
    n_effective: Cells
    critical: Cells
    values: Table
    seed: int

    @cached_property
    def interval(self) -> Intervals:
        """Of the estimates, 95 %."""
        return cluster_bootstrap(self.values, seed=self.seed)

    def frame(self, kind: str) -> pd.DataFrame:
        """The tests as a table.

        Args:
            kind: What was tested, such as ``effect``.

        Returns:
            One row per cell, in columns named after the kind: ``effect``, ``effect_low``, ``effect_p`` ...
        """
        found = [self.estimate, self.interval.low, self.interval.high, *(getattr(self, name) for name in _TESTED)]
        return pd.DataFrame(dict(zip(self.columns(kind), found, strict=True)), index=self.values.cells)

    @staticmethod
    def columns(kind: str) -> list[str]:
        """The columns of ``frame``."""
        return [kind, *(f"{kind}_{name}" for name in ("low", "high", *_TESTED))]

    def states(self, alpha: float) -> list[State]:
        """What is shown of each cell.

        Args:
            alpha: The error rate, from 0 to 1.

        Returns:
            By cell ``rise``, ``drop``, ``none`` (it does neither by the minimum) or ``undecided``.
        """
        shown, absent = self.p_adjusted <= alpha, self.p_absent <= alpha
        found = np.select([shown & (self.estimate > 0), shown, absent], ["rise", "drop", "none"], "undecided")
        return list(found)


def claim(
    measured: Sequence[Measured],
    *,
    alternative: Alternative = "two-sided",
    correction: Correction = "max-T",
    hypotheses: Sequence[Bool[np.ndarray, " _"]] | None = None,
    absences: Sequence[Bool[np.ndarray, " _"]] | None = None,
    alpha: float = 0.05,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> list[Claims]:
    """Test every cell against its minimum, one family over all tasks; one result a task, in order.

    Source: Romano & Wolf (2005), "Exact and approximate stepdown methods for multiple hypothesis testing"; Schuirmann
    (1987) on two one-sided tests.

    Args:
        measured: One per task.
        alternative: ``"greater"`` tests only for means above the minimum, and calls absent what is below it.
        correction: ``"max-T"`` bounds the chance of any false claim, ``"fdr"`` the expected share of them.
        hypotheses: Which cells may be shown, one mask per task; None for all.
        absences: Which cells may be absent; None for all.
        alpha: Of ``Claims.critical``.
        resamples: Number of bootstrap samples.
        seed: Of the draws.

    Returns:
        One ``Claims`` for each task, whose arrays are ``[cell]``; estimates are in the values' unit.

    Raises:
        InputError: A minimum is below 0, or no number.

    Examples:
        >>> import pandas as pd
        >>> from interp.claims.claim import Measured, claim
        >>> from interp.claims.units import UnitTable
        >>> values = torch.linspace(-3, -2, 40)[:, None].numpy()
        >>> table = UnitTable(values, [f"noun {i}" for i in range(40)], ["simple"] * 40, pd.Index(["2.2"]))
        >>> str(claim([Measured(table, minimum=0.5)], resamples=500)[0].states(alpha=0.05)[0])
        'drop'
    """
    sides = [_Sides.of(each, alternative) for each in measured]
    least = [each.least_p for each in sides]
    every = [each.decidable for each in sides]
    shown = _Family([each.shown for each in sides], [each for each, _ in least], every, hypotheses)
    absent = _Family([each.absent for each in sides], [each for _, each in least], every, absences)
    generators = np.random.default_rng(seed).spawn(len(sides))
    streams = [each.draws(resamples, own) for each, own in zip(sides, generators, strict=True)]
    with one_thread():
        for drawn in zip(*streams, strict=True):
            shown.count([each for each, _ in drawn])
            absent.count([each for _, each in drawn])
    critical = float(np.fmax(shown.critical(alpha), absent.critical(alpha)))
    tests = zip(measured, sides, shown.p_values(correction), absent.p_values(correction), strict=True)
    return [
        Claims(
            estimate=side.estimate,
            standard_error=side.standard_error,
            minimum=side.minimum,
            p=p,
            p_adjusted=p_adjusted,
            p_absent=p_absent,
            n_units=each.values.n_units,
            n_clusters=each.values.n_clusters,
            n_effective=each.values.n_units * (1.0 if side.tested.gain is None else side.tested.gain),
            critical=np.full(len(side.estimate), critical),
            values=each.values,
            seed=seed,
        )
        for each, side, (p, p_adjusted), (_, p_absent) in tests
    ]


def claims_of_tasks(kind: str, measured: Mapping[str, Measured], by: Mapping[str, type], **how: Any) -> pd.DataFrame:
    """``claim`` of the cells of each task, by its name, one below the other; `how` is for ``claim``.

    Columns are ``task``, those `by` which cells are named, with their types, and those of ``Claims.frame``.
    """
    if not measured:
        types = {"task": object, **by, **dict.fromkeys(Claims.columns(kind), float)}
        return pd.DataFrame({name: pd.Series(dtype=each) for name, each in types.items()})
    tests = zip(measured, claim(list(measured.values()), **how), strict=True)
    return pd.concat([each.frame(kind).reset_index().assign(task=task) for task, each in tests], ignore_index=True)


@dataclass(frozen=True)
class _Sides:
    """One task's means, and the contributions to what is tested.

    `tested` holds the cells of the mean less its minimum and then, if two-sided, those of the mean plus its minimum.
    """

    estimate: Cells
    tested: Contributions
    minimum: Cells
    counted: bool

    @classmethod
    def of(cls, measured: Measured, alternative: Alternative) -> "_Sides":
        values, least = contributions(measured.values), measured.minimum
        size, moved = np.full(len(values.estimate), least), np.zeros_like(values.values)
        if isinstance(least, UnitTable):
            base = contributions(least)
            size, moved = base.estimate, base.values
        if not (size[values.known] >= 0).all():
            raise InputError(f"minimum: expected a number from 0, got {np.min(size[values.known])}")
        signs = (1, -1) if alternative == "two-sided" else (1,)
        tested = Contributions(
            np.concatenate([values.estimate - sign * size for sign in signs]),
            np.concatenate([values.values - sign * moved for sign in signs], axis=1),
            np.concatenate([values.measured] * len(signs), axis=1),
            values.stratum,
            np.concatenate([values.known] * len(signs)),
            values.gain,
        )
        return cls(values.estimate, tested, size, measured.counted)

    def _by_side(self, cells: np.ndarray) -> Shaped[np.ndarray, "side cell"]:
        return cells.reshape(-1, len(self.estimate))

    @property
    def decidable(self) -> Bool[np.ndarray, " cell"]:
        """Whether a cell is a hypothesis."""
        known, n_clusters = (self._by_side(each)[0] for each in (self.tested.known, self.tested.n_clusters))
        return known & (n_clusters >= FEWEST_CLUSTERS)

    @property
    def standard_error(self) -> Cells:
        """The larger of the two sides."""
        return self._by_side(self.tested.standard_error).max(axis=0)

    @cached_property
    def _observed(self) -> tuple[Cells, Cells]:
        """How far the mean is above its minimum and below minus its minimum, in standard errors.

        Infinite where the standard error is 0 and the difference is not.
        """
        estimate, error = self.tested.estimate, self.tested.standard_error
        sure = np.where(estimate == 0, 0.0, np.copysign(np.inf, estimate))
        t = np.divide(estimate, error, out=np.where(np.isnan(error), np.nan, sure), where=error > 0)
        return _rise_and_drop(self._by_side(t))

    @property
    def shown(self) -> Cells:
        """How far a mean is beyond its minimum, in standard errors."""
        return np.maximum(*self._observed)

    @property
    def absent(self) -> Cells:
        """How far it stays below, on the side where it comes nearest."""
        rise, drop = self._observed
        return np.where(self.minimum > 0, np.minimum(-rise, -drop), -np.inf)

    @property
    def least_p(self) -> tuple[Cells, Cells]:
        """Of shown and of absent: the chance to draw no cluster of another kind, where all are alike; else 0."""
        alike = self.standard_error <= 1e-9
        if not (self.counted and alike.any()):
            return np.zeros_like(self.estimate), np.zeros_like(self.estimate)
        above, n_clusters = (self._by_side(each)[0] for each in (self.tested.estimate, self.tested.n_clusters))
        # The share of clusters at the other end of the range that would bring the mean to the minimum.
        others = (above / np.maximum(1 + self.estimate, 1e-9), -above / np.maximum(1 - self.estimate, 1e-9))
        shown, absent = ((1 - np.clip(each, 0.0, 1.0)) ** n_clusters for each in others)
        return np.where(alike, shown, 0.0), np.where(alike, absent, 0.0)

    def draws(self, resamples: int, generator: np.random.Generator) -> Iterator[tuple[Draws, Draws]]:
        """Blocks of ``shown`` and ``absent`` under a mean at its minimum."""
        for block in studentised(self.tested, resamples, generator):
            rise, drop = _rise_and_drop(block.reshape(len(block), -1, len(self.estimate)))
            yield np.maximum(rise, drop), np.maximum(-rise, -drop)


def _rise_and_drop(t: Float[np.ndarray, "*resample side cell"]) -> tuple[np.ndarray, np.ndarray]:
    """Statistics of either side; those of a rise twice where only that is tested."""
    rise = t[..., 0, :]
    return rise, -t[..., 1, :] if t.shape[-2] == 2 else rise


class _Family:
    """Counts how often draws reach what was observed: cell by cell, and step by step over the family.

    Its members are the cells that are `decidable` and, if that is given, among those that are `asked`.
    """

    def __init__(
        self,
        observed: Sequence[Several],
        least_p: Sequence[Several],
        decidable: Sequence[Bool[np.ndarray, " _"]],
        asked: Sequence[Bool[np.ndarray, " _"]] | None,
    ) -> None:
        self._sizes = [len(each) for each in observed]
        self._observed, self._least_p = np.concatenate(observed), np.concatenate(least_p)
        self._members = np.flatnonzero(np.concatenate(decidable) & (True if asked is None else np.concatenate(asked)))
        # Equal statistics reach each other whatever the order of the summation.
        self._threshold = self._observed - 1e-5 * np.maximum(np.abs(np.nan_to_num(self._observed)), 1.0)
        self._order = self._members[np.argsort(-self._observed[self._members], kind="stable")]
        self._own, self._stepwise = np.zeros(len(self._observed)), np.zeros(len(self._order))
        self._largest: list[np.ndarray] = []
        self._n = 0

    def count(self, drawn: Sequence[Float[np.ndarray, "resample _"]]) -> None:
        """Add some resamples of all tasks."""
        every = np.concatenate(drawn, axis=1)
        self._n += len(every)
        self._own += (every >= self._threshold).sum(axis=0)
        if not len(self._order):
            return
        # The largest statistic of a cell and all cells that are less clear than it.
        largest = np.maximum.accumulate(every[:, self._order[::-1]], axis=1)[:, ::-1]
        self._stepwise += (largest >= self._threshold[self._order]).sum(axis=0)
        self._largest.append(largest[:, 0])

    def critical(self, alpha: float) -> float:
        """The threshold of the clearest cell."""
        return float(np.quantile(np.concatenate(self._largest), 1 - alpha)) if self._largest else np.nan

    def p_values(self, correction: Correction) -> list[tuple[Several, Several]]:
        """Raw and corrected p, task by task."""
        p = np.where(np.isnan(self._observed), np.nan, np.maximum((self._own + 1) / (self._n + 1), self._least_p))
        adjusted = np.full(len(p), np.nan)
        if correction == "fdr":
            adjusted[self._members] = benjamini_hochberg(p[self._members])
        else:
            least = np.minimum(1.0, len(self._order) * self._least_p[self._order])
            adjusted[self._order] = np.maximum(np.maximum.accumulate((self._stepwise + 1) / (self._n + 1)), least)
        ends = np.cumsum(self._sizes)[:-1]
        return list(zip(np.split(p, ends), np.split(adjusted, ends), strict=True))


def benjamini_hochberg(p: Float[np.ndarray, " cell"]) -> Float[np.ndarray, " cell"]:
    """P-values corrected for the false discovery rate."""
    adjusted = np.full(p.shape, np.nan)
    tested = np.isfinite(p)
    if tested.any():
        adjusted[tested] = false_discovery_control(p[tested], method="bh")
    return adjusted
