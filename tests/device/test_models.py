"""Models of every kind on the device: transformers', TransformerLens', those from before; and two devices at once."""

import copy

import pytest
import torch
from bridges import booted
from device.simulator import SimulatedCuda
from random_tasks import random_task
from tiny_models import random_gpt2, random_model, random_tokens
from variants import each_variant

import interp
from forerunners.convolution import Convolution, ConvolutionConfig
from forerunners.encoder_decoder import VASWANI, EncoderDecoder
from forerunners.ngram import NGramConfig, fit_ngram
from forerunners.recurrent import Bidirectional, Recurrent, RecurrentConfig
from interp.model.config import TransformerConfig
from interp.model.training import TrainingConfig, train

pytestmark = [pytest.mark.gpu, pytest.mark.unchecked, pytest.mark.filterwarnings("ignore")]

TASK = random_task(3, lengths=(6, 6, 5), d_vocab=40)
SMALL = {"d_model": 16, "d_vocab": 40, "n_layers": 2}
FORERUNNERS = {
    "elman": lambda: Recurrent(RecurrentConfig(**SMALL, cell="elman")),
    "lstm": lambda: Recurrent(RecurrentConfig(**SMALL)),
    "peephole lstm": lambda: Recurrent(RecurrentConfig(**SMALL, cell="peephole")),
    "bidirectional": lambda: Bidirectional(RecurrentConfig(**SMALL)),
    "convolution": lambda: Convolution(ConvolutionConfig(**SMALL)),
}


def close(found, exact, tolerance=1e-9):
    found, exact = (torch.as_tensor(each).detach().cpu() for each in (found, exact))
    assert found.shape == exact.shape
    assert (found - exact).abs().max() <= tolerance * exact.abs().max()
    return True


def ablated(model):
    return interp.ablate(model, TASK, replacement="mean").examples["value"].to_numpy()


def patched(model):
    return interp.patch(model, TASK, by=("layer", "head")).examples["value"].to_numpy()


@each_variant(4)
def test_an_architecture(fields):
    """Forward and backward; patterns by the explicit path."""
    found = []
    for device in ("cpu", "cuda"):
        model = random_model(**fields).to(device)
        model(random_tokens(model)).square().mean().backward()
        _, cache = model.run_with_cache(random_tokens(model), names_filter=lambda name: name.endswith("hook_pattern"))
        gradients = [each.grad.flatten() for each in model.parameters() if each.grad is not None]
        found.append((torch.cat(gradients), torch.stack(list(cache.values()))))
    assert all(close(*each) for each in zip(*reversed(found), strict=True))


@pytest.mark.parametrize("kind", FORERUNNERS)
def test_a_model_from_before(kind):
    """Logits, training, and the weights then."""
    found = []
    for device in ("cpu", "cuda"):
        model = FORERUNNERS[kind]().double().to(device)
        logits = model(random_tokens(model))
        curve = train(model, random_tokens(model, rows=6).tolist(), TrainingConfig(steps=3, batch_size=2)).train
        found.append(
            (
                logits,
                torch.tensor(curve, dtype=torch.float64),
                torch.cat([each.flatten() for each in model.parameters()]),
            )
        )
    assert all(close(*each) for each in zip(*reversed(found), strict=True))


def test_an_ngram_model():
    tokens = random_tokens(random_model(), rows=8)
    tokens[:, 0] = 0
    model = fit_ngram(tokens.tolist(), NGramConfig(3, 40, bos=0))
    assert close(copy.deepcopy(model).to("cuda")(tokens), model(tokens))


def test_an_encoder_and_decoder():
    shape = {"n_layers": 2, "n_heads": 3, "d_model": 12, "d_head": 4, "d_mlp": 20, "d_vocab": 40, "n_ctx": 16}
    model = EncoderDecoder(TransformerConfig(**shape, **VASWANI)).double()
    there = copy.deepcopy(model).to("cuda")
    source, target = random_tokens(model), random_tokens(model, seed=2)
    mask = torch.ones_like(source, dtype=torch.bool)
    mask[1, 5:] = False
    assert close(there(source, target, source_mask=mask), model(source, target, source_mask=mask))
    written = [each.translate(source, 5, bos=0, eos=1, source_mask=mask) for each in (there, model)]
    assert written[0] == written[1]


def test_a_module_of_transformers():
    """Wherever it stands, and wherever its copy is to stand."""
    module = random_gpt2()
    expected = ablated(interp.load_model(module, dtype="float64"))
    there = copy.deepcopy(module).to("cuda")
    for given, device in ((module, "cuda"), (there, "cuda"), (there, "cpu")):
        model = interp.load_model(given, device=device, dtype="float64")
        assert model.W_E.is_cuda == (device == "cuda")
        assert close(ablated(model), expected)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "engine"), [("gpt2", "incremental"), ("codegen", "plain")])
def test_a_bridge(name, engine, tmp_path):
    """By the engine on its copy, and the plain way; loaded there, or moved there."""
    bridge = booted(name, tmp_path, dtype=torch.float64)
    expected = ablated(bridge), patched(bridge)
    for there in (interp.load_model(f"bridge:{tmp_path}", device="cuda", dtype="float64"), bridge.to("cuda")):
        assert next(there.parameters()).is_cuda
        assert interp.ablate(there, TASK, replacement="zero").provenance["engine"] == engine
        assert close(ablated(there), expected[0])
        assert close(patched(there), expected[1])


@pytest.fixture
def two():
    if torch.cuda.device_count() >= 2:
        yield
    else:
        with SimulatedCuda(devices=2):
            yield


@pytest.mark.usefixtures("two")
def test_a_second_device_beside_another_model():
    model = random_model()
    others = [copy.deepcopy(model).to(device) for device in ("cuda:0", "cuda:1")]
    for call in (ablated, patched):
        exact = call(model)
        assert all(close(call(each), exact) for each in reversed(others))
    tokens = random_tokens(model)
    assert (others[1].generate(tokens, 4).cpu() == model.generate(tokens, 4)).all()
    assert [str(next(each.parameters()).device) for each in others] == ["cuda:0", "cuda:1"]
