"""Screening: cells are ranked by gradients, and a random sample of the others says what was missed.

1. Every cell is estimated (``attribution.py``) and ranked by the size of its mean over balanced units.
2. The first ``top`` cells are measured exactly, and so is an ``audit``: a simple random sample of the others.
3. **Recall**: of the k cells whose exact effects are truly the largest of all, the share that is among the k of the
   top. Its estimate walks down the exact effects of the top, which count once, and of the audit, which stand for
   (others / audit) cells each, until they stand for k. Where effects are equal, those of the top count first.
4. Its interval is Clopper and Pearson's, for a sample without replacement (hypergeometric). Where the cut through
   the true ranking leaves h cells of the top above it, k - h of the others are there too: every h is kept for which the
   number of audited cells above the cut is not too few and not too many. No threshold is estimated, so the
   interval covers at its level whatever the estimates are worth; an audit of all others gives the recall itself.

Clopper & Pearson (1934); Buonaccorsi (1987), "A note on confidence intervals for proportions in finite populations".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy import stats

from interp.arguments import is_whole
from interp.claims.units import estimates
from interp.errors import InputError
from interp.interventions.sweep import SweepResult
from interp.methods.attribution import AttributionResult
from interp.options import GradientMethod
from interp.result import Result

TOP, AUDIT, UNMEASURED = "top", "audit", "not measured"
SHARE = 0.1
"""Share of the cells that is measured for being first, and for the audit: a fifth of a full sweep together.

Of 2,880 cells the audit then tells recall to about a tenth; of a few hundred it tells little, and the screen saves
little: measure them all.
"""

Top = Float[np.ndarray, " top"]
Audit = Float[np.ndarray, " audit"]


@dataclass(frozen=True)
class Recall:
    """How much of what was sought is in the top.

    Attributes:
        sought: How many cells were sought: the largest of all.
        estimate: Their share that is in the top, from 0 to 1; NaN where cells were left out and none was audited.
        low: Where its 95 % interval begins.
        high: Where it ends.
    """

    sought: int
    estimate: float
    low: float
    high: float


@dataclass(frozen=True, eq=False, repr=False)
class Screen(Result):
    """What a screen estimated, chose and found.

    Attributes:
        examples: One row per cell and example: the labels of both, and ``estimate``.
        provenance: How the exact effects were made.
        cells: One row per cell: its labels, ``estimate`` (by gradients) and ``effect`` (exact; NaN where it was not
            measured), both means over balanced units, and ``chosen``: ``top``, ``audit`` or ``not measured``.
        method: How the cells were estimated.
        completeness: See ``AttributionResult``; empty without integrated gradients.
        complete: Whether the chosen cells were measured on all examples, as the estimates were made; an interrupted
            sweep tells no recall.
    """

    cells: pd.DataFrame
    method: GradientMethod
    completeness: Mapping[str, float]
    complete: bool = True

    shown_by: ClassVar[str] = "results.effects"

    def summary(self) -> pd.DataFrame:
        """One row per cell, measured or not: ``cells``."""
        return self.cells

    def recall(self, sought: int | None = None, *, confidence: float = 0.95) -> Recall:
        """Of the `sought` cells with the largest exact effects, the share that is in the top.

        Args:
            sought: At most as many as are in the top; None for as many.
            confidence: How often the interval covers the truth.

        Returns:
            The share, from 0 to 1, with its interval.

        Raises:
            InputError: Fewer than one cell is sought, or more than the top has.
        """
        size = self.cells["effect"].abs().fillna(0.0)
        top, audit = (size[self.cells["chosen"] == which].to_numpy() for which in (TOP, AUDIT))
        found = recall(top, audit, len(size) - len(top), sought=sought, confidence=confidence)
        return found if self.complete else Recall(found.sought, np.nan, np.nan, np.nan)

    @property
    def correlation(self) -> float:
        """Pearson's, of estimates and exact effects over the audit; NaN where that has no spread."""
        audit = self.cells[self.cells["chosen"] == AUDIT]
        if min(audit["estimate"].nunique(), audit["effect"].nunique()) < 2:
            return float("nan")
        return float(np.corrcoef(audit["estimate"], audit["effect"])[0, 1])

    def facts(self) -> dict[str, Any]:
        """The screen in a few plain values."""
        found, chosen = self.recall(), self.cells["chosen"].value_counts()
        return {
            "method": self.method,
            "cells": len(self.cells),
            "top": int(chosen.get(TOP, 0)),
            "audit": int(chosen.get(AUDIT, 0)),
            "correlation": self.correlation,
            "recall": found.estimate,
            "recall_low": found.low,
            "recall_high": found.high,
            **({"completeness": dict(self.completeness)} if self.completeness else {}),
        }


