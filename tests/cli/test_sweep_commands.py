"""`interp ablate` and `interp patch`: effects in words, JSON and a folder. The work is faked."""

import json
import os
import warnings

import numpy as np
import pandas as pd
import pytest
from fake_sweeps import ablation, patching

from interp.errors import InputError, TaskError
from interp.options import AblateOptions, PatchOptions
from interp.runs.executors import Local

ONE = ("ablate", "--head", "0.1", "--task", "agreement")
ALL = ("ablate", "--task", "agreement")
PATCH = ("patch", "--task", "agreement")


@pytest.fixture
def answer(monkeypatch):
    """Makes the ablation answer this."""

    def set_up(result):
        monkeypatch.setattr("interp.methods.ablation.ablate", lambda *_arguments, **_options: result)

    return set_up


def test_one_head_prints_the_effect_its_interval_and_the_accuracy(calls, run):
    result = run(*ONE, "--replacement", "resample", "--n", 9)
    assert result.exit_code == 0, result.output
    text = result.stdout
    assert text.startswith("Ablation: agreement\n30 units in 30 clusters, 30 examples · ")
    assert "- Resample ablation of one head by itself" in text
    assert "- Unablated: logit difference 4.15 logits [" in text
    assert "- Ablating head 0.1 costs 1.49 logits [1." in text
    assert "accuracy goes from 1.00 to 0.75" in text
    row = next(line for line in text.splitlines() if line.startswith("head 0.1"))
    assert {"2.66", "0.75"} <= set(row.split())
    name, asked, where = calls["ablate"]
    assert (name, asked) == ("agreement", AblateOptions(heads=[(0, 1)], replacement="resample"))
    assert where.executor == Local()
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
    assert calls["ablate"][1] == AblateOptions()
    assert "- Mean ablation of each head by itself" in result.stdout
    first = next(line for line in result.stdout.splitlines() if line.startswith("head "))
    assert first.split()[:3] == ["head", "0.0", "-1.49"]
    assert "- Ablating head 0.0 costs 1.49 logits" in result.stdout
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


@pytest.mark.parametrize("command", ["heads", "ablate --task agreement", "patch --task agreement"])
def test_json_says_where_and_how_long(run, tmp_path, command):
    printed = json.loads(run(*command.split(), "--out", tmp_path / "r", "--json").stdout)
    assert (printed["folder"], printed["page"]) == (str(tmp_path / "r"), str(tmp_path / "r" / "report.html"))
    assert (tmp_path / "r" / "report.html").is_file()
    assert printed["seconds"] > 0
    if command != "heads":
        printed = json.loads(run(*command.split(), "--json").stdout)
        assert (printed["folder"], printed["page"]) == (None, None), "what is not written"


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        (
            "--metric kl_divergence --memory 512MB --replacement zero --draws 2",
            {"metric": "kl_divergence", "memory_budget": 512_000_000, "replacement": "zero", "draws": 2},
        ),
        ("--components mlps --layer 1", {"components": "mlps", "layers": (1,)}),
        ("--components neurons --layer 1 --layer 0", {"components": "neurons", "layers": (1, 0)}),
        ("--head 0.1 --head 1.0", {"heads": ((0, 1), (1, 0))}),
        ("--memory 2GB", {"memory_budget": 2 * 10**9}),
        ("--memory 2gib", {"memory_budget": 2**31}),
        ("--memory 1.5MiB", {"memory_budget": 1.5 * 2**20}),
        ("--memory 4096", {"memory_budget": 4096}),
    ],
)
def test_what_is_typed_is_asked_of_an_ablation(calls, run, options, asked):
    assert run(*ALL, *options.split()).exit_code == 0
    assert calls["ablate"][1] == AblateOptions(**asked)


