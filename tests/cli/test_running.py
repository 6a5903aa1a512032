"""Who computes, as the options ask; and what is freed goes back, where a limit is asked for."""

import subprocess
import sys
from pathlib import Path

import pytest

from interp.cli.running import Work

pytestmark = pytest.mark.unchecked
SCRIPT = """
import sys
import numpy as np
from interp.cli.running import give_back_freed_memory


def resident():
    with open("/proc/self/status") as lines:
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


if sys.argv[1] == "limited":
    give_back_freed_memory()
del_me = np.ones(30_000_000 // 8)
del del_me  # from here on glibc keeps blocks of up to 30 MB
blocks = [np.ones(125_000) for _ in range(60)]
before = resident()
blocks[::2] = [None] * 30
print(before - resident())
"""


@pytest.mark.parametrize(
    ("device", "gpus", "cuda", "expected"),
    [
        ("cpu", None, True, None),
        ("cpu", 0.5, True, 0.5),
        ("auto", None, False, None),
        ("auto", None, True, 1),
        ("cuda", None, True, 1),
        ("auto", 0.5, True, 0.5),
    ],
)
def test_a_worker_of_a_cluster_has_a_gpu_where_it_computes_on_one(monkeypatch, device, gpus, cuda, expected):
    monkeypatch.setattr("torch.cuda.is_available", lambda: cuda)
    monkeypatch.setattr("torch.cuda.device_count", lambda: int(cuda))
    assert Work(executor="ray", device=device, gpus=gpus).who().gpus == expected


@pytest.mark.skipif(not Path("/proc/self/status").exists() or sys.platform != "linux", reason="needs Linux")
def test_freed_memory_goes_back():
    given_back = {
        how: int(subprocess.run([sys.executable, "-c", SCRIPT, how], capture_output=True, text=True, check=True).stdout)
        for how in ("limited", "as it is")
    }
    assert given_back["limited"] > 25_000_000
    assert given_back["as it is"] < 5_000_000
