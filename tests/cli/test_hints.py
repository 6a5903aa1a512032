"""What does one ask next? A line that can be typed, and that follows from the result."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest
from fake_evidence import REPORT, TASK
from fake_sweeps import a_task, ablation, patching
from parsed import parsed

from interp.cli import hints, runs
from interp.report.sweep_cells import swept as frames


def typed(hint):
    """The command that a hint gives, with its options."""
    return parsed(str(hint))


def said(result):
    """The one hint on standard error, and nothing but one."""
    assert result.exit_code == 0, result.output
    assert "next:" not in result.stdout
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("next: ")]
    return parsed(line.removeprefix("next: "))


def paired(name, longer=0):
    """A task of one pair, whose words are not tagged."""
    task = a_task(name)
    item = replace(task.units[0].item, prompt=(0, 1, 2) + (3,) * longer)
    return replace(task, units=(replace(task.units[0], item=item, counterfactual=item),))


def judged(**verdicts):
    rows = [
        {"layer": 1, "head": number, "task": "ioi", "verdict": verdict, "n_to_decide": needed}
        for number, (verdict, needed) in enumerate(verdicts.values())
    ]
    return SimpleNamespace(summary=lambda: pd.DataFrame(rows), tasks=pd.DataFrame({"task": ["ioi"], "base_low": [1.0]}))


class TestHeads:
    def test_the_best_verdict_leads_to_its_head(self):
        name, options = typed(hints.after_heads(judged(a=("opposes", None), b=("tracks", None)), "books", []))
        assert (name, options["name"], options["task"], options["model"]) == ("head", "1.1", ["ioi"], "books")

    def test_its_card_is_asked_for_as_the_dossier_was(self):
        """With other units it would be another dossier's."""
        asked = ["--choose", "--max-clusters", "30", "--no-probes"]
        name, options = typed(hints.after_heads(judged(a=("tracks", None)), None, [], asked, n=60))
        assert (name, options["n"], options["max_clusters"], options["probes"]) == ("head", 60, 30, False)

    def test_where_its_card_is_there_the_question_is_where_the_answer_travels(self):
        found = judged(a=("none", None), b=("tracks", None))
        name, options = typed(hints.after_heads(found, "books", [], carded=[paired("other"), paired("ioi")]))
        assert (name, options["task"], options["by"], options["model"]) == ("patch", "ioi", "layer,pos", "books")

    def test_where_more_units_would_decide_they_are_asked_for(self):
        hint = hints.after_heads(judged(a=("none", None), b=("undecided", 410.0)), None, ["ioi"], ["--no-probes"])
        name, options = typed(hint)
        assert (name, options["n"], options["task"], options["probes"]) == ("heads", 410, ["ioi"], False)

    def test_where_clusters_were_limited_the_next_ablation_is_not(self):
        hint = hints.after_heads(judged(a=("undecided", 90.0)), None, ["ioi"], ["--max-clusters", "30", "--no-probes"])
        assert typed(hint)[1].get("max_clusters") is None
        assert typed(hint)[1]["probes"] is False

    def test_a_file_of_claims_is_asked_of_all_tasks(self):
        report = judged(a=("undecided", 20.0))
        report.tasks = pd.DataFrame({"task": ["ioi", "agreement"], "base_low": [1.0, 1.0]})
        hint = hints.after_heads(report, None, ["ioi"], ["--claims", "claims.toml"])
        assert typed(hint)[1]["task"] == ["ioi", "agreement"]

    def test_of_a_file_there_are_no_more(self):
        assert typed(hints.after_heads(judged(a=("undecided", 20.0)), None, []))[0] == "calibrate"

    def test_where_the_model_cannot_do_it_something_else_is_asked(self):
        report = judged(a=("undecided", None))
        report.tasks["base_low"] = -0.1
        assert typed(hints.after_heads(report, None, ["ioi"]))[0] == "tasks"

    @pytest.mark.parametrize("verdict", [("none", None), ("undecided", None), ("undecided", 1e6)])
    def test_where_nothing_is_found_or_too_much_is_needed_the_question_is_how_much_is_missed(self, verdict):
        assert typed(hints.after_heads(judged(a=verdict), None, ["ioi"]))[0] == "calibrate"

    def test_the_command_says_it_and_its_json_does_not(self, run, tmp_path):
        asked = ("--task", TASK, "--model", "a model", "--n", "7")
        name, options = said(run("heads", "--out", tmp_path / "r", *asked))
        assert (name, options["task"], options["model"]) == ("ablate", TASK, "a model")  # its one pair is none
        name, options = said(run("heads", "--out", tmp_path / "r", *asked, "--no-cards"))
        assert (name, options["name"], options["task"], options["n"]) == ("head", "0.0", [TASK], 7)
        silent = run("heads", "--out", tmp_path / "r", "--task", TASK, "--json")
        assert "next:" not in silent.stderr
        assert json.loads(silent.stdout)["folder"]

    def test_what_fails_says_no_more_than_why(self, run, tmp_path):
        result = run("heads", "--out", tmp_path / "r", "--n", "x")
        assert "next:" not in result.output


def test_a_head_without_a_folder_is_written_then_patched_around():
    name, options = typed(hints.after_head("2.2", paired("ioi"), None, written=False))
    assert (name, options["task"]) == ("head", ["ioi"])
    assert typed(hints.after_head("2.2", paired("ioi"), None, written=True))[1]["by"] == "layer,pos"


