"""Every precision, on the CPU and on the device, against 64 bits on the CPU: relative to the largest number.

In half precision a number carries 2^-9 (bfloat16) or 2^-12 (float16) of rounding error, which a run of these models,
whose weights are large so that every one counts, amplifies.
"""

import pytest
import torch
from random_tasks import random_task
from tiny_models import random_model, random_tokens

import interp
from interp.errors import InputError
from interp.model.positions import places_of
from interp.model.training import TrainingConfig, train
from interp.residual.stream import residual_stream
from interp.tasks import agreement
from interp.tasks.generated_corpus import linked_documents

pytestmark = [pytest.mark.unchecked, pytest.mark.filterwarnings("ignore")]

TOLERANCE = {"float64": 1e-10, "float32": 1e-4, "bfloat16": 0.05, "float16": 0.005}
TASK = random_task(3, lengths=(6, 6, 5))
TRAINING = {"steps": 10, "batch_size": 2, "warmup_steps": 2, "adamw_lr": 0.02}
ROWS = [[1, 2, 3, 4, 5], [5, 4, 3, 2, 1]] * 20


def made(dtype="float64", device="cpu", **fields):
    return random_model(**fields).to(device, getattr(torch, dtype))


def error(found, exact):
    found, exact = (torch.as_tensor(each).detach().cpu().double() for each in (found, exact))
    assert found.isfinite().all()
    assert found.shape == exact.shape
    return float((found - exact).abs().max() / exact.abs().max())


def patterns(model):
    _, cache = model.run_with_cache(random_tokens(model), names_filter=lambda name: name.endswith("hook_pattern"))
    return torch.stack(list(cache.values()))


def gradients(model):
    model(random_tokens(model), return_type="loss").backward()
    return torch.cat([each.grad.flatten() for each in model.parameters()])


CALLS = {
    "logits": lambda model: model(random_tokens(model)),
    "patterns": patterns,
    "gradients": gradients,
    "ablate": lambda model: interp.ablate(model, TASK, replacement="mean").examples["value"].to_numpy(),
    "patch": lambda model: interp.patch(model, TASK, by=("layer", "head")).examples["value"].to_numpy(),
    "residual_stream": lambda model: residual_stream(model, random_tokens(model)).components,
}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", CALLS)
def test_a_call(name, dtype, device):
    assert error(CALLS[name](made(dtype, device)), CALLS[name](made())) < TOLERANCE[dtype]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_attention_along_a_relation(dtype, device):
    corpus = list(linked_documents(agreement.pairs(40, seed=0)))
    found, exact = (
        interp.attend(interp.load_model(dtype=each, device=place), corpus, ["subject"])
        for each, place in ((dtype, device), ("float64", "cpu"))
    )
    assert error(found.examples["attention"].to_numpy(), exact.examples["attention"].to_numpy()) < TOLERANCE[dtype]
    assert found.best()["verdict"].tolist() == ["attends"]


VARIANTS = [
    {},
    {"sinks": True, "score_cap": 30.0},
    {"scores": "bilinear"},
    {"scores": "additive"},
    {"positions": "relative", "relative_distance": 4},
    {"positions": "alibi", "n_kv_heads": 1},
]


@pytest.mark.parametrize("fields", VARIANTS, ids=str)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_pattern_is_off_by_its_own_rounding_alone(dtype, fields, device):
    """Of the same queries and keys; scores in 16 bits would double that, and of larger models make it a tenth."""
    attention, exact = (
        made(*each, **fields, n_heads=4, d_model=64, d_head=16).blocks[0].attn for each in ((dtype, device), ())
    )
    exact.load_state_dict({name: each.cpu().double() for name, each in attention.state_dict().items()})
    q, k = 2 * torch.randn(2, 2, 12, 4, 16, generator=torch.Generator().manual_seed(0)).to(attention.W_Q.dtype)
    k = k[:, :, : attention.W_K.shape[0]]
    seen = torch.ones(2, 12, dtype=torch.bool)
    places = [places_of(each, 12, causal=True) for each in (seen.to(device), seen)]
    found = attention.pattern(attention.scores(q.to(device), k.to(device), places[0]))
    assert found.dtype == attention.W_Q.dtype
    expected = exact.pattern(exact.scores(q.double(), k.double(), places[1]))
    assert (found.cpu() - expected).abs().max() < 1.1 * torch.finfo(found.dtype).eps / 2


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_what_is_written_is_most_probable_in_64_bits_too(dtype, device):
    model, exact = made(dtype, device), made()
    prompts = random_tokens(exact)
    for cached in (True, False):
        tokens = model.generate(prompts, 4, temperature=0.0, stop_at_eos=False, use_past_kv_cache=cached).cpu()
        assert tokens.shape == (3, 13)
        logits = exact(tokens)[:, 8:-1]
        chosen = logits.gather(-1, tokens[:, 9:, None])[..., 0]
        assert (logits.max(-1).values - chosen).max() <= 2 * TOLERANCE[dtype] * logits.abs().max()


@pytest.mark.parametrize(
    "options",
    [{"dtype": each} for each in ("float64", "float32", "bfloat16")] + [{"precision": "bfloat16", "dtype": "float32"}],
    ids=str,
)
@pytest.mark.parametrize("optimizer", ["adamw", pytest.param("muon", marks=pytest.mark.slow)])
def test_training(options, optimizer, device):
    (dtype, precision), shape = (options["dtype"], options.get("precision", "float32")), {"d_vocab": 10, "n_ctx": 5}
    config = TrainingConfig(**TRAINING, optimizer=optimizer, precision=precision)
    found, exact = (train(made(*each, **shape), ROWS, config).train for each in ((dtype, device), ("float64", "cpu")))
    assert found[-1] < 0.5 * found[0]
    assert error(found, exact) < 3 * TOLERANCE["bfloat16" if "bfloat16" in options.values() else dtype]


def test_training_in_float16_is_refused(device):
    with pytest.raises(InputError, match="model: expected weights in float32, got float16, in which Adam divides by 0"):
        train(made("float16", device), ROWS, TrainingConfig(**TRAINING))
