"""Folding and centring change the weights and not the function."""

import pytest
import torch
from tiny_models import random_model, random_tokens, relative_error

from interp.model.folding import center_writing_weights, fold_layer_norm

REWRITES = [fold_layer_norm, center_writing_weights, lambda model: center_writing_weights(fold_layer_norm(model))]
NAMES = ["fold", "centre", "both"]


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("rewrite", REWRITES, ids=NAMES)
class TestBoth:
    def test_the_logits_stay(self, rewrite, tied):
        model = random_model(tied=tied)
        tokens = random_tokens(model)
        mask = torch.ones_like(tokens)
        mask[0, :3] = 0
        with torch.no_grad():
            got, expected = (m(tokens, attention_mask=mask)[mask.bool()] for m in (rewrite(model), model))
        assert relative_error(got, expected) < 1e-12

    def test_the_original_stays(self, rewrite, tied):
        model = random_model(tied=tied)
        before = model.hash
        new = rewrite(model)
        assert model.hash == before
        assert new.hash != before
        assert model.config.tied == tied
        assert not new.config.tied
        memory = {p.data_ptr() for p in model.parameters()}
        assert not any(p.data_ptr() in memory for p in new.parameters())

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
    def test_the_dtype_stays(self, rewrite, tied, dtype):
        assert {p.dtype for p in rewrite(random_model(tied=tied, dtype=dtype)).parameters()} == {dtype}


def norms(model):
    return [model.ln_final, *(norm for block in model.blocks for norm in (block.ln1, block.ln2))]


def test_folded_norms_do_nothing_but_normalise():
    model = random_model()
    assert all((norm.w - 1).abs().min() > 1e-6 and norm.b.abs().min() > 1e-6 for norm in norms(model))
    for norm in norms(fold_layer_norm(model)):
        assert torch.equal(norm.w, torch.ones_like(norm.w))
        assert torch.equal(norm.b, torch.zeros_like(norm.b))


def test_centred_writers_leave_the_mean_of_the_stream():
    model = random_model()
    tokens = random_tokens(model)
    name = "blocks.1.hook_resid_post"
    for each, expected in ((model, False), (center_writing_weights(model), True)):
        stream = each.run_with_cache(tokens, names_filter=name)[1][name]
        assert bool((stream.mean(-1).abs() < 1e-12 * stream.abs().max()).all()) == expected


def test_folding_twice_is_folding_once():
    once = fold_layer_norm(random_model())
    assert fold_layer_norm(once).hash == once.hash
