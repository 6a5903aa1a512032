"""Is an effect larger than a minimum, or shown to be smaller? One test of both for every method.

1. **Shown**: the hypothesis "no more than the minimum, that way" is rejected. What is tested is the mean of
   ``value - minimum`` (of a rise) or ``value + minimum`` (of a drop) over units. The minimum is a number, or a share of
   the base run's metric, which is measured on the same units; it is never divided by.
2. **Absent**: the hypothesis "at least the minimum" is rejected, on either side (two one-sided tests).
3. Both by the studentised cluster bootstrap (``bootstrap.py``): ``mean / se`` against its distribution where the mean
   is just what the hypothesis allows. The cells of a task are drawn for together, tasks independently.
4. Family-wise (``p_adjusted``) over all cells, both sides and all tasks: the largest statistic of the family (max-T),
   step by step: what is rejected leaves the family of the rest. Shown and absent are a family each.
5. A cell of fewer than ``FEWEST_CLUSTERS`` clusters is no hypothesis: nobody decides it.
6. Where all clusters are alike, no resample shows a spread. Of counts of right answers, which lie within 1 of each
   other, that may be luck: the mean can be beyond the minimum only if a share of all clusters is of another kind, and p
   is at least the chance that none of these was drawn, times the number of cells where it is corrected. Attention and
   effects are the same to the last digit only where nothing that differs between clusters has a part in them.

Romano & Wolf (2005), "Exact and approximate stepdown methods for multiple hypothesis testing"; Westfall & Young (1993),
"Resampling-based multiple testing"; Schuirmann (1987) on two one-sided tests; Phipson & Smyth (2010) on the +1 that
keeps a p from being 0.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from interp.claims.bootstrap import FEWEST_CLUSTERS, Intervals, cluster_bootstrap, one_thread, studentised
from interp.claims.contributions import Contributions, contributions
from interp.claims.corrections import Correction, benjamini_hochberg
from interp.claims.units import Table, UnitTable
from interp.errors import InputError

Alternative = Literal["two-sided", "greater"]
State = Literal["rise", "drop", "none", "undecided"]
RESAMPLES = 10_000
"""Of a test, unless it is told otherwise; no p is below 1 / (1 + this)."""

Cells = Float[np.ndarray, " cell"]
Several = Float[np.ndarray, " _"]
"""Of several tasks, which have cells each."""
Draws = Float[np.ndarray, "resample cell"]
_TESTED = ("standard_error", "minimum", "p", "p_adjusted", "p_absent", "n_units", "n_clusters", "critical")


@dataclass(frozen=True)
class Measured:
    """One task's cells, and what they are held against.

    Attributes:
        values: Effects, or excesses.
        minimum: The smallest size that counts, not negative: a number, or one for every unit and cell, such as a share
            of the base run's metric.
        counted: Whether values are differences of shares of right answers, between -1 and 1; with ``"greater"`` only.
    """

    values: Table
    minimum: float | UnitTable = 0.0
    counted: bool = False


@dataclass(frozen=True)
class Claims:
    """What is claimed of one task's cells; NaN where a cell was not measured or nothing is known of its spread.

    Attributes:
        estimate: The mean over templates of their means.
        standard_error: Of the estimate, less the minimum: the larger, of the two sides.
        minimum: The mean of the minimum.
        p: That the mean is no larger than the minimum (two-sided: in size).
        p_adjusted: The same, corrected over the family; NaN where a cell is no hypothesis.
        p_absent: That the mean is at least as large as the minimum (two-sided: in size), corrected over the family; 1
            without a minimum.
        n_units: How many were measured.
        n_clusters: How many these come from.
        critical: What ``(estimate - minimum) / standard_error`` has to reach to be shown, or to be absent if that is
            more (where fewer cells are hypotheses), at the alpha that was asked for, before anything is: the same for
            all cells.
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
    critical: Cells
    values: Table
    seed: int

    @cached_property
    def interval(self) -> Intervals:
        """Of the estimates, 95 %."""
        return cluster_bootstrap(self.values, seed=self.seed)

    def frame(self, kind: str) -> pd.DataFrame:
        """All of it, one row a cell, in columns named after the `kind`: ``effect``, ``effect_low``, ``effect_p`` ..."""
        found = [self.estimate, self.interval.low, self.interval.high, *(getattr(self, name) for name in _TESTED)]
        return pd.DataFrame(dict(zip(self.columns(kind), found, strict=True)), index=self.values.cells)

    @staticmethod
    def columns(kind: str) -> list[str]:
        """The columns of ``frame``."""
        return [kind, *(f"{kind}_{name}" for name in ("low", "high", *_TESTED))]

    def states(self, alpha: float) -> list[State]:
        """What is shown of each cell at `alpha`: it rises, it drops, or it does neither by the minimum."""
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
    """Test every cell against its minimum, one family over all tasks.

    Args:
        measured: One a task.
        alternative: ``"greater"`` asks only for means above the minimum, and calls absent what is below it.
        correction: ``"max-T"`` bounds the chance of any false claim, ``"fdr"`` the expected share of them.
        hypotheses: Which cells may be shown, one mask a task; None for all.
        absences: Which cells may be absent; None for all.
        alpha: Of ``Claims.critical``.
        resamples: How often the clusters are drawn.
        seed: Of the draws.

    Returns:
        One a task, in order.

    Raises:
        InputError: A minimum is below 0, or no number.
    """
    sides = [_Sides.of(each, alternative) for each in measured]
    least = [each.least_p for each in sides]
    shown = _Family([each.shown for each in sides], [each for each, _ in least], _members(sides, hypotheses))
    absent = _Family([each.absent for each in sides], [each for _, each in least], _members(sides, absences))
    generators = np.random.default_rng(seed).spawn(len(sides))
    streams = [each.draws(resamples, own) for each, own in zip(sides, generators, strict=True)]
    with one_thread():
        for drawn in zip(*streams, strict=True):
            shown.count([each for each, _ in drawn])
            absent.count([each for _, each in drawn])
    critical = float(np.fmax(shown.critical(alpha), absent.critical(alpha)))
    return [
        _claims(each, side, one, other, critical, seed)
        for each, side, one, (_, other) in zip(
            measured, sides, shown.p_values(correction), absent.p_values(correction), strict=True
        )
    ]


