"""What cannot be ablated is refused before anything runs, and the message says what to do."""

import pytest
from as_users_call import unchecked
from hand_model import HandModel, pair, prompts, task_of, varied_task
from tiny_models import random_model

from interp.errors import InputError
from interp.interventions.reference_set import make_replacement
from interp.methods.ablation import ablate, as_measured, check_heads


@pytest.fixture
def model():
    """Two layers of three heads and twenty neurons, on the words of the hand-made tasks."""
    return random_model(d_vocab=8, n_ctx=12)


UNKNOWN = r"the model has 1 layers \(0 to 0\) of 2 heads \(0 to 1\)"
SETS = "sets: expected different sets of heads, at least one, got"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        *(({"heads": [head]}, UNKNOWN) for head in ((1, 0), (0, 2), (99, 0), (-1, 0))),
        *(({"heads": heads}, "expected different") for heads in ([], [(0, 0), (0, 0)])),
        *(({"sets": sets}, SETS) for sets in ([], [[(0, 0)], [(0, 0)]], [[(0, 0), (0, 1)], [(0, 1), (0, 0)]])),
        ({"sets": [[]]}, r"heads: expected different .* at least one, got \[\]"),
        ({"sets": [[(0, 0), (0, 2)]]}, r"head 0\.2: the model has 1 layers"),
    ],
    ids=str,
)
def test_heads_are_different_ones_of_the_model(asked, message):
    with pytest.raises(InputError, match=message):
        ablate(HandModel(), varied_task(), **asked)


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


def test_a_model_is_one_and_a_named_task_needs_its_tokenizer():
    with pytest.raises(InputError, match="'agreement' is a name, but the model has no tokenizer"):
        ablate(HandModel(), "agreement")
    with pytest.raises(InputError, match=r"model: expected a model, got 'default'; load its weights with interp.load_"):
        ablate("default", varied_task())


def test_names_and_pairs_are_checked_without_a_type_checker():
    with pytest.raises(InputError, match=r"heads: expected \(layer, head\) pairs, got \(0, 1\); give a list such as"):
        unchecked(check_heads)(HandModel(), (0, 1))
    with pytest.raises(InputError, match="replacement 'meen' is unknown; did you mean 'mean'"):
        unchecked(make_replacement)("meen", HandModel(), varied_task(), sites=[])
    with pytest.raises(InputError, match="no metric is called 'probabilty'; did you mean 'probability'"):
        unchecked(as_measured)(varied_task(), "probabilty")


def test_layouts_that_do_not_align_are_refused_before_anything_runs():
    seen = []
    task = task_of([pair(prompts(0, 1))], [pair(prompts(1, 1))])
    with pytest.raises(InputError, match="positional mean"):
        ablate(HandModel(), task, replacement="positional_mean", progress=lambda *step: seen.append(step))
    assert seen == []
