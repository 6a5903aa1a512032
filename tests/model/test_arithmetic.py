"""The settings of torch that change bits: found whatever name set them, and taken on by another process."""

import json
import subprocess
import sys

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


def older_name():
    torch.set_float32_matmul_precision("medium")


def cuda_products():
    torch.backends.cuda.matmul.allow_tf32 = True


def newer_name():
    torch.backends.cuda.matmul.fp32_precision = "tf32"


def convolutions():
    torch.backends.cudnn.allow_tf32 = False


def cpu_products():
    torch.backends.mkldnn.matmul.fp32_precision = "bf16"


def no_onednn():
    torch.backends.mkldnn.enabled = False


def deterministic():
    torch.use_deterministic_algorithms(True, warn_only=True)


CHANGES = [older_name, cuda_products, newer_name, convolutions, cpu_products, no_onednn, deterministic]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_every_setting_is_found_and_taken_on(before, change):
    change()
    found = arithmetic()
    assert found != before
    assert json.loads(json.dumps(found)) == found
    set_arithmetic(before)
    assert arithmetic() == before
    set_arithmetic(found)
    assert arithmetic() == found


def test_another_process_computes_in_it_too():
    cpu_products()
    code = (
        "import json, sys; from interp.model.devices import arithmetic, set_arithmetic\n"
        "set_arithmetic(json.loads(sys.argv[1])); print(json.dumps(arithmetic()))"
    )
    told = subprocess.run([sys.executable, "-c", code, json.dumps(arithmetic())], capture_output=True, check=True)
    assert json.loads(told.stdout) == arithmetic()
