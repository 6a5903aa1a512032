"""What is known of one head by one kind of evidence, and what does it come to by itself?

Three kinds are means that are held against a minimum and tested by the same test (``claim.py``): attention beyond the
best baseline, the effect of ablation under each of two replacements, and the effect of exchanging the related word. The
fourth, a probe's excess over its toughest control, is tested in the same way over heads of a task.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from interp.claims.bootstrap import FEWEST_CLUSTERS
from interp.claims.power import required_units

AttentionState = Literal["shown", "none", "not testable", "undecided"]
EffectState = Literal["drop", "rise", "none", "disagree", "undecided"]
ExchangeState = Literal["drop", "rise", "none", "not testable", "undecided"]
RepresentationState = Literal["carried", "none", "not testable", "undecided"]


@dataclass(frozen=True)
class Evidence:
    """One kind of evidence on one head.

    Attributes:
        estimate: Excess attention, an effect (a drop is negative), or the excess of a probe.
        minimum: The smallest size that counts, positive.
        standard_error: Of the estimate, less the minimum; NaN where its spread is not known.
        p_adjusted: That it is no larger than the minimum; NaN where that was not tested.
        p_absent: That it is at least as large as the minimum, corrected.
        critical: Standard errors beyond the minimum that the test asks for.
        n_units: How many were measured.
        n_clusters: Lexical draws behind it; 0 where nothing was measured.
    """

    estimate: float
    minimum: float
    standard_error: float
    p_adjusted: float
    p_absent: float
    critical: float
    n_units: float
    n_clusters: float

    @classmethod
    def of(cls, row: Mapping[str, Any], kind: str) -> "Evidence":
        """A kind of evidence that stands in the columns of ``Claims.frame``."""
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
        """Judge an effect."""
        if not self.decidable:
            return "undecided"
        if self.p_adjusted <= alpha:
            return "drop" if self.estimate < 0 else "rise"
        return "none" if self.p_absent <= alpha else "undecided"

    def excess(self, alpha: float) -> Literal["shown", "none", "not testable", "undecided"]:
        """Judge what is only asked whether it is above its minimum."""
        if not self.measured:
            return "not testable"
        if not self.decidable:
            return "undecided"
        if self.p_adjusted <= alpha:
            return "shown"
        return "none" if self.p_absent <= alpha else "undecided"

    def units_to_decide(self) -> float:
        """Units that decide a head without an effect, or with twice the minimum, with power .8 (``power.py``).

        Never fewer than the clusters ask for. Where that many were measured already, the estimate lies close to the
        minimum; then what has to be told apart is the two of them. NaN where that would take no more than there are:
        what more of them would show is not known.
        """
        needed = required_units(self.standard_error, int(self.n_units), self.minimum, critical=self.critical)
        if self.n_clusters < FEWEST_CLUSTERS:
            if self.n_clusters == 1 < self.n_units:
                return math.nan  # who puts all units into one cluster would put the next there, too
            # Some units come in clusters that are there. An unknown spread (NaN) leaves these to decide.
            clusters = math.ceil(1.25 * self.n_units * FEWEST_CLUSTERS / self.n_clusters)
            return float(clusters if math.isnan(needed) else max(needed, clusters))
        if needed <= self.n_units:
            gap = abs(self.minimum - abs(self.estimate))
            needed = required_units(self.standard_error, int(self.n_units), gap, critical=self.critical)
        return needed if needed > self.n_units else math.nan


def effect_state(resample: Evidence, mean: Evidence, alpha: float) -> EffectState:
    """What ablation comes to under two replacements: what both show, or that they disagree, or nothing.

    Args:
        resample: The head's output replaced by that of another reference example.
        mean: By the reference examples' mean at the position, or of the template.
        alpha: Error rate.
    """
    return joint_state(resample.effect(alpha), mean.effect(alpha))


def joint_state(resample: EffectState, mean: EffectState) -> EffectState:
    """As ``effect_state``, of what either comes to by itself."""
    if resample == mean:
        return resample
    return "undecided" if "undecided" in (resample, mean) else "disagree"


def exchange_state(exchange: Evidence, alpha: float) -> ExchangeState:
    """What exchanging the related word comes to, for this head only."""
    return exchange.effect(alpha) if exchange.measured else "not testable"


def representation_state(probe: Evidence, *, selective: bool, has_room: bool, alpha: float) -> RepresentationState:
    """What a probe comes to.

    Args:
        probe: The excess over the toughest control; without clusters where nothing was probed.
        selective: Whether the selectivity is shown to be above 0.
        has_room: Whether the toughest control leaves the minimum to be better by.
        alpha: Error rate.
    """
    state = probe.excess(alpha)
    if state == "undecided" and not probe.decidable:
        return "undecided"
    if not has_room or state == "not testable":
        return "not testable"
    if state == "shown":
        return "carried" if selective else "undecided"
    return state
