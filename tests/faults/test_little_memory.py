"""The system gives a process no more memory: a sweep halves what it runs at once until it fits, and says so."""

import json
import os
import subprocess
import sys

import pandas as pd
import pytest

pytestmark = pytest.mark.unchecked

SCRIPT = """
import json, resource, sys
import torch
from random_tasks import change, random_task
from interp.interventions.engine import plan
from interp.interventions.replacement import Zero
from interp.interventions.sweep import Cell, Sweep
from interp.model.config import TransformerConfig
from interp.model.transformer import HookedTransformer
from interp.runs.run import Run

out, room = sys.argv[1], int(sys.argv[2])
torch.set_num_threads(1)
torch.manual_seed(0)
plan.TOKENS_AT_ONCE["cpu"] = 10**6  # so that memory is what binds
shape = {"n_layers": 2, "n_heads": 8, "d_model": 256, "d_head": 32, "d_mlp": 1024, "d_vocab": 1000, "n_ctx": 32}
model = HookedTransformer(TransformerConfig(**shape, init_std=0.2))
zero = Zero()
cells = [
    Cell({"layer": layer, "head": head}, (change("z", layer, zero, heads=(head,)),))
    for layer in range(2) for head in range(8)
]

def sweep(units, run=None):
    task = random_task(0, lengths=(24,) * units, d_vocab=1000)
    return Sweep(cells).run(model, task, memory_budget=4 * 2**30, run=run)

sweep(2)  # from here on the libraries hold their code
with open("/proc/self/status") as lines:
    held = next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmSize"))
if room:
    resource.setrlimit(resource.RLIMIT_AS, (held + room * 2**20,) * 2)
found = sweep(64, Run(out))
print(json.dumps({name: found.provenance[name] for name in ("halvings", "audit")}))
"""


def swept(out, room):
    """What a sweep says of itself, in a process with so many megabytes more than it has, or any number with 0."""
    # Freed memory goes back to the system at once: what is limited is what is held.
    allocator = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "0"}
    environment = {**os.environ, **allocator, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
    command = [sys.executable, "-c", SCRIPT, str(out), str(room)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert run.returncode == 0, run.stderr[-2000:]
    (folder,) = out.iterdir()
    return json.loads(run.stdout.splitlines()[-1]), pd.read_parquet(folder / "frame.parquet")


@pytest.mark.slow
def test_a_sweep_in_little_memory_agrees_with_one_in_much(tmp_path):
    (free, whole), (limited, halved) = swept(tmp_path / "much", 0), swept(tmp_path / "little", 90)
    assert free["halvings"] == 0
    assert limited["halvings"] >= 3
    tolerance = limited["audit"]["tolerance"]
    assert limited["audit"]["largest_difference"] <= tolerance
    pd.testing.assert_frame_equal(
        whole.drop(columns=["value", "effect", "change_norm"]),
        halved[[name for name in halved if name not in ("value", "effect", "change_norm")]],
    )
    largest = whole["value"].abs().max()
    assert (whole["value"] - halved["value"]).abs().max() <= tolerance * largest
