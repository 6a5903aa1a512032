"""`interp ablate`: one head's effect, or every component's, in words, JSON and a folder. The work is faked."""

import json
import os

import numpy as np
import pandas as pd
import pytest
from fake_sweeps import ablation

from interp.runs.executors import Local

ONE = ("ablate", "--head", "0.1", "--task", "agreement")
ALL = ("ablate", "--task", "agreement")


@pytest.fixture
def answer(monkeypatch):
    """Makes the ablation answer this."""

    def set_up(result):
        monkeypatch.setattr("interp.methods.ablation.ablate", lambda *_arguments, **_options: result)

    return set_up


def test_one_head_prints_the_effect_its_interval_and_the_accuracy(calls, run):
    result = run(*ONE, "--replacement", "resample", "--n", 9)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "head 0.1, agreement, resample ablation, 30 units in 30 clusters"
    assert lines[1] == "logit difference: 4.14 -> 2.66"
    assert lines[2].startswith("effect: -1.49 logits, a cost where it is negative (95 % interval -1.")
    assert lines[3] == "accuracy: 1.000 -> 0.750"
    called = {"components": "heads", "heads": [(0, 1)], "replacement": "resample", "metric": None, "seed": 0}
    run_options = calls["ablate"][1].pop("run")
    assert calls["ablate"] == ("agreement", {**called, "memory_budget": None})
    assert run_options.executor == Local()
    assert calls["tasks"][0][1]["n"] == 9


def test_one_head_in_json_and_as_a_folder(run, tmp_path):
    result = run(*ONE, "--out", tmp_path / "r", "--json")
    printed = json.loads(result.stdout)
    assert printed["effect"] == pytest.approx(-1.5, abs=0.1)
    assert (printed["replacement"], printed["metric"], printed["above_chance"]) == ("mean", "logit_difference", True)
    assert (printed["folder"], printed["complete"]) == (str(tmp_path / "r"), True)
    assert len(pd.read_parquet(tmp_path / "r" / "examples.parquet")) == 30


def test_all_heads_print_the_strongest_and_leave_a_page(calls, run, tmp_path):
    result = run(*ALL, "--out", tmp_path / "r")
    assert result.exit_code == 0, result.output
    assert calls["ablate"][1]["components"] == "heads"
    assert "heads" not in calls["ablate"][1]
    assert "agreement: mean ablation of each head by itself" in result.stdout
    first = next(line for line in result.stdout.splitlines() if line.startswith("head "))
    assert first.split()[:3] == ["head", "0.0", "-1.49"]
    assert "- Ablating head 0.0 costs 1.5 logits" in result.stdout
    assert result.stdout.splitlines()[-1].startswith(str(tmp_path / "r" / "report.html"))
    assert "answers of several tokens: 3" in (tmp_path / "r" / "report.html").read_text(encoding="utf-8")


def test_all_heads_in_json(run):
    printed = json.loads(run(*ALL, "--json").stdout)
    assert (printed["task"], printed["components"], printed["replacement"]) == ("agreement", "heads", "mean")
    assert (printed["cells"], printed["beyond_correction"], printed["folder"]) == (4, 1, None)
    assert [printed["strongest"][0][name] for name in ("layer", "head", "status")] == [0, 0, "changed"]
    assert printed["runs"][0]["run"] == "unablated"
    assert printed["audit"]["cells"] == 2
    assert printed["screen"] is None
    assert printed["seconds"] > 0


def test_every_option_is_handed_on(calls, run):
    assert run(*ALL, "--metric", "kl_divergence", "--memory", "512MB", "--replacement", "zero").exit_code == 0
    options = calls["ablate"][1]
    assert (options["metric"], options["replacement"], options["memory_budget"]) == (
        "kl_divergence",
        "zero",
        512_000_000,
    )


@pytest.mark.parametrize("components", ["heads", "mlps", "neurons"])
def test_a_layer_alone_is_meant_for_all_of_its_components(calls, run, components):
    assert run(*ALL, "--components", components, "--layer", 1).exit_code == 0
    options = calls["ablate"][1]
    assert (options["components"], options["layers"]) == (components, [1])


@pytest.mark.parametrize(("text", "size"), [("2GB", 2e9), ("2 gib", 2**31), ("1.5MiB", 1.5 * 2**20), ("4096", 4096)])
def test_memory_has_units(calls, run, text, size):
    assert run(*ALL, "--memory", text).exit_code == 0
    assert calls["ablate"][1]["memory_budget"] == size


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--head 2", "head '2': expected a layer and a head, both from 0, such as 2.1 for head 1 of layer 2"),
        ("--head 1.2 --layer 1", "--head 1.2: expected no --layer beside it, got 1; leave that out"),
        ("--head 1.2 --components mlps", "--head 1.2: expected it with --components heads, got mlps"),
    ],
)
def test_a_head_that_is_none_is_refused_before_anything_is_loaded(calls, run, arguments, said):
    result = run(*ALL, *arguments.split())
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {said}")
    assert calls == {}