def _members(sides: Sequence["_Sides"], asked: Sequence[Bool[np.ndarray, " _"]] | None) -> list[Bool[np.ndarray, " _"]]:
    """Which cells are hypotheses, task by task."""
    if asked is None:
        return [each.decidable for each in sides]
    return [each.decidable & one for each, one in zip(sides, asked, strict=True)]


def _claims(
    measured: Measured, sides: "_Sides", shown: tuple[Cells, Cells], absent: Cells, critical: float, seed: int
) -> Claims:
    return Claims(
        estimate=sides.estimate,
        standard_error=sides.standard_error,
        minimum=sides.minimum,
        p=shown[0],
        p_adjusted=shown[1],
        p_absent=absent,
        n_units=measured.values.n_units,
        n_clusters=measured.values.n_clusters,
        critical=np.full(len(sides.estimate), critical),
        values=measured.values,
        seed=seed,
    )


@dataclass(frozen=True)
class _Sides:
    """The contributions to a mean less its minimum, and to a mean plus it (None where nobody asks for a drop)."""

    estimate: Cells
    less: Contributions
    plus: Contributions | None
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
        less, plus = (
            Contributions(
                values.estimate - sign * size,
                values.values - sign * moved,
                values.measured,
                values.stratum,
                values.known,
            )
            for sign in (1, -1)
        )
        return cls(values.estimate, less, plus if alternative == "two-sided" else None, size, measured.counted)

    @property
    def decidable(self) -> Bool[np.ndarray, " cell"]:
        """Whether a cell is a hypothesis."""
        return self.less.known & (self.less.n_clusters >= FEWEST_CLUSTERS)

    @property
    def standard_error(self) -> Cells:
        """The larger of the two."""
        error = self.less.standard_error
        return error if self.plus is None else np.maximum(error, self.plus.standard_error)

    @property
    def shown(self) -> Cells:
        """How far a mean is beyond its minimum, in standard errors."""
        rise = _studentised(self.less)
        return rise if self.plus is None else np.maximum(rise, -_studentised(self.plus))

    @property
    def absent(self) -> Cells:
        """How far it stays below, on the side where it comes nearest."""
        below = -_studentised(self.less)
        found = below if self.plus is None else np.minimum(below, _studentised(self.plus))
        return np.where(self.minimum > 0, found, -np.inf)

    @property
    def least_p(self) -> tuple[Cells, Cells]:
        """Of shown and of absent: the chance to draw no cluster of another kind, where all are alike; else 0."""
        alike = self.standard_error <= 1e-9
        if not (self.counted and alike.any()):
            return np.zeros_like(self.estimate), np.zeros_like(self.estimate)
        above, below = self.less.estimate, -self.less.estimate
        # The share of clusters at the other end of the range that would bring the mean to the minimum.
        others = (above / np.maximum(1 + self.estimate, 1e-9), below / np.maximum(1 - self.estimate, 1e-9))
        shown, absent = ((1 - np.clip(each, 0.0, 1.0)) ** self.less.n_clusters for each in others)
        return np.where(alike, shown, 0.0), np.where(alike, absent, 0.0)

    def draws(self, resamples: int, generator: np.random.Generator) -> Iterator[tuple[Draws, Draws]]:
        """What ``shown`` and ``absent`` are where the mean is at the minimum, in blocks of resamples."""
        both = self.less if self.plus is None else _beside(self.less, self.plus)
        n_cells = len(self.minimum)
        for block in studentised(both, resamples, generator):
            rise = block[:, :n_cells]
            drop = -block[:, n_cells:] if self.plus is not None else rise
            yield np.maximum(rise, drop), np.maximum(-rise, -drop)


