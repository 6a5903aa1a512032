"""What every family's models can do here: sums, folding, the cache, sweeps by the engine, and of a bridge's weights."""

import pytest
import torch
from bridges import booted
from foreign_models import VARIANTS, random_foreign
from random_tasks import change, random_task
from tiny_models import random_tokens, relative_error

from interp.errors import InputError
from interp.interventions.replacement import Zero
from interp.interventions.sweep import Cell, Sweep
from interp.model.attention import KeyValueCache
from interp.model.folding import fold_layer_norm
from interp.model.loading import load_model
from interp.residual.stream import direct_logit_attribution, residual_stream

TASK = random_task(3, lengths=(6, 6, 5))
POST_NORM = ("gpt1", "bert")


@pytest.fixture(scope="module", params=VARIANTS)
def family(request):
    return request.param


@pytest.fixture(scope="module")
def model(family):
    return load_model(random_foreign(family, dtype=torch.float32), dtype="float64").requires_grad_(False)


def test_the_parts_of_the_stream_sum_to_it(family, model):
    tokens = random_tokens(model, length=9)
    if family in POST_NORM:
        with pytest.raises(InputError, match="not a sum of components"):
            residual_stream(model, tokens)
        return
    stream = residual_stream(model, tokens)
    assert relative_error(stream.components.sum(0), stream.total) < 1e-12
    found = direct_logit_attribution(model, stream, 3, 5).examples.groupby("example")["attribution"].sum()
    logits = model.ln_final(stream.total[:, -1]) @ model.W_U + model.b_U
    assert torch.allclose(torch.tensor(found.to_numpy()), logits[:, 3] - logits[:, 5], rtol=1e-10, atol=1e-12)
    assert relative_error(model.unembed.capped(logits), model(tokens)[:, -1]) < 1e-12


def test_folding_leaves_the_function(family, model):
    tokens = random_tokens(model, length=9)
    if family in POST_NORM:
        with pytest.raises(InputError, match="normalises the stream itself"):
            fold_layer_norm(model)
        return
    folded = fold_layer_norm(model)
    assert relative_error(folded(tokens), model(tokens)) < 1e-10
    assert all((block.ln2.w == 1).all() for block in folded.blocks)


def test_tokens_one_by_one_give_what_they_give_together(family, model):
    if not model.config.causal:
        return
    tokens, cache = random_tokens(model, length=12), KeyValueCache.empty(model.config.n_layers)
    steps = [model(tokens[:, [at]], cache=cache) for at in range(tokens.shape[1])]
    assert relative_error(torch.cat(steps, dim=1), model(tokens)) < 1e-10


@pytest.mark.parametrize("site", ["z", "attn_out", "mlp_out", "q", "resid_mid"])
def test_the_engine_equals_the_plain_way(model, site):
    cells = [Cell({"layer": layer}, (change(site, layer, Zero()),)) for layer in range(2)]
    engine, plain = (Sweep(cells).run(model, TASK, plainly=plainly) for plainly in (False, True))
    assert (engine.provenance["engine"], plain.provenance["engine"]) == ("incremental", "plain")
    expected = plain.examples["value"]
    assert (engine.examples["effect"].abs() > 1e-6).any()
    assert (engine.examples["effect"].abs() > 1e-6).any()
    # a model without biases has no logits of a stream of zeros
    assert (engine.examples["value"] - expected).abs().max() <= 1e-9 * expected.abs().max()


def test_the_engine_runs_on_bridges(family, tmp_path):
    """On our copy of the weights, audited on the bridge."""
    bridge = booted(random_foreign(family, dtype=torch.float32), tmp_path)
    found = Sweep([Cell({"layer": 0}, (change("z", 0, Zero()),))]).run(bridge, TASK)
    assert found.provenance["engine"] == "incremental", found.provenance.get("why_plain")
    assert found.provenance["engine_model"].startswith("own copy of ")
