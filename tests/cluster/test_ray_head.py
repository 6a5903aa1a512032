"""The whole cluster dies under a sweep: what is complete is kept, and anybody goes on with it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kept_sweeps import events, in_small_parts, sweep, total, whole_files

from interp.runs.run import Run

pytestmark = [pytest.mark.unchecked, pytest.mark.slow]

ADDRESS = "127.0.0.1:6391"
DRIVER = """
import sys, time
import pytest
import torch
from kept_sweeps import in_small_parts, sweep
from interp.cluster.ray import Ray
from interp.runs.run import Run

torch.set_num_threads(1)
patch = pytest.MonkeyPatch()
in_small_parts(patch)
sweep(Run(sys.argv[1], Ray(2, address=sys.argv[2])), n=24, progress=lambda done, total: time.sleep(0.2))
"""


def _environment():
    # Workers find what the tests hand them.
    paths = os.pathsep.join(each for each in sys.path if each)
    return {**os.environ, "PYTHONPATH": paths, "RAY_AUTH_MODE": "disabled"}


@pytest.fixture
def head(ray_module, tmp_path_factory):
    """The folder of a cluster that was begun by Ray's own command."""
    folder = tmp_path_factory.mktemp("ray")
    command = [Path(sys.executable).with_name("ray"), "start", "--head", "--num-cpus=2", "--include-dashboard=false"]
    command += [f"--port={ADDRESS.split(':')[1]}", f"--temp-dir={folder}", "--disable-usage-stats"]
    subprocess.run(command, env=_environment(), check=True, capture_output=True, timeout=120)
    yield folder
    kill_all(folder)


def kill_all(folder):
    """Kill every process that was begun for a cluster; how many there were."""
    killed = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            title = Path(f"/proc/{name}/cmdline").read_bytes().decode(errors="replace")
            if str(folder) in title and int(name) != os.getpid():
                os.kill(int(name), signal.SIGKILL)
                killed += 1
        except OSError:
            continue
    return killed


def test_a_killed_head_costs_nothing_that_was_complete(head, tmp_path, monkeypatch):
    there = tmp_path / "there"
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(there), ADDRESS], env=_environment(), stderr=subprocess.PIPE, text=True
    )
    until = time.monotonic() + 120
    while total(events(there), "kept") < 5:
        assert driver.poll() is None, driver.stderr.read()
        assert time.monotonic() < until
        time.sleep(0.1)
    assert kill_all(head) >= 2
    _, said = driver.communicate(timeout=120)
    assert driver.returncode != 0, said
    assert "InputError: ray: the cluster was lost" in said or "Failed to connect to GCS" in said, said
    before = total(events(there), "kept")
    in_small_parts(monkeypatch)
    sweep(Run(tmp_path / "here"), n=24)
    n_parts = total(events(tmp_path / "here"), "kept")
    assert 5 <= before < n_parts
    sweep(Run(there), n=24)
    assert whole_files(there) == whole_files(tmp_path / "here")
    counts = events(there)
    assert total(counts, "kept") == n_parts
    assert total(counts, "begun") - n_parts <= 2, "of each worker the part that it was at"
