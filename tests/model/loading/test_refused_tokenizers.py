"""Tokenizers that are damaged, or more than their vocabulary."""

import json

import pytest
from refusals import refused
from tiny_models import random_gpt2, random_model, word_tokenizer

from interp.model.loading import load_model, save_model


@pytest.mark.parametrize("family", ["gpt2", "ours"])
def test_a_broken_tokenizer_is_refused_or_replaced(gpt2, family):
    if family == "ours":
        save_model(random_model(), gpt2)
    mine = word_tokenizer()
    mine.save_pretrained(gpt2)
    (gpt2 / "tokenizer.json").write_text("{oops")
    refused(gpt2, "the tokenizer's files cannot be read")
    assert load_model(gpt2, tokenizer=mine).tokenizer is mine


@pytest.mark.parametrize("family", ["gpt2", "ours"])
def test_a_tokenizer_that_would_run_code_is_refused_and_does_not(tmp_path, monkeypatch, family):
    """Whoever answers transformers' question, if it were asked, says yes."""
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    folder, target = tmp_path / "model", tmp_path / "it ran"
    random_gpt2().save_pretrained(folder) if family == "gpt2" else save_model(random_model(), folder)
    (folder / "vocab.json").write_text(json.dumps({"<|endoftext|>": 0, "k": 1}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    fields = {"auto_map": {"AutoTokenizer": ["it.It", "it.It"]}, "tokenizer_class": "It"}
    (folder / "tokenizer_config.json").write_text(json.dumps(fields))
    (folder / "it.py").write_text(f"from pathlib import Path\nPath({str(target)!r}).touch()\nclass It: pass\n")
    refused(folder, r"tokenizer_config.json: the tokenizer needs code of its own \('auto_map'\), which is not run")
    assert load_model(folder, tokenizer=word_tokenizer()).tokenizer is not None  # as the message advises
    assert not target.exists()
