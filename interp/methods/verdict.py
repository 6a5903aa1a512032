"""What do attention, ablation and probes together say about a head? A truth table, strict and total.

Each kind of evidence is first judged by itself, against its minimum effect:

- **attention** is *shown* if its corrected p is at most alpha and the excess over the baseline is at
  least the minimum; *none* if the whole interval lies below the minimum (looking *less* at the
  related word than at a baseline is not attending, however much less); *not testable* if no example
  could be scored, or the baseline is the related word itself too often to leave the minimum to be better by; else
  *undecided*.
- **effect** is a *drop* or a *rise* if its corrected p is at most alpha and the mean effect is at
  least the minimum that way; *none* if it is shown to be smaller than the minimum on either side (a share of
  the base run's metric, which is an estimate too: the interval is that of ``effect +- share * base``);
  else *undecided*.
- **representation**: the task's feature is *carried* if the probe's corrected p is at most alpha, its excess over the
  toughest control at least the minimum, and its selectivity's interval above 0; it is *used* if, beyond that, erasing
  it there is a drop, too: by the minimum effect at least, and by as much more than erasing random directions (which
  are taken as they were drawn), and told apart from both; it is *unused* if erasing it is shown to do less than the
  minimum, as *none* is of an effect. It is *none* if the excess is shown to be less than the minimum, whichever control
  is the toughest; *not testable* if the task has no feature or too few clusters or values of it, the probes were left
  out, or a control leaves less than the minimum to be better by; else *undecided*.
- Fewer than 20 clusters, or no interval because a template has a single cluster: that kind is undecided. If
  it is the effect, or if the base run is not above chance (its interval touches 0), the verdict is undecided.
- Corrected p bound the chance of a false *shown*, *drop*, *rise* or *carried* over all heads and tasks, for each kind
  of evidence. Absence is judged by one 95 % interval for each head.

- **specificity**: of a head whose ablation is a drop. It is *general* if it is a drop on every other task, too, and on
  some task the head is shown not to look at the related word: it hurts whatever the task. *Specific* if another task
  is spared (shown to lose less than the minimum, or to gain), or if the head looks at the related word on all of them.
  *Not testable* with fewer than two other tasks that the model can do; else *undecided*.
- **what it finds at the related word**: of a head whose attention is shown and whose ablation is a drop, the effect of
  ablating its values there alone (``related_effect.py``): a *drop*, a *rise*, *none* or *undecided*, as above, but of
  the p that is not corrected yet. *Not testable* where heads share their values, or the word is in the answer.
- **partners**: the heads with which it hides an effect: ablated together, the two cost the task, and more than one by
  one, and neither is missed alone (``methods/partners.py``). Where that is undecided, so is what looks or carries and
  has no effect. A verdict that it does nothing says so if the head stands in for one that the task does need, or was
  not ablated with others.

Then, rows are the effect, columns the attention:

| effect    | shown                  | none                     | not testable | undecided |
|-----------|------------------------|--------------------------|--------------|-----------|
| drop      | attends and causal [1] | causal, by another route | causal       | undecided |
| rise      | opposes                | opposes                  | opposes      | opposes   |
| none      | attends, not causal    | none [2]                 | none [2]     | undecided |
| undecided | undecided              | undecided                | undecided    | undecided |

A drop is ``general`` where its specificity is, whatever the attention; what is shown to have no effect is ``redundant``
where the head has partners.

[1] Only if what it finds at the related word is a drop, too (or not testable), and the joint claim passes: the largest
of the raw p, Holm-corrected; else ``undecided``, with the reason. Where what it finds there is none or a rise, it is
``causal, by another route``: it looks at the related word, and what it finds there does not count.

Where what it finds is a drop, the feature is used there, the head is specific, and the claim of all kinds passes (the
largest of the raw p of attention, both effects, probe and erasure, Holm-corrected), the verdict is ``tracks``; where
too few tasks were asked to say whether it is specific, with that reason.

[2] ``encodes, unused`` where the feature is unused: the head holds what nothing needs there. ``undecided`` where the
probe is, or where the feature is carried and nothing is known of its use.

Where erasing the feature costs what ablating the head does not, the verdict is ``undecided``.

``attends, not causal``, ``encodes, unused``, ``causal, by another route`` and ``none`` claim an absence and need it
shown: not finding a thing is not enough. ``undecided`` always has a reason.
"""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from interp.stats.intervals import FEWEST_CLUSTERS

