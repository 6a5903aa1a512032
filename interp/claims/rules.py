"""From the states of all kinds of evidence on a head to one verdict: a strict and total table.

Each kind of evidence is first judged by itself (``Evidence``, tested by ``claim.py``): it is *shown* where "no more
than the minimum" is rejected, *none* where "at least the minimum" is (of effects, on both sides), both family-wise over
all heads and tasks; else *undecided*. With fewer than ``FEWEST_CLUSTERS`` clusters everything is undecided.

- **attention**: the excess over the best baseline. *Not testable* if no example could be scored, or the baseline is the
  related word itself too often to be exceeded by the minimum.
- **effect** of ablation: a *drop* or a *rise* if shown under both replacements, resample and the positional mean (or
  the template's); *none* if absent under both; *disagree* where one shows what the other excludes.
- **exchange** of the related word: this head's keys and values there are those of a run in which only that word is
  exchanged (``methods/word_exchange.py``). A *drop* if that turns the answer by at least the minimum. *Not testable* if
  no item has such a twin, if a twin has the same value of the task's feature, if the model is not shown to tell the two
  words' answers apart, does not show keys and values, or if these hold other words, too (behind the first layer of a
  bidirectional model).
- **representation**: the task's feature is *carried* if a probe reads it from what the head writes better than from its
  toughest control, and its selectivity is shown to be above 0. *Not testable* without a feature, with too few clusters
  or values of it, without probes, or if a control cannot be exceeded by the minimum.
- **specificity** of a drop: *general*, *specific* or *undecided* (``verdicts.py``).
- **partners**: heads that stand in for it, and it for them, where its mean in its place costs less than the minimum
  (``groups.py``).

| effect    | attention shown        | none                     | not testable | undecided |
|-----------|------------------------|--------------------------|--------------|-----------|
| drop      | attends and causal [1] | causal, by another route | causal       | needed    |
| rise      | opposes                | opposes                  | opposes      | opposes   |
| none      | attends, not causal    | none [2]                 | none [2]     | undecided |
| disagree  | undecided              | undecided                | undecided    | undecided |
| undecided | undecided              | undecided                | undecided    | undecided |

A drop is ``general`` where its specificity is, whatever the attention. A head with partners is ``redundant`` in the
last three rows, whatever resampling it alone does: another example's answer in its place contradicts theirs.

[1] ``tracks`` where the exchange is a drop, too, the head is specific or that is not testable, and, if the task names a
feature, the feature is carried. ``causal, by another route`` where the exchange is none or a rise: the head looks at
the related word, and that is not why the task needs it. ``needed`` where the exchange is undecided: the effect is
shown, and where the head looks, or what it reads there, is not known.

[2] ``encodes, unused`` where the feature is carried. ``none`` claims nothing of what can be read; where that is
undecided, the reason says so. A head without an effect is ``undecided`` if it is undecided whether others stand in for
it.

A joint claim's p is the largest of its kinds'. The claim is false only if one of these tests shows what the head does
not have. Heads may lack different kinds: some joint claim of a report is false with a chance of at most alpha for each
of these kinds. ``undecided`` and ``needed`` always have a reason.

**Units that decide.** A cell is shown or absent where it is ``critical`` standard errors clear of its minimum. With
power .8 it gets there if the truth is ``critical + z(.8)`` of them away. A head without any effect, and one with
**twice** the minimum, are one minimum away from it, so both are decided by
``n = n_now ((critical + z) se / minimum)^2`` units; one with **1.5** times the minimum needs four times as many. This
assumes that the spread stays as it was observed, and that new units come in new clusters. ``critical`` is that of what
is shown or of what is absent, whichever asks for more, by max-T (Cohen 1988, "Statistical power analysis for the
behavioral sciences", chapter 2).
"""

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from scipy.stats import norm

