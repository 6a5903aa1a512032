"""`interp patch`: what it prints and leaves behind. The work itself is faked."""

import json
import warnings

import pytest
from fake_sweeps import patching

from interp.errors import InputError, TaskError
from interp.runs.executors import Local

PATCH = ("patch", "--task", "agreement")


def test_the_strongest_cells_are_printed_and_a_page_is_left(calls, run, tmp_path):
    result = run(*PATCH, "--site", "resid_pre", "--by", "layer, pos", "--out", tmp_path / "r")
    assert result.exit_code == 0, result.output
    called = {"site": "resid_pre", "by": ["layer", "pos"], "direction": "denoise", "metric": None, "seed": 0}
    run_options = calls["patch"][1].pop("run")
    assert calls["patch"] == ("agreement", {**called, "screen": False, "memory_budget": None})
    assert run_options.executor == Local()
    assert "by layer and position" in result.stdout
    assert "Clean: logit difference 3.9 logits" in result.stdout
    assert "- Patching z at layer 0, BOS brings back 0.9" in result.stdout
    assert result.stdout.splitlines()[-1].startswith(str(tmp_path / "r" / "report.html"))
    assert (tmp_path / "r" / "figures" / "heatmap.png").is_file()


def test_json_is_one_object(run, tmp_path):
    result = run(*PATCH, "--direction", "noise", "--json")
    printed = json.loads(result.stdout)
    assert [printed[name] for name in ("site", "by", "direction")] == ["z", ["layer", "head"], "noise"]
    assert (printed["metric"], printed["cells"], printed["complete"]) == ("logit_difference", 4, True)
    assert {"normalised", "normalised_low", "normalised_high", "p_adjusted"} <= printed["strongest"][0].keys()
    assert [each["run"] for each in printed["runs"]] == ["clean", "corrupted"]


def test_every_option_is_handed_on(calls, run):
    options = "--screen --memory 1GiB --metric probability --seed 3 --direction noise --by head,layer"
    assert run(*PATCH, *options.split()).exit_code == 0
    called = calls["patch"][1]
    assert (called["screen"], called["memory_budget"], called["metric"]) == (True, 2**30, "probability")
    assert (called["seed"], called["by"]) == (3, ["head", "layer"])


def test_what_the_method_refuses_is_one_line(run, fail_with):
    fail_with("interp.methods.patching.patch", InputError("by: site 'resid_pre' has no head; leave it out"))
    result = run(*PATCH)
    assert (result.exit_code, result.stderr) == (2, "error: by: site 'resid_pre' has no head; leave it out\n")


def test_an_interrupted_sweep_is_kept_and_ends_with_130(run, monkeypatch, tmp_path):
    result = patching({"layer": range(2), "head": range(2)}, complete=False)
    monkeypatch.setattr("interp.methods.patching.patch", lambda *_arguments, **_options: result)
    ended = run(*PATCH, "--out", tmp_path / "r")
    assert ended.exit_code == 130, ended.output
    assert 'class="partial"' in (tmp_path / "r" / "report.html").read_text(encoding="utf-8")


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


@pytest.mark.parametrize(
    "option", ["--metric nope", "--direction sideways", "--memory lots", "--memory -1", "--seed -1"]
)
def test_what_is_no_choice_is_refused_before_anything_is_loaded(calls, run, option):
    result = run(*PATCH, *option.split())
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: Invalid value for '{option.split()[0]}'")
    assert result.stderr.count("\n") == 1
    assert calls == {}


@pytest.mark.parametrize(
    "command",
    ["patch --task ioi", "ablate --task ioi", "heads --task ioi --no-cards --out report"],
    ids=lambda command: command.split()[0],
)
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
    ids=lambda command: command.split()[0],
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
