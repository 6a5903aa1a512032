"""What a model would need: the published counts, and operations that PyTorch counts in real runs.

Attention runs unfused there: PyTorch does not count its fused kernel on a CPU.
"""

import pytest
import torch
from random_tasks import change, random_task
from tiny_models import random_model
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode
from variants import VARIANTS

from interp.errors import ConfigError, InputError
from interp.interventions.engine.plan import Classifier, Sizes
from interp.interventions.engine.run import Engine
from interp.interventions.replacement import Zero
from interp.interventions.rows import batches, task_rows
from interp.methods.plan import GB, HARDWARE, Hardware, hardware_called, head_sweep_flops, plan, this_cpu
from interp.model import layers
from interp.model.devices import place_of
from interp.model.presets import PRESETS, cache_bytes, forward_flops, parameter_count, preset, weight_bytes
from interp.model.transformer import HookedTransformer
from interp.residual import collecting

FEW = {
    name: fields
    for name, fields in VARIANTS.items()
    # What relative positions and the other score functions add to the products is left out.
    if fields.get("positions") != "relative" and fields.get("scores", "dot") in ("dot", "scaled_dot")
}


@pytest.mark.parametrize("name", PRESETS)
def test_published_counts(name):
    """Counted on the meta device, where nothing is held."""
    with torch.device("meta"):
        model = HookedTransformer(preset(name).config)
    counted = sum(parameter.numel() for parameter in model.parameters())
    assert counted == parameter_count(preset(name).config)
    published, digits = preset(name).published, preset(name).digits
    assert (counted if digits is None else float(f"{counted:.{digits - 1}e}")) == published


def test_an_unknown_preset():
    with pytest.raises(ConfigError, match="no preset is called 'gpt4'; did you mean 'gpt'"):
        preset("gpt4")


@pytest.mark.parametrize("fields", FEW.values(), ids=FEW.keys())
def test_a_forward_pass_has_as_many_operations(fields, monkeypatch):
    monkeypatch.setattr(layers, "ONEDNN", False)  # PyTorch does not count what oneDNN does
    model = random_model(**fields, dtype=torch.float32)
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter, torch.no_grad():
        model(torch.ones(3, 9, dtype=torch.long))
    assert forward_flops(model.config, 3, 9) == counter.get_total_flops()


@pytest.mark.parametrize("fields", [{}, {"n_layers": 4}, {"n_heads": 4, "n_kv_heads": 1, "gated": True}, {"d_mlp": 0}])
def test_a_head_sweep_has_as_many_operations(fields, monkeypatch):
    monkeypatch.setattr(layers, "ONEDNN", False)
    model, task = random_model(**fields, dtype=torch.float32), random_task(0, lengths=(7, 7, 7))
    heads = [(layer, head) for layer in range(model.config.n_layers) for head in range(model.config.n_heads)]
    # A replacement that no two rows share the effect of, so that no beginning is computed once for several.
    cells = [(change("z", layer, Zero(), heads=(head,)),) for layer, head in heads]
    monkeypatch.setattr(Classifier, "_owners", lambda *_: None)
    monkeypatch.setattr(collecting, "SHARED", 0)
    engine = Engine(
        model,
        "logit_difference",
        cells,
        Sizes(model.config, place_of(model), "logit_difference", [c for (c,) in cells], None),
    )
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        for batch in batches(model, task_rows("logit_difference", task.units)):
            list(engine.measure(engine.base(batch)))
    readout = 2 * 2 * model.config.d_model * len(task.examples) * (1 + len(cells))
    assert head_sweep_flops(model.config, len(task.examples), 7) == counter.get_total_flops() - readout


def test_bytes():
    config = random_model(n_heads=4, n_kv_heads=2).config
    model = HookedTransformer(config).half()
    assert weight_bytes(config, torch.float16) == sum(p.numel() * p.element_size() for p in model.parameters())
    assert cache_bytes(config, 3, 8, torch.float16) == 2 * 2 * 2 * 5 * 3 * 8 * 2


def test_time_is_operations_over_speed():
    small = Hardware("small", 10 * GB, {"float32": 1e9}, 0.5)
    found = plan(preset("gpt2").config, small)
    assert found.parameters == 124_439_808
    assert found.seconds["sweep"] == pytest.approx(found.flops["sweep"] / 0.5e9)
    assert found.flops["sweep"] == pytest.approx(3.6e12, rel=0.05)


def test_what_does_not_fit_is_refused_with_what_would():
    message = (
        r"353\.0 GB in bfloat16, expected at most the 80\.0 GB of 1 x H100 80 GB; what would fit: llama-2-7b here, "
    )
    message += r"or 5 of these together \(--devices 5; this package computes on one\)$"
    with pytest.raises(InputError, match=message):
        plan(preset("gpt3-175b").config, HARDWARE["h100"], dtype="bfloat16")
    assert plan(preset("gpt3-175b").config, HARDWARE["h100"], devices=5, dtype="bfloat16").devices == 5


def test_a_smaller_dtype_is_offered_where_it_fits():
    tight = Hardware("tight", 16 * GB, {"float32": 1e9, "bfloat16": 1e9, "float16": 1e9}, 0.5)
    with pytest.raises(InputError, match="what would fit: bfloat16 here, or float16 here, or gpt2-xl here, or 2 of"):
        plan(preset("llama-2-7b").config, tight)
    with pytest.raises(InputError) as refused:
        plan(preset("gpt3-175b").config, tight)
    assert "bfloat16 here" not in str(refused.value)


def test_prompts_come_in_batches():
    """However many they are, a sweep keeps to its budget; where it holds no cell on a prompt, it is refused."""
    gpt2 = preset("gpt2").config
    kept = [plan(gpt2, HARDWARE["h100"], n_prompts=n, n_tokens=1024).bytes["sweep"] for n in (1, 2, 10_000)]
    assert kept[1] == 2 * kept[0]
    assert kept[2] == HARDWARE["h100"].budget
    small = Hardware("small", 80 * GB, {"float32": 1e9}, 0.5, budget=10)
    with pytest.raises(InputError, match=r"one cell on one row of 1024 tokens takes [0-9,]+ bytes, got a budget of 10"):
        plan(gpt2, small, n_prompts=5, n_tokens=1024)


def test_more_devices_add_no_speed():
    one, five = (plan(preset("gpt2").config, HARDWARE["h100"], devices=n) for n in (1, 5))
    assert one.seconds == five.seconds


def test_bad_input():
    with pytest.raises(InputError, match="tokens: the model's context is 1024, got prompts of 2000"):
        plan(preset("gpt2").config, HARDWARE["h100"], n_tokens=2000)
    with pytest.raises(InputError, match="dtype: H100 80 GB is known for bfloat16, float16, float32, got 'float64'"):
        plan(preset("gpt2").config, HARDWARE["h100"], dtype="float64")
    with pytest.raises(InputError, match="device: expected cpu, a100, h100, h200 to plan for, got 'h10'"):
        hardware_called("h10")


def test_this_processor_is_measured():
    found = this_cpu()
    assert found.memory > GB
    assert all(1e8 < rate < 1e14 for rate in found.flops.values())
