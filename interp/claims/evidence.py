"""One kind of evidence on one head: what it comes to by itself, and how many units would decide it.

Three kinds are means that are tested against a minimum (``claim.py``): attention beyond the best baseline, the effect
of ablation under each of two replacements, and the effect of exchanging the related word. The fourth, a probe's excess
over its toughest control, is tested in the same way over heads of a task.

**Units that decide.** A cell is shown or absent where it is ``critical`` standard errors clear of its minimum. With
power .8 it gets there if the truth is ``critical + z(.8)`` of them away. A head without any effect, and one with
**twice** the minimum, are one minimum away from it, so both are decided by
``n = n_now ((critical + z) se / minimum)^2`` units; one with **1.5** times the minimum needs four times as many. This
assumes that the spread stays as it was observed, and that new units come in new clusters. ``critical`` is that of what
is shown or of what is absent, whichever asks for more, by max-T.

Cohen (1988), "Statistical power analysis for the behavioral sciences", chapter 2.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from scipy.stats import norm

from interp.claims.bootstrap import FEWEST_CLUSTERS

AttentionState = Literal["shown", "none", "not testable", "undecided"]
EffectState = Literal["drop", "rise", "none", "disagree", "undecided"]
ExchangeState = Literal["drop", "rise", "none", "not testable", "undecided"]
RepresentationState = Literal["carried", "none", "not testable", "undecided"]


@dataclass(frozen=True)
class Evidence:
    """One kind of evidence on one head; the columns of ``Claims.frame``."""

    estimate: float  # excess attention, an effect (a drop is negative), or the excess of a probe
    minimum: float  # the smallest size that counts, positive
    standard_error: float  # of the estimate, less the minimum; NaN where it is not known
    p_adjusted: float  # of "no larger than the minimum"; NaN where that was not tested
    p_absent: float  # of "at least as large as the minimum", corrected
    critical: float  # standard errors beyond the minimum that the test asks for
    n_units: float  # number of measured units
    n_clusters: float  # their lexical draws; 0 where nothing was measured

    @classmethod
    def of(cls, row: Mapping[str, Any], kind: str) -> "Evidence":
        """Read one kind from a row with the columns of ``Claims.frame``."""
        names = ("minimum", "standard_error", "p_adjusted", "p_absent", "critical", "n_units", "n_clusters")
        return cls(row[kind], *(row[f"{kind}_{name}"] for name in names))

    @property
    def measured(self) -> bool:
        """Whether there is any of it."""
        return self.n_clusters > 0

    @property
    def decidable(self) -> bool:
        """Whether there is enough to judge at all."""
        return self.n_clusters >= FEWEST_CLUSTERS and not math.isnan(self.standard_error)

    def effect(self, alpha: float) -> Literal["drop", "rise", "none", "undecided"]:
        """Judge an effect, which can be on either side of 0."""
        if self.decidable and self.p_adjusted <= alpha:
            return "drop" if self.estimate < 0 else "rise"
        return "none" if self.decidable and self.p_absent <= alpha else "undecided"

    def exchange(self, alpha: float) -> ExchangeState:
        """Judge the effect of exchanging the related word."""
        return self.effect(alpha) if self.measured else "not testable"

    def excess(self, alpha: float) -> Literal["shown", "none", "not testable", "undecided"]:
        """Judge an excess, which only counts above 0."""
        if not self.measured:
            return "not testable"
        if not self.decidable:
            return "undecided"
        if self.p_adjusted <= alpha:
            return "shown"
        return "none" if self.p_absent <= alpha else "undecided"

    def representation(self, *, selective: bool, has_room: bool, alpha: float) -> RepresentationState:
        """Judge a probe's excess over its toughest control.

        `selective` is whether its selectivity is shown to be above 0, `has_room` whether the control can be exceeded by
        the minimum.
        """
        state = self.excess(alpha)
        if self.measured and not self.decidable:
            return "undecided"
        if not has_room or state == "not testable":
            return "not testable"
        if state == "shown":
            return "carried" if selective else "undecided"
        return state

    def units_to_decide(self) -> float:
        """Units that decide a head without an effect, or with twice the minimum, with power .8.

        Never fewer than the clusters ask for. Where that many were measured already, the estimate lies close to the
        minimum; then the two have to be told apart. NaN where that would take no more units than there are: what more
        of them would show is not known.
        """
        needed = self._required(self.minimum)
        if self.n_clusters < FEWEST_CLUSTERS:
            if self.n_clusters == 1 < self.n_units:
                return math.nan  # a task whose units are all one cluster would put the next there, too
            # Some new units come in clusters that are there. If the spread is unknown (NaN), clusters decide.
            clusters = math.ceil(1.25 * self.n_units * FEWEST_CLUSTERS / self.n_clusters)
            return float(clusters if math.isnan(needed) else max(needed, clusters))
        if needed <= self.n_units:
            needed = self._required(abs(self.minimum - abs(self.estimate)))
        return needed if needed > self.n_units else math.nan

    def _required(self, distance: float) -> float:
        return required_units(self.standard_error, int(self.n_units), distance, critical=self.critical)


def joint_state(resample: EffectState, mean: EffectState) -> EffectState:
    """The effect of ablation under two replacements: what both show, ``disagree``, or ``undecided``."""
    if resample == mean:
        return resample
    return "undecided" if "undecided" in (resample, mean) else "disagree"


def required_units(
    standard_error: float, n_units: int, minimum: float, *, critical: float, power: float = 0.8
) -> float:
    """Units that decide a cell, with this `power`, whose effect is none, or twice the minimum; NaN if that is unknown.

    `standard_error` is that of the mean over the present units, less the minimum, `critical` as in ``Claims``.

    Example:
        >>> from interp.claims.evidence import required_units
        >>> required_units(standard_error=0.3, n_units=40, minimum=0.6, critical=2.8)
        133.0
    """
    if not (math.isfinite(standard_error) and standard_error > 0 and minimum > 0 and math.isfinite(critical)):
        return math.nan
    return float(math.ceil(n_units * ((critical + norm.ppf(power)) * standard_error / minimum) ** 2))
