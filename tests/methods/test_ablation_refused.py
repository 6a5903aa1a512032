"""What cannot be ablated is refused before anything runs, and the message says what to do."""

import pytest
from as_users_call import unchecked
from hand_model import HandModel, pair, prompts, task_of, varied_task
from tiny_models import random_model

from interp.errors import InputError
from interp.interventions.reference_set import make_replacement
from interp.methods.ablation import ablate, check_heads


@pytest.fixture
def model():
    """Two layers of three heads and twenty neurons, on the words of the hand-made tasks."""
    return random_model(d_vocab=8, n_ctx=12)


@pytest.mark.parametrize("head", [(1, 0), (0, 2), (99, 0), (-1, 0)])
def test_unknown_heads_are_refused(head):
    with pytest.raises(InputError, match=r"the model has 1 layers \(0 to 0\) of 2 heads \(0 to 1\)"):
        ablate(HandModel(), varied_task(), heads=[head])


@pytest.mark.parametrize("heads", [[], [(0, 0), (0, 0)]])
def test_heads_have_to_be_different_and_some(heads):
    with pytest.raises(InputError, match="expected different"):
        ablate(HandModel(), varied_task(), heads=heads)


@pytest.mark.parametrize("sets", [[], [[(0, 0)], [(0, 0)]], [[(0, 0), (0, 1)], [(0, 1), (0, 0)]]])
def test_sets_have_to_be_different_and_some(sets):
    with pytest.raises(InputError, match="sets: expected different sets of heads, at least one; got"):
        ablate(HandModel(), varied_task(), sets=sets)


def test_a_set_is_one_of_the_models_heads():
    with pytest.raises(InputError, match=r"heads: expected different .* at least one; got \[\]"):
        ablate(HandModel(), varied_task(), sets=[[]])
    with pytest.raises(InputError, match=r"head 0\.2: the model has 1 layers"):
        ablate(HandModel(), varied_task(), sets=[[(0, 0), (0, 2)]])


@pytest.mark.parametrize("layers", [[], [2], [-1], [0, 0]])
def test_unknown_layers_are_refused(model, layers):
    with pytest.raises(InputError, match=r"layers: expected different layers, .* the model has 2 \(0 to 1\), got"):
        ablate(model, varied_task(), components="mlps", layers=layers)


@pytest.mark.parametrize(
    "asked",
    [
        {"heads": [(0, 0)], "sets": [[(0, 0)]]},
        {"heads": [(0, 0)], "layers": [0]},
        {"components": "mlps", "heads": [(0, 0)]},
        {"components": "neurons", "sets": [[(0, 0)]]},
    ],
    ids=str,
)
def test_choices_that_do_not_go_together_are_refused(model, asked):
    with pytest.raises(InputError, match="expected at most one of heads, sets and layers"):
        ablate(model, varied_task(), **asked)


def test_heads_are_pairs():
    # Past the type checker of the tests, as a caller without one gets there.
    with pytest.raises(InputError, match=r"heads: expected \(layer, head\) pairs, got \(0, 1\); give a list such as"):
        unchecked(check_heads)(HandModel(), (0, 1))


def test_a_named_task_needs_a_tokenizer():
    with pytest.raises(InputError, match="'agreement' is a name, but the model has no tokenizer"):
        ablate(HandModel(), "agreement")


def test_a_name_is_no_model():
    with pytest.raises(
        InputError, match=r"model: expected a model, got 'default'; load its weights with interp.load_model"
    ):
        ablate("default", varied_task())


def test_unknown_kind_is_refused():
    # Past the type checker of the tests, as a caller without one gets there.
    with pytest.raises(InputError, match="ablation 'meen' is unknown; did you mean 'mean'"):
        unchecked(make_replacement)("meen", HandModel(), varied_task(), sites=[])


def test_layouts_that_do_not_align_are_refused_before_anything_runs():
    seen = []
    task = task_of([pair(prompts(0, 1))], [pair(prompts(1, 1))])
    with pytest.raises(InputError, match="positional mean"):
        ablate(HandModel(), task, replacement="positional_mean", progress=lambda *step: seen.append(step))
    assert seen == []


def test_unknown_metrics_are_refused(model):
    from interp.methods.ablation import as_measured

    with pytest.raises(InputError, match="no metric is called 'probabilty'; did you mean 'probability'"):
        unchecked(as_measured)(varied_task(), "probabilty")
