"""Stacked weights, circuits and labels are what their definitions say."""

import pytest
import torch
from tiny_models import random_model, random_tokens, relative_error

L, H, M, E, N = 2, 3, 12, 5, 20  # layer, head, d_model, d_head, d_mlp


@pytest.fixture(scope="module")
def model():
    return random_model()


def test_the_stacked_weights_say_what_the_model_does(model):
    """Queries, keys, values, results and neurons of a run, worked out from the stacked weights."""
    names = ("hook_q", "hook_k", "hook_v", "hook_z", "hook_result", "ln1.hook_normalized", "ln2.hook_normalized")
    wanted = (*names, "hook_pre", "hook_post", "hook_mlp_out", "hook_attn_out")
    with torch.no_grad():
        _, cache = model.run_with_cache(random_tokens(model), names_filter=lambda name: name.endswith(wanted))
        for layer in range(L):
            block = model.blocks[layer]
            x = cache[f"blocks.{layer}.ln1.hook_normalized"] * block.ln1.w + block.ln1.b
            for letter in "QKV":
                weight, bias = getattr(model, f"W_{letter}")[layer], getattr(model, f"b_{letter}")[layer]
                expected = torch.einsum("bpm,hme->bphe", x, weight) + bias
                assert relative_error(cache[letter.lower(), layer], expected) < 1e-12
            result = torch.einsum("bphe,hem->bphm", cache["z", layer], model.W_O[layer])
            assert relative_error(cache["result", layer], result) < 1e-12
            assert relative_error(cache["attn_out", layer], result.sum(-2) + model.b_O[layer]) < 1e-12
            x = cache[f"blocks.{layer}.ln2.hook_normalized"] * block.ln2.w + block.ln2.b
            pre = x @ model.W_in[layer] + model.b_in[layer]
            assert relative_error(cache["pre", layer, "mlp"], pre) < 1e-12
            mlp_out = cache["post", layer, "mlp"] @ model.W_out[layer] + model.b_out[layer]
            assert relative_error(cache["mlp_out", layer], mlp_out) < 1e-12


def test_the_circuits_are_the_products_of_their_factors():
    model = random_model().requires_grad_(False)
    for layer, block in enumerate(model.blocks):
        for head in range(H):
            qk = block.attn.W_Q[head] @ block.attn.W_K[head].T
            ov = block.attn.W_V[head] @ block.attn.W_O[head]
            assert relative_error(model.QK.AB[layer, head], qk) < 1e-12
            assert relative_error(model.OV.AB[layer, head], ov) < 1e-12
    expected = torch.linalg.svdvals(model.OV.AB)[..., :E]
    assert relative_error(model.OV.S, expected) < 1e-10


def test_labels_are_in_the_order_of_the_stacked_heads(model):
    assert model.all_head_labels == ["L0H0", "L0H1", "L0H2", "L1H0", "L1H1", "L1H2"]
    heads = model.W_O.flatten(0, 1)
    for label, weight in zip(model.all_head_labels, heads, strict=True):
        assert torch.equal(weight, model.blocks[int(label[1])].attn.W_O[int(label[3])])


def test_gradients_reach_the_weights(model):
    model.OV.AB.sum().backward()
    assert all(block.attn.W_V.grad.abs().max() > 0 for block in model.blocks)
    model.zero_grad()