@pytest.mark.parametrize("place", ["--site resid_mid", "--by layer,pos", "--site z --by layer"])
@pytest.mark.parametrize("extra", ["--components mlps", "--components neurons", "--head 1.2"])
def test_components_and_heads_beside_a_site_are_refused_before_anything_is_loaded(calls, run, place, extra):
    result = run(*ALL, *place.split(), *extra.split())
    assert result.exit_code == 2
    assert result.stderr == f"error: {extra}: expected none beside --site or --by; leave one of them out\n"
    assert calls == {}


def test_a_site_is_handed_on_and_named(run, answer, tmp_path):
    answer(ablation({"layer": [0, 1]}, site="resid_mid", components=None))
    result = run(*ALL, "--site", "resid_mid", "--by", "layer", "--out", tmp_path / "r")
    assert result.exit_code == 0, result.output
    assert "agreement: mean ablation of resid_mid, by layer\n" in result.stdout
    assert "- Ablating resid_mid at layer 0 costs 1.5 logits" in result.stdout
    page = (tmp_path / "r" / "report.html").read_text(encoding="utf-8")
    assert "mean ablation of resid_mid, by layer" in page
    assert "Ablating resid_mid at layer 0 costs" in page


@pytest.mark.parametrize(("base", "above"), [(-0.14, False), (4.0, True)])
@pytest.mark.parametrize("command", [ONE, ALL])
def test_ablate_warns_where_the_model_is_not_above_chance(run, answer, base, above, command):
    answer(ablation({"layer": [0], "head": [1]}, base))
    warned = run(*command).stderr
    assert ("warning: The unablated model is not shown to be above chance" in warned) == (not above)
    assert json.loads(run(*command, "--json").stdout)["above_chance"] == above


def test_an_interval_that_is_not_known_is_null_and_said(run, answer):
    result = ablation({"layer": [0], "head": [1]})
    frame = result.frame.assign(template=[str(n) for n in range(30)])
    answer(type(result)(frame, result.provenance, result.labels))
    printed = json.loads(run(*ONE, "--json").stdout)
    assert (printed["low"], printed["above_chance"]) == (None, None)
    assert "effect: -1.49 logits, a cost where it is negative (no interval)" in run(*ONE).stdout
    assert "warning" not in run(*ONE).stderr
    assert "Nothing is decided" not in run(*ONE).stdout


def test_other_metrics_have_their_own_words(run, answer):
    answer(ablation({"layer": [0], "head": [1]}, metric="kl_divergence"))
    assert ", a cost" not in run(*ONE).stdout
    unknown = ablation({"layer": [0], "head": [1]}, metric="probability")
    frame = unknown.frame.assign(base_correct=np.nan, value_correct=np.nan)
    answer(type(unknown)(frame, unknown.provenance, unknown.labels))
    printed = run(*ONE).stdout
    assert "probability of the right answer: 4.14 -> 2.66" in printed
    assert "accuracy" not in printed


@pytest.mark.parametrize("command", [ONE, ALL])
@pytest.mark.parametrize("as_json", [True, False])
def test_an_interrupted_sweep_is_kept_and_ends_with_130(run, answer, tmp_path, command, as_json):
    axes = {"layer": [0], "head": [1]} if command is ONE else {"layer": [0, 1], "head": [0, 1]}
    result = ablation(axes, complete=False)
    answer(type(result)(result.frame[result.frame["example"] < 24], result.provenance, result.labels))
    ended = run(*command, "--out", tmp_path / "r", *(["--json"] if as_json else []))
    assert ended.exit_code == 130, ended.output
    kept = os.environ["INTERP_RUNS"]
    assert ended.stderr.splitlines()[-1] == (
        f"interrupted: what is complete is kept in {kept}; the same command goes on"
    )
    page = (tmp_path / "r" / "report.html").read_text(encoding="utf-8")
    assert "It holds 24 of the 30 examples that were asked for" in page
    if as_json:
        printed = json.loads(ended.stdout)
        assert (printed["complete"], printed["examples"]) == (False, 24)
    else:
        assert "Partial: the sweep was interrupted. It holds 24 of the 30 examples" in ended.stdout