def test_what_is_typed_is_asked_of_patching(calls, run):
    options = "--screen --top 12 --audit .2 --memory 1GiB --metric probability --seed 3 --direction noise"
    assert run(*PATCH, *options.split(), "--by", "head, layer").exit_code == 0
    assert calls["patch"][1] == PatchOptions(
        screen=True, top=12, audit=0.2, memory_budget=2**30, metric="probability", seed=3, direction="noise",
        by=["head", "layer"],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--head 2", "head '2': expected a layer and a head, both from 0, such as 2.1 for head 1 of layer 2"),
        ("--head 1.2 --layer 1", "--head 1.2: expected no --layer beside it, got 1; leave that out"),
        ("--head 1.2 --components mlps", "--head 1.2: expected it with --components heads, got mlps"),
        *(
            (f"{place} {extra}", f"{extra}: expected none beside --site or --by; leave one of them out\n")
            for place in ("--site resid_mid", "--by layer,pos", "--site z --by layer")
            for extra in ("--components mlps", "--components neurons", "--head 1.2")
        ),
    ],
)
def test_what_does_not_go_together_is_refused_before_anything_is_loaded(calls, refused, arguments, said):
    assert refused(*ALL, *arguments.split()).startswith(said)
    assert calls == {}


@pytest.mark.parametrize(
    "option", ["--metric nope", "--direction sideways", "--memory lots", "--memory -1", "--seed -1", "--top many"]
)
def test_what_is_no_choice_is_refused_before_anything_is_loaded(calls, refused, option):
    assert refused(*PATCH, *option.split()).startswith(f"Invalid value for '{option.split()[0]}'")
    assert calls == {}


def test_a_site_is_handed_on_and_named(run, answer, tmp_path):
    answer(ablation({"layer": [0, 1]}, site="resid_mid", components=None))
    result = run(*ALL, "--site", "resid_mid", "--by", "layer", "--out", tmp_path / "r")
    assert result.exit_code == 0, result.output
    page = (tmp_path / "r" / "report.html").read_text(encoding="utf-8")
    for text in (result.stdout, page):
        assert "ean ablation of resid_mid, by layer" in text
        assert "Ablating resid_mid at layer 0 costs 1.49 logits" in text


@pytest.mark.parametrize(("base", "above"), [(-0.14, False), (4.0, True)])
@pytest.mark.parametrize("command", [ONE, ALL])
def test_ablate_warns_where_the_model_is_not_above_chance(run, answer, base, above, command):
    answer(ablation({"layer": [0], "head": [1]}, base))
    assert ("The unablated model is not shown to be above chance" in run(*command).stdout) == (not above)
    assert json.loads(run(*command, "--json").stdout)["above_chance"] == above


def test_an_interval_that_is_not_known_is_null_and_said(run, answer):
    result = ablation({"layer": [0], "head": [1]})
    frame = result.examples.assign(template=[str(n) for n in range(30)])
    answer(type(result)(frame, result.provenance, result.labels))
    printed = json.loads(run(*ONE, "--json").stdout)
    assert (printed["low"], printed["above_chance"]) == (None, None)
    assert "-1.49 (no interval: a template has a single cluster)" in run(*ONE).stdout
    assert "Nothing is decided: a template has a single cluster, so no interval is known" in run(*ONE).stdout
    assert "above chance" not in run(*ONE).stdout


def test_other_metrics_have_their_own_words(run, answer):
    answer(ablation({"layer": [0], "head": [1]}, metric="kl_divergence"))
    assert "costs" not in run(*ONE).stdout
    unknown = ablation({"layer": [0], "head": [1]}, metric="probability")
    frame = unknown.examples.assign(base_correct=np.nan, value_correct=np.nan)
    answer(type(unknown)(frame, unknown.provenance, unknown.labels))
    printed = run(*ONE).stdout
    assert "Unablated: probability of the right answer 4.1" in printed
    assert "accuracy goes" not in printed


@pytest.mark.parametrize("command", [ONE, ALL])
@pytest.mark.parametrize("as_json", [True, False])
def test_an_interrupted_sweep_is_kept_and_ends_with_130(run, answer, tmp_path, command, as_json):
    axes = {"layer": [0], "head": [1]} if command is ONE else {"layer": [0, 1], "head": [0, 1]}
    result = ablation(axes, complete=False)
    answer(type(result)(result.examples[result.examples["example"] < 24], result.provenance, result.labels))
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


