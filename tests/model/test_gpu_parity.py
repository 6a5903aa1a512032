"""On a CUDA device: the same logits as transformers, and components that sum, in three dtypes.

Tolerances are relative to the largest magnitude. In float32, matrix products run without TF32. In half
precision a number carries 2^-9 (bfloat16) or 2^-12 (float16) of rounding error, and these models, whose
weights are large so that every one of them counts, amplify it: 10 % and 1.25 % of the largest logit, and
also at most three times the error of transformers in the same dtype. The stream's components meet in one sum
only: 1.6 % and 0.2 %. What is expected is transformers' float64, so that no other rounding counts.
"""

import pytest
import torch
from tiny_models import random_gpt2, random_tokens

from interp.model.folding import fold_layer_norm
from interp.model.loading import load_model
from interp.residual.stream import direct_logit_attribution, residual_stream

pytestmark = pytest.mark.gpu

DEVICE = "cuda"
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 0.1, torch.float16: 0.0125}
SUM_TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 0.016, torch.float16: 0.002}
SHAPES = [{}, {"n_layer": 4, "n_head": 4, "n_embd": 64, "vocab_size": 503, "n_positions": 64}]


@pytest.fixture(autouse=True)
def _no_tf32():
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    yield
    torch.set_float32_matmul_precision(before)


@pytest.fixture(params=SHAPES, ids=["small", "larger"])
def gpt2(request):
    return random_gpt2(**request.param)


def error(got, expected):
    got, expected = got.double().cpu(), expected.double().cpu()
    assert got.isfinite().all()
    return float((got - expected).abs().max() / expected.abs().max())


def padded(model, length):
    """Tokens and a mask: one row full, one padded on the left, one on the right."""
    tokens = random_tokens(model, 3, length)
    mask = torch.ones(3, length, dtype=torch.bool)
    mask[1, :4] = False
    mask[2, -4:] = False
    return tokens, mask


@pytest.mark.parametrize("explicit", [False, True])
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_logits_equal_transformers(gpt2, dtype, explicit):
    model = load_model(gpt2, device=DEVICE, dtype=dtype)
    assert model.W_E.device.type == torch.device(DEVICE).type
    tokens = random_tokens(model, 3, model.config.n_ctx)
    hooks = [("blocks.0.attn.hook_pattern", lambda x, *, hook: None)] if explicit else []
    with torch.no_grad():
        logits = model.run_with_hooks(tokens, fwd_hooks=hooks)
        expected = gpt2(tokens).logits
        theirs = gpt2.to(DEVICE, dtype)(tokens.to(DEVICE)).logits
    assert logits.dtype == dtype
    assert error(logits, expected) < TOLERANCE[dtype]
    if dtype != torch.float32:
        assert error(logits, expected) < 3 * error(theirs, expected)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_padding_changes_no_logits(gpt2, dtype):
    model = load_model(gpt2, device=DEVICE, dtype=dtype)
    tokens, mask = padded(model, 12)
    with torch.no_grad():
        logits = model(tokens, attention_mask=mask)
        for row in range(3):
            alone = gpt2(tokens[row][mask[row]][None]).logits[0]
            assert error(logits[row][mask[row].to(DEVICE)], alone) < TOLERANCE[dtype]


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_components_sum_to_the_stream(gpt2, dtype):
    model = load_model(gpt2, device=DEVICE, dtype=dtype)
    tokens, mask = padded(model, 12)
    stream = residual_stream(model, tokens, attention_mask=mask)
    assert error(stream.components.double().sum(0), stream.total) < SUM_TOLERANCE[dtype]


def test_attributions_sum_to_the_logit(gpt2):
    model = load_model(gpt2, device=DEVICE)
    tokens, mask = padded(model, 12)
    rows = direct_logit_attribution(model, residual_stream(model, tokens, attention_mask=mask), 7, 8).examples
    with torch.no_grad():
        logits = model(tokens, attention_mask=mask)
    last = torch.tensor([11, 11, 7])
    difference = (logits[..., 7] - logits[..., 8])[torch.arange(3), last]
    got = torch.tensor(rows.groupby("example")["attribution"].sum().to_numpy())
    assert float((got - difference.cpu()).abs().max()) < 1e-5 * float(logits.abs().max())


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_the_hash_does_not_depend_on_the_device(gpt2, dtype):
    assert load_model(gpt2, device=DEVICE, dtype=dtype).hash == load_model(gpt2, dtype=dtype).hash


def test_folding_keeps_the_logits(gpt2):
    model = load_model(gpt2, device=DEVICE)
    tokens = random_tokens(model)
    with torch.no_grad():
        assert error(fold_layer_norm(model)(tokens), model(tokens)) < TOLERANCE[torch.float32]


def test_a_device_that_is_not_there_is_a_clear_error(gpt2):
    with pytest.raises(ValueError, match="device: 'cuda:99' was asked for, but "):
        load_model(gpt2, device="cuda:99")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="the simulated device has no TF32")
def test_a_copy_is_compared_with_its_module_in_whole_precision():
    """With TF32, which a user may have asked for, products on the device differ from the copy's by a thousandth."""
    torch.set_float32_matmul_precision("high")
    module = random_gpt2(**SHAPES[1]).float().to(DEVICE)
    tokens = random_tokens(load_model(module), rows=2)
    assert torch.get_float32_matmul_precision() == "high"
    with torch.no_grad():
        found, exact = module(tokens.to(DEVICE)).logits.cpu(), module.cpu()(tokens).logits
    assert (found - exact).abs().max() > 1e-4 * exact.abs().max()
