"""`interp train default`: its options, and what it never does. The training itself is faked."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch


def test_train_default_hands_its_options_on(run, monkeypatch, tmp_path):
    called = {}

    def train_default(out, *, progress, **options):
        called.update(options, out=out)
        progress(5, 3.2)
        return SimpleNamespace(tokens=5120, loss=2.5, hash="abc")

    monkeypatch.setattr("interp.recipes.default.train_default", train_default)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    out = tmp_path / "model"
    result = run("train", "default", "--out", out, "--seed", 4, "--steps", 5, "--threads", 2, "--json")
    assert result.exit_code == 0, result.output
    assert called == {"out": out, "seed": 4, "steps": 5, "threads": 2}
    assert json.loads(result.stdout)["loss"] == 2.5


@pytest.mark.parametrize("seed", [0, 2**63 - 1])
def test_every_seed_that_a_generator_takes(run, monkeypatch, tmp_path, seed):
    given = []
    training = SimpleNamespace(tokens=1, loss=1.0, hash="abc")
    monkeypatch.setattr("interp.recipes.default.train_default", lambda *_, seed, **__: given.append(seed) or training)
    assert run("train", "default", "--out", tmp_path / "m", "--seed", seed).exit_code == 0
    assert given == [seed]
    torch.Generator().manual_seed(seed)
    np.random.default_rng(seed)


def test_training_never_writes_into_a_folder_in_use(run, tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    result = run("train", "default", "--out", tmp_path)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: output folder")