def test_patching_prints_the_strongest_cells_and_leaves_a_page(calls, run, tmp_path):
    result = run(*PATCH, "--site", "resid_pre", "--by", "layer, pos", "--out", tmp_path / "r")
    assert result.exit_code == 0, result.output
    name, asked, where = calls["patch"]
    assert (name, asked) == ("agreement", PatchOptions(site="resid_pre", by=["layer", "pos"]))
    assert where.executor == Local()
    assert "by layer and position" in result.stdout
    assert "Clean: logit difference 3.85 logits" in result.stdout
    assert "- Patching z at layer 0, BOS brings back 0.97 [" in result.stdout
    assert result.stdout.splitlines()[-1].startswith(str(tmp_path / "r" / "report.html"))
    assert (tmp_path / "r" / "figures" / "heatmap.png").is_file()


def test_patching_in_json(run):
    printed = json.loads(run(*PATCH, "--direction", "noise", "--json").stdout)
    assert [printed[name] for name in ("site", "by", "direction")] == ["z", ["layer", "head"], "noise"]
    assert (printed["metric"], printed["cells"], printed["complete"]) == ("logit_difference", 4, True)
    assert {"normalised", "normalised_low", "normalised_high", "p_adjusted"} <= printed["strongest"][0].keys()
    assert [each["run"] for each in printed["runs"]] == ["clean", "corrupted"]


def test_interrupted_patching_is_kept_and_ends_with_130(run, monkeypatch, tmp_path):
    result = patching({"layer": range(2), "head": range(2)}, complete=False)
    monkeypatch.setattr("interp.methods.patching.patch", lambda *_arguments, **_options: result)
    ended = run(*PATCH, "--out", tmp_path / "r")
    assert ended.exit_code == 130, ended.output
    assert 'class="partial"' in (tmp_path / "r" / "report.html").read_text(encoding="utf-8")


def test_what_the_method_refuses_is_one_line(refused, fail_with):
    fail_with("interp.methods.patching.patch", InputError("by: site 'resid_pre' has no head; leave it out"))
    assert refused(*PATCH).splitlines() == ["by: site 'resid_pre' has no head; leave it out"]


def test_warnings_are_one_line_each_and_few(run, monkeypatch):
    def warn(*_arguments, **_options):
        for number in range(8):
            warnings.warn(f"head 0.{number}: the intervention\nchanged nothing", RuntimeWarning, stacklevel=1)
        return patching({"layer": range(2), "head": range(2)})

    monkeypatch.setattr("interp.methods.patching.patch", warn)
    lines = [line for line in run(*PATCH).stderr.splitlines() if line.startswith("warning: ")]
    assert lines[0] == "warning: head 0.0: the intervention changed nothing"
    assert lines[-1] == "warning: 3 more such as the last"
    assert len(lines) == 6


@pytest.mark.parametrize("command", ["patch --task ioi", "ablate --task ioi", "heads --task ioi --no-cards --out r"])
def test_pairs_of_unequal_length_are_kept_where_that_is_asked_for(calls, run, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for option in ((), ("--unequal-lengths",)):
        assert run(*command.split(), *option).exit_code == 0
    assert [options["unequal_lengths"] for _, options in calls["tasks"]] == [False, True]


@pytest.mark.parametrize(
    "command",
    [
        "probe --task ioi --feature number",
        "activations collect --task ioi --site z --out store",
        "model plan --model default --task ioi",
    ],
)
def test_they_are_drawn_so_where_nothing_is_patched(run, command, tmp_path, monkeypatch):
    asked = []

    def drawn(_name, **options):
        asked.append(options["unequal_lengths"])
        raise TaskError("that is all")

    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("interp.tasks.catalogue.load_task", drawn)
    for option in ((), ("--unequal-lengths",)):
        assert run(*command.split(), *option).stderr.endswith("error: that is all\n")
    assert asked == [False, True]
