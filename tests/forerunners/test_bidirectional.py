"""Each token is predicted from all others and never from itself."""

import torch
from language_models import neural_model, random_tokens

from forerunners.recurrent import reading_backwards


def changed_by(model, tokens, position):
    """Which tokens' predictions change when the token at `position` does."""
    other = tokens.clone()
    other[:, position] = (other[:, position] + 1) % 11
    predictions = (model(other) - model(tokens)).abs().amax((0, 2))[:-1]
    return {1 + place for place in range(len(predictions)) if predictions[place] > 0}


def test_a_token_is_predicted_from_all_the_others():
    model, tokens = neural_model("bidirectional"), random_tokens()
    for position in range(9):
        assert changed_by(model, tokens, position) == set(range(1, 9)) - {position}


def test_at_the_last_position_the_right_is_empty():
    """So a prompt that is scored at its end is answered from the same tokens as any other model's."""
    model, tokens = neural_model("bidirectional"), random_tokens()
    _, cache = model.run_with_cache(tokens)
    right = cache["hook_right"]
    assert right[:, -2:].abs().max() == 0
    assert right[:, :-2].abs().amax(-1).min() > 0
    with torch.no_grad():
        joined = torch.cat([cache["forwards.1.hook_state"][:, -1], torch.zeros(4, 16, dtype=torch.float64)], dim=-1)
        expected = model.unembed(model.join(joined)[:, None].tanh())[:, 0]
    assert torch.allclose(model(tokens)[:, -1], expected, atol=1e-12)


def test_what_is_read_on_the_right_is_a_forward_reading_of_the_reversed_row():
    model, tokens = neural_model("bidirectional"), random_tokens()
    _, cache = model.run_with_cache(tokens)
    backward = model.backwards(model.embed(tokens.flip(1))).flip(1)
    assert torch.allclose(cache["hook_right"][:, :-2], backward[:, 2:], atol=1e-12)


def test_the_order_of_reading_backwards():
    mask = torch.tensor([[True, True, True, False], [True, True, True, True], [True, False, False, False]])
    order = reading_backwards(mask)
    assert order.tolist() == [[2, 1, 0, 3], [3, 2, 1, 0], [0, 1, 2, 3]]
    assert torch.equal(order.gather(1, order), torch.arange(4).expand(3, 4))
