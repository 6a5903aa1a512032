"""Is what this machine lacks told: a GPU, a torch that computes, a place to write, room?"""

import os
import shutil
from types import SimpleNamespace

import pytest
import torch

from interp.doctor import machine


def test_the_processors_that_may_be_used(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1, 2}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    (each,) = machine.system()
    assert each.says.endswith("3 of 8 processors to be used")


def test_torch_multiplies_on_the_cpu():
    found = {each.what: each.state for each in machine.torch_devices()}
    assert found["torch on cpu"] == "well"


def test_a_product_that_is_wrong_is_found(monkeypatch):
    monkeypatch.setattr(torch.Tensor, "__matmul__", lambda left, _right: left)
    wrong = {each.what for each in machine.torch_devices() if each.state == "wrong"}
    assert "torch on cpu" in wrong


@pytest.mark.parametrize(
    ("built", "says"), [("13.0", "none is seen, though torch is built for 13.0"), (None, "none; ")]
)
def test_no_gpu_is_no_fault(monkeypatch, built, says):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr(torch.version, "cuda", built)
    monkeypatch.setattr(torch.version, "hip", None)
    (gpu,) = [each for each in machine.torch_devices() if each.what == "GPU"]
    assert gpu.state == "note"
    assert gpu.says.startswith(says)


class TestRunsFolder:
    @pytest.fixture
    def root(self, tmp_path, monkeypatch):
        monkeypatch.setenv("INTERP_RUNS", str(tmp_path / "not" / "yet"))
        return tmp_path

    def test_one_that_is_not_there_yet_is_not_made(self, root):
        (each,) = machine.runs_folder()
        assert each.state == "well"
        assert list(root.iterdir()) == []

    def test_little_room_is_said(self, root, monkeypatch):
        monkeypatch.setattr(shutil, "disk_usage", lambda _place: SimpleNamespace(free=10**8))
        (each,) = machine.runs_folder()
        assert (each.state, each.says.endswith("0.1 GB free")) == ("note", True)
        assert "interp runs rm" in each.todo

    def test_a_place_that_cannot_be_written(self, root, monkeypatch):
        def refuse(**_where):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("tempfile.TemporaryFile", refuse)
        (each,) = machine.runs_folder()
        assert each.state == "wrong"
        assert each.says.endswith("not/yet cannot be written (Permission denied)")
        assert "--runs DIR" in each.todo

    def test_a_file_in_its_place(self, root):
        (root / "not").write_text("")
        (each,) = machine.runs_folder()
        assert each.state == "wrong"
