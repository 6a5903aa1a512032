"""What is on another device than the model is moved to it, or refused in one line; never torch's own error."""

import copy

import pytest
import torch
from random_passages import random_passages
from random_tasks import random_task
from tiny_models import random_model, random_tokens
from typer.testing import CliRunner

import interp
from interp.cli import app
from interp.errors import ConfigError, HookError, LoadError
from interp.interventions.reference_set import make_replacement
from interp.methods.self_repair import self_repair
from interp.model.attention import KeyValueCache
from interp.model.sites import Site
from interp.residual.logit_lens import logit_lens
from interp.residual.tuned_lens import TunedLensFitter, train_tuned_lens
from interp.runs.collecting import collect

pytestmark = [pytest.mark.unchecked, pytest.mark.filterwarnings("ignore")]

TASK, SITES = random_task(3, lengths=(6, 6, 5)), [Site("z", layer) for layer in range(2)]
NOT_THERE = {
    "cuda:9": "device: 'cuda:9' was asked for, but ",
    "cuda:-1": "device: expected cpu, cuda, cuda:N or auto, got 'cuda:-1'",
    "mps": "device: expected cpu, cuda, cuda:N or auto, got 'mps'",
    "gpu": "device: expected cpu, cuda, cuda:N or auto, got 'gpu'",
}


def refused_by_the_command_line(device):
    result = CliRunner().invoke(app, ["ablate", "--task", "agreement", "--n", "6", "--device", device])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("error: ")


@pytest.mark.parametrize("name", NOT_THERE)
def test_a_device_that_is_not_there(name, device):
    with pytest.raises(ConfigError, match=NOT_THERE[name]):
        interp.load_model(device=name)
    assert refused_by_the_command_line(name).startswith(NOT_THERE[name])


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is there")
@pytest.mark.parametrize("name", ["cuda", "cuda:0"])
def test_where_there_is_no_gpu(name):
    said = f"device: '{name}' was asked for, but PyTorch sees no CUDA device here; use cpu"
    with pytest.raises(ConfigError, match=said):
        interp.load_model(device=name)
    assert refused_by_the_command_line(name).startswith(said)
    assert interp.load_model(device="auto").W_E.device.type == "cpu"


MODEL, PROMPTS = random_model(), random_tokens(random_model())


def there():
    return copy.deepcopy(MODEL).to("cuda")


def values(result, column="value"):
    return torch.from_numpy(result.examples[column].to_numpy(dtype=float))


@torch.no_grad()
def moved_while_it_reads():
    """The keys and values of half a prompt stay behind."""
    model, cache = copy.deepcopy(MODEL), KeyValueCache.empty(2)
    model(PROMPTS[:, :4], cache=cache)
    return model.to("cuda")(PROMPTS[:, 4:], cache=cache), MODEL(PROMPTS)[:, 4:]


def moved_with_its_stream_left_behind():
    stream = interp.residual_stream(MODEL, PROMPTS)
    return tuple(
        values(interp.direct_logit_attribution(each, stream, 3, 4), "attribution") for each in (there(), MODEL)
    )


def moved_while_its_lens_is_trained():
    fitters = [TunedLensFitter(copy.deepcopy(MODEL)).update(PROMPTS) for _ in range(2)]
    fitters[0]._model.to("cuda")
    return tuple(each.update(PROMPTS).lens.W for each in fitters)


def moved_between_two_calls_of_a_run():
    """What was kept of the CPU is no answer of the device's."""
    model, run = copy.deepcopy(MODEL), interp.Run("run")
    found = []
    for device in ("cpu", "cuda"):
        found.append(interp.ablate(model.to(device), TASK, replacement="mean", run=run))
        assert found[-1].provenance["device"].startswith(device)
    return tuple(map(values, reversed(found)))


def a_lens_of_the_host():
    lens = TunedLensFitter(MODEL).update(PROMPTS).lens
    return tuple(values(logit_lens(each, PROMPTS, translate=lens), "kl") for each in (there(), MODEL))


def a_translation_to_the_host():
    return tuple(
        values(logit_lens(each, PROMPTS, translate=lambda x, _depth: x.cpu() * 2), "kl") for each in (there(), MODEL)
    )


def means_of_the_host():
    means = make_replacement("mean", MODEL, TASK, sites=SITES)
    return tuple(values(interp.ablate(each, TASK, replacement=means)) for each in (there(), MODEL))


def means_of_the_host_for_direct_effects():
    means = make_replacement("mean", MODEL, TASK, sites=SITES)
    return tuple(values(self_repair(each, TASK, replacement=means), "direct") for each in (there(), MODEL))


def rows_of_the_host():
    return tuple(train_tuned_lens(each, PROMPTS, steps=2, batch_size=2).W for each in (there(), MODEL))


def tokens_and_a_mask_of_the_device():
    mask = torch.ones_like(PROMPTS)
    mask[1, 6:] = 0
    given = [(PROMPTS.to(device), mask.to(device)) for device in ("cuda", "cpu")]
    return tuple(MODEL(tokens, attention_mask=mask) for tokens, mask in given)


def a_loss_of_the_host_s_tokens():
    return tuple(each.loss_fn(each(PROMPTS), PROMPTS) for each in (there(), MODEL))


def a_prompt_of_the_host():
    return tuple(each.generate(PROMPTS, 4).double() for each in (there(), MODEL))


MOVED = (
    *(moved_while_it_reads, moved_with_its_stream_left_behind, moved_while_its_lens_is_trained),
    *(moved_between_two_calls_of_a_run, a_lens_of_the_host, a_translation_to_the_host, means_of_the_host),
    *(means_of_the_host_for_direct_effects, rows_of_the_host, tokens_and_a_mask_of_the_device),
    *(a_loss_of_the_host_s_tokens, a_prompt_of_the_host),
)


@pytest.mark.gpu
@pytest.mark.parametrize("call", MOVED)
def test_what_is_elsewhere_is_moved(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found, expected = (each.detach().cpu() for each in call())
    assert expected.abs().max() > 0
    assert (found - expected).abs().max() <= 1e-9 * expected.abs().max()


@pytest.mark.gpu
def test_a_hook_that_returns_another_device():
    with pytest.raises(HookError, match="a hook returned device cpu, expected cuda:0; return a tensor of the same"):
        there().run_with_hooks(PROMPTS, fwd_hooks=[("blocks.0.hook_resid_pre", lambda x, *, hook: x.cpu())])


def interrupt(n_words):
    """When some shards are there."""
    if n_words > 20:
        raise KeyboardInterrupt


@pytest.mark.gpu
def test_activations_that_were_begun_elsewhere(tmp_path):
    """Some of its shards are there; a store that is complete serves a model wherever it is."""
    how = {"data_hash": "made up", "shard_bytes": 2_000}
    given = (random_passages(), SITES, tmp_path / "store")
    with pytest.raises(KeyboardInterrupt):
        collect(MODEL, *given, **how, progress=interrupt)
    with pytest.raises(LoadError, match="device"):
        collect(there(), *given, **how)
    store = collect(MODEL, *given, **how)
    store.require_model(there())
    assert collect(there(), *given, **how).read(SITES[0]).equal(store.read(SITES[0]))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_direct_effects_in_half_precision(dtype, device):
    model, exact = copy.deepcopy(MODEL).to(device, getattr(torch, dtype)), copy.deepcopy(MODEL)
    found, expected = (values(self_repair(each, TASK, replacement="zero"), "direct") for each in (model, exact))
    assert (found - expected).abs().max() < 0.05 * expected.abs().max()
