"""Bad input and usage, an interrupt, a bug of ours: exit codes, one line each, nothing half-written."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from interp.errors import ConfigError, InputError, LoadError, TaskError


@pytest.mark.parametrize(
    ("target", "error"),
    [
        ("interp.model.loading.load_model", LoadError("weights:\nexpected W_E, got none;\n  add it")),
        ("interp.model.loading.load_model", ConfigError("device: expected cpu, got 'tpu'; use cpu")),
        ("interp.tasks.catalogue.load_task", TaskError("unknown task 'x'; did you mean 'ioi'?")),
        ("interp.methods.dossier.heads", InputError("prompt: expected at most 64 tokens, got 70; shorten it")),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2_and_nothing_is_written(fail_with, run, tmp_path, target, error):
    fail_with(target, error)
    result = run("heads", "--out", tmp_path / "a" / "r")
    assert result.exit_code == 2
    *counts, last = result.stderr.splitlines()
    assert last == f"error: {' '.join(str(error).split())}"
    assert all(": 30 units (3 pairs could not be used: " in each for each in counts)
    assert "Traceback" not in result.output
    assert result.stdout == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["heads", "ablate --task agreement", "patch --task agreement"])
def test_the_output_folder_is_checked_before_anything_is_loaded(calls, run, tmp_path, command):
    (tmp_path / "thesis.tex").write_text("")
    result = run(*command.split(), "--out", tmp_path)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: output folder")
    assert calls == {}


@pytest.mark.parametrize(
    "command", ["heads --out {out}", "ablate --head 0.1 --task agreement", "patch --task agreement"]
)
def test_a_model_without_a_tokenizer_is_told_how_to_get_one(calls, run, monkeypatch, tmp_path, command):
    loaded = SimpleNamespace(tokenizer=None, cfg=SimpleNamespace(n_ctx=64))
    monkeypatch.setattr("interp.model.loading.load_model", lambda *_arguments, **_options: loaded)
    result = run(*command.format(out=tmp_path / "r").split(), "--model", "folder")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: model folder: ")
    assert "the folder has no tokenizer files; save one there with tokenizer.save_pretrained(folder)" in result.stderr
    assert "tasks" not in calls


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("heads --out r --n abc", "'--n'"),
        ("heads --out r --nonsense", "--nonsense"),
        ("ablate --task agreement --replacement magic", "'magic' is not one of 'zero'"),
        ("heads", "Missing option '--out'"),
        ("nonsense", "No such command 'nonsense'"),
        ("--nonsense", "No such option: --nonsense"),
        ("ablate --head 0.1", "Missing option '--task'"),
        ("ablate --task agreement --components words", "'words' is not one of 'heads'"),
        ("ablate --task agreement --metric magic", "'magic' is not one of 'logit_difference'"),
        ("ablate --task agreement --memory 2potatoes", "such as 512MB or 2GB, got '2potatoes'"),
        ("patch", "Missing option '--task'"),
        ("model inf", "No such command 'inf'"),
        ("heads --out r --seed -1", "'--seed'"),
    ],
)
def test_options_that_cannot_be_read_are_one_line_and_exit_code_2(calls, run, arguments, said, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    result = run(*arguments.split())
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stderr.endswith("--help\n")
    assert result.stdout == ""
    assert calls == {}


def test_no_more_threads_than_cpus(calls, run, monkeypatch, tmp_path):
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    result = run("heads", "--out", tmp_path / "m", "--threads", 4)
    assert result.exit_code == 2
    assert "expected at most 3, the CPUs of this" in result.stderr
    assert calls == {}


@pytest.mark.parametrize(
    "target", ["interp.model.loading.load_model", "interp.methods.dossier.heads", "interp.report.folder.save"]
)
def test_an_interrupt_is_one_line_and_exit_code_130(fail_with, run, tmp_path, target):
    fail_with(target, KeyboardInterrupt())
    result = run("heads", "--out", tmp_path / "r")
    assert result.exit_code == 130
    kept = os.environ["INTERP_RUNS"]
    assert [line for line in result.stderr.splitlines() if "interrupted" in line] == [
        f"interrupted: what is complete is kept in {kept}; the same command goes on"
    ]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("told", ["runs ls --runs nothing", "tasks", "heads --help"])
def test_whoever_reads_along_may_stop(told):
    """A line of text, a table and a help text, of which the last two are printed by rich."""
    command = [sys.executable, "-m", "interp", *told.split()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as begun:
        begun.stdout.close()
        assert begun.stderr.read() == ""
        assert begun.wait() == 141, "as a shell says it of a program that a closed pipe ends"


def test_a_bug_of_ours_is_not_hidden(fail_with, run, tmp_path):
    fail_with("interp.methods.dossier.heads", ZeroDivisionError("ours"))
    assert isinstance(run("heads", "--out", tmp_path / "r").exception, ZeroDivisionError)


@pytest.mark.parametrize("command", ["heads", "ablate --head 0.0 --task agreement", "model info"])
def test_an_argument_that_is_no_text_is_one_line_and_exit_code_2(calls, run, command):
    result = run(*command.split(), "--out", "lat\udce4")
    assert result.exit_code == 2
    assert result.stderr == "error: argument 'lat\\udce4': expected text in UTF-8, got other bytes; rename the file\n"
    assert calls == {}


def test_a_backend_of_the_shells_that_is_missing_does_not_matter(tmp_path):
    command = [sys.executable, "-m", "interp", "ablate", "--task", "nonsense", "--out", tmp_path / "report"]
    there = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "MPLBACKEND": "no such backend"}
    done = subprocess.run(command, env=there, capture_output=True, text=True, check=False)
    assert done.stderr.startswith("error: unknown task 'nonsense'")


def test_json_stays_one_object_whatever_goes_wrong(fail_with, run, tmp_path):
    ends = [
        (None, ["heads", "--seed", "-1", "--json"], 2),
        (None, ["ablate", "--json", "--no-such-option"], 2),
        (None, ["runs", "show", "no such run", "--json", "--runs", tmp_path / "runs"], 2),
        (LoadError("weights: expected W_E, got none"), ["heads", "--json", "--out", tmp_path / "a"], 2),
        (KeyboardInterrupt(), ["heads", "--json", "--out", tmp_path / "b"], 130),
        (OSError(36, "File name too long", "x"), ["heads", "--json", "--out", tmp_path / "c"], 2),
    ]
    for error, arguments, code in ends:
        if error is not None:
            fail_with("interp.model.loading.load_model", error)
        result = run(*arguments)
        assert result.exit_code == code, arguments
        answer = json.loads(result.stdout)
        assert answer["exit_code"] == code
        assert answer["error"] in result.stderr
