"""Attention whose numbers are worked out on paper."""

import pytest
import torch
from tiny_models import random_model, relative_error

from interp.model.places import places_of

WEIGHTS = torch.tensor([0.1, 0.2, 0.6, 0.1], dtype=torch.float64)
VALUES = torch.tensor([[1, 0, 0], [0, 1, 0], [0, 0, 2], [0, 0, 1]], dtype=torch.float64)


def attention(n_heads=1):
    return random_model(n_layers=1, n_heads=n_heads, d_model=3, d_head=3).blocks[0].attn


def causal(n):
    return places_of(torch.ones(1, n, dtype=torch.bool), n, causal=True)


def weighted_sum(order, fused):
    """The last position's z when it attends to the values in `order` with their weights."""
    attn = attention()
    q = torch.zeros(1, 4, 1, 3, dtype=torch.float64)
    k = torch.zeros_like(q)
    q[0, -1, 0, 0] = 3**0.5  # times 1/sqrt(d_head): the scores of the last position are k's first column
    k[0, :, 0, 0] = WEIGHTS[order].log()
    attend = attn.mixed if fused else attn._explicit
    with torch.no_grad():
        return attend(q, k, VALUES[order][None, :, None], causal(4))[0, -1, 0]


@pytest.mark.parametrize("fused", [True, False])
def test_values_are_summed_under_their_weights(fused):
    expected = torch.tensor([0.1, 0.2, 1.3], dtype=torch.float64)
    assert relative_error(weighted_sum([0, 1, 2, 3], fused), expected) < 1e-15


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("order", [[1, 0, 2, 3], [2, 1, 0, 3], [3, 2, 1, 0]])
def test_swapping_tokens_with_their_weights_changes_nothing(order, fused):
    assert relative_error(weighted_sum(order, fused), weighted_sum([0, 1, 2, 3], fused)) < 1e-15


@pytest.mark.parametrize("fused", [True, False])
def test_the_first_position_can_only_look_at_itself(fused):
    attn = attention()
    q, k = torch.randn(2, 1, 4, 1, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        z = (attn.mixed if fused else attn._explicit)(q, k, VALUES[None, :, None], causal(4))
    assert relative_error(z[0, 0, 0], VALUES[0]) < 1e-15


def test_scores_that_float16_can_hold_are_computed_in_it():
    """A query and a key whose product, before it is scaled, lies beyond float16's 65,504."""
    attn = random_model(n_layers=1, n_heads=1, d_model=64, d_head=64).blocks[0].attn.half()
    q = k = torch.full((1, 2, 1, 64), 40.0, dtype=torch.float16)
    scores = []
    attn.hook_attn_scores.add_hook(lambda x, *, hook: scores.append(x))
    with torch.no_grad():
        attn._explicit(q, k, k, causal(2))
    assert scores[0][0, 0, 1].tolist() == [12_800, 12_800]


def test_a_zeroed_head_leaves_the_biases():
    """Zero ablation of every head is b_O, and of the attention layer's output is nothing at all."""
    model = random_model()
    tokens = torch.arange(6)[None]
    zero = lambda x, *, hook: torch.zeros_like(x)  # noqa: E731
    kept = []
    keep = lambda x, *, hook: kept.append(x)  # noqa: E731
    with torch.no_grad():
        for point in ("attn.hook_z", "attn.hook_result", "hook_attn_out"):
            hooks = [(f"blocks.0.{point}", zero), ("blocks.0.hook_attn_out", keep)]
            model.run_with_hooks(tokens, fwd_hooks=hooks)
    b_O = model.blocks[0].attn.b_O
    assert torch.equal(kept[0], b_O.expand(kept[0].shape))
    assert torch.equal(kept[1], b_O.expand(kept[1].shape))
    assert kept[2].abs().max() == 0
    assert b_O.abs().min() > 0


def test_heads_sum_with_the_bias():
    attn = attention(n_heads=2)
    z = torch.tensor([[[[1.0, 0, 0], [0, 2, 0]]]], dtype=torch.float64)
    with torch.no_grad():
        written = attn._write(z)[0, 0]
    assert relative_error(written, (attn.W_O[0, 0] + 2 * attn.W_O[1, 1] + attn.b_O).detach()) < 1e-15
