"""The command line: what it prints, what it leaves behind, and its exit codes. The work itself is faked."""

import json
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from interp.cli import app
from interp.errors import ConfigError, InputError, LoadError, TaskError

TASK = "blimp:data/made_up.jsonl"
runner = CliRunner()


def head(number: int, verdict: str, effect: float) -> dict[str, object]:
    return {
        "layer": 0,
        "head": number,
        "task": TASK,
        "query": "predicting position",
        "attention": 0.8 if verdict == "attends and causal" else np.nan,
        "attention_baseline": 0.1 if verdict == "attends and causal" else np.nan,
        "attention_q": 0.001,
        "effect": effect,
        "effect_low": effect - 0.2,
        "effect_high": effect + 0.2,
        "effect_q": 0.001,
        "accuracy_base": 0.97,
        "accuracy_ablated": 0.55,
        "verdict": verdict,
        "reason": "",
        "baseline": "offset -3",
        "excess": 0.7 if verdict == "attends and causal" else np.nan,
        "n_to_decide": np.nan,
        "minimum_effect": 0.2,
        "metric": "sentence_log_probability",
        "relation": "subject",
    }


REPORT = SimpleNamespace(
    frame=pd.DataFrame([head(0, "attends and causal", -3.0), head(1, "none", 0.01)]),
    examples=pd.DataFrame({"task": [TASK], "layer": [0], "head": [0], "effect": [-3.0]}),
    tasks=pd.DataFrame(
        [
            {
                "task": TASK,
                "description": "Is the good sentence likelier?",
                "n_units": 50,
                "n_examples": 50,
                "base": 6.0,
                "base_low": 5.5,
                "base_high": 6.5,
                "accuracy_base": 0.97,
                "query": "predicting position",
                "metric": "sentence_log_probability",
                "dropped": "unequal lengths: 3",
                "coverage": "known words: 84 %",
            }
        ]
    ),
    attention_maps=pd.DataFrame(
        columns=["task", "rank", "layer", "head", "example", "key_pos", "weight", "token", "is_query", "is_related"]
    ),
    provenance={"model": "tiny", "seed": 0},
)
SUMMARY = pd.DataFrame(
    {
        "layer": [0],
        "head": [1],
        "effect": [-1.5],
        "low": [-1.75],
        "high": [-1.25],
        "p": [0.001],
        "q": [0.001],
        "base": [4.0],
        "value": [2.5],
        "accuracy_base": [1.0],
        "accuracy_intervened": [0.75],
        "n_units": [50],
        "n_clusters": [25],
    }
)
CALLS: dict[str, object] = {}


@pytest.fixture(autouse=True)
def fakes(monkeypatch):
    """Stands in for the model, the tasks and the methods, and notes how they were called."""
    CALLS.clear()

    def load_model(name, **options):
        CALLS["model"] = (name, options)
        return SimpleNamespace(tokenizer="tokenizer", cfg=SimpleNamespace(n_ctx=64))

    def load_task(name, **options):
        CALLS.setdefault("tasks", []).append((name, options))
        return SimpleNamespace(name=name, metric="logit_difference")

    def heads(_model, tasks, *, progress, **options):
        CALLS["heads"] = ([task.name for task in tasks], options)
        progress(1, 2)
        progress(2, 2)
        return REPORT

    def ablate(_model, task, *, progress, **options):
        CALLS["ablate"] = (task.name, options)
        progress(1, 1)
        return SimpleNamespace(frame=pd.DataFrame({"effect": [-1.0, -2.0]}), summary=lambda: SUMMARY)

    monkeypatch.setattr("interp.model.loading.load_model", load_model)
    monkeypatch.setattr("interp.tasks.catalogue.load_task", load_task)
    monkeypatch.setattr("interp.methods.dossier.heads", heads)
    monkeypatch.setattr("interp.methods.ablation.ablate", ablate)


def run(*arguments: object):
    return runner.invoke(app, [str(each) for each in arguments])


def fail_with(monkeypatch, target: str, error: BaseException) -> None:
    def fail(*_arguments, **_options):
        raise error

    monkeypatch.setattr(target, fail)


def test_heads_prints_the_page_and_the_verdicts(tmp_path):
    result = run("heads", "--out", tmp_path / "r", "--task", TASK)
    assert result.exit_code == 0, result.output
    assert str(tmp_path / "r" / "report.html") in result.stdout.splitlines()[0]
    assert "Head 0.0 tracks" in result.stdout
    assert "accuracy is 0.97" in result.stdout
    assert "coverage: known words: 84 %" in result.stdout
    assert "dropped: unequal lengths: 3" in result.stdout
    assert (tmp_path / "r" / "report.html").is_file()


