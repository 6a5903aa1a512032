"""`interp model convert`: what it writes, and where it does not write."""

import json

import pytest
import torch
from safetensors.torch import load_file
from tiny_models import random_gpt2, word_tokenizer

from interp.model.loading.load import load_model as loaded_really


@pytest.fixture(autouse=True)
def _really_load(calls, monkeypatch):
    """The model is not faked here."""
    monkeypatch.setattr("interp.model.loading.load_model", loaded_really)


@pytest.fixture
def gpt2(tmp_path):
    tokenizer = word_tokenizer()
    random_gpt2(vocab_size=len(tokenizer)).save_pretrained(tmp_path / "gpt2")
    tokenizer.save_pretrained(tmp_path / "gpt2")
    return tmp_path / "gpt2"


def test_the_same_model_in_our_own_format(run, gpt2, tmp_path):
    out = tmp_path / "a" / "ours"
    result = run("model", "convert", gpt2, out)
    assert result.exit_code == 0, result.output
    model = loaded_really(gpt2)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    assert result.stdout.splitlines()[:-1] == [f"folder: {out}", f"parameters: {parameters}", f"hash: {model.hash}"]
    assert json.loads((out / "config.json").read_text())["architecture"] == "interp"
    again = loaded_really(out)
    assert again.hash == model.hash
    assert again.to_tokens("the keys").tolist() == model.to_tokens("the keys").tolist()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_in_the_dtype_that_was_asked_for(run, gpt2, tmp_path, dtype):
    printed = json.loads(run("model", "convert", gpt2, tmp_path / "ours", "--dtype", dtype, "--json").stdout)
    assert set(printed) == {"folder", "parameters", "hash", "seconds"}
    stored = load_file(tmp_path / "ours" / "model.safetensors")
    assert {tensor.dtype for tensor in stored.values()} == {getattr(torch, dtype)}
    assert loaded_really(printed["folder"], dtype=dtype).hash == printed["hash"]


def test_an_empty_folder_will_do(run, gpt2, tmp_path):
    (tmp_path / "empty").mkdir()
    assert run("model", "convert", gpt2, tmp_path / "empty").exit_code == 0


def test_it_never_writes_into_a_folder_in_use(run, gpt2, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("")
    used = "expected a new or empty folder, got one with files"
    for place, fault in (("mine", used), ("gpt2", used), ("mine/thesis.tex", "expected a folder, got a file")):
        result = run("model", "convert", gpt2, tmp_path / place)
        assert result.exit_code == 2
        assert result.stderr == f"error: DST {tmp_path / place}: {fault}; name another\n"
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.tex"]


def test_what_cannot_be_loaded_leaves_nothing(run, tmp_path):
    result = run("model", "convert", tmp_path / "nowhere", tmp_path / "out")
    assert (result.exit_code, (tmp_path / "out").exists()) == (2, False)
    assert "no such folder" in result.stderr
    result = run("model", "convert", "default", tmp_path / "out", "--dtype", "float8")
    assert (result.exit_code, (tmp_path / "out").exists()) == (2, False)


def test_a_bridge_stays_a_bridge(run, monkeypatch, tmp_path):
    monkeypatch.setattr("interp.model.loading.load_model", lambda *_arguments, **_options: torch.nn.Linear(2, 2))
    result = run("model", "convert", "bridge:gpt2", tmp_path / "out")
    assert result.exit_code == 2
    assert "bridge:gpt2: expected a model that is rebuilt here, got Linear; use it as it is" in result.stderr
