"""Tasks of one's own on the command line: found again, gone on with after a kill, and measured by other processes."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest
from giving_commands import interp

pytestmark = pytest.mark.unchecked

NOUNS = [
    "actor",
    "animal",
    "bear",
    "bike",
    "bird",
    "book",
    "boy",
    "car",
    "cat",
    "chair",
    "coat",
    "coin",
    "cow",
    "cup",
    "dog",
    "door",
    "duck",
    "fork",
    "frog",
    "girl",
]
PYTHON = """
import json
from pathlib import Path
from interp.tasks.readers.minimal_pairs import read_pairs

def near():
    return read_pairs(Path(__file__).with_name("near.jsonl"))
"""


@pytest.fixture
def folder(tmp_path):
    lines = [
        {
            "prompt": f"Some {noun}s near the guests",
            "right": [" are", " were"],
            "wrong": [" is", " was"],
            "counterfactual": f"Some {noun} near the guests",
            "related": f"{noun}s",
            "template": "near",
            "layout": "near",
        }
        for noun in NOUNS
    ]
    (tmp_path / "near.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "near.py").write_text(PYTHON)
    return tmp_path


def asked(task, runs, *more):
    return ("ablate", "--task", task, "--replacement", "zero", "--json", "--runs", runs, *more)


TASKS = ("near.jsonl", "near.py:near")


@pytest.mark.parametrize("task", TASKS)
def test_measured_found_and_gone_on_with(folder, task):
    first = interp(*asked(task, folder / "runs"), cwd=folder)
    assert first.exit_code == 0, first.output
    printed = json.loads(first.stdout)
    assert (printed["task"], printed["cells"], printed["examples"]) == (task, 12, 40)
    assert printed["runs"][0]["above_chance"] is True
    assert "found, and not measured again" in interp(*asked(task, folder / "runs"), cwd=folder).stderr
    (run,) = (folder / "runs").iterdir()
    (run / "result.json").unlink()
    resumed = interp("runs", "resume", run.name, "--runs", folder / "runs", cwd="/")
    assert "goes on, with 1 of 1 parts found" in resumed.stderr
    assert {**json.loads(resumed.stdout), "seconds": 0} == {**printed, "seconds": 0}


def test_a_python_file_that_was_edited_is_another_question(folder):
    assert interp(*asked("near.py:near", folder / "runs"), cwd=folder).exit_code == 0
    (folder / "near.py").write_text(f"{PYTHON}\n# edited\n")
    again = interp(*asked("near.py:near", folder / "runs"), cwd=folder)
    assert "not measured again" not in again.stderr
    assert len(list((folder / "runs").iterdir())) == 2


def test_a_broken_line_is_told_in_one(folder):
    with (folder / "near.jsonl").open("a") as file:
        file.write('\n{"prompt": "Some keys"}')
    refused = interp(*asked("near.jsonl", folder / "runs"), cwd=folder)
    assert refused.exit_code == 2
    said = f"near.jsonl, line {len(NOUNS) + 1}: expected a field 'right', got 'prompt'"
    assert said in json.loads(refused.stdout)["error"]


def test_a_counterfactual_is_chosen_by_its_name(folder):
    line = json.loads((folder / "near.jsonl").read_text().splitlines()[0])
    line["counterfactuals"] = {"door": {"prompt": "Some door near the guests"}}
    (folder / "near.jsonl").write_text(json.dumps(line))
    command = ("patch", "--json", "--runs", folder / "runs", "--task")
    assert interp(*command, "near.jsonl#door", "--out", folder / "door", cwd=folder).exit_code == 0
    page = (folder / "door" / "report.html").read_text()
    assert re.search(r"<dt[^>]*>Counterfactual</dt>\s*<dd[^>]*>door</dd>", page)
    refused = interp(*command, "near.jsonl#dor", cwd=folder)
    assert refused.exit_code == 2
    assert "no pair has a counterfactual called 'dor'; did you mean 'door'?" in json.loads(refused.stdout)["error"]


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_killed_and_resumed(folder, task):
    """In the midst of its parts; the numbers are those of a run that nobody disturbed."""
    more = ("--components", "neurons")
    whole = interp(*asked(task, folder / "whole", *more), cwd=folder)
    assert whole.exit_code == 0, whole.output
    command = [sys.executable, "-m", "interp", *map(str, asked(task, folder / "runs", *more))]
    child = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while child.poll() is None and not list((folder / "runs").glob("*/parts/*.parquet")):
        time.sleep(0.005)
    os.kill(child.pid, signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    (run,) = (folder / "runs").iterdir()
    n_kept = len(list((run / "parts").glob("*.parquet")))
    resumed = interp("runs", "resume", run.name, "--runs", folder / "runs", cwd="/")
    assert resumed.exit_code == 0, resumed.output
    assert f"goes on, with {n_kept} of " in resumed.stderr
    assert f"{n_kept} of {n_kept} parts" not in resumed.stderr
    (undisturbed,) = (folder / "whole").iterdir()
    frames = [pd.read_parquet(each / "frame.parquet") for each in (run, undisturbed)]
    pd.testing.assert_frame_equal(*frames, check_exact=True)


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("executor", ["processes", "ray"])
def test_other_processes_measure_the_same(folder, task, executor):
    more = ("--components", "neurons")
    if executor == "ray":
        pytest.importorskip("ray")
    alone = interp(*asked(task, folder / "alone", *more), cwd=folder)
    spread = interp(*asked(task, folder / "spread", *more, "--executor", executor, "--processes", 2), cwd=folder)
    assert spread.exit_code == 0, spread.output
    assert {**json.loads(spread.stdout), "seconds": 0} == {**json.loads(alone.stdout), "seconds": 0}
