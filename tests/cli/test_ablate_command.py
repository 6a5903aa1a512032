"""`interp ablate`: one head's effect, in words, JSON and CSV. The work itself is faked."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from fake_evidence import SUMMARY, effects


def test_ablate_prints_the_effect_its_interval_and_the_accuracy(calls, run):
    result = run("ablate", "--layer", 0, "--head", 1, "--task", "agreement", "--ablation", "resample", "--n", 9)
    assert result.exit_code == 0, result.output
    assert "effect: -1.5 logits, a cost where it is negative (95 % interval -1.75 to -1.25)" in result.stdout
    assert "accuracy: 1.000 -> 0.750" in result.stdout
    assert calls["ablate"] == ("agreement", {"kind": "resample", "heads": [(0, 1)], "seed": 0})
    assert calls["tasks"][0][1]["n"] == 9


def test_ablate_json_and_csv(run, tmp_path):
    file = tmp_path / "effects.csv"
    result = run("ablate", "--layer", 0, "--head", 1, "--task", "agreement", "--out", file, "--json")
    printed = json.loads(result.stdout)
    assert (printed["effect"], printed["low"], printed["high"]) == (-1.5, -1.75, -1.25)
    assert printed["file"] == str(file)
    assert (printed["ablation"], printed["above_chance"]) == ("mean", True)
    assert list(pd.read_csv(file)["effect"]) == [-1.0] * 30


@pytest.mark.parametrize(("base", "above"), [(-0.14, False), (4.0, True)])
def test_ablate_warns_where_the_model_is_not_above_chance(run, monkeypatch, base, above):
    result = SimpleNamespace(frame=effects(base), summary=lambda: SUMMARY)
    monkeypatch.setattr("interp.methods.ablation.ablate", lambda *_arguments, **_options: result)
    command = ("ablate", "--layer", 0, "--head", 1, "--task", "agreement")
    assert ("warning: the unablated model is not shown to be above chance" in run(*command).stderr) == (not above)
    assert json.loads(run(*command, "--json").stdout)["above_chance"] == above


def test_an_interval_that_is_not_known_is_null_and_said(run, monkeypatch):
    unknown = SimpleNamespace(frame=effects(), summary=lambda: SUMMARY.assign(low=np.nan, high=np.nan))
    monkeypatch.setattr("interp.methods.ablation.ablate", lambda *_arguments, **_options: unknown)
    command = ("ablate", "--layer", 0, "--head", 1, "--task", "agreement")
    assert json.loads(run(*command, "--json").stdout)["low"] is None
    assert "effect: -1.5 logits, a cost where it is negative (no interval)" in run(*command).stdout


def test_whether_the_model_is_above_chance_may_be_unknown(monkeypatch, run):
    single = SimpleNamespace(frame=effects().assign(template=[str(n) for n in range(30)]), summary=lambda: SUMMARY)
    monkeypatch.setattr("interp.methods.ablation.ablate", lambda *_arguments, **_options: single)
    command = ("ablate", "--layer", 0, "--head", 1, "--task", "agreement")
    assert json.loads(run(*command, "--json").stdout)["above_chance"] is None
    assert "warning" not in run(*command).stderr
