"""`interp head`: what it prints and leaves behind. The work itself is faked."""

import json
from types import SimpleNamespace

import pytest
from made_up_card import IDLE, TASK, made_up_card

from interp.errors import InputError
from interp.runs.executors import Local


@pytest.fixture
def asked(monkeypatch, calls):
    """Stands in for the method, and notes how it was called."""

    def head_card(_model, head, tasks, *, progress, **options):
        calls["head"] = (head, [task.name for task in tasks], options)
        progress(1, 1)
        return made_up_card()

    def load_model(name, **options):
        calls["model"] = (name, options)
        return SimpleNamespace(tokenizer="tokenizer", cfg=SimpleNamespace(n_ctx=64, n_layers=3, n_heads=4))

    monkeypatch.setattr("interp.model.loading.load_model", load_model)
    monkeypatch.setattr("interp.methods.head_card.head_card", head_card)
    return calls


def test_the_card_is_shown_sentences_first(asked, run):
    result = run("head", "2.1", "--task", TASK)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "Head 2.1"
    first = next(number for number, line in enumerate(lines) if line.startswith("- Head 2.1: ● attends and causal"))
    (heading,) = (number for number, line in enumerate(lines) if line.startswith("task "))
    assert heading > first
    row = " ".join(result.stdout[result.stdout.index("\ntask ") :].split())
    assert "agreement ● attends and causal" in row
    assert "- Head 2.1 matters for agreement" in result.stdout
    assert "- The kinds of ablation do not conclude the same" in result.stdout
    assert "blimp:<script>" in result.stdout
    assert "report.html" not in result.stdout


def test_every_option_is_handed_on(asked, run):
    options = "--model m --task a --task b --task a --n 7 --seed 3 --no-probes --max-units 9"
    assert run("head", "2.1", *options.split(), "--dtype", "bfloat16").exit_code == 0
    assert asked["model"] == ("m", {"device": "cpu", "dtype": "bfloat16"})
    encoding = {
        "n": 7,
        "seed": 3,
        "tokenizer": "tokenizer",
        "n_ctx": 64,
        "metric": None,
        "unequal_lengths": False,
    }
    assert asked["tasks"][0] == ("a", encoding)
    head, tasks, options = asked["head"]
    assert (head, tasks) == ((2, 1), ["a", "b"])
    assert options.pop("run").executor == Local()
    assert options == {"seed": 3, "probes": False, "max_units": 9}


def test_every_generated_task_is_asked_by_default(asked, run):
    assert run("head", "0.0").exit_code == 0
    assert asked["head"][1] == ["agreement", "coreference", "reflexive", "ioi", "induction"]


def test_a_folder_is_left_where_one_is_asked_for(asked, run, tmp_path):
    result = run("head", "2.1", "--out", tmp_path / "c")
    assert result.stdout.splitlines()[-1].startswith(str(tmp_path / "c" / "report.html"))
    assert (tmp_path / "c" / "feeds.csv").is_file()


def test_json_is_one_object(asked, run, tmp_path):
    result = run("head", "2.1", "--out", tmp_path / "c", "--json")
    printed = json.loads(result.stdout)
    assert (printed["head"], printed["copying"], printed["page"]) == ("2.1", 0.63, str(tmp_path / "c" / "report.html"))
    assert [each["task"] for each in printed["verdicts"]] == [TASK, IDLE]
    assert printed["shares"][0]["share"] == -0.8
    assert printed["replacements"][-1]["effect"] is None
    assert [each["what"] for each in printed["feature"]] == [
        "values at the related word",
        "feature",
        "random directions",
    ]
    assert [each["sender"] for each in printed["feeds"]] == ["embed", "mlp.0", "1.0"]
    assert {each["part"] for each in printed["left_out"]} == {"feeds", "readers", "feature"}
    assert printed["tasks_left_out"] == {}
    assert "next:" not in result.stderr


def test_what_is_no_head_is_refused_before_anything_is_loaded(asked, run):
    result = run("head", "2-1")
    assert result.exit_code == 2
    assert result.stderr == (
        "error: head '2-1': expected a layer and a head, both from 0, such as 2.1 for head 1 of layer 2\n"
    )
    assert "model" not in asked


def test_a_head_that_the_model_lacks_is_refused_before_tasks_are_made(asked, run):
    result = run("head", "3.0")
    assert result.exit_code == 2
    assert "the model has 3 layers (0 to 2) of 4 heads (0 to 3); choose one of these" in result.stderr
    assert "tasks" not in asked


def test_what_goes_wrong_is_one_line_and_an_exit_code(asked, run, fail_with, tmp_path):
    fail_with("interp.methods.head_card.head_card", InputError("no such thing"))
    result = run("head", "2.1", "--out", tmp_path / "c")
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (2, "error: no such thing")
    fail_with("interp.methods.head_card.head_card", KeyboardInterrupt())
    result = run("head", "2.1", "--out", tmp_path / "c")
    assert result.exit_code == 130
    assert not (tmp_path / "c").exists()