def test_how_a_task_was_asked_is_asked_again():
    """Without the template or pairs of unequal lengths, the next command would measure something else, or nothing."""
    how = ("--chat", "--unequal-lengths")
    found = judged(a=("tracks", None))
    cells = frames(ablation({"layer": [0], "head": [0, 1]}, replacement="mean"))
    for hint in (
        hints.after_heads(found, None, [], ["--no-probes"], how),
        hints.after_heads(judged(b=("undecided", 410.0)), None, ["ioi"], ["--no-probes"], how),
        hints.after_head("2.2", paired("ioi"), None, written=False, typed=how),
        hints.after_head("2.2", paired("ioi"), None, written=True, typed=how),
        hints.after_sweep(cells, paired("ioi"), None, None, how),
        hints.after_sweep(cells, paired("ioi"), None, "sentence_log_probability", how),
        hints.after_sweep(frames(patching({"layer": [0, 1]})), paired("ioi"), None, None, how),
        hints.after_probe("number", None, task="ioi", data=None, typed=how),
    ):
        assert set(how) <= set(hint.command), hint
        typed(hint)


class TestSweeps:
    def test_the_strongest_head(self, run):
        name, options = said(run("ablate", "--task", "agreement"))
        assert (name, options["name"], options["task"]) == ("head", "0.0", ["agreement"])
        assert said(run("patch", "--task", "agreement"))[:1] == ("head",)

    def test_of_other_cells_where_the_answer_travels(self):
        name, options = typed(hints.after_sweep(frames(ablation({"layer": [0, 1]})), paired("ioi"), None, None))
        assert (name, options["site"]) == ("patch", "resid_pre")
        name, options = typed(hints.after_sweep(frames(patching({"layer": [0, 1]})), paired("ioi"), None, None))
        assert (name, options["by"]) == ("patch", "layer,head")

    def test_without_counterfactuals_nothing_is_patched(self):
        name, options = typed(hints.after_sweep(frames(ablation({"layer": [0, 1]})), a_task("ioi"), None, None))
        assert (name, options["site"]) == ("ablate", "attn_out")

    def test_by_word_where_words_correspond(self):
        uneven = replace(paired("ioi"), units=(*paired("ioi").units, *paired("ioi", longer=1).units))
        assert typed(hints.after_sweep(frames(ablation({"layer": [0]})), uneven, None, None))[1]["by"] == "layer"

    def test_a_metric_that_was_named_is_named_again(self):
        found = frames(ablation({"layer": [0], "head": [0, 1]}, replacement="mean"))
        name, options = typed(hints.after_sweep(found, paired("ioi"), None, "sentence_log_probability"))
        assert (name, options["metric"]) == ("patch", "sentence_log_probability")

    def test_none_of_an_interrupted_one(self, run, monkeypatch):
        partial = ablation({"layer": [0], "head": [0, 1]}, complete=False, replacement="mean")
        monkeypatch.setattr("interp.methods.ablation.ablate", lambda *_arguments, **_options: partial)
        result = run("ablate", "--task", "agreement")
        assert result.exit_code == 130
        assert "next:" not in result.stderr


@pytest.mark.parametrize(
    ("hint", "command"),
    [
        (hints.after_attend("agreement:a b.conllu", None, able=True), "heads"),
        (hints.after_attend(None, "books", able=True), "heads"),
        (hints.after_attend(None, "an encoder", able=False), "tasks"),
        (hints.after_probe("number", None, task="ioi", data=None), "heads"),
        (hints.after_probe("number", None, task="ioi", data=None, able=False), "tasks"),
        (hints.after_probe("upos", "m", task=None, data=["b.conllu"], relations=True), "attend"),
        (hints.after_probe("sense", "m", task=None, data=["senses:bank"]), "probe"),
        (hints.after_probe("upos", None, task=None, data=None), "heads"),
        (hints.after_collect("store", ["upos", "number"], None), "probe"),
        (hints.after_collect("store", [], "m"), "activations verify"),
        (hints.after_plan("gpt2-xl", None, None), "ablate"),
        (hints.after_plan(None, "my-gpt2", "agreement"), "ablate"),
        (hints.after_looking("m"), "heads"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_every_hint_can_be_typed(hint, command):
    assert typed(hint)[0] == command


def known(state, *, key="3f9a", resumable=True):
    return SimpleNamespace(key=key, state=state, resumable=resumable)


@pytest.mark.parametrize(
    ("asked", "where", "command"),
    [
        ([known("finished"), known("begun", key="77")], None, "runs resume"),
        ([known("begun", resumable=False)], None, "runs show"),
        ([known("damaged"), known("finished")], "runs", "runs show"),
        ([known("other version")], None, "heads"),
        ([], None, "heads"),
        (known("finished"), "runs", "runs export"),
        (known("begun"), "runs", "runs resume"),
        (known("begun", resumable=False), "runs", "runs ls"),
    ],
)
def test_runs_lead_to_what_can_be_gone_on_with(monkeypatch, asked, where, command):
    monkeypatch.setattr(runs, "resumable", lambda run: run.resumable)
    hint = runs.after_runs if isinstance(asked, list) else runs.after_run
    assert typed(hint(asked, where))[0] == command


def test_a_name_of_several_words_stays_one():
    assert typed(hints.after_looking("my model"))[1]["model"] == "my model"


def test_the_tasks_lead_to_the_main_job(run):
    assert said(run("tasks"))[0] == "heads"
    assert run("tasks", "--json").stderr == ""


def test_report_is_of_this_shape():
    """The faked report's columns, which the hint reads."""
    assert {"layer", "head", "task", "verdict", "n_to_decide"} <= set(REPORT.cells)
