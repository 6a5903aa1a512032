"""Are layers, heads and numbers checked where a user's types are not, and NumPy's taken as Python's?"""

import json
import os
import subprocess
import sys

REFUSED = {
    "ablate(layers=1)": "layers: expected a list of whole numbers such as [0, 1], got 1",
    "ablate(layers='01')": "layers: expected a list of whole numbers such as [0, 1], got '01'",
    "ablate(layers=['a'])": "layers: expected a list of whole numbers such as [0, 1], got ('a',)",
    "ablate(layers=[1.0])": "layers: expected a list of whole numbers such as [0, 1], got (1.0,)",
    "ablate(layers=[True, False])": "layers: expected a list of whole numbers such as [0, 1], got (True, False)",
    "ablate(layers=np.array(1))": "layers: expected a list of whole numbers such as [0, 1], got 1",
    "ablate(site='z', layers=['a'])": "layers: expected a list of whole numbers such as [0, 1], got ('a',)",
    "ablate(heads=5)": "heads: expected (layer, head) pairs, got 5; give a list such as",
    "ablate(heads=[(True, False)])": "heads: expected (layer, head) pairs, got ((True, False),); give",
    "ablate(heads=[([0], 1, 1)])": "heads: expected (layer, head) pairs, got (((0,), 1, 1),); give",
    "ablate(heads=[{0, 1}])": "heads: expected (layer, head) pairs, got ({0, 1},); give",
    "ablate(sets=5)": "sets: expected sets of (layer, head) pairs, got 5; give a list such as [[(2, 1)]]",
    "ablate(sets=[5])": "heads: expected (layer, head) pairs, got 5; give a list such as",
    "ablate(sets=[None])": "heads: expected (layer, head) pairs, got None; give a list such as",
    "ablate(draws=1.5)": "draws: expected a whole number of at least 1, got 1.5",
    "ablate(draws='2')": "draws: expected a whole number of at least 1, got '2'",
    "ablate(draws=True)": "draws: expected a whole number of at least 1, got True",
    "ablate(memory_budget='1GB')": "memory budget: expected a number of bytes from 1, got '1GB'",
    "ablate(memory_budget=True)": "memory budget: expected a number of bytes from 1, got True",
    "patch(layers=1)": "layers: expected a list of whole numbers such as [0, 1], got 1",
    "patch(layers='01')": "layers: expected a list of whole numbers such as [0, 1], got '01'",
    "patch(layers=['a'])": "layers: expected a list of whole numbers such as [0, 1], got ('a',)",
    "patch(layers=[1.0])": "layers: expected a list of whole numbers such as [0, 1], got (1.0,)",
    "patch(layers=[True, False])": "layers: expected a list of whole numbers such as [0, 1], got (True, False)",
    "patch(screen=1)": "screen: expected True, False or a method, got 1; known are 'attribution'",
    "patch(screen='atribution')": "screen: 'atribution' is unknown; did you mean 'attribution'",
    "patch(screen=True, top='.5')": "top: expected a number of cells from 1, or a share above 0.0 and up to 1.0, got",
    "patch(screen=True, audit=None)": "audit: expected a number of cells from 1, or a share above 0.0",
    "patch(screen=True, memory_budget='1GB')": "memory budget: expected a number of bytes from 1, got '1GB'",
    "attribute(memory_budget='1GB')": "memory budget: expected a number of bytes from 1, got '1GB'",
    "greedy(n_heads='2')": "n_heads: expected 1 to 6 steps, as many as there are heads, got '2'",
    "greedy(n_heads=1.5)": "n_heads: expected 1 to 6 steps, as many as there are heads, got 1.5",
    "greedy(n_heads=True)": "n_heads: expected 1 to 6 steps, as many as there are heads, got True",
    "path_patch(paths=None)": "paths: expected a list of paths such as [['0.1', '2.3.k']], got None",
    "path_patch(paths='0.1')": "paths: expected a list of paths such as [['0.1', '2.3.k']], got '0.1'",
    "path_patch(paths=[5])": "a path: expected a sender and a receiver, such as ['0.1', '2.3.k'], got 5",
}
"""Calls, and how the messages begin that they are refused with."""

MEANT = {
    "ablate(layers=np.array([0, 1]))": "ablate(layers=[0, 1])",
    "ablate(layers=np.array([1]), components='mlps')": "ablate(layers=[1], components='mlps')",
    "ablate(heads=np.array([[0, 1], [1, 0]]))": "ablate(heads=[(0, 1), (1, 0)])",
    "ablate(heads=[(np.int64(0), np.int32(1))])": "ablate(heads=[(0, 1)])",
    "ablate(sets=[np.array([[0, 1], [1, 0]])])": "ablate(sets=[[(0, 1), (1, 0)]])",
    "ablate(draws=np.int64(2), replacement='resample')": "ablate(draws=2, replacement='resample')",
    "ablate(memory_budget=np.int64(10**8))": "ablate(memory_budget=10**8)",
    "patch(layers=np.array([1]))": "patch(layers=[1])",
    "patch(layers=[np.int64(1)], by=('layer',))": "patch(layers=[1], by=('layer',))",
    "patch(screen=True, top=np.float32(.5), audit=np.int64(1))": "patch(screen=True, top=.5, audit=1)",
    "patch(screen=np.bool_(False))": "patch()",
    "greedy(n_heads=np.int64(1))": "greedy(n_heads=1)",
}
"""Calls with NumPy's numbers, and the same with Python's."""

UNCHECKED = """
import json, sys, warnings
from functools import partial
import numpy as np
import torch
from hand_model import varied_task
from tiny_models import random_model
from interp.errors import InputError
from interp.methods import ablation, attribution, head_sets, patching, path_patching

torch.set_num_threads(1)
warnings.simplefilter("ignore")
given = (random_model(d_vocab=8, n_ctx=12), varied_task(4))
methods = (ablation.ablate, attribution.attribute, head_sets.greedy, patching.patch, path_patching.path_patch)
names = {"np": np} | {each.__name__: partial(each, *given) for each in methods}


def outcome(call):
    try:
        result = eval(call, names)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    labels = result.examples[list(result.labels)]
    types = sorted({type(each).__name__ for name in labels for each in labels[name].tolist()})
    return [types, result.examples.to_csv(), json.dumps(dict(result.provenance), default=repr)]


print(json.dumps({call: outcome(call) for call in json.loads(sys.argv[1])}))
"""


def test_numbers_are_checked_where_types_are_not():
    """In a process of its own: the tests' type checks would be first to refuse them."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
    command = [sys.executable, "-c", UNCHECKED, json.dumps([*REFUSED, *MEANT, *MEANT.values()])]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert run.returncode == 0, run.stderr[-2000:]
    found = json.loads(run.stdout.splitlines()[-1])
    said = {call: str(found[call])[: len(f"InputError: {start}")] for call, start in REFUSED.items()}
    assert said == {call: f"InputError: {start}" for call, start in REFUSED.items()}
    assert {call: found[call] for call in MEANT} == {call: found[same] for call, same in MEANT.items()}
    assert {kind for call in MEANT for kind in found[call][0]} == {"int", "str"}
