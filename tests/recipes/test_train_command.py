"""`python -m recipes`: its options, and what it never does. The training itself is faked but for one tiny recipe."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from recipes.__main__ import main

FRAME = pd.DataFrame({"step": [1], "tokens": [64], "split": ["train"], "loss": [2.5]})
TRAINING = SimpleNamespace(
    tokens=5120, loss=2.5, hash="abc", curve=SimpleNamespace(held_out={}), frame=lambda: FRAME
)  # fmt: skip


@pytest.fixture
def run(capsys):
    """The command with these arguments: its exit code and what it printed."""

    def run(*arguments):
        try:
            code = main([str(each) for each in arguments])
        except SystemExit as ended:  # argparse's own
            code = ended.code
        printed = capsys.readouterr()
        return SimpleNamespace(exit_code=code, stdout=printed.out, stderr=printed.err, output=printed.out + printed.err)

    return run


@pytest.fixture
def faked(monkeypatch):
    called = {}

    def train_recipe(recipe, out, *, progress, **options):
        called.update(options, recipe=recipe.name, out=out)
        out.mkdir(parents=True)
        progress(5, 3.2)
        return TRAINING

    monkeypatch.setattr("recipes.__main__.train_recipe", train_recipe)
    return called


def test_it_hands_its_options_on(run, faked, monkeypatch, tmp_path):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    out, options = tmp_path / "model", ("--seed", 4, "--steps", 5, "--threads", 2, "--text", "a.txt", "--json")
    result = run("books", "--out", out, *options)
    assert result.exit_code == 0, result.output
    faked["text"] = str(faked["text"])
    expected = {"seed": 4, "steps": 5, "threads": 2, "text": "a.txt", "device": "cpu"}
    assert faked == {"out": out, "recipe": "books", **expected}
    assert json.loads(result.stdout)["loss"] == 2.5
    assert pd.read_csv(out / "loss.csv").equals(FRAME)
    assert (out / "loss.png").stat().st_size > 1000


@pytest.mark.parametrize("seed", [0, 2**63 - 1])
def test_every_seed_that_a_generator_takes(run, faked, tmp_path, seed):
    assert run("default", "--out", tmp_path / "m", "--seed", seed).exit_code == 0
    assert faked["seed"] == seed
    torch.Generator().manual_seed(seed)
    np.random.default_rng(seed)


def test_training_never_writes_into_a_folder_in_use(run, tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    result = run("default", "--out", tmp_path)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: output folder")


def test_a_recipe_that_is_not_there(run, tmp_path):
    result = run("defualt", "--out", tmp_path / "m")
    assert result.exit_code == 2
    assert "no such recipe; expected a TOML file or one of books, default" in result.stderr
    assert not (tmp_path / "m").exists()


def test_asked_again_it_goes_on(run, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "own.toml").write_text(
        '[data]\nsource = "grammar"\n[tokenizer]\nkind = "lexicon"\n[model]\nn_layers = 1\nn_heads = 1\nd_model = 8\n'
        "d_head = 4\nd_mlp = 8\nn_ctx = 16\n[training]\nsteps = 4\nbatch_size = 2\ncheckpoint_every = 2\n"
    )
    first, again = (run(tmp_path / "own.toml", "--out", "~/m", "--json") for _ in range(2))
    assert first.exit_code == again.exit_code == 0, first.output
    assert json.loads(first.stdout)["hash"] == json.loads(again.stdout)["hash"]
    for option, message in (
        (("--steps", 6), "steps was 4 there and is 6 here"),
        (("--seed", 5), "seed was 0 there and"),
    ):
        other = run(tmp_path / "own.toml", "--out", tmp_path / "m", *option)
        assert other.exit_code == 2
        assert message in other.stderr


def test_a_folder_with_the_checkpoints_of_another_program_is_left_alone(run, tmp_path):
    (tmp_path / "checkpoints" / "step-5").mkdir(parents=True)
    (tmp_path / "model.safetensors").write_text("precious")
    result = run("default", "--out", tmp_path, "--steps", 1)
    assert result.exit_code == 2
    assert "expected a new or empty folder, got one with files" in result.stderr
    assert (tmp_path / "model.safetensors").read_text() == "precious"


def test_a_name_that_no_file_can_have(run, tmp_path):
    for command in (
        ("x" * 300, "--out", tmp_path / "m"),
        ("default", "--out", tmp_path / ("x" * 300)),
    ):
        result = run(*command)
        assert result.exit_code == 2
        assert "cannot be used (File name too long)" in result.stderr or "File name too long" in result.stderr


@pytest.mark.parametrize(
    ("option", "value"), [("--steps", 0), ("--seed", -1), ("--seed", 2**63), ("--threads", "x"), ("--threads", 4)]
)
def test_numbers_out_of_range(run, faked, monkeypatch, tmp_path, option, value):
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    result = run("default", "--out", tmp_path / "m", option, value)
    assert result.exit_code == 2
    assert option in result.stderr
    assert not faked


def test_interrupted(run, monkeypatch, tmp_path):
    def interrupted(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("recipes.__main__.train_recipe", interrupted)
    result = run("default", "--out", tmp_path / "m", "--json")
    assert result.exit_code == 130
    assert "the same command goes on" in result.stderr
    assert json.loads(result.stdout)["exit_code"] == 130


def test_what_is_printed_names_what_comes_next(run, faked, tmp_path):
    result = run("default", "--out", tmp_path / "my model")
    assert "loss: 2.5" in result.stdout
    assert result.stderr == f"next: interp heads --model '{tmp_path / 'my model'}' --out report\n"
