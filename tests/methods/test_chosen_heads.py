"""Heads that are chosen on other items: only they are tested, and corrected for."""

from dataclasses import replace

import numpy as np
import pytest
from hand_model import HandModel, hand_task, pair, prompts, task_of, varied_task

from interp.errors import InputError
from interp.methods.dossier import heads
from interp.methods.task_arguments import apart


def other_items():
    """With one filler more than the varied task ever has."""
    shapes = [(before, after) for before in range(4, 7) for after in range(4)]
    units = [pair(prompts(*shapes[number % 12]), f"d{number}") for number in range(48)]
    return task_of(units, [pair(prompts(*shape)) for shape in shapes])


def test_only_the_chosen_are_tested_and_corrected_for():
    how = {"probes": False, "first_look": 0}
    every = heads(HandModel(), [varied_task()], **how)
    chosen = heads(HandModel(), [varied_task()], **how, choose_on=[other_items()])
    adjusted = ["effect_p_adjusted", "mean_effect_p_adjusted", "excess_p_adjusted"]
    assert every.summary()[adjusted].notna().all(axis=None)
    first, idle = chosen.summary().iloc[0], chosen.summary().iloc[1]
    assert first["verdict"] == every.summary()["verdict"].iloc[0] == "attends and causal"
    assert first["effect_p_adjusted"] == first["effect_p"]  # a family of one
    assert idle[[*adjusted, "tracks_p_adjusted"]].isna().all()
    assert idle["verdict"] == "none"  # that nothing is there needs no test
    assert [each["task"] for each in chosen.provenance["chosen_on"]] == ["hand"]
    assert every.provenance["chosen_on"] == []


def test_a_head_that_is_not_chosen_is_never_claimed():
    """Of the choosing items every other one asks for the wrong answer: nothing has an effect there."""
    task = other_items()
    turned = [
        replace(unit, item=asked_for_wrong(unit.item), counterfactual=asked_for_wrong(unit.counterfactual))
        if number % 2
        else unit
        for number, unit in enumerate(task.units)
    ]
    chosen_on = replace(task, units=tuple(turned))
    found = heads(HandModel(), [varied_task()], probes=False, choose_on=[chosen_on]).summary().iloc[0]
    assert np.isnan(found["effect_p_adjusted"])
    assert found["verdict"] == "undecided"
    assert found["reason"].endswith(
        "the effect is undecided; not chosen, and so cannot be shown: resampling, the mean in its place"
    )
    assert np.isnan(found["n_to_decide"])  # more units choose nothing


def asked_for_wrong(encoded):
    return replace(encoded, right=encoded.wrong, wrong=encoded.right)


def test_never_two_corrections_at_once():
    with pytest.raises(InputError, match=r"choose_on: what is chosen on other items is corrected by max-T, got .*fdr"):
        heads(HandModel(), [varied_task()], probes=False, correction="fdr", choose_on=[other_items()])


def test_choosing_tasks_are_the_same_tasks_of_other_items():
    with pytest.raises(InputError, match="every unit of hand has a cluster or a prompt that is scored, too"):
        apart([varied_task()], [varied_task()])
    with pytest.raises(InputError, match="expected the same tasks, hand, in this order; got other"):
        apart([varied_task()], [hand_task("other")])
    assert apart([varied_task()], [other_items()])[0].units == other_items().units


def test_clusters_that_are_scored_choose_nothing():
    mixed = replace(other_items(), units=(*other_items().units[:5], *varied_task().units[:3]))
    (found,) = apart([varied_task()], [mixed])
    assert found.units == mixed.units[:5]
    assert found.dropped["scored, too"] == 3
