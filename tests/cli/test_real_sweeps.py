"""`interp heads`, `interp ablate` and `interp patch` on the embedded model, with nothing faked."""

import json
import subprocess
import sys
from contextlib import contextmanager

import pandas as pd
import pytest
import torch
from tiny_models import random_model

from interp.model.loading import load_model, save_model

pytestmark = [pytest.mark.unchecked, pytest.mark.usefixtures("real")]


@pytest.mark.slow
def test_every_head_is_judged(run, tmp_path):
    command = ("heads", "--task", "agreement", "--n", 60, "--choose", "--no-probes", "--no-cards")
    result = run(*command, "--out", tmp_path / "h", "--json")
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    verdicts = {(each["layer"], each["head"]): each["verdict"] for each in printed["verdicts"]}
    assert (len(verdicts), verdicts[2, 2]) == (12, "attends and causal")
    assert [each["n_units"] for each in printed["tasks"]] == [60]


def test_every_head_is_ablated(run, tmp_path):
    result = run("ablate", "--task", "agreement", "--n", 24, "--out", tmp_path / "x", "--json")
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert (printed["cells"], printed["examples"], printed["complete"]) == (12, 48, True)
    strongest = printed["strongest"][0]
    assert (strongest["layer"], strongest["head"], strongest["status"]) == (2, 2, "changed")
    cells = pd.read_parquet(tmp_path / "x" / "cells.parquet")
    assert len(cells) == 12
    assert len(pd.read_parquet(tmp_path / "x" / "examples.parquet")) == 12 * 48
    assert cells["effect"].min() == pytest.approx(strongest["effect"])


def test_a_stream_is_patched_by_position(run, tmp_path):
    command = ("patch", "--task", "agreement", "--site", "resid_pre", "--by", "layer,pos", "--n", 40)
    result = run(*command, "--out", tmp_path / "y")
    assert result.exit_code == 0, result.output
    assert "- Patching resid_pre at layer 0, related brings back 1.0" in result.stdout
    page = (tmp_path / "y" / "report.html").read_text(encoding="utf-8")
    assert 'title="layer 0, BOS: identical input"' in page


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("patch --site nonsense", "no site that can be changed is called 'nonsense'"),
        ("patch --site resid_pre --by layer,head", "by: site 'resid_pre' has no head"),
        ("patch --memory 1KB", "memory budget: one cell on one row"),
        ("ablate --head 7.0", "head 7.0: the model has 3 layers"),
        ("ablate --components mlps --layer 7", "layers: expected different layers"),
    ],
)
def test_what_the_model_or_the_site_does_not_have_is_one_line(run, tmp_path, arguments, said):
    result = run(*arguments.split(), "--task", "ioi", "--n", 4, "--out", tmp_path / "r")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {said}")
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["patch --by layer", "ablate", "probe --feature number"])
def test_a_site_that_a_model_of_attention_alone_lacks_is_one_line(run, tmp_path, command):
    model = random_model(tokenizer=load_model().tokenizer, d_mlp=0, n_ctx=64, dtype=torch.float32)
    save_model(model, tmp_path / "model")
    result = run(
        *command.split(), "--site", "resid_mid", "--task", "agreement", "--n", 8, "--model", tmp_path / "model"
    )
    assert result.exit_code == 2
    assert result.stderr.startswith("error: site 'resid_mid': expected one that the model has")


def test_an_axis_that_is_none_is_one_line():
    """In a process of its own: the tests' type checks would be first to refuse it."""
    command = [sys.executable, "-m", "interp", "patch", "--task", "ioi", "--n", "4", "--by", "layer,nonsense"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr.startswith("error: by: 'nonsense' is unknown; known are 'layer', 'head'")


def test_an_interrupt_keeps_what_is_complete(run, monkeypatch, tmp_path):
    @contextmanager
    def impatient(_description):
        def tell(done, total):
            if done > 0.7 * total:
                raise KeyboardInterrupt

        yield tell

    monkeypatch.setattr("interp.cli.terminal.progress_bar", impatient)
    result = run("ablate", "--task", "agreement", "--n", 24, "--out", tmp_path / "x", "--json")
    assert result.exit_code == 130, result.output
    printed = json.loads(result.stdout)
    assert not printed["complete"]
    assert 0 < printed["examples"] < 48
    kept = pd.read_parquet(tmp_path / "x" / "examples.parquet")
    assert kept["example"].nunique() == printed["examples"]
    assert "warning: interrupted" in result.stderr


def test_a_site_is_ablated_by_position(run, tmp_path):
    out = tmp_path / "sites"
    asked = ("--site", "attn_out", "--by", "layer,pos", "--n", 24)
    result = run("ablate", "--task", "agreement", *asked, "--out", out, "--json")
    assert result.exit_code == 0, result.output
    cells = pd.read_csv(out / "cells.csv")
    assert list(cells.columns[:2]) == ["layer", "pos"]
    strongest = cells.loc[cells["effect"].idxmin()]
    assert (strongest["layer"], strongest["pos"]) == (2, "last")
    assert (out / "report.html").is_file()
