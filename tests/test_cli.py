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
        "minimum_attention": 0.1,
        "minimum_effect": 0.2,
        "metric": "sentence_log_probability",
        "relation": "subject",
        "n_units": 50,
        "n_clusters": 25,
        "n_attention_clusters": 25,
        "n_excluded": 12,
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
                "n_examples": 62,
                "n_clusters": 25,
                "base": 6.0,
                "base_low": 5.5,
                "base_high": 6.5,
                "accuracy_base": 0.97,
                "query": "predicting position",
                "metric": "sentence_log_probability",
                "n_excluded": 12,
                "n_untagged": 0,
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


def effects(base: float = 4.0) -> pd.DataFrame:
    """The effects of one head on 30 units, each a cluster of its own."""
    number = np.arange(30)
    frame = pd.DataFrame(
        {"unit": number, "example": number, "cluster": number.astype(str), "base": base + number / 100}
    )
    return frame.assign(layer=0, head=1, template="plain", effect=-1.0)


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
        return SimpleNamespace(frame=effects(), summary=lambda: SUMMARY)

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
    assert "Head 0.0 tracks blimp:made_up:" in result.stdout
    assert "50 units, 12 of them balanced, in 25 clusters, 62 examples" in result.stdout
    assert "in 12 of 62 examples the query is the related word itself" in result.stdout
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
    result = run("ablate", "--layer", 0, "--head", 1, "--task", "agreement", "--ablation", "resample", "--n", 9)
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
    assert (printed["ablation"], printed["above_chance"]) == ("mean", True)
    assert list(pd.read_csv(file)["effect"]) == [-1.0] * 30


@pytest.mark.parametrize(("base", "above"), [(-0.14, False), (4.0, True)])
def test_ablate_warns_where_the_model_is_not_above_chance(monkeypatch, base, above):
    result = SimpleNamespace(frame=effects(base), summary=lambda: SUMMARY)
    monkeypatch.setattr("interp.methods.ablation.ablate", lambda *_arguments, **_options: result)
    command = ("ablate", "--layer", 0, "--head", 1, "--task", "agreement")
    assert ("warning: the unablated model is not shown to be above chance" in run(*command).stderr) == (not above)
    assert json.loads(run(*command, "--json").stdout)["above_chance"] == above


@pytest.mark.parametrize("command", ["heads --out {out}", "ablate --layer 0 --head 1 --task agreement"])
def test_a_model_without_a_tokenizer_is_told_how_to_get_one(monkeypatch, tmp_path, command):
    loaded = SimpleNamespace(tokenizer=None, cfg=SimpleNamespace(n_ctx=64))
    monkeypatch.setattr("interp.model.loading.load_model", lambda *_arguments, **_options: loaded)
    result = run(*command.format(out=tmp_path / "r").split(), "--model", "folder")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: model folder: ")
    assert "the folder has no tokenizer files; save one there with tokenizer.save_pretrained(folder)" in result.stderr
    assert "tasks" not in CALLS


def test_an_interval_that_is_not_known_is_null_and_said(monkeypatch):
    unknown = SimpleNamespace(frame=effects(), summary=lambda: SUMMARY.assign(low=np.nan, high=np.nan))
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
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    out = tmp_path / "model"
    result = run("train", "default", "--out", out, "--seed", 4, "--steps", 5, "--threads", 2, "--json")
    assert result.exit_code == 0, result.output
    assert called == {"out": out, "seed": 4, "steps": 5, "threads": 2}
    assert json.loads(result.stdout)["loss"] == 2.5


@pytest.mark.parametrize("seed", [0, 2**63 - 1])
def test_every_seed_that_a_generator_takes(monkeypatch, tmp_path, seed):
    import numpy as np
    import torch

    given = []
    training = SimpleNamespace(tokens=1, loss=1.0, hash="abc")
    monkeypatch.setattr("interp.recipes.default.train_default", lambda *_, seed, **__: given.append(seed) or training)
    assert run("train", "default", "--out", tmp_path / "m", "--seed", seed).exit_code == 0
    assert given == [seed]
    torch.Generator().manual_seed(seed)
    np.random.default_rng(seed)


@pytest.mark.parametrize("command", ["train default", "heads"])
def test_no_more_threads_than_cpus(monkeypatch, tmp_path, command):
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    result = run(*command.split(), "--out", tmp_path / "m", "--threads", 4)
    assert result.exit_code == 2
    assert "expected at most 3, the CPUs of this" in result.stderr
    assert CALLS == {}


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
    ("arguments", "said"),
    [
        ("heads --out r --n abc", "'--n'"),
        ("heads --out r --nonsense", "--nonsense"),
        ("heads --out r --ablation magic", "'magic' is not one of 'mean'"),
        ("heads", "Missing option '--out'"),
        ("nonsense", "No such command 'nonsense'"),
        ("--nonsense", "No such option: --nonsense"),
        ("ablate --layer 0 --task agreement", "Missing option '--head'"),
        ("ablate --layer 0 --head 1 --task agreement --kind mean", "No such option: --kind"),
        ("model inf", "No such command 'inf'"),
        ("train default --out m --steps 0", "'--steps'"),
        ("train default --out m --seed -1", "'--seed'"),
        (f"train default --out m --seed {2**63}", "'--seed'"),
        ("heads --out r --seed -1", "'--seed'"),
    ],
)
def test_options_that_cannot_be_read_are_one_line_and_exit_code_2(arguments, said, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    result = run(*arguments.split())
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stderr.endswith("--help\n")
    assert result.stdout == ""
    assert CALLS == {}


@pytest.mark.parametrize("arguments", ["", "model", "train"])
def test_no_command_at_all_shows_the_help(arguments):
    result = run(*arguments.split())
    assert "Usage: " in result.output
    assert "error:" not in result.output


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
