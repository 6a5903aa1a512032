"""Names that would move the cursor, wipe the screen, name the window or turn round a line are read, and do not."""

import json
import os
import subprocess
import sys
import unicodedata
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import fake_sweeps
import pytest
import torch
from fake_evidence import REPORT
from made_up_card import IDLE, made_up_card
from typer.testing import CliRunner

from interp.cli import app
from interp.cli.terminal import print_json, print_page
from interp.errors import TaskError
from interp.report.sections import page_of

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "report"))
from synthetic_probes import probing
from synthetic_relations import TO_HEAD, scoring

HOSTILE = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202edrow\r[bold]x[/bold] [/]"
SEEN = ("\\x1b[2J", "\\x1b]0;owned\\x07\\x9b31m\\u202edrow", "[bold]x[/bold][/]")
DIRECTIONAL = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


@pytest.fixture
def run():
    """As for a terminal that takes colours: nothing is stripped on the way."""
    return lambda *arguments: CliRunner().invoke(app, [str(each) for each in arguments], color=True)


def check(text):
    """Nothing acts, and the name can be read, however it is folded."""
    assert {char for char in text if unicodedata.category(char) == "Cc"} <= {"\n", "\t"}
    assert not {char for char in text if unicodedata.bidirectional(char) in DIRECTIONAL}
    together = "".join(text.split())
    assert all(each in together for each in SEEN), text


@pytest.mark.parametrize("command", ["ablate --replacement mean", "patch"])
def test_the_name_of_a_sweeps_task_is_read(run, monkeypatch, command):
    monkeypatch.setitem(fake_sweeps.PROVENANCE, "task", HOSTILE)
    result = run(*command.split(), "--task", "agreement")
    assert result.exit_code == 0, result.output
    check(result.output)


def test_the_names_in_a_dossier_are_read(run, monkeypatch, tmp_path):
    renamed = {name: getattr(REPORT, name).assign(task=HOSTILE) for name in ("cells", "tasks", "examples")}
    report = replace(REPORT, **renamed)
    monkeypatch.setattr("interp.methods.dossier.heads", lambda *_arguments, **_options: report)
    result = run("heads", "--out", tmp_path / "r")
    assert result.exit_code == 0, result.output
    check(result.output)


def test_the_names_in_a_card_are_read(capsys):
    card = made_up_card()
    known = ("verdicts", "tasks", "shares", "halves", "replacements", "left_out")
    changes = {name: getattr(card, name).replace({"task": {IDLE: HOSTILE}}) for name in known}
    print_page(page_of(made_up_card(**changes)))
    check(capsys.readouterr().out)


def test_relations_and_features_are_read(capsys):
    for result in (scoring({(HOSTILE, TO_HEAD): "attends"}), probing(feature=HOSTILE)):
        print_page(page_of(result))
        check(capsys.readouterr().out)


def test_a_models_name_and_card_are_read(run, monkeypatch, tmp_path):
    shape = dict.fromkeys(("n_layers", "n_heads", "d_model", "d_head", "d_mlp", "d_vocab", "n_ctx"), 2)
    cfg = SimpleNamespace(**shape, act_fn="gelu_new", normalization_type="LN")
    loaded = SimpleNamespace(name=HOSTILE, cfg=cfg, parameters=lambda: [torch.zeros(5)], tokenizer=None, hash="abc")
    monkeypatch.setattr("interp.model.loading.load_model", lambda _name: loaded)
    (tmp_path / "README.md").write_text(HOSTILE, encoding="utf-8", newline="")
    check(run("model", "info", "--model", tmp_path).stdout)
    printed = run("model", "info", "--model", tmp_path, "--json").stdout
    assert json.loads(printed)["name"] == HOSTILE
    assert {char for char in printed if unicodedata.category(char) in ("Cc", "Cf")} == {"\n"}


def test_json_has_what_has_no_utf8_as_an_escape(capsys):
    print_json({"name": "half \ud83d, \U000e0041 \x7f\\\x7f"})
    printed = capsys.readouterr().out
    assert printed == '{"name": "half \\ud83d, \\udb40\\udc41 \\u007f\\\\\\u007f"}\n'
    assert json.loads(printed) == {"name": "half \ud83d, \U000e0041 \x7f\\\x7f"}


def test_errors_and_warnings_are_read(run, fail_with, tmp_path):
    check(run("ablate", "--task", "agreement", "--replacement", HOSTILE).stderr)
    check(run(HOSTILE).stderr)
    fail_with("interp.tasks.catalogue.load_task", TaskError(f"unknown task {HOSTILE}"))
    check(run("heads", "--out", tmp_path / "r", "--task", "x").stderr)


@pytest.mark.parametrize(
    "locale",
    [
        {"PYTHONUTF8": "0", "LC_ALL": "C"},
        pytest.param({"PYTHONIOENCODING": "ascii"}, marks=pytest.mark.slow),
        pytest.param({}, marks=pytest.mark.slow),
    ],
)
def test_whatever_the_locale_names_are_right_and_nothing_breaks(tmp_path, locale):
    folder = tmp_path / "a b" / "ü\nx"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **locale}
    command = [sys.executable, "-m", "interp", "runs", "ls", "--runs", folder]
    told, listed = (
        subprocess.run([*command, *more], env=environment, capture_output=True, check=True) for more in (["--json"], [])
    )
    assert json.loads(told.stdout.decode("ascii")) == {"folder": str(folder), "runs": []}
    assert b"Traceback" not in told.stderr + listed.stderr