def _beside(one: Contributions, other: Contributions) -> Contributions:
    """Both as cells of one table, so that they are drawn for together."""
    estimate, known = (np.concatenate([getattr(each, name) for each in (one, other)]) for name in ("estimate", "known"))
    values, measured = (
        np.concatenate([getattr(each, name) for each in (one, other)], axis=1) for name in ("values", "measured")
    )
    return Contributions(estimate, values, measured, one.stratum, known)


def _studentised(found: Contributions) -> Cells:
    """The estimate in standard errors; infinite where it has none, and 0 where it is 0 then."""
    error = found.standard_error
    sure = np.where(found.estimate == 0, 0.0, np.copysign(np.inf, found.estimate))
    return np.divide(found.estimate, error, out=np.where(np.isnan(error), np.nan, sure), where=error > 0)


class _Family:
    """How often draws reach what was observed: cell by cell, and step by step over the family."""

    def __init__(
        self, observed: Sequence[Several], least_p: Sequence[Several], members: Sequence[Bool[np.ndarray, " _"]]
    ) -> None:
        self._sizes = [len(each) for each in observed]
        self._observed, self._least_p = np.concatenate(observed), np.concatenate(least_p)
        self._members = np.flatnonzero(np.concatenate(members))
        # Equal statistics reach each other whatever the order of the summation.
        self._threshold = self._observed - 1e-5 * np.maximum(np.abs(np.nan_to_num(self._observed)), 1.0)
        self._order = self._members[np.argsort(-self._observed[self._members], kind="stable")]
        self._own, self._stepwise = np.zeros(len(self._observed)), np.zeros(len(self._order))
        self._largest: list[np.ndarray] = []
        self._n = 0

    def count(self, drawn: Sequence[Float[np.ndarray, "resample _"]]) -> None:
        """Take in some resamples of all tasks."""
        every = np.concatenate(drawn, axis=1)
        self._n += len(every)
        self._own += (every >= self._threshold).sum(axis=0)
        if not len(self._order):
            return
        # The largest of a cell and all that are less clear than it.
        largest = np.maximum.accumulate(every[:, self._order[::-1]], axis=1)[:, ::-1]
        self._stepwise += (largest >= self._threshold[self._order]).sum(axis=0)
        self._largest.append(largest[:, 0])

    def critical(self, alpha: float) -> float:
        """What the clearest cell has to reach."""
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