def test_heads_hands_every_option_on(tmp_path):
    options = "--model m --task a --task b --task a --n 7 --seed 3 --ablation zero --device cuda --dtype bfloat16"
    assert run("heads", "--out", tmp_path / "r", *options.split()).exit_code == 0
    assert CALLS["model"] == ("m", {"device": "cuda", "dtype": "bfloat16"})
    encoding = {"n": 7, "seed": 3, "tokenizer": "tokenizer", "n_ctx": 64}
    assert CALLS["tasks"] == [("a", encoding), ("b", encoding)]
    assert CALLS["heads"] == (["a", "b"], {"n": 7, "seed": 3, "ablation": "zero"})


def test_heads_asks_every_generated_task_by_default(tmp_path):
    assert run("heads", "--out", tmp_path / "r").exit_code == 0
    assert CALLS["heads"][0] == ["agreement", "coreference", "reflexive", "ioi", "induction"]


def test_heads_json_is_one_object_on_standard_output(tmp_path):
    result = run("heads", "--out", tmp_path / "r", "--task", TASK, "--json")
    printed = json.loads(result.stdout)
    assert printed["folder"] == str(tmp_path / "r")
    assert printed["verdicts"] == [
        {"layer": 0, "head": 0, "task": TASK, "verdict": "attends and causal"},
        {"layer": 0, "head": 1, "task": TASK, "verdict": "none"},
    ]
    assert printed["tasks"][0]["accuracy_base"] == 0.97
    assert printed["seconds"] > 0
    assert "heads" in result.stderr


def test_the_report_says_how_to_repeat_it(monkeypatch, tmp_path):
    out = tmp_path / "with space"
    arguments = ["heads", "--out", str(out), "--seed", "3"]
    monkeypatch.setattr(sys, "argv", ["/usr/bin/interp", *arguments])
    run(*arguments)
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["command"] == f"interp heads --out '{out}' --seed 3"


def test_ablate_prints_the_effect_its_interval_and_the_accuracy():
    result = run("ablate", "--layer", 0, "--head", 1, "--task", "agreement", "--kind", "resample", "--n", 9)
    assert result.exit_code == 0, result.output
    assert "effect: -1.5 (95 % interval -1.75 to -1.25)" in result.stdout
    assert "accuracy: 1.000 -> 0.750" in result.stdout
    assert CALLS["ablate"] == ("agreement", {"kind": "resample", "heads": [(0, 1)], "seed": 0})
    assert CALLS["tasks"][0][1]["n"] == 9


def test_ablate_json_and_csv(tmp_path):
    file = tmp_path / "effects.csv"
    result = run("ablate", "--layer", 0, "--head", 1, "--task", "agreement", "--out", file, "--json")
    printed = json.loads(result.stdout)
    assert (printed["effect"], printed["low"], printed["high"]) == (-1.5, -1.75, -1.25)
    assert printed["file"] == str(file)
    assert list(pd.read_csv(file)["effect"]) == [-1.0, -2.0]


def test_an_interval_that_is_not_known_is_null_and_said(monkeypatch):
    unknown = SimpleNamespace(frame=pd.DataFrame(), summary=lambda: SUMMARY.assign(low=np.nan, high=np.nan))
    monkeypatch.setattr("interp.methods.ablation.ablate", lambda *_arguments, **_options: unknown)
    command = ("ablate", "--layer", 0, "--head", 1, "--task", "agreement")
    assert json.loads(run(*command, "--json").stdout)["low"] is None
    assert "no interval" in run(*command).stdout


def test_tasks_lists_what_can_be_loaded():
    from interp.tasks.catalogue import list_tasks

    names = list(list_tasks()["name"])
    listed = run("tasks")
    assert listed.exit_code == 0
    assert all(name in listed.stdout for name in names)
    assert [task["name"] for task in json.loads(run("tasks", "--json").stdout)["tasks"]] == names


def test_model_info_shows_shape_hash_and_card(monkeypatch, tmp_path):
    shape = dict.fromkeys(("n_layers", "n_heads", "d_model", "d_head", "d_mlp", "d_vocab", "n_ctx"), 2)
    loaded = SimpleNamespace(
        name="tiny",
        cfg=SimpleNamespace(**shape, act_fn="gelu_new", normalization_type="LN"),
        parameters=lambda: [torch.zeros(3, 4), torch.zeros(5)],
        tokenizer=None,
        hash="abc123",
    )
    monkeypatch.setattr("interp.model.loading.load_model", lambda _name: loaded)
    (tmp_path / "README.md").write_text("# A small modèle\n", encoding="utf-8")
    result = run("model", "info", "--model", tmp_path)
    assert result.exit_code == 0, result.output
    for line in ("name: tiny", "n_layers: 2", "parameters: 17", "hash: abc123", "# A small modèle"):
        assert line in result.stdout.splitlines()
    printed = json.loads(run("model", "info", "--model", tmp_path, "--json").stdout)
    assert printed["card"] == "# A small modèle\n"
    assert printed["parameters"] == 17


