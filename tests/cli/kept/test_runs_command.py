"""`interp runs`: what is kept is listed, shown, checked, exported and removed."""

import json
import os
import shutil

import pandas as pd
import pytest
from giving_commands import ABLATE, interp

from interp.cli.runs import in_words
from interp.runs.files import signed

pytestmark = pytest.mark.unchecked
MODEL = {"model": "mine"}
TASKS = [{"task": "ioi"}, {"task": "induction"}]


def test_they_are_listed_and_shown(runs, folder):
    (listed,) = json.loads(runs("ls", "--json").stdout)["runs"]
    assert listed["asked"] == "agreement: 12 cells at z, mean, on default"
    assert (listed["key"], listed["state"]) == (folder.name, "finished")
    assert folder.name in runs("ls").stdout
    shown = json.loads(runs("show", folder.name[:6], "--json").stdout)
    assert shown["about"]["command"][: len(ABLATE)] == list(ABLATE)
    assert shown["asked_of"]["metric"] == "logit_difference"
    assert "  metric: logit_difference" in runs("show", folder.name[:6]).stdout


def test_a_table_is_exported(runs, folder, tmp_path):
    done = runs("export", folder.name, "--out", tmp_path / "effects.csv", "--json")
    assert json.loads(done.stdout)["rows"] == 192
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "effects.csv"), pd.read_parquet(folder / "frame.parquet"))
    assert [path.name for path in tmp_path.iterdir()] == ["effects.csv"]


@pytest.mark.parametrize(("out", "said"), [(".", "got a folder"), ("missing/x.csv", "expected a place that can be")])
def test_a_place_that_a_table_cannot_have(runs, folder, tmp_path, out, said):
    done = runs("export", folder.name, "--out", tmp_path / out)
    assert done.exit_code == 2
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_parts_that_are_missing_are_told(runs, folder, tmp_path, monkeypatch):
    own = shutil.copytree(folder, tmp_path / folder.name)
    shutil.rmtree(own / "parts")
    monkeypatch.setenv("INTERP_RUNS", str(tmp_path))
    done = runs("verify")
    assert done.exit_code == 2
    assert " is missing" in done.stdout
    assert "parts: 0 of 1\n" in runs("show", folder.name).stdout


def test_a_command_is_shown_as_it_can_be_given_again(runs, folder):
    shown = runs("show", folder.name).stdout.splitlines()
    assert f"command: interp {' '.join(ABLATE)}" in shown
    assert not [line for line in shown if "[" in line or "{" in line]


@pytest.mark.parametrize("name", ["manifest.json", "result.json"])
def test_what_another_version_has_written_is_not_called_damaged(tmp_path, folder, monkeypatch, name):
    monkeypatch.setenv("INTERP_RUNS", str(tmp_path))
    own = shutil.copytree(folder, tmp_path / folder.name)
    content = json.loads((own / name).read_text())
    del content["sha256"]
    (own / name).write_text(signed({**content, "version": 99}))

    (listed,) = json.loads(interp("runs", "ls", "--json").stdout)["runs"]
    assert listed["state"] == "other version"
    done = interp("runs", "verify")
    assert done.exit_code == 2
    assert f"{folder.name}: {own / name}: the " in done.stdout
    assert "in version 99" in done.stdout
    assert "1 of 1 runs are in the format of another version of interp, which can check them" in done.stderr
    assert json.loads(interp("runs", "verify", "--json").stdout) == {
        "runs": 1,
        "damaged": {},
        "other_version": [folder.name],
    }
    for each in ("resume", "export"):
        refused = interp("runs", each, folder.name, *(["--out", tmp_path / "x.csv"] if each == "export" else []))
        assert refused.exit_code == 2
        assert "in version 99" in refused.stderr
    assert interp("runs", "rm", folder.name).exit_code == 0


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("../../etc", "expected 4 to 16 of the digits 0-9 a-f"),
        ("abc", "expected 4 to 16 of the digits"),
        ("00000000", "got 0; known are"),
        ("", "expected 4 to 16 of the digits"),
    ],
)
@pytest.mark.parametrize("command", ["show", "resume", "rm"])
def test_a_name_cannot_leave_the_folder(runs, folder, command, key, said):
    done = runs(command, key)
    assert done.exit_code == 2
    assert said in done.stderr
    assert folder.is_dir()


