"""`interp tasks`, `interp model info`, help and version: what can be asked."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from tiny_models import random_gpt2
from variants import SIZES

from interp.model.config import TransformerConfig
from interp.model.transformer import HookedTransformer


def test_tasks_lists_what_can_be_loaded(run):
    from interp.tasks.catalogue import list_tasks

    names = list(list_tasks()["name"])
    listed = run("tasks")
    assert listed.exit_code == 0
    assert all(name in listed.stdout for name in names)
    assert [task["name"] for task in json.loads(run("tasks", "--json").stdout)["tasks"]] == names


def test_model_info_shows_shape_hash_and_card(run, monkeypatch, tmp_path):
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


def test_model_info_says_what_is_otherwise_than_in_gpt2(run, monkeypatch, tmp_path):
    llama = {"positions": "rotary", "normalization": "RMS", "gated": True, "n_kv_heads": 2, "biases": ()}
    loaded = HookedTransformer(TransformerConfig(**SIZES, **llama))
    monkeypatch.setattr("interp.model.loading.load_model", lambda _name: loaded)
    printed = json.loads(run("model", "info", "--model", tmp_path, "--json").stdout)
    assert {name: printed[name] for name in llama} == {**llama, "biases": []}
    assert "scores" not in printed


def test_a_card_in_another_encoding_is_shown_as_far_as_it_can_be_read(tmp_path):
    from interp.cli.show import _card

    (tmp_path / "README.md").write_bytes("# A small modèle".encode("latin-1"))
    assert _card(str(tmp_path)) == "# A small mod\ufffdle"


@pytest.mark.parametrize("arguments", ["", "model"])
def test_no_command_at_all_shows_the_help(run, arguments):
    result = run(*arguments.split())
    assert "Usage: " in result.output
    assert "error:" not in result.output


def test_version(run):
    from importlib.metadata import version

    assert run("--version").stdout == f"interp {version('interp')}\n"


def test_python_m_interp_is_the_same_command(run):
    result = subprocess.run([sys.executable, "-m", "interp", "--version"], capture_output=True, text=True, check=True)
    assert result.stdout == run("--version").stdout


def test_help_loads_nothing_heavy(run):
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


def test_model_info_of_transformer_lens_own(run, monkeypatch, tmp_path):
    from interp.model.loading.load import load_model

    monkeypatch.setattr("interp.model.loading.load_model", load_model)
    random_gpt2().save_pretrained(tmp_path)
    printed = json.loads(run("model", "info", "--model", f"bridge:{tmp_path}", "--json").stdout)
    assert printed["name"] == str(tmp_path)
    assert printed["n_layers"] == 2
    assert len(printed["hash"]) == 64
