"""What a head finds at the related word, by hand: its values there are 0."""

import dataclasses

import numpy as np
import pytest
import torch
from hand_model import BY, IS, KEY, KEYS, NEAR, HandModel, varied_task

from interp.methods.ablation import ablate
from interp.methods.dossier import heads
from interp.methods.related_effect import COLUMNS, related_effects
from interp.model.sites import Site

HOW = {"kind": "zero", "draws": 1, "seed": 0, "minimum_effect": 0.1, "flips": 2000}


def by_hand(model, task, head):
    """The mean effect: one run with a hook, and one without, for each example."""
    changes = []
    for encoded in task.examples:
        tokens = torch.tensor([encoded.prompt])

        def put(value, hook, related=encoded.related):
            value[0, list(related), head] = 0
            return value

        logits = [model(tokens), model.run_with_hooks(tokens, fwd_hooks=[(Site("v", 0).hook_name, put)])]
        base, value = (float(each[0, -1, encoded.right[0]] - each[0, -1, encoded.wrong[0]]) for each in logits)
        changes.append(value - base)
    return np.mean(changes)


def test_it_is_the_effect_of_a_hook_on_the_values_at_the_word():
    model, task = HandModel(), varied_task()
    (found,) = related_effects(model, task, [(0, 0)], **HOW).to_dict("records")
    assert (found["layer"], found["head"]) == (0, 0)
    assert found["related_effect"] == pytest.approx(by_hand(model, task, 0), abs=1e-6)
    assert found["related_low"] <= found["related_effect"] <= found["related_high"]
    assert found["related_effect"] < -0.3
    assert found["related_p"] < 0.01


def test_who_is_needed_for_another_word_loses_nothing_at_the_related_one():
    """Head 0 looks at the noun, and reads only the preposition, which tells the answer as well."""
    task = varied_task()
    told = dataclasses.replace(task, units=tuple(_told(unit) for unit in task.units))
    model = HandModel()
    with torch.no_grad():
        attention = model.blocks[0].attn
        attention.W_V[0] = attention.W_O[0] = 0
        attention.W_V[0, BY, KEY] = attention.W_V[0, NEAR, KEYS] = 8
        attention.W_O[0, KEY, IS] = attention.W_O[0, KEYS, IS + 1] = 1
    found = heads(model, [told]).frame.set_index("head").loc[0]
    assert (found["attention_state"], found["effect_state"]) == ("shown", "drop")
    assert found["related_effect"] == pytest.approx(0, abs=1e-6)
    assert found["related_state"] == "none"
    assert found["verdict"] == "causal, by another route"


def _told(unit):
    """Every word but noun and query is the one that goes with the answer."""

    def one(each):
        word = BY if each.right == (IS,) else NEAR
        prompt = tuple(word if token in (BY, NEAR) else token for token in each.prompt)
        if word not in prompt:
            prompt = (prompt[0], word, *prompt[1:])
        return dataclasses.replace(
            each,
            prompt=prompt,
            query=len(prompt) - 1,
            related=(next(place for place, token in enumerate(prompt) if token in (KEY, KEYS)),),
        )

    other = None if unit.counterfactual is None else one(unit.counterfactual)
    return dataclasses.replace(unit, item=one(unit.item), counterfactual=other)


def test_all_that_a_head_reads_is_what_it_finds_at_the_word():
    """Head 0's values are 0 at all other words, so that without those at the noun it is as if it were not there."""
    model, task = HandModel(), varied_task()
    whole = ablate(model, task, kind="zero", heads=[(0, 0)]).summary()["effect"].item()
    there = related_effects(model, task, [(0, 0)], **HOW)["related_effect"].item()
    assert there == pytest.approx(whole, abs=1e-6)


def test_shared_values_and_models_without_them_are_not_testable():
    model = HandModel()
    model.cfg.n_key_value_heads = 1
    assert related_effects(model, varied_task(), [(0, 0)], **HOW) is None
    found = heads(model, [varied_task()]).frame
    assert found["related_state"].tolist() == ["not testable"] * 2
    assert found["verdict"].tolist() == ["attends and causal", "none"]
    assert "it cannot be ablated by itself" in found["reason"].iloc[0]
    assert found["joint_q"].iloc[0] < 0.01
    del model.cfg.n_key_value_heads, model.hook_dict["blocks.0.attn.hook_v"]
    assert related_effects(model, varied_task(), [(0, 0)], **HOW) is None


def in_the_answer(task, places):
    """The task, of whose units those of some places have their related word in the answer."""

    def one(each):
        return dataclasses.replace(each, query=len(each.prompt) + 1, related=(len(each.prompt),))

    changed = (
        dataclasses.replace(unit, item=one(unit.item), counterfactual=one(unit.counterfactual))
        if number in places
        else unit
        for number, unit in enumerate(task.units)
    )
    return dataclasses.replace(task, units=tuple(changed))


def test_a_related_word_in_the_answer_cannot_be_ablated():
    task = varied_task()
    none = in_the_answer(task, range(len(task.units)))
    assert related_effects(HandModel(), none, [(0, 0)], **HOW) is None
    some = in_the_answer(task, range(len(task.units) // 2))
    (found,) = related_effects(HandModel(), some, [(0, 0)], **HOW).to_dict("records")
    (whole,) = related_effects(HandModel(), task, [(0, 0)], **HOW).to_dict("records")
    assert (found["n_related_units"], found["n_related_clusters"]) == (48, 12)
    assert (whole["n_related_units"], whole["n_related_clusters"]) == (96, 24)
    assert found["related_effect"] == pytest.approx(by_hand(HandModel(), task, 0), abs=0.05)
    base = ablate(HandModel(), task, kind="zero", heads=[(0, 0)]).summary()["base"].item()
    assert whole["related_minimum"] == pytest.approx(0.1 * base)


def test_heads_that_are_not_asked_have_no_joint_claim():
    """Their p of what they find there is 1, so that the correction of the others is no stricter for them."""
    found = heads(HandModel(), [varied_task()]).frame.set_index("head")
    assert found["related_p"].loc[1] == found["joint_q"].loc[1] == 1
    assert found["related_state"].loc[1] == "not testable"
    assert found["joint_q"].loc[0] < 0.01


def test_without_heads_there_is_nothing_to_do():
    found = related_effects(HandModel(), varied_task(), [], **HOW)
    assert found.empty
    assert list(found.columns) == ["layer", "head", *COLUMNS]
