"""What do attention and ablation together say about a head? A truth table, strict and total.

Each kind of evidence is first judged by itself, against its minimum effect:

- **attention** is *shown* if its corrected p is at most alpha and the excess over the baseline is at
  least the minimum; *none* if the whole interval lies below the minimum (looking *less* at the
  related word than at a baseline is not attending, however much less); *not testable* if no example
  could be scored; else *undecided*.
- **effect** is a *drop* or a *rise* if its corrected p is at most alpha and the mean effect is at
  least the minimum that way; *none* if it is shown to be smaller than the minimum on either side (a share of
  the base run's metric, which is an estimate too: the interval is that of ``effect +- share * base``);
  else *undecided*.
- Fewer than 20 clusters, or no interval because a template has a single cluster: that kind is undecided. If
  it is the effect, or if the base run is not above chance (its interval touches 0), the verdict is undecided.
- Corrected p bound the chance of a false *shown*, *drop* or *rise* over all heads and tasks, for each kind of
  evidence. Absence is judged by one 95 % interval for each head.

Then, rows are the effect, columns the attention:

=========  ======================  ===========  ============  ===========
effect     shown                   none         not testable  undecided
=========  ======================  ===========  ============  ===========
drop       attends and causal [1]  causal only  causal only   causal only
rise       opposes                 opposes      opposes       opposes
none       attends only            none         none          undecided
undecided  undecided               undecided    undecided     undecided
=========  ======================  ===========  ============  ===========

[1] Only if the joint claim passes as well: the larger of the two raw p, Holm-corrected; else
``causal only``, with the reason. ``causal only`` therefore means that a drop is proven and attention
is not; the reason says whether attention was shown to be absent. ``attends only`` and ``none``
claim an absence of effect and need it shown: not finding one is not enough.
"""

import math
from dataclasses import dataclass
from typing import Literal

from interp.stats.intervals import FEWEST_CLUSTERS

Verdict = Literal["attends and causal", "attends only", "causal only", "opposes", "none", "undecided"]
AttentionState = Literal["shown", "none", "not testable", "undecided"]
EffectState = Literal["drop", "rise", "none", "undecided"]


@dataclass(frozen=True)
class Evidence:
    """One kind of evidence on one head.

    Attributes:
        estimate: Excess attention, or the effect of ablation (a drop is negative).
        standard_error: Of the estimate; NaN where its spread is not known, so that it has no interval.
        absent: Whether it is shown to be smaller than the minimum.
        q: Corrected p.
        minimum: The smallest size that counts, positive.
        n_clusters: Lexical draws behind it; 0 where nothing was measured.
    """

    estimate: float
    standard_error: float
    absent: bool
    q: float
    minimum: float
    n_clusters: int

    @property
    def decidable(self) -> bool:
        """Whether there is enough to judge at all."""
        return self.n_clusters >= FEWEST_CLUSTERS and not math.isnan(self.standard_error)


def attention_state(evidence: Evidence, alpha: float) -> AttentionState:
    """Judge the attention by itself."""
    if evidence.n_clusters == 0:
        return "not testable"
    if not evidence.decidable:
        return "undecided"
    if evidence.q <= alpha and evidence.estimate >= evidence.minimum:
        return "shown"
    return "none" if evidence.absent else "undecided"


def effect_state(evidence: Evidence, alpha: float) -> EffectState:
    """Judge the effect of ablation by itself."""
    if not evidence.decidable:
        return "undecided"
    if evidence.q <= alpha and abs(evidence.estimate) >= evidence.minimum:
        return "drop" if evidence.estimate < 0 else "rise"
    return "none" if evidence.absent else "undecided"


def judge(
    attention: Evidence, effect: Evidence, *, joint_q: float, above_chance: bool, alpha: float
) -> tuple[Verdict, str]:
    """The verdict, and the reason where it is undecided or hides something; see the module.

    Args:
        attention: Excess attention.
        effect: Effect of ablation.
        joint_q: Corrected p of the joint claim; NaN where attention is not testable.
        above_chance: Whether the base run's interval lies above 0.
        alpha: Error rate.
    """
    if effect.n_clusters < FEWEST_CLUSTERS:
        return "undecided", f"{effect.n_clusters} clusters; at least {FEWEST_CLUSTERS} are needed"
    if not effect.decidable:
        return "undecided", "a template has a single cluster, so no interval is known"
    if not above_chance:
        return "undecided", "the unablated model is not above chance on this task"
    looks, does = attention_state(attention, alpha), effect_state(effect, alpha)
    if does == "rise":
        return "opposes", ""
    if does == "drop":
        if looks == "shown" and joint_q <= alpha:
            return "attends and causal", ""
        return "causal only", {
            "shown": f"attention and effect pass alone, but not together (joint q {joint_q:.3g})",
            "none": "",
            "not testable": "attention is not testable",
            "undecided": "attention is undecided",
        }[looks]
    if does == "none":
        if looks == "undecided":
            return "undecided", "attention is undecided"
        if looks == "shown":
            return "attends only", ""
        return "none", "attention is not testable" if looks == "not testable" else ""
    return "undecided", {
        "shown": "attention is shown, the effect is undecided",
        "none": "the effect is undecided",
        "not testable": "attention is not testable, the effect is undecided",
        "undecided": "attention and effect are undecided",
    }[looks]
