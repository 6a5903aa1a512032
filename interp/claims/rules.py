"""What do attention, ablation, the related word and probes together say about a head? One table, strict and total.

Each kind of evidence is first judged by itself (``evidence.py``): it is *shown* where "no more than the minimum" is
rejected, *none* where "at least the minimum" is (of effects, on either side), both family-wise over all heads and
tasks; else *undecided*. Fewer than ``FEWEST_CLUSTERS`` clusters decide nothing.

- **attention**: the excess over the best baseline. *Not testable* if no example could be scored, or the baseline is the
  related word itself too often to leave the minimum to be better by.
- **effect** of ablation: a *drop* or a *rise* if that is shown under both replacements, resample and the positional
  mean (or the template's); *none* if it is absent under both; *disagree* where one shows what the other excludes.
- **what it reads at the related word**: keys and values there, for this head only, are those of a run in which only
  that word is exchanged (``methods/word_exchange.py``). A *drop* if that turns the answer by the minimum at least. *Not
  testable* if no item has such a twin, if a twin has the same value of the task's feature, if the model is not shown to
  tell the two words' answers apart or does not show keys and values, or if these hold other words, too (behind the
  first layer of a bidirectional model).
- **representation**: the task's feature is *carried* if a probe reads it from what the head writes better than from its
  toughest control, and its selectivity is shown to be above 0. *Not testable* if the task has no feature, or too few
  clusters or values of it, or the probes were left out, or a control leaves less than the minimum to be better by.
- **specificity**, of a drop: *general* if it is a drop on every other task, too, and the head is shown not to look at
  the related word on some task; *specific* if another task is shown not to need it, or it looks on all
  (``specificity.py``).
- **partners**: heads that stand in for it, and it for them, where its mean in its place costs less than the minimum
  (``groups.py``).

Then, rows are the effect, columns the attention:

| effect    | shown                  | none                     | not testable | undecided |
|-----------|------------------------|--------------------------|--------------|-----------|
| drop      | attends and causal [1] | causal, by another route | causal       | undecided |
| rise      | opposes                | opposes                  | opposes      | opposes   |
| none      | attends, not causal    | none [2]                 | none [2]     | undecided |
| disagree  | undecided              | undecided                | undecided    | undecided |
| undecided | undecided              | undecided                | undecided    | undecided |

A drop is ``general`` where its specificity is, whatever the attention. What has partners is ``redundant`` in the last
three rows, whatever resampling it alone does: another example's answer in its place contradicts theirs.

[1] ``tracks`` where what it reads at the related word is a drop, too, the head is specific or that is not testable,
and, if the task names a feature, the feature is carried. ``causal, by another route`` where what it reads there is none
or a rise: it looks at the related word, and that is not why the task needs it. ``undecided`` where that is.

[2] ``encodes, unused`` where the feature is carried: the head holds what nothing needs there. ``none`` claims nothing
of what can be read; where that is undecided, the reason says so. A head without an effect is ``undecided`` where it is
undecided whether others stand in for it.

A joint claim's p is the largest of its kinds': of one head it is false only where one of these tests shows what the
head does not have. Heads may lack different kinds: that some joint claim of a report is false has a chance of alpha for
each of these kinds, at most. ``undecided`` always has a reason.
"""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from interp.claims.bootstrap import few_clusters
from interp.claims.evidence import (
    AttentionState,
    EffectState,
    Evidence,
    ExchangeState,
    RepresentationState,
    joint_state,
)

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
Specificity = Literal["specific", "general", "not testable", "undecided"]

ORDER: tuple[Verdict, ...] = get_args(Verdict)
"""What claims most comes first."""
FINDINGS = ORDER[: ORDER.index("encodes, unused")]
"""Verdicts that claim something of a head's attention or its effect: they earn it a card."""
UNRELATED: Mapping[str, str] = {
    "none": "what it reads at the related word turns the answer by less than the minimum",
    "rise": "what it reads at the related word speaks against the answer",
}
"""By what exchanging the word does, if that is no drop."""
NO_EXCHANGE = "what it reads at the related word is not testable"
FEW_TASKS = "whether it is about this task is not testable: fewer than two others that the model can do"
NOT_PROBED = "whether the feature can be read there was not asked: probes were left out"
DISAGREE = "the replacements disagree"


