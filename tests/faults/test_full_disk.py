"""A disk that is full keeps what is complete; with room again, the rest is measured, and nothing else."""

import os
import subprocess

import pandas as pd
import pytest
from kept_sweeps import events, in_small_parts, sweep, total, whole_files

from interp.errors import OutputError
from interp.runs.run import Run

pytestmark = pytest.mark.unchecked


@pytest.fixture
def small_disk(tmp_path):
    """A file system of so few bytes that a sweep does not fit."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("only root can mount a small file system")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_disk(small_disk, tmp_path, monkeypatch):
    in_small_parts(monkeypatch)
    whole = sweep(Run(tmp_path / "whole"), n=12)
    n_parts = total(events(tmp_path / "whole"), "kept")
    with pytest.raises(OutputError, match=r"expected a place that can be written, got 'No space left on device'"):
        sweep(Run(small_disk), n=12)
    kept = total(events(small_disk), "kept")
    assert 0 < kept < n_parts
    with pytest.raises(OutputError, match="No space left"):
        sweep(Run(small_disk), n=12)
    subprocess.run(["mount", "-o", "remount,size=64M", small_disk], check=True)
    found = sweep(Run(small_disk), n=12)
    pd.testing.assert_frame_equal(found.examples, whole.examples, check_exact=True)
    assert whole_files(small_disk) == whole_files(tmp_path / "whole")
    assert total(events(small_disk), "damaged") == 0


def test_a_clock_that_jumps_changes_nothing(tmp_path, monkeypatch):
    in_small_parts(monkeypatch)
    sweep(Run(tmp_path / "whole"))
    times = iter([2e9, 0.0, 1e9, -1e9] * 1000)
    for name in ("time", "monotonic", "perf_counter"):
        monkeypatch.setattr(f"time.{name}", lambda: next(times))
    monkeypatch.setattr("time.strftime", lambda _format: "1970-01-01T00:00:00+0000")
    sweep(Run(tmp_path / "jumping"))
    assert whole_files(tmp_path / "jumping") == whole_files(tmp_path / "whole")


def test_a_finished_run_is_found_in_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    in_small_parts(monkeypatch)
    whole = sweep(Run(tmp_path))

    def refuse(*_arguments, **_options):
        raise OSError(30, "Read-only file system")

    for name in ("replace", "mkdir", "unlink", "fsync"):
        monkeypatch.setattr(os, name, refuse)
    pd.testing.assert_frame_equal(sweep(Run(tmp_path)).examples, whole.examples, check_exact=True)
    with pytest.raises(OutputError, match="Read-only file system"):
        sweep(Run(tmp_path), seed=1)
