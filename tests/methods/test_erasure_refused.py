"""Where is erased, and what cannot be: refused before anything runs, and the message says what to do."""

import dataclasses

import numpy as np
import pytest
import torch
from as_users_call import unchecked
from hand_model import NEAR, HandModel, hand_task, hand_weights, number, pair, prompts, relabelled, task_of, varied_task
from random_tasks import random_task
from tiny_models import random_model, word_tokenizer

from interp.errors import InputError
from interp.methods.erasure.erase import erase
from interp.methods.erasure.readings import choose_places, positions_at, task_positions, turns

pytestmark = pytest.mark.filterwarnings("ignore:.*the intervention changed nothing on any example")


class TestPositions:
    def test_query_is_the_last_where_no_word_of_the_prompt_looks_back(self):
        each = hand_task().examples[0]
        assert positions_at("query", dataclasses.replace(each, query=2)) == (2,)
        for query in (None, len(each.prompt)):
            assert positions_at("query", dataclasses.replace(each, query=query)) == (len(each.prompt) - 1,)

    def test_related_leaves_out_what_is_not_in_the_prompt(self):
        each = hand_task().examples[0]
        n = len(each.prompt)
        assert positions_at("related", dataclasses.replace(each, related=(1, 2, n))) == (1, 2)
        assert positions_at("all", each) == tuple(range(n))

    def test_prompts_without_a_related_word_are_left_out(self):
        units = [pair(prompts(0, 1), tagged=False), pair(prompts(0, 2))]
        task = relabelled(task_of(units, [pair(prompts(*each)) for each in ((0, 1), (1, 1))]), number)
        result = erase(HandModel(), task, "number", at="related", methods=("leace",))
        assert set(result.examples["unit"]) == {1}
        nowhere = relabelled(task_of(units[:1], task.references[0]), number)
        with pytest.raises(
            InputError, match="at='related': none of the 2 prompts of task 'hand' holds a tagged related"
        ):
            erase(HandModel(), nowhere, "number", at="related")


class TestRefused:
    def test_an_unknown_feature(self):
        with pytest.raises(
            InputError,
            match="feature 'numbr': no reference example of task 'hand' has it; these have 'length', 'number'; did you "
            "mean 'number'",
        ):
            erase(HandModel(), hand_task(), "numbr")
        with pytest.raises(InputError, match=r"feature 'number': no reference example .* these have none; give them"):
            erase(HandModel(), varied_task(), "number")

    def test_one_value(self):
        alike = relabelled(varied_task(), lambda encoded: {"number": "dual"})
        with pytest.raises(
            InputError,
            match="feature 'number': expected at least two values among the reference examples of task 'hand', got "
            "'dual' in 32 of them; there is nothing to tell apart",
        ):
            erase(HandModel(), alike, "number")

    def test_a_value_of_one_example(self):
        def first(encoded):
            return {"number": "dual" if encoded is rare else number(encoded)["number"]}

        task = varied_task()
        rare = task.references[0][3].item
        with pytest.raises(InputError, match="'dual' has a single reference example in task 'hand', expected at least"):
            erase(HandModel(), relabelled(task, first), "number")

    def test_no_references(self):
        task = dataclasses.replace(hand_task(), references=())
        with pytest.raises(InputError, match="task 'hand' has no reference examples for its fold 0"):
            erase(HandModel(), task, "number")

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_activations_that_are_no_numbers(self, value):
        model = hand_weights()
        with torch.no_grad():
            model.W_E[NEAR] = value
        with pytest.raises(
            InputError,
            match=r"blocks\.0\.attn\.hook_z: the activation is NaN or infinite on '<bos> key .*near there', so that",
        ):
            erase(model, hand_task(), "number")

    def test_an_encoder(self):
        model = random_model(tokenizer=word_tokenizer(), causal=False)
        with pytest.raises(
            InputError, match="task 'random' asks for the next token, which an encoder does not predict"
        ):
            erase(model, random_task(d_vocab=12), "parity")

    @pytest.mark.parametrize("site", ["pattern", "mlp_post", "q", "embed", "zz"])
    def test_a_site(self, site):
        with pytest.raises(InputError, match=f"erase: no eraser is fitted at site '{site}'; "):
            erase(HandModel(), hand_task(), "number", site=site)

    def test_heads_and_layers(self):
        with pytest.raises(InputError, match=r"head 0\.2: the model has 1 layers \(0 to 0\) of 2 heads \(0 to 1\)"):
            erase(HandModel(), hand_task(), "number", heads=[(0, 2)])
        with pytest.raises(InputError, match=r"layers: the model has 1 \(0 to 0\), got \[1\]"):
            erase(HandModel(), hand_task(), "number", site="resid_pre", layers=[1])
        with pytest.raises(InputError, match=r"heads: site 'resid_pre' has none, got \[\(0, 0\)\]; leave them out"):
            choose_places(HandModel(), "resid_pre", heads=[(0, 0)])

    def test_methods(self):
        with pytest.raises(InputError, match="methods: 'leaca' is unknown; did you mean 'leace'"):
            unchecked(erase)(HandModel(), hand_task(), "number", methods=["leaca"])
        for methods in ((), ("leace", "leace")):
            with pytest.raises(InputError, match="methods: expected different ones, at least one, got"):
                erase(HandModel(), hand_task(), "number", methods=methods)

    def test_a_kind_of_position(self):
        # Past the type checker of the tests, as a caller without one gets there.
        with pytest.raises(InputError, match="at: no kind of position is called 'querry'; did you mean 'query'"):
            unchecked(task_positions)("querry", hand_task())

    def test_draws(self):
        with pytest.raises(InputError, match="draws: expected a whole number of at least 1, got 0"):
            erase(HandModel(), hand_task(), "number", draws=0)

    def test_tasks_of_one_name(self):
        with pytest.raises(InputError, match=r"others: expected tasks of different names, .* got \['hand', 'hand'\]"):
            erase(HandModel(), hand_task(), "number", others=[hand_task()])

    def test_nothing_to_steer_from_or_to(self):
        bare = relabelled(varied_task(name="bare"), lambda encoded: {})
        with pytest.raises(InputError, match=r"steer: '<bos> .*' of task 'bare' has the number None, expected one of"):
            erase(HandModel(), hand_task(), "number", methods=("steer",), others=[bare])
        task = relabelled(task_of([pair(prompts(0, 1))], []), number)
        assert turns(task, "length", ["4", "5"]) == [("4", "5")] * 2
        assert turns(task, "number", ["dual", "plural", "singular"]) == [("singular", "plural"), ("plural", "singular")]
        with pytest.raises(InputError, match=r"steer: .* has the length '4'; of 3 values, its .* to say .*, got '4'"):
            turns(task, "length", ["4", "5", "6"])
        alone = dataclasses.replace(task, units=(dataclasses.replace(task.units[0], counterfactual=None),))
        with pytest.raises(InputError, match=r"steer: .* got none; leave steer out"):
            turns(alone, "length", ["4", "5", "6"])
