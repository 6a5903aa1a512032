"""`interp heads`: what it prints and leaves behind. The work itself is faked."""

import json
import os
import sys
from pathlib import Path

from fake_evidence import TASK

from interp.runs.executors import Local, Processes


def test_heads_prints_the_page_and_the_verdicts(run, tmp_path):
    result = run("heads", "--out", tmp_path / "r", "--task", TASK)
    assert result.exit_code == 0, result.output
    assert str(tmp_path / "r" / "report.html") in result.stdout.splitlines()[-1]
    assert "Head 0.0 matters for blimp:made_up: it attends to the subject" in result.stdout
    assert "50 units, 12 of them balanced, in 40 clusters, 62 examples" in result.stdout
    assert "in 12 of 62 examples the related word is the first token" in result.stdout
    assert "accuracy is 0.97 (0.968 on the file's own items)" in result.stdout
    assert "of the file's items: known words: 84 %" in result.stdout
    assert "dropped: unequal lengths: 3" in result.stdout
    assert (tmp_path / "r" / "report.html").is_file()


def test_heads_hands_every_option_on(calls, run, tmp_path):
    options = "--model m --task a --task b --task a --n 7 --seed 3 --no-probes --device cuda --dtype bfloat16"
    assert run("heads", "--out", tmp_path / "r", *options.split()).exit_code == 0
    assert calls["model"] == ("m", {"device": "cuda", "dtype": "bfloat16"})
    encoding = {
        "n": 7,
        "seed": 3,
        "tokenizer": "tokenizer",
        "n_ctx": 64,
        "metric": None,
        "unequal_lengths": False,
    }
    assert calls["tasks"] == [("a", encoding), ("b", encoding)]
    names, options = calls["heads"]
    run_options = options.pop("run")
    assert (names, options) == (["a", "b"], {"seed": 3, "probes": False, "siblings": [], "claims": None})
    assert (run_options.folder, run_options.executor) == (Path(os.environ["INTERP_RUNS"]), Local())


def test_heads_that_earned_one_have_a_card(calls, run, tmp_path):
    assert run("heads", "--out", tmp_path / "r", "--task", TASK).exit_code == 0
    assert calls["cards"][0] == [TASK]
    assert "Head 2.1" in (tmp_path / "r" / "cards" / "2.1.html").read_text(encoding="utf-8")
    again = run("heads", "--out", tmp_path / "r", "--task", TASK, "--no-cards", "--json")
    assert again.exit_code == 0, again.output
    assert not (tmp_path / "r" / "cards").exists()
    assert json.loads(again.stdout)["cards"] == []


def test_processes_are_for_tasks_and_cards(calls, run, tmp_path):
    assert run("heads", "--out", tmp_path / "r", "--task", "a", "--processes", "2").exit_code == 0
    assert calls["heads"][1]["run"].executor == calls["cards"][1].executor == Processes(2)
    assert "--processes" in run("heads", "--out", tmp_path / "q", "--processes", "0").stderr


def test_files_have_no_other_items_to_choose_on(calls, run, tmp_path):
    result = run("heads", "--out", tmp_path / "r", "--task", "blimp:some.jsonl", "--choose")
    assert result.exit_code == 2
    assert "--choose: expected generated tasks, which have other items to choose on, got blimp:some.jsonl" in (
        result.stderr
    )
    assert "heads" not in calls


def test_siblings_are_loaded_and_handed_on(calls, run, tmp_path):
    assert run("heads", "--out", tmp_path / "r", "--sibling", "s1", "--sibling", "s2").exit_code == 0
    assert len(calls["heads"][1]["siblings"]) == 2
    assert calls["model"] == ("s2", {"device": "cpu", "dtype": "float32"})


def test_heads_are_chosen_on_another_split(calls, run, tmp_path):
    assert run("heads", "--out", tmp_path / "r", "--task", "a", "--choose").exit_code == 0
    assert [(name, options.get("split")) for name, options in calls["tasks"]] == [("a", None), ("a", "select")]
    assert len(calls["heads"][1]["choose_on"]) == 1


def test_heads_asks_every_generated_task_by_default(calls, run, tmp_path):
    assert run("heads", "--out", tmp_path / "r").exit_code == 0
    assert calls["heads"][0] == ["agreement", "coreference", "reflexive", "ioi", "induction"]


def test_heads_json_is_one_object_on_standard_output(run, tmp_path):
    result = run("heads", "--out", tmp_path / "r", "--task", TASK, "--json")
    printed = json.loads(result.stdout)
    assert printed["folder"] == str(tmp_path / "r")
    named = [{name: row[name] for name in ("layer", "head", "task", "verdict")} for row in printed["verdicts"]]
    assert named == [
        {"layer": 0, "head": 0, "task": TASK, "verdict": "attends and causal"},
        {"layer": 0, "head": 1, "task": TASK, "verdict": "none"},
    ]
    assert {"reason", "partners"} <= set(printed["verdicts"][0])
    assert printed["tasks"][0]["accuracy_base"] == 0.97
    assert printed["seconds"] > 0
    assert (printed["replication"], printed["cards"], printed["left_out"]) == ([], ["2.1"], {})
    assert result.stderr == f"{TASK}: 30 of 33 units (3 left out: answers of several tokens)\n"


def test_the_report_says_how_to_repeat_it(run, monkeypatch, tmp_path):
    out = tmp_path / "with space"
    arguments = ["heads", "--out", str(out), "--seed", "3"]
    monkeypatch.setattr(sys, "argv", ["/usr/bin/interp", *arguments])
    run(*arguments)
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["command"] == f"interp heads --out '{out}' --seed 3"
