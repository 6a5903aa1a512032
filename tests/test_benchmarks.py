"""What benchmarks measure as ours is the sweep that users run."""

import importlib
from pathlib import Path

import pytest
import torch
from tiny_models import random_model

BENCHMARKS = str(Path(__file__).resolve().parent.parent / "benchmarks")


@pytest.fixture
def modules(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("workloads"), importlib.import_module("ours")


@pytest.mark.parametrize("case", ["heads", "head_pos", "resid_pos"])
def test_a_sweep_gives_what_one_forward_pass_a_cell_gives(modules, case):
    workloads, ours = modules
    model = random_model(n_layers=2, n_heads=2)
    inputs = workloads.random_inputs(workloads.Workload(case, 3, 5, shared=0.4), model.config.d_vocab)
    at = None if case == "heads" else 3
    cells = [workloads.Cell(layer, None if case == "resid_pos" else 1, at) for layer in range(2)]
    clean, found = model.run_with_cache(inputs.clean_tokens)[1], ours.run_sweep(model, inputs, cells)
    for cell, own in zip(cells, found, strict=True):
        point = f"blocks.{cell.layer}.{'hook_resid_pre' if cell.head is None else 'attn.hook_z'}"

        def replaced(old, hook, cell=cell, new=clean[point]):
            old[cell.index] = 0 if cell.pos is None else new[cell.index]
            return old

        logits = model.run_with_hooks(inputs.tokens, fwd_hooks=[(point, replaced)])
        torch.testing.assert_close(own.double(), inputs.logit_difference(logits), rtol=1e-5, atol=1e-5)