def test_train_default_hands_its_options_on(monkeypatch, tmp_path):
    called = {}

    def train_default(out, *, progress, **options):
        called.update(options, out=out)
        progress(5, 3.2)
        return SimpleNamespace(tokens=5120, loss=2.5, hash="abc")

    monkeypatch.setattr("interp.recipes.default.train_default", train_default)
    out = tmp_path / "model"
    result = run("train", "default", "--out", out, "--seed", 4, "--steps", 5, "--threads", 2, "--json")
    assert result.exit_code == 0, result.output
    assert called == {"out": out, "seed": 4, "steps": 5, "threads": 2}
    assert json.loads(result.stdout)["loss"] == 2.5


def test_training_never_writes_into_a_folder_in_use(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    result = run("train", "default", "--out", tmp_path)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: output folder")


@pytest.mark.parametrize(
    ("target", "error"),
    [
        ("interp.model.loading.load_model", LoadError("weights:\nexpected W_E, got none;\n  add it")),
        ("interp.model.loading.load_model", ConfigError("device: expected cpu, got 'tpu'; use cpu")),
        ("interp.tasks.catalogue.load_task", TaskError("unknown task 'x'; did you mean 'ioi'?")),
        ("interp.methods.dossier.heads", InputError("prompt: expected at most 64 tokens, got 70; shorten it")),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2_and_nothing_is_written(monkeypatch, tmp_path, target, error):
    fail_with(monkeypatch, target, error)
    result = run("heads", "--out", tmp_path / "a" / "r")
    assert result.exit_code == 2
    assert result.stderr == f"error: {' '.join(str(error).split())}\n"
    assert "Traceback" not in result.output
    assert result.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_the_output_folder_is_checked_before_anything_is_loaded(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    result = run("heads", "--out", tmp_path)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: output folder")
    assert CALLS == {}


@pytest.mark.parametrize(
    "target", ["interp.model.loading.load_model", "interp.methods.dossier.heads", "interp.report.folder.save_report"]
)
def test_an_interrupt_is_one_line_and_exit_code_130(monkeypatch, tmp_path, target):
    fail_with(monkeypatch, target, KeyboardInterrupt())
    result = run("heads", "--out", tmp_path / "r")
    assert result.exit_code == 130
    assert [line for line in result.stderr.splitlines() if "interrupted" in line] == [
        "interrupted: nothing was left half-written"
    ]
    assert list(tmp_path.iterdir()) == []


def test_a_bug_of_ours_is_not_hidden(monkeypatch, tmp_path):
    fail_with(monkeypatch, "interp.methods.dossier.heads", ZeroDivisionError("ours"))
    assert isinstance(run("heads", "--out", tmp_path / "r").exception, ZeroDivisionError)


@pytest.mark.parametrize(
    "arguments",
    [
        "heads --out r --n abc",
        "heads --out r --nonsense",
        "heads --out r --ablation magic",
        "heads",
        "nonsense",
        "--nonsense",
        "ablate --layer 0 --task agreement",
        "train default --out m --steps 0",
    ],
)
def test_options_that_cannot_be_read_exit_with_2(arguments, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    result = run(*arguments.split())
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    assert CALLS == {}


@pytest.mark.parametrize("command", ["heads", "tasks", "ablate", "model info", "train default"])
def test_every_command_has_help_with_an_example(command):
    result = run(*command.split(), "--help")
    assert result.exit_code == 0
    assert f"Example: interp {command}" in result.stdout


def test_version():
    from importlib.metadata import version

    assert run("--version").stdout == f"interp {version('interp')}\n"


def test_python_m_interp_is_the_same_command():
    result = subprocess.run([sys.executable, "-m", "interp", "--version"], capture_output=True, text=True, check=True)
    assert result.stdout == run("--version").stdout


def test_help_loads_nothing_heavy():
    script = """if True:
        import sys
        from interp.cli import app
        try:
            app(["--help"])
        except SystemExit:
            pass
        print(sorted({"torch", "pandas", "matplotlib", "transformers", "scipy"} & set(sys.modules)))
    """
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines()[-1] == "[]"
