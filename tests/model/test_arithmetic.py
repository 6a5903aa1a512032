"""The settings of torch that change bits: found whatever name set them, and taken on by another process."""

import json
import os
import subprocess
import sys
from functools import partial

import pytest
import torch

from interp.model.devices import arithmetic, set_arithmetic

pytestmark = pytest.mark.unchecked


@pytest.fixture(autouse=True)
def before():
    found = arithmetic()
    yield found
    torch.set_float32_matmul_precision("highest")  # the older names' own state
    torch.backends.cudnn.allow_tf32 = True
    set_arithmetic(found)


VARIABLE = "TORCH_CUDNN_SDPA_DEPRIORITIZED"
CHANGES = {
    "older name": lambda: torch.set_float32_matmul_precision("medium"),
    "products on the device": partial(setattr, torch.backends.cuda.matmul, "allow_tf32", True),
    "newer name": partial(setattr, torch.backends.cuda.matmul, "fp32_precision", "tf32"),
    "convolutions": partial(setattr, torch.backends.cudnn, "allow_tf32", False),
    "products on a CPU": partial(setattr, torch.backends.mkldnn.matmul, "fp32_precision", "bf16"),
    "no oneDNN": partial(setattr, torch.backends.mkldnn, "enabled", False),
    "deterministic": lambda: torch.use_deterministic_algorithms(True, warn_only=True),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_setting_is_found_and_taken_on(before, change):
    CHANGES[change]()
    found = arithmetic()
    assert found != before
    assert json.loads(json.dumps(found)) == found
    set_arithmetic(before)
    assert arithmetic() == before
    set_arithmetic(found)
    assert arithmetic() == found


def test_another_process_computes_in_it_too():
    CHANGES["products on a CPU"]()
    code = (
        "import json, sys; from interp.model.devices import arithmetic, set_arithmetic\n"
        "set_arithmetic(json.loads(sys.argv[1])); print(json.dumps(arithmetic()))"
    )
    told = subprocess.run([sys.executable, "-c", code, json.dumps(arithmetic())], capture_output=True, check=True)
    assert json.loads(told.stdout) == arithmetic()


@pytest.mark.parametrize("asked", [None, "0"])
def test_cudnn_s_attention_which_plans_each_shape_anew_is_not_preferred(asked):
    """Unless somebody says otherwise."""
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    environment |= {} if asked is None else {VARIABLE: asked}
    script = f"import os, interp.model.attention; print(os.environ[{VARIABLE!r}])"
    found = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == (asked or "1")