Verdict = Literal[
    "tracks",
    "attends and causal",
    "causal, by another route",
    "causal",
    "redundant",
    "general",
    "attends, not causal",
    "opposes",
    "encodes, unused",
    "undecided",
    "none",
]
AttentionState = Literal["shown", "none", "not testable", "undecided"]
EffectState = Literal["drop", "rise", "none", "undecided"]
RepresentationState = Literal["used", "carried", "unused", "none", "not testable", "undecided"]
RelatedState = Literal["drop", "rise", "none", "not testable", "undecided"]
Specificity = Literal["specific", "general", "not testable", "undecided"]


ORDER: tuple[Verdict, ...] = get_args(Verdict)
"""What claims most comes first."""
FINDINGS = ORDER[: ORDER.index("encodes, unused")]
"""Verdicts that claim something of a head's attention or its effect: they earn it a card."""
READABLE = ("used", "carried", "unused")
"""States of a representation in which a probe reads the feature."""
UNRELATED = "what it finds at the related word is worth less than the minimum"
NO_VALUES = "what it finds at the related word is not testable: it cannot be ablated by itself"
FEW_TASKS = "whether it is about this task is not testable: fewer than two others that the model can do"


@dataclass(frozen=True)
class Evidence:
    """One kind of evidence on one head.

    Attributes:
        estimate: Excess attention, the effect of ablation (a drop is negative), or the excess of a probe.
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


def related_state(evidence: Evidence, alpha: float) -> RelatedState:
    """Judge the effect of what a head finds at the related word by itself."""
    return "not testable" if evidence.n_clusters == 0 else effect_state(evidence, alpha)


@dataclass(frozen=True)
class Representation:
    """What probes and erasure say of one head.

    Attributes:
        probe: The excess over the toughest control; without clusters where nothing was probed.
        selective: Whether the interval of the selectivity lies above 0.
        has_room: Whether the toughest control leaves the minimum to be better by.
        erasure_effect: Of erasing the feature; NaN where it was not erased.
        erasure_random: Of erasing random directions.
        erasure_p: That it is no drop, or not a larger one than erasing random directions is; uncorrected.
        erasure_absent: Whether erasing the feature is shown to do less than the minimum.
        minimum_effect: The smallest size of an effect that counts, positive.
    """

    probe: Evidence
    selective: bool
    has_room: bool
    erasure_effect: float
    erasure_random: float
    erasure_p: float
    erasure_absent: bool
    minimum_effect: float

    def used(self, alpha: float) -> bool:
        """Whether erasing the feature is shown to cost enough."""
        least = max(self.erasure_effect, self.erasure_effect - self.erasure_random)
        return self.erasure_p <= alpha and least <= -self.minimum_effect


def representation_state(evidence: Representation, alpha: float) -> RepresentationState:
    """Judge probe and erasure by themselves."""
    probe = evidence.probe
    if probe.n_clusters == 0:
        return "not testable"
    if not probe.decidable:
        return "undecided"
    if not evidence.has_room:
        return "not testable"
    if probe.q <= alpha and probe.estimate >= probe.minimum and evidence.selective:
        if evidence.used(alpha):
            return "used"
        return "unused" if evidence.erasure_absent else "carried"
    return "none" if probe.absent else "undecided"


@dataclass(frozen=True)
class States:
    """What each kind of evidence comes to by itself, and what other tasks and heads say.

    Attributes:
        attention: Where it looks.
        effect: What its ablation does.
        representation: What is known of the feature there.
        specificity: Whether it is about this task; of a drop.
        related: What ablating its values at the related word alone does; of a drop that attends.
        partners: The heads that stand in for it, such as ``1.3``.
        doubtful: Heads of which it is undecided whether they stand in for it.
        caveat: What else pairs say, for a verdict that the head does nothing.
    """

    attention: AttentionState
    effect: EffectState
    representation: RepresentationState
    specificity: Specificity = "not testable"
    related: RelatedState = "not testable"
    partners: tuple[str, ...] = ()
    doubtful: tuple[str, ...] = ()
    caveat: str = ""


def judge(states: States, *, joint_q: float, tracks_q: float, alpha: float) -> tuple[Verdict, str]:
    """The verdict on a head of a model that can do the task, and the reason where it hides something; see the module.

    Args:
        states: The evidence.
        joint_q: Corrected p of the joint claim of attention and effects; NaN where attention is not testable.
        tracks_q: Corrected p of the claim of all kinds; NaN where one of them is not testable.
        alpha: Error rate.
    """
    if states.effect == "rise":
        return "opposes", ""
    if states.effect == "drop":
        return _of_a_drop(states, joint_q, tracks_q, alpha)
    if states.effect == "none":
        return ("redundant", states.caveat) if states.partners else _without_effect(states)
    return "undecided", {
        "shown": "attention is shown, the effect is undecided",
        "none": "the effect is undecided",
        "not testable": "attention is not testable, the effect is undecided",
        "undecided": "attention and effect are undecided",
    }[states.attention]


def undecidable(effect: Evidence, above_chance: bool) -> str:
    """Why nothing can be said of a task's heads; empty where something can.

    Args:
        effect: Of ablation.
        above_chance: Whether the base run's interval lies above 0.
    """
    if effect.n_clusters < FEWEST_CLUSTERS:
        return f"{effect.n_clusters} clusters; at least {FEWEST_CLUSTERS} are needed"
    if not effect.decidable:
        return "a template has a single cluster, so no interval is known"
    return "" if above_chance else "the unablated model is not above chance on this task"


def _of_a_drop(states: States, joint_q: float, tracks_q: float, alpha: float) -> tuple[Verdict, str]:
    if states.specificity == "general":
        return "general", ""
    if states.attention == "none":
        return "causal, by another route", ""
    if states.attention == "not testable":
        return "causal", "attention is not testable"
    if states.attention == "undecided":
        return "undecided", "the task needs the head, and its attention is undecided"
    if states.related in ("none", "rise"):
        return "causal, by another route", UNRELATED
    if states.related == "undecided":
        return "undecided", "whether the task needs what it finds at the related word is undecided"
    if not joint_q <= alpha:
        return "undecided", f"attention and effects pass alone, but not together (joint q {joint_q:.3g})"
    if states.related == "not testable":
        return "attends and causal", NO_VALUES
    if states.representation == "used" and tracks_q <= alpha and states.specificity != "undecided":
        return "tracks", "" if states.specificity == "specific" else FEW_TASKS
    return "attends and causal", _short_of_tracking(states, tracks_q, alpha)


def _short_of_tracking(states: States, tracks_q: float, alpha: float) -> str:
    """What a head lacks that attends and is causal."""
    if states.representation == "used" and tracks_q <= alpha:
        return "whether other tasks are spared is undecided"
    return {
        "used": f"attention, effects, probe and erasure pass alone, but not together (q {tracks_q:.3g})",
        "carried": "the feature can be read there, but erasing it is not shown to cost enough",
        "unused": "the feature can be read there, but erasing it does less than the minimum",
        "none": "the feature cannot be read there beyond its controls",
        "not testable": "",
        "undecided": "the probe is undecided",
    }[states.representation]


def _without_effect(states: States) -> tuple[Verdict, str]:
    """Of a head whose ablation is shown to do nothing that counts."""
    unseen = "attention is not testable" if states.attention == "not testable" else ""
    open_question = _open_question(states)
    if open_question:
        return "undecided", "; ".join(filter(None, (open_question, unseen)))
    if states.attention == "shown":
        return "attends, not causal", states.caveat
    if states.representation == "unused":
        return "encodes, unused", "; ".join(filter(None, (unseen, states.caveat)))
    return "none", unseen


def _open_question(states: States) -> str:
    """What is not known of a head without an effect, if it matters; else empty."""
    if states.attention == "undecided":
        return "attention is undecided"
    if states.representation == "used":
        return "erasing the feature costs the task, and ablating the head does not"
    if states.representation == "undecided" and states.attention != "shown":
        return "the probe is undecided"
    if states.representation == "carried" and states.attention != "shown":
        return "the feature can be read there, and whether erasing it costs the task is undecided"
    return f"whether {states.doubtful[0]} stands in for it is undecided" if states.doubtful else ""