@dataclass(frozen=True)
class Choice:
    """Numbers of the cells to be measured: those first by their estimates, and those drawn of the others."""

    estimated: AttributionResult
    top: Int[np.ndarray, " top"]
    audit: Int[np.ndarray, " audit"]

    @property
    def measured(self) -> list[int]:
        """Both, in the cells' order."""
        return sorted([*self.top.tolist(), *self.audit.tolist()])

    def judge(self, exact: SweepResult) -> Screen:
        """Compare the estimates with the exact effects of the chosen cells."""
        table = exact.table("effect")
        effects = pd.DataFrame({"effect": estimates(table)}, index=table.cells).reset_index()
        frame = self.estimated.means().merge(effects, how="left", on=list(self.estimated.labels))
        frame["chosen"] = UNMEASURED
        frame.loc[self.top, "chosen"], frame.loc[self.audit, "chosen"] = TOP, AUDIT
        frame["effect"] = frame["effect"].where(frame["chosen"] != UNMEASURED)
        complete = bool(exact.provenance["complete"]) and not frame.loc[self.measured, "effect"].isna().any()
        how = self.estimated.provenance
        completeness = how.get("completeness", {})
        return Screen(self.estimated.examples, exact.provenance, frame, how["method"], completeness, complete)


def choose(
    estimated: AttributionResult, *, top: int | float = SHARE, audit: int | float = SHARE, seed: int = 0
) -> Choice:
    """Choose what is measured exactly.

    Args:
        estimated: Every cell.
        top: How many cells: a whole number, or as a float the share of all cells, rounded up.
        audit: Likewise how many of the others are drawn, or all of these where they are fewer.
        seed: Of the draw.
    """
    size = estimated.means()["estimate"].abs().to_numpy()
    first = _number("top", top, len(size))
    ranking = np.argsort(-size, kind="stable")
    others = ranking[first:]
    drawn = min(_number("audit", audit, len(size)), len(others))
    sample = np.random.default_rng(seed).choice(others, size=drawn, replace=False)
    return Choice(estimated, ranking[:first], sample)


def _number(name: str, asked: Any, n_cells: int) -> int:
    if is_whole(asked) and asked >= 1:
        return min(int(asked), n_cells)
    if isinstance(asked, Real) and not isinstance(asked, Integral) and 0 < float(asked) <= 1:
        share: Any = asked
        return ceil(share * n_cells)  # in the share's own precision
    raise InputError(f"{name}: expected a number of cells from 1, or a share above 0.0 and up to 1.0, got {asked!r}")


def recall(top: Top, audit: Audit, n_others: int, *, sought: int | None = None, confidence: float = 0.95) -> Recall:
    """Estimate how many of the `sought` largest of all cells are in the top; see the module's docstring.

    `top` and `audit` have the sizes of the exact effects of all cells in the top, and of those that were drawn, without
    replacement, from the `n_others`.
    """
    n = len(top) if sought is None else sought
    if not 1 <= n <= len(top):
        raise InputError(f"sought: expected 1 to {len(top)}, which is how many cells the top has, got {n}")
    low, high = _kept(np.sort(top)[::-1], audit, n_others, n, (1 - confidence) / 2)
    unknown = n_others > 0 and not len(audit)
    return Recall(n, float("nan") if unknown else _found(top, audit, n_others, n) / n, low / n, high / n)


def _found(top: Top, audit: Audit, n_others: int, n: int) -> int:
    """How many cells of the top are among the largest `n`, where each audited cell stands for several."""
    each_stands_for = n_others / len(audit) if len(audit) else 0.0
    size, weight = np.concatenate([top, audit]), np.repeat([1.0, each_stands_for], [len(top), len(audit)])
    order = np.argsort(-size, kind="stable")
    last = int(np.argmax(np.cumsum(weight[order]) > n - 1e-6))
    return int((order[: last + 1] < len(top)).sum())


def _kept(falling: Top, audit: Audit, n_others: int, n: int, tail: float) -> tuple[int, int]:
    """The fewest and the most of the largest `n` that may be in the top."""
    hits = np.arange(max(0, n - n_others), n + 1)
    bounds = np.concatenate([[np.inf], falling, [-np.inf]])
    # With h cells of the top above it, the cut is between the h-th and the next.
    fewest, most = ((audit[:, None] > bounds[hits + step]).sum(axis=0) for step in (0, 1))
    above = stats.hypergeom(max(n_others, 1), n - hits, len(audit))  # SciPy knows no sample of nothing
    kept = hits[(above.cdf(most) >= tail) & (above.sf(fewest - 1) >= tail)]
    return int(kept.min()), int(kept.max())