@dataclass(frozen=True)
class States:
    """What each kind of evidence comes to by itself, and what other tasks and heads say.

    Attributes:
        attention: Where it looks.
        effect: What its ablation does.
        representation: Whether the feature is read from what it writes.
        specificity: Whether it is about this task; of a drop.
        exchange: What exchanging the related word does; of a drop that attends.
        has_feature: Whether the task names a feature.
        partners: The heads that stand in for it, such as ``1.3``.
        doubtful: Heads of which it is undecided whether they stand in for it.
        no_partners: Whether it is shown that none stands in for it.
        caveat: What else ablating heads together says, for a verdict that its effect is below the minimum.
        probed: Whether the feature was probed for.
        replacements: What ablation does by resample and by the mean; nothing, if that is ``effect`` by both.
    """

    attention: AttentionState
    effect: EffectState
    representation: RepresentationState
    specificity: Specificity = "not testable"
    exchange: ExchangeState = "not testable"
    has_feature: bool = True
    partners: tuple[str, ...] = ()
    doubtful: tuple[str, ...] = ()
    no_partners: bool = False
    caveat: str = ""
    probed: bool = True
    replacements: tuple[EffectState, ...] = ()


def judge(states: States) -> tuple[Verdict, str]:
    """The verdict on a head of a model that can do the task, and the reason where it hides something."""
    if states.partners and states.effect not in ("drop", "rise"):
        return "redundant", ""
    if states.effect == "rise":
        return "opposes", ""
    if states.effect == "drop":
        return _of_a_drop(states)
    if states.effect == "none":
        return _without_effect(states)
    if states.effect == "disagree":
        return "undecided", DISAGREE
    return "undecided", {
        "shown": "attention is shown, the effect is undecided",
        "none": "the effect is undecided",
        "not testable": "attention is not testable, the effect is undecided",
        "undecided": "attention and effect are undecided",
    }[states.attention]


def completions(states: States) -> Iterator[States]:
    """What the states may come to once all is known that is undecided or not testable."""
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
        # Of these, only heads that do not cost the minimum by their mean.
        if not states.no_partners and mean == "none" and (attention == "shown" or representation == "carried"):
            yield replace(known, partners=states.partners or ("another",))


def _may_be(state: Any, *known: Any) -> tuple[Any, ...]:
    return known if state in ("undecided", "not testable") else (state,)


def undecidable(effects: tuple[Evidence, Evidence], above_chance: bool) -> str:
    """Why nothing can be said of a task's heads; empty where something can.

    Args:
        effects: Of ablation, under both replacements.
        above_chance: Whether the base run's interval lies above 0.
    """
    fewest = min(effects, key=lambda each: each.n_clusters)
    if few := few_clusters(int(fewest.n_clusters), int(fewest.n_units)):
        return few
    if not all(each.decidable for each in effects):
        return "a template has a single cluster, so no interval is known"
    return "" if above_chance else "the unablated model is not shown to be above chance on this task"


def _of_a_drop(states: States) -> tuple[Verdict, str]:
    if states.specificity == "general":
        return "general", ""
    if states.attention == "none":
        return "causal, by another route", ""
    if states.attention == "not testable":
        return "causal", "attention is not testable"
    if states.attention == "undecided":
        return "undecided", "the task needs the head, and its attention is undecided"
    if states.exchange in UNRELATED:
        return "causal, by another route", UNRELATED[states.exchange]
    if states.exchange == "undecided":
        return "undecided", "whether what it reads at the related word turns the answer is undecided"
    short = _short_of_tracking(states)
    if short:
        return "attends and causal", short
    return "tracks", "" if states.specificity == "specific" else FEW_TASKS


def _short_of_tracking(states: States) -> str:
    """What a head lacks that attends and is causal; empty where it tracks."""
    if states.exchange == "not testable":
        return NO_EXCHANGE
    if states.specificity == "undecided":
        return "whether its effect is about this task is undecided"
    if not states.has_feature:
        return ""
    return {
        "carried": "",
        "none": "the feature cannot be read there beyond its controls",
        "not testable": "whether the feature can be read there is not testable" if states.probed else NOT_PROBED,
        "undecided": "the probe is undecided",
    }[states.representation]


def _without_effect(states: States) -> tuple[Verdict, str]:
    """Of a head whose effect is shown to be below the minimum."""
    unseen = "attention is not testable" if states.attention == "not testable" else ""
    open_question = _open_question(states)
    if open_question:
        return "undecided", "; ".join(filter(None, (open_question, unseen)))
    if states.attention == "shown":
        return "attends, not causal", states.caveat
    if states.representation == "carried":
        return "encodes, unused", "; ".join(filter(None, (unseen, states.caveat)))
    unread = "whether the feature can be read there is undecided" if states.representation == "undecided" else ""
    return "none", "; ".join(filter(None, (unseen, unread)))


def _open_question(states: States) -> str:
    """What is not known of a head without an effect, if it matters; else empty."""
    if states.attention == "undecided":
        return "attention is undecided"
    if not states.doubtful:
        return ""
    return f"whether it and {' or '.join(states.doubtful)} stand in for each other is undecided"
