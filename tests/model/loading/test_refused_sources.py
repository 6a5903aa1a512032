"""Sources that are no model, or not one that is known here."""

import re
import shutil
from pathlib import Path

import pytest
import torch
from as_users_call import unchecked
from refusals import change_config, refused
from safetensors.torch import load_file
from tiny_models import random_gpt2, random_model
from transformers import GPTNeoConfig

from interp.errors import LoadError
from interp.model.loading import load_model


class TestWhere:
    def test_what_names_nothing(self):
        with pytest.raises(LoadError, match=r"expected a model's name, its folder or file, .* got 3; see help"):
            unchecked(load_model)(3)

    def test_missing_folder(self, tmp_path):
        refused(tmp_path / "nowhere", "nowhere: no such folder; expected one with config.json and weights")
        refused("./nowhere", "nowhere: .*")

    def test_empty_folder(self, tmp_path):
        refused(tmp_path, re.escape(f"{tmp_path}: no config.json here; expected it, ") + ".*; the folder is empty")

    def test_folder_without_a_config(self, gpt2):
        (gpt2 / "config.json").unlink()
        refused(gpt2, "no config.json here; expected it, model.safetensors and .*; got .*'model.safetensors'")

    def test_a_file(self, gpt2):
        expected = (
            r"expected a folder with config.json and weights, .* \(.pt\), or llama2.c's \(.bin\), got another file"
        )
        refused(gpt2 / "config.json", expected)
        refused(gpt2 / "model.safetensors", "got another file; give its folder")
        torch.save({}, gpt2 / "pytorch_model.bin")
        refused(gpt2 / "pytorch_model.bin", "got another file; give its folder")

    def test_a_hub_name_offline(self):
        refused("nobody/nothing", "'nobody/nothing': not a folder here, .*could not be fetched from the hub.*network")

    def test_a_hub_folder_is_fetched_with_the_weights_that_it_has(self, tmp_path, monkeypatch):
        hub, here = tmp_path / "hub", tmp_path / "here"
        hub.mkdir(), here.mkdir()
        random_gpt2().save_pretrained(hub)
        torch.save(load_file(hub / "model.safetensors"), hub / "pytorch_model.bin")

        def snapshot_download(name, allow_patterns):
            for pattern in allow_patterns:
                for path in hub.glob(pattern):
                    shutil.copy(path, here)
            return str(here)

        monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
        best = load_model("nobody/nothing")
        assert not (here / "pytorch_model.bin").exists()
        (hub / "model.safetensors").unlink()
        (here / "model.safetensors").unlink()
        assert load_model("nobody/nothing").hash == best.hash

    def test_what_is_no_hub_name(self):
        refused("no such model!", "'no such model!': neither a folder nor a hub name")

    def test_a_path_is_a_folder_and_never_an_embedded_model(self, gpt2, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        refused(Path("./default"), "default: no such folder; expected one with config.json and weights")
        (tmp_path / "default").mkdir()
        for name in ("config.json", "model.safetensors"):
            shutil.move(gpt2 / name, tmp_path / "default")
        for source in (Path("./default"), "./default"):
            assert load_model(source).config.n_layers == 2
        refused("default", r"'default' is an embedded model, and a folder with .* here .*; give './default'")

    def test_a_folder_without_a_model_does_not_hide_an_embedded_one(self, tmp_path, monkeypatch):
        (tmp_path / "default").mkdir()
        monkeypatch.chdir(tmp_path)
        assert load_model("default").name == "default"

    def test_a_name_that_no_file_can_have(self):
        refused("x" * 300, "xxx: no name of a model, a folder or a file")

    def test_a_module_whose_weights_are_elsewhere(self):
        refused(random_gpt2().to("meta"), "has no values .device 'meta'.; save or load the real weights")

    def test_no_name_at_all(self):
        refused("", "the model's name is empty; expected an embedded model, a folder or a hub name")

    def test_the_home_of_nobody(self):
        refused("~nobody-of-this-name/model", "~nobody-of-this-name/model: no such folder")

    def test_a_model_that_is_one_already(self):
        refused(random_model(), "'random' already is an interp model; use it as it is")

    def test_no_embedded_default_is_not_looked_for_on_the_hub(self, monkeypatch):
        monkeypatch.setattr("interp.model.loading.load.embedded_models", list)
        refused(None, "this installation lacks the embedded default model")

    def test_a_module_that_is_not_from_transformers(self):
        refused(
            torch.nn.Linear(2, 2),
            "expected a transformers model, such as GPT2LMHeadModel, got Linear, which has no config",
        )


class TestConfig:
    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"model_type": "leave out"}, "its config.json names no model_type; expected one of gpt2, openai-gpt"),
            ({"model_type": ["gpt2"]}, "architecture .'gpt2'. is not known here"),
            ({"model_type": "llama"}, "the config has no field 'num_hidden_layers', which Llama needs"),
            ({"n_embd": 13}, "n_embd=13 is not a multiple of n_head=3"),
            ({"n_head": 0}, "n_head: expected a whole number of at least 1, got 0"),
            ({"n_embd": "12"}, "n_embd: expected a whole number of at least 1, got '12'"),
            ({"n_layer": "leave out"}, "no field 'n_layer', which GPT-2 needs"),
            ({"n_layer": 1.5}, "n_layer: expected a whole number of at least 1, got 1.5"),
            ({"layer_norm_epsilon": "tiny"}, "layer_norm_epsilon: expected a positive number, got 'tiny'"),
            ({"tie_word_embeddings": None}, "tie_word_embeddings: expected true or false, got None"),
            ({"activation_function": "mish"}, "activation_function='mish', expected one of gelu_new"),
            ({"activation_function": ["relu"]}, r"activation_function=\['relu'\], expected one of gelu_new"),
            ({"scale_attn_weights": False}, "scale_attn_weights=False is not supported, expected True"),
            ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx=True is not supported"),
            ({"add_cross_attention": True}, "add_cross_attention=True is not supported"),
        ],
    )
    def test_a_config_that_is_no_gpt2(self, gpt2, fields, message):
        change_config(gpt2, **fields)
        refused(gpt2, message)

    def test_a_module_of_another_architecture(self):
        module = torch.nn.Linear(2, 2)
        module.config = GPTNeoConfig()
        refused(module, "Linear: architecture 'gpt_neo' is not known here; the nearest that is, is 'gpt_neox'")

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("{oops", "JSONDecodeError"),
            ("[1]", "list"),
            ("\xff", "UnicodeDecodeError"),
            ('{"n_layer": ' + "9" * 5_000 + "}", "ValueError"),
            ("[" * 100_000, "RecursionError"),
        ],
    )
    def test_broken_json(self, gpt2, content, message):
        (gpt2 / "config.json").write_bytes(content.encode("latin-1"))
        refused(gpt2, f"config.json: expected a JSON object, got {message}")
