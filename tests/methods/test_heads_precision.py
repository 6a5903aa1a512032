"""The dossier in other precisions and on a GPU, against float64 on the CPU."""

import dataclasses

import pytest
import torch

import interp

pytestmark = pytest.mark.unchecked

# Largest difference of any head's effect, relative to the largest effect.
TOLERANCE = {"float32": 1e-5, "bfloat16": 2e-2, "float16": 4e-3}


def effects(device, dtype):
    model = interp.load_model(device=device, dtype=dtype)
    task = interp.load_task("induction", n=24, tokenizer=model.tokenizer, n_ctx=model.cfg.n_ctx)
    few = tuple(units[:48] for units in task.references)  # half precision is slow on a CPU
    return interp.heads(model, [dataclasses.replace(task, references=few)], probes=False, max_group=0).summary()


@pytest.fixture(scope="module")
def exact():
    return effects("cpu", "float64")


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", pytest.param("float16", marks=pytest.mark.slow)])
def test_effects_and_attention_in_other_precisions(exact, device, dtype):
    assert not torch.backends.cuda.matmul.allow_tf32  # PyTorch's default, which the float32 tolerance needs
    found = effects(device, dtype)
    error = (found["effect"] - exact["effect"]).abs().max() / exact["effect"].abs().max()
    assert error <= TOLERANCE[dtype]
    assert (found["attention"] - exact["attention"]).abs().max() <= TOLERANCE[dtype]
    if dtype != "float32":
        assert error > 1e-7  # it really ran in fewer bits