from interp.claims.bootstrap import FEWEST_CLUSTERS, few_clusters, units_for_clusters

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
    n_units: float  # that were measured; with what is predicted of others, as many as would tell the same
    n_clusters: float  # their lexical draws; 0 where nothing was measured

    @classmethod
    def of(cls, row: Mapping[str, Any], kind: str) -> "Evidence":
        """Read one kind from a row with the columns of ``Claims.frame``."""
        n_units = "n_effective" if f"{kind}_n_effective" in row else "n_units"  # of probes nothing is predicted
        names = ("minimum", "standard_error", "p_adjusted", "p_absent", "critical", n_units, "n_clusters")
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
        """Judge an excess, which is tested for being above 0 alone."""
        state = self.exchange(alpha)
        return "shown" if state == "drop" or state == "rise" else state

    def representation(self, *, selective: bool, has_room: bool, alpha: float) -> RepresentationState:
        """Judge a probe's excess over its toughest control.

        `selective` is whether its selectivity is shown to be above 0, `has_room` whether the control can be exceeded by
        the minimum.
        """
        if self.measured and not self.decidable:
            return "undecided"
        state = self.excess(alpha) if has_room else "not testable"
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
            clusters = units_for_clusters(int(self.n_clusters), int(self.n_units))
            if clusters is None:
                return math.nan
            # If the spread is unknown (NaN), clusters decide.
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
    """Units that decide a cell whose effect is none, or twice the minimum.

    Source: Cohen (1988), "Statistical power analysis for the behavioral sciences", chapter 2.

    Args:
        standard_error: Of the mean over the present units, less the minimum; in the unit of the effect.
        n_units: How many units there are at present.
        minimum: The smallest effect that counts, in the same unit.
        critical: How many standard errors the test asks for, as in ``Claims``.
        power: The chance that so many units decide the cell.

    Returns:
        A whole number of units; NaN where none is known.

    Examples:
        >>> from interp.claims.rules import required_units
        >>> required_units(standard_error=0.3, n_units=40, minimum=0.6, critical=2.8)
        133.0
    """
    if not (math.isfinite(standard_error) and standard_error > 0 and minimum > 0 and math.isfinite(critical)):
        return math.nan
    return float(math.ceil(n_units * ((critical + norm.ppf(power)) * standard_error / minimum) ** 2))


Verdict = Literal[
    "tracks",
    "attends and causal",
    "causal, by another route",
    "causal",
    "needed",
    "redundant",
    "general",
    "attends, not causal",
    "opposes",
    "encodes, unused",
    "undecided",
    "none",
]
Specificity = Literal["specific", "general", "not testable", "undecided"]

ORDER: tuple[Verdict, ...] = get_args(Verdict)
"""The strongest claim comes first."""
FINDINGS = ORDER[: ORDER.index("encodes, unused")]
"""Verdicts that claim something of a head's attention or its effect: they earn it a card."""
UNRELATED: Mapping[str, str] = {
    "none": "what it reads at the related word turns the answer by less than the minimum",
    "rise": "what it reads at the related word speaks against the answer",
}
"""By the state of the exchange, why it is no drop."""
NO_EXCHANGE = "what it reads at the related word is not testable"
FEW_TASKS = "whether it is about this task is not testable: fewer than two others that the model can do"
NOT_PROBED = "whether the feature can be read there was not asked: probes were left out"
DISAGREE = "the replacements disagree"
NOT_ABLE = "the unablated model is not shown to be above chance on this task"


@dataclass(frozen=True)
class States:
    """What each kind of evidence comes to by itself, and what other tasks and heads say."""

    attention: AttentionState  # to the related word
    effect: EffectState  # of ablation
    representation: RepresentationState  # of the feature in what the head writes
    specificity: Specificity = "not testable"  # of a drop
    exchange: ExchangeState = "not testable"  # of the related word; of a drop that attends
    has_feature: bool = True  # whether the task names a feature
    partners: tuple[str, ...] = ()  # the heads that stand in for it, such as ``1.3``
    doubtful: tuple[str, ...] = ()  # heads of which it is undecided whether they stand in for it
    no_partners: bool = False  # whether it is shown that none stands in for it
    caveat: str = ""  # what ablating heads together adds to a verdict that its effect is below the minimum
    probed: bool = True  # whether the feature was probed for
    replacements: tuple[EffectState, ...] = ()  # effect by resample and by the mean; empty if both are ``effect``

    @property
    def carries(self) -> RepresentationState:
        """The representation; nothing is lacking where the task names no feature."""
        return self.representation if self.has_feature else "carried"


