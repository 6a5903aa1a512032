"""`interp heads` and `interp head`: what they print and leave behind. The work itself is faked."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_evidence import TASK
from fake_sweeps import a_task
from made_up_card import IDLE, made_up_card
from made_up_card import TASK as OF_CARD

from interp.errors import InputError
from interp.options import CardOptions, HeadsOptions
from interp.runs.executors import Local, Processes

GENERATED = ["agreement", "coreference", "reflexive", "ioi", "induction"]
ENCODING = {"n": 7, "seed": 3, "tokenizer": "tokenizer", "n_ctx": 64, "metric": None}
ENCODING |= {"unequal_lengths": False, "chat": False}


def test_heads_prints_the_page_and_the_verdicts(run, tmp_path):
    result = run("heads", "--out", tmp_path / "r", "--task", TASK)
    assert result.exit_code == 0, result.output
    assert str(tmp_path / "r" / "report.html") in result.stdout.splitlines()[-1]
    assert "Head 0.0 matters for blimp:made_up: it attends to the subject" in result.stdout
    assert "50 units, 12 of them balanced, in 40 clusters, 62 examples" in result.stdout
    assert "in 12 of 62 examples the related word is the first token" in result.stdout
    assert "accuracy is 0.97 (0.968 on the file's own items)" in result.stdout
    assert "Coverage: known words: 84 %" in result.stdout
    assert "Left out or replaced: unequal lengths: 3" in result.stdout
    assert (tmp_path / "r" / "report.html").is_file()


def test_heads_hands_every_option_on(calls, run, tmp_path):
    options = "--model m --task a --task b --task a --n 7 --seed 3 --no-probes --device cuda --dtype bfloat16"
    assert run("heads", "--out", tmp_path / "r", *options.split(), "--min-effect", 0.2).exit_code == 0
    assert calls["model"] == ("m", {"device": "cuda", "dtype": "bfloat16"})
    assert calls["tasks"] == [("a", ENCODING), ("b", ENCODING)]
    names, asked, more = calls["heads"]
    kept = more.pop("run")
    assert (names, asked, more) == (["a", "b"], HeadsOptions(seed=3, probes=False, min_effect=0.2), {"siblings": []})
    assert (kept.folder, kept.executor) == (Path(os.environ["INTERP_RUNS"]), Local())


def test_the_next_command_asks_what_was_asked():
    from interp.cli.heads import asked_again

    asked = HeadsOptions(n=50, probes=False, min_effect=0.2, claims="c.toml", correction="fdr", memory_budget=10**9)
    again = [
        "--min-effect",
        "0.2",
        "--no-probes",
        "--correction",
        "fdr",
        "--claims",
        "c.toml",
        "--memory",
        "1000000000",
    ]
    assert sorted(asked_again(asked)) == sorted(again)


def test_heads_that_earned_one_have_a_card(calls, run, tmp_path):
    assert run("heads", "--out", tmp_path / "r", "--task", TASK, "--memory", "2GB").exit_code == 0
    assert (calls["cards"][0], calls["cards"][2]) == ([TASK], 2 * 10**9)
    assert "Head 2.1" in (tmp_path / "r" / "cards" / "2.1.html").read_text(encoding="utf-8")
    again = run("heads", "--out", tmp_path / "r", "--task", TASK, "--no-cards", "--json")
    assert again.exit_code == 0, again.output
    assert not (tmp_path / "r" / "cards").exists()
    assert json.loads(again.stdout)["cards"] == []


def test_processes_are_for_tasks_and_cards(calls, run, tmp_path):
    assert run("heads", "--out", tmp_path / "r", "--task", "a", "--processes", "2").exit_code == 0
    assert calls["heads"][2]["run"].executor == calls["cards"][1].executor == Processes(2)
    assert "--processes" in run("heads", "--out", tmp_path / "q", "--processes", "0").stderr


def test_files_have_no_other_items_to_choose_on(calls, run, tmp_path):
    result = run("heads", "--out", tmp_path / "r", "--task", "blimp:some.jsonl", "--choose")
    assert result.exit_code == 2
    said = "--choose: expected generated tasks, which have other items to choose on, got blimp:some.jsonl"
    assert said in result.stderr
    assert "heads" not in calls


def test_siblings_are_loaded_and_handed_on(calls, run, tmp_path):
    assert run("heads", "--out", tmp_path / "r", "--sibling", "s1", "--sibling", "s2").exit_code == 0
    assert len(calls["heads"][2]["siblings"]) == 2
    assert calls["model"] == ("s2", {"device": "cpu", "dtype": "float32"})


def test_heads_are_chosen_on_another_split(calls, run, tmp_path):
    assert run("heads", "--out", tmp_path / "r", "--task", "ioi", "--choose").exit_code == 0
    assert [(name, options.get("split")) for name, options in calls["tasks"]] == [("ioi", None), ("ioi", "select")]
    assert len(calls["heads"][2]["choose_on"]) == 1


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


class TestTooFewClusters:
    @pytest.fixture(autouse=True)
    def _few(self, monkeypatch):
        """Of the task ``few`` 8 units are left."""

        def load_task(name, **_options):
            task = a_task(name)
            return replace(task, units=task.units[:8], dropped={}) if name == "few" else replace(task, dropped={})

        monkeypatch.setattr("interp.tasks.catalogue.load_task", load_task)

    def test_that_they_decide_nothing_is_said_before_the_work_with_the_n_that_would_do(self, calls, refused, tmp_path):
        said = refused("heads", "--out", tmp_path / "r", "--task", "few")
        assert said.startswith("few: every head would be undecided, with 8 clusters; at least 30 are needed")
        assert "about n=48 would do" in said
        assert "--anyway" in said
        assert "heads" not in calls

    def test_they_are_measured_where_that_is_asked_for(self, calls, run, tmp_path):
        assert run("heads", "--out", tmp_path / "r", "--task", "few", "--anyway").exit_code == 0
        assert calls["heads"][0] == ["few"]

    def test_beside_others_they_are_left_out(self, calls, run, tmp_path):
        done = run("heads", "--out", tmp_path / "r", "--task", "few", "--task", "b", "--json")
        assert (done.exit_code, calls["heads"][0]) == (0, ["b"])
        assert "few is left out: every head would be undecided, with 8 clusters" in done.stderr
        assert "about n=48 would do" in json.loads(done.stdout)["left_out"]["few"]


@pytest.fixture
def asked(monkeypatch, calls):
    """Stands in for the card of one head, and notes how it was called."""

    def head_card(_model, head, tasks, *, options, progress, run):
        calls["head"] = (head, [task.name for task in tasks], options, run)
        progress(1, 1)
        return made_up_card()

    def load_model(name, **options):
        calls["model"] = (name, options)
        return SimpleNamespace(tokenizer="tokenizer", cfg=SimpleNamespace(n_ctx=64, n_layers=3, n_heads=4))

    monkeypatch.setattr("interp.model.loading.load_model", load_model)
    monkeypatch.setattr("interp.methods.head_card.head_card", head_card)
    return calls


def test_every_generated_task_is_asked_by_default(asked, run, tmp_path):
    assert run("heads", "--out", tmp_path / "r").exit_code == run("head", "0.0").exit_code == 0
    assert asked["heads"][0] == asked["head"][1] == GENERATED


def test_the_card_is_shown_sentences_first(asked, run):
    result = run("head", "2.1", "--task", OF_CARD)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "Head 2.1"
    first = next(number for number, line in enumerate(lines) if line.startswith("- Head 2.1: ● attends and causal"))
    (heading,) = (number for number, line in enumerate(lines) if line.startswith("task "))
    assert heading > first
    row = " ".join(result.stdout[result.stdout.index("\ntask ") :].split())
    assert "agreement ● attends and causal" in row
    assert "- Head 2.1 matters for agreement" in result.stdout
    assert "- The replacements do not conclude the same" in result.stdout
    assert "blimp:<script>" in result.stdout
    assert "report.html" not in result.stdout


def test_every_option_is_handed_on(asked, run):
    options = "--model m --task a --task b --task a --n 7 --seed 3 --no-probes --max-units 9"
    assert run("head", "2.1", *options.split(), "--dtype", "bfloat16").exit_code == 0
    assert asked["model"] == ("m", {"device": "cpu", "dtype": "bfloat16"})
    assert asked["tasks"][0] == ("a", ENCODING)
    head, tasks, options, kept = asked["head"]
    assert (head, tasks) == ((2, 1), ["a", "b"])
    assert options == CardOptions(seed=3, probes=False, max_units=9)
    assert kept.executor == Local()


def test_a_folder_is_left_where_one_is_asked_for(asked, run, tmp_path):
    result = run("head", "2.1", "--out", tmp_path / "c")
    assert result.stdout.splitlines()[-1].startswith(str(tmp_path / "c" / "report.html"))
    assert (tmp_path / "c" / "feeds.csv").is_file()


def test_the_json_of_a_card_is_one_object(asked, run, tmp_path):
    result = run("head", "2.1", "--out", tmp_path / "c", "--json")
    printed = json.loads(result.stdout)
    assert (printed["head"], printed["copying"], printed["page"]) == ("2.1", 0.63, str(tmp_path / "c" / "report.html"))
    assert [each["task"] for each in printed["verdicts"]] == [OF_CARD, IDLE]
    assert printed["shares"][0]["share"] == -0.8
    assert printed["replacements"][-1]["effect"] is None
    told = ["values at the related word", "feature", "random directions"]
    assert [each["what"] for each in printed["feature"]] == told
    assert [each["sender"] for each in printed["feeds"]] == ["embed", "mlp.0", "1.0"]
    assert {each["part"] for each in printed["left_out"]} == {"feeds", "readers", "feature"}
    assert printed["tasks_left_out"] == {}
    assert "next:" not in result.stderr


def test_what_is_no_head_is_refused_before_anything_is_loaded(asked, refused):
    said = "head '2-1': expected a layer and a head, both from 0, such as 2.1 for head 1 of layer 2\n"
    assert refused("head", "2-1") == said
    assert "model" not in asked


@pytest.mark.parametrize("command", [("heads", "--out", "o"), ("head", "2.1")], ids=["heads", "head"])
def test_too_few_clusters_are_refused_before_anything_is_loaded(asked, refused, command):
    said = "max_clusters: expected 30 clusters or more, since fewer decide nothing, or leave it out; got 24\n"
    assert refused(*command, "--max-clusters", "24") == said
    assert "model" not in asked


def test_a_head_that_the_model_lacks_is_refused_before_tasks_are_made(asked, refused):
    said = "the model has 3 layers (0 to 2) of 4 heads (0 to 3); choose one of these"
    assert said in refused("head", "3.0")
    assert "tasks" not in asked


def test_what_goes_wrong_is_one_line_and_an_exit_code(asked, run, fail_with, tmp_path):
    fail_with("interp.methods.head_card.head_card", InputError("no such thing"))
    result = run("head", "2.1", "--out", tmp_path / "c")
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (2, "error: no such thing")
    fail_with("interp.methods.head_card.head_card", KeyboardInterrupt())
    result = run("head", "2.1", "--out", tmp_path / "c")
    assert result.exit_code == 130
    assert not (tmp_path / "c").exists()