def test_a_run_of_a_folder_without_any(tmp_path):
    done = interp("runs", "show", "0123abcd", "--runs", tmp_path)
    assert done.exit_code == 2
    assert done.stderr == f"error: run 0123abcd: expected one of those in {tmp_path}, got 0; none is known\n"


def test_runs_are_removed_all_that_are_named_or_none(tmp_path, monkeypatch, folder):
    keys = [f"{number}{folder.name[1:]}" for number in range(3)]
    for key in keys:
        shutil.copytree(folder, tmp_path / key)
    monkeypatch.setenv("INTERP_RUNS", str(tmp_path))
    assert interp("runs", "rm", keys[0], "ffff").exit_code == 2
    assert len(list(tmp_path.iterdir())) == 3
    assert interp("runs", "rm", keys[0][:5], keys[1][:6], keys[0]).stdout == "".join(
        f"removed {tmp_path / key}\n" for key in keys[:2]
    )
    assert [path.name for path in tmp_path.iterdir()] == keys[2:]
    gone = interp("runs", "rm", keys[2], "--json")
    assert json.loads(gone.stdout) == {"removed": [str(tmp_path / keys[2])]}
    assert gone.stderr == ""
    assert "no runs in" in interp("runs", "ls").stdout


def test_the_users_own_folder_that_cannot_be_made_keeps_nothing_and_says_so(few, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("INTERP_RUNS", str(tmp_path / "file" / "runs"))
    done = interp(*ABLATE, cwd=tmp_path)
    assert done.exit_code == 0, done.stderr
    assert "warning: nothing is kept" in done.stderr
    refused = interp(*ABLATE, "--runs", tmp_path / "file" / "runs", cwd=tmp_path)
    assert refused.exit_code == 2
    assert refused.stderr.startswith(f"error: run {tmp_path}")
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--executor", "local", "--processes", 2), "--executor local: expected one process, got --processes 2"),
        (("--address", "auto"), "expected them with --executor ray"),
        (("--executor", "magic"), "'magic' is not one of"),
        (("--processes", 10**6), "--processes: expected at most"),
    ],
)
def test_options_that_do_not_go_together(options, said):
    done = interp(*ABLATE, *options)
    assert done.exit_code == 2
    assert said in done.stderr


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"kind": "heads", "models": [{}], "tasks": TASKS}, "heads: ioi, induction, on mine"),
        ({"kind": "heads", "models": [{}, {}, {}], "tasks": TASKS}, "heads: ioi, induction, and 2 siblings, on mine"),
        ({"kind": "head", "head": "2.1", "tasks": TASKS}, "head 2.1: ioi, induction, on mine"),
        ({"kind": "head", "tasks": TASKS}, "cards of heads: ioi, induction, on mine"),
        ({"kind": "attend", "relations": [[name, "", ""] for name in "aabcde"]}, "attend: a, b, c and 2 more, on mine"),
        ({"kind": "probe", "feature": "number", "site": "z"}, "probe: number at z, on mine"),
        ({"kind": "a question of tomorrow"}, "something else"),
        ({"kind": ["heads"]}, "something else"),
        ({"kind": "heads", "models": 3}, "something else"),
        ({"kind": "head", "head": 2, "tasks": TASKS}, "something else"),
        ({}, "something else"),
    ],
)
def test_what_was_asked_in_words(asked, words):
    assert in_words(asked, MODEL) == words


def test_without_a_model():
    assert in_words({"kind": "calibration", "jobs": 42}, {}) == "calibration: 42 jobs"