RULES: tuple[tuple[Mapping[str, object], Verdict, str], ...] = (
    ({"effect": "rise"}, "opposes", ""),
    ({"effect": "disagree"}, "undecided", DISAGREE),
    ({"effect": "undecided", "attention": "shown"}, "undecided", "attention is shown, the effect is undecided"),
    ({"effect": "undecided", "attention": "none"}, "undecided", "the effect is undecided"),
    (
        {"effect": "undecided", "attention": "not testable"},
        "undecided",
        "attention is not testable, the effect is undecided",
    ),
    ({"effect": "undecided"}, "undecided", "attention and effect are undecided"),
    # What follows is of a drop.
    ({"specificity": "general"}, "general", ""),
    ({"attention": "none"}, "causal, by another route", ""),
    ({"attention": "not testable"}, "causal", "attention is not testable"),
    ({"attention": "undecided"}, "needed", "where it looks is undecided"),
    ({"exchange": "none"}, "causal, by another route", UNRELATED["none"]),
    ({"exchange": "rise"}, "causal, by another route", UNRELATED["rise"]),
    ({"exchange": "undecided"}, "needed", "whether what it reads at the related word turns the answer is undecided"),
    ({"exchange": "not testable"}, "attends and causal", NO_EXCHANGE),
    ({"specificity": "undecided"}, "attends and causal", "whether its effect is about this task is undecided"),
    ({"carries": "none"}, "attends and causal", "the feature cannot be read there beyond its controls"),
    ({"carries": "undecided"}, "attends and causal", "the probe is undecided"),
    ({"carries": "not testable", "probed": False}, "attends and causal", NOT_PROBED),
    ({"carries": "not testable"}, "attends and causal", "whether the feature can be read there is not testable"),
    ({"specificity": "specific"}, "tracks", ""),
    ({}, "tracks", FEW_TASKS),
)
"""States, the verdict and its reason, of a head whose effect is not none; the first rule that holds is taken."""


def judge(states: States) -> tuple[Verdict, str]:
    """The verdict on a head of a model that can do the task, and the reason where there is one to tell."""
    if states.partners and states.effect not in ("drop", "rise"):
        return "redundant", ""
    if states.effect == "none":
        return _without_effect(states)
    holds = (rule for rule in RULES if all(getattr(states, name) == state for name, state in rule[0].items()))
    _, verdict, reason = next(holds)
    return verdict, reason


def _without_effect(states: States) -> tuple[Verdict, str]:
    """Of a head whose effect is shown to be below the minimum."""
    unseen = "attention is not testable" if states.attention == "not testable" else ""
    if states.attention == "undecided":
        return "undecided", "attention is undecided"
    if states.doubtful:
        doubt = f"whether it and {' or '.join(states.doubtful)} stand in for each other is undecided"
        return "undecided", "; ".join(filter(None, (doubt, unseen)))
    if states.attention == "shown":
        return "attends, not causal", states.caveat
    if states.representation == "carried":
        return "encodes, unused", "; ".join(filter(None, (unseen, states.caveat)))
    unread = "whether the feature can be read there is undecided" if states.representation == "undecided" else ""
    return "none", "; ".join(filter(None, (unseen, unread)))


def completions(states: States) -> Iterator[States]:
    """Everything that the states can become once all that is undecided or not testable is known."""
    replacements = states.replacements or (states.effect, states.effect)
    for attention, (resample, mean), representation, specificity, exchange in itertools.product(
        _may_be(states.attention, "shown", "none"),
        itertools.product(*(_may_be(each, "drop", "rise", "none") for each in replacements)),
        _may_be(states.representation, "carried", "none"),
        _may_be(states.specificity, "specific", "general"),
        _may_be(states.exchange, "drop", "rise", "none"),
    ):
        known = replace(
            states,
            attention=attention,
            effect=joint_state(resample, mean),
            representation=representation,
            specificity=specificity,
            exchange=exchange,
            doubtful=(),
        )
        yield known
        # Only such heads can have partners, and only if their mean costs less than the minimum.
        if not states.no_partners and mean == "none" and (attention == "shown" or representation == "carried"):
            yield replace(known, partners=states.partners or ("another",))


def _may_be(state: Any, *known: Any) -> tuple[Any, ...]:
    return known if state in ("undecided", "not testable") else (state,)


def undecidable(effects: tuple[Evidence, Evidence], above_chance: bool) -> str:
    """Why nothing can be said of a task's heads; empty where something can.

    Args:
        effects: Of ablation, under both replacements.
        above_chance: Whether the base run's interval lies above chance.
    """
    fewest = min(effects, key=lambda each: each.n_clusters)
    if few := few_clusters(int(fewest.n_clusters), int(fewest.n_units)):
        return few
    if not all(each.decidable for each in effects):
        return "a template has a single cluster, so no interval is known"
    return "" if above_chance else NOT_ABLE
