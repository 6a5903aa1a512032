"""Sources and weights that are refused, each with what to do."""

import json
import pickle
import re
import shutil
from pathlib import Path

import pytest
import torch
from as_users_call import unchecked
from refusals import change_config, refused
from safetensors.torch import load_file, save_file
from tiny_models import random_gpt2, random_model
from transformers import CodeGenConfig

from interp.errors import LoadError
from interp.model.loading import load_model


class TestWhere:
    def test_what_names_nothing(self):
        with pytest.raises(LoadError, match=r"expected a model's name, its folder or file, .* got 3; see help"):
            unchecked(load_model)(3)

    @pytest.mark.parametrize(
        ("source", "message"),
        [
            ("./nowhere", "nowhere: no such folder; expected one with config.json and weights"),
            (Path("/nowhere/at/all"), "all: no such folder; expected one with config.json and weights"),
            ("no such model!", "'no such model!': neither a folder nor a hub name"),
            ("x" * 300, "xxx: no name of a model, a folder or a file"),
            ("", "the model's name is empty; expected an embedded model, a folder or a hub name"),
            ("~nobody-of-this-name/model", "~nobody-of-this-name/model: no such folder"),
            ("nobody/nothing", "'nobody/nothing': not a folder here, .*could not be fetched from the hub.*network"),
            (random_model(), "'random' already is an interp model; use it as it is"),
            (torch.nn.Linear(2, 2), "a transformers model, such as GPT2LMHeadModel, got Linear, which has no config"),
            (random_gpt2().to("meta"), "has no values .device 'meta'.; save or load the real weights"),
        ],
    )
    def test_what_is_no_source(self, source, message):
        refused(source, message)

    def test_empty_folder(self, tmp_path):
        refused(tmp_path, re.escape(f"{tmp_path}: no config.json here; expected it, ") + ".*; the folder is empty")

    def test_folder_without_a_config(self, gpt2):
        (gpt2 / "config.json").unlink()
        refused(gpt2, "no config.json here; expected it, model.safetensors and .*; got .*'model.safetensors'")

    def test_a_file(self, gpt2):
        expected = r"expected a folder with config.json and weights, .* \(.bin\), or a .gguf file, got another file"
        refused(gpt2 / "config.json", expected)
        refused(gpt2 / "model.safetensors", "got another file; give its folder")
        torch.save({}, gpt2 / "pytorch_model.bin")
        refused(gpt2 / "pytorch_model.bin", "got another file; give its folder")

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

    def test_no_embedded_default_is_not_looked_for_on_the_hub(self, monkeypatch):
        monkeypatch.setattr("interp.model.loading.load.embedded_models", list)
        refused(None, "this installation lacks the embedded default model")


class TestConfig:
    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"model_type": "leave out"}, "its config.json names no model_type, so nobody"),
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
        module.config = CodeGenConfig()
        refused(module, "Linear: architecture 'codegen' is not known here; interp model families lists those that are")

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


def change_weights(folder, change):
    state = load_file(folder / "model.safetensors")
    change(state)
    save_file(state, folder / "model.safetensors")


PROJECTION, EXTRA, NORM = (
    "transformer.h.1.attn.c_proj.weight",
    "transformer.h.7.ln_1.bias",
    "transformer.h.1.ln_2.weight",
)
ANOTHER_SHAPE = r"expected shape \(.*\), got \(3, 5\)"
ANOTHER_DTYPE = "expected one of float64, .*, got torch.int8"


class TestWeights:
    def test_none(self, gpt2):
        (gpt2 / "model.safetensors").unlink()
        refused(gpt2, "no weights here; expected model.safetensors, .*, or pytorch_model.bin")

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda state: state.pop(PROJECTION), f"tensor '{PROJECTION}' is missing"),
            (lambda state: state.pop("lm_head.weight"), "tensor 'lm_head.weight' is missing"),
            (lambda state: state.update({EXTRA: torch.ones(12)}), f"tensor '{EXTRA}' is not part of GPT-2"),
            *[
                (lambda state, name=name: state.update({name: torch.ones(3, 5)}), rf"{name}': {ANOTHER_SHAPE}")
                for name in ("transformer.wpe.weight", "lm_head.weight", "transformer.h.0.mlp.c_fc.bias")
            ],
            *[
                (lambda state, value=value: state[NORM].fill_(value), f"'{NORM}': 12 of its 12 values are NaN or inf")
                for value in (torch.nan, torch.inf)
            ],
            (lambda state: state.update({NORM: state[NORM].to(torch.int8)}), f"'{NORM}': {ANOTHER_DTYPE}"),
        ],
    )
    def test_tensors_that_are_not_those_of_the_model(self, gpt2, change, message):
        change_weights(gpt2, change)
        refused(gpt2, message)

    @pytest.mark.parametrize("size", [10**13, 10**25])
    @pytest.mark.parametrize(
        ("field", "tensor"),
        [
            ("vocab_size", "transformer.wte.weight"),
            ("n_positions", "transformer.wpe.weight"),
            ("n_inner", "transformer.h.0.mlp.c_fc.weight"),
            ("n_layer", "transformer.h.2.ln_1.weight"),
        ],
    )
    def test_a_size_beyond_all_memory(self, gpt2, field, tensor, size):
        change_config(gpt2, **{field: size})
        refused(gpt2, rf"tensor '{tensor}'(: expected shape \(.*{size}.*\), got|.* is missing)")

    def test_truncated_safetensors(self, gpt2):
        content = (gpt2 / "model.safetensors").read_bytes()
        (gpt2 / "model.safetensors").write_bytes(content[: len(content) // 2])
        refused(gpt2, "model.safetensors: not a readable safetensors file")

    def test_a_tensor_in_two_shards(self, tmp_path):
        random_gpt2().save_pretrained(tmp_path, max_shard_size="2KB")
        first, *_, last = sorted(tmp_path.glob("model-0*.safetensors"))
        repeated = load_file(first)
        save_file(load_file(last) | repeated, last)
        refused(
            tmp_path, f"{last.name}: tensor '{min(repeated)}' is in an earlier shard too; expected each tensor once"
        )

    def test_missing_shard(self, tmp_path):
        random_gpt2().save_pretrained(tmp_path, max_shard_size="2KB")
        shard = sorted(tmp_path.glob("model-00002*"))[0]
        shard.unlink()
        refused(tmp_path, f"{shard.name}: not a readable safetensors file")

    @pytest.mark.parametrize("dtype", ["float16", torch.float16])
    def test_numbers_that_the_dtype_cannot_hold(self, gpt2, dtype):
        change_weights(gpt2, lambda state: state["transformer.h.1.ln_2.weight"].fill_(1e5))
        message = (
            "tensor 'blocks.1.ln2.w' holds values beyond 65504, the largest number of torch.float16; take bfloat16"
        )
        refused(gpt2, message, dtype=dtype)
        assert load_model(gpt2, dtype="bfloat16").blocks[1].ln2.w.isfinite().all()

    @pytest.mark.parametrize(
        "index",
        [{}, {"weight_map": []}, {"weight_map": {"a": 1, "b": "c"}}, {"weight_map": {"a": ["b"]}}, {"weight_map": {}}],
    )
    def test_an_index_of_nothing(self, gpt2, index):
        (gpt2 / "model.safetensors").unlink()
        (gpt2 / "model.safetensors.index.json").write_text(json.dumps(index))
        refused(gpt2, "model.safetensors.index.json: expected a 'weight_map'")

    @pytest.mark.parametrize("shard", ["", "\0", "nowhere", "\ud800"])
    def test_an_index_of_what_is_no_file(self, gpt2, shard):
        (gpt2 / "model.safetensors").unlink()
        (gpt2 / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": shard}}))
        refused(gpt2, "not a readable safetensors file")


class Malicious:
    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return (type(self.target).touch, (self.target,))


class TestPickles:
    @pytest.fixture
    def binary(self, gpt2):
        (gpt2 / "model.safetensors").unlink()
        return gpt2 / "pytorch_model.bin"

    def test_one_that_would_run_code_is_refused_and_does_not(self, binary, tmp_path):
        target = tmp_path / "it ran"
        torch.save({"transformer.wte.weight": Malicious(target)}, binary)
        torch.load(binary, weights_only=False)
        assert target.exists()
        target.unlink()
        refused(binary.parent, r"holds more than tensors \(.+\) and could run code when opened, so it is refused")
        assert not target.exists()

    def test_a_plain_pickle_that_would_run_code(self, binary, tmp_path):
        target = tmp_path / "it ran"
        binary.write_bytes(pickle.dumps(Malicious(target)))
        refused(binary.parent, "pytorch_model.bin: (this pickle holds more than tensors|not a readable PyTorch file)")
        assert not target.exists()

    @pytest.mark.parametrize("content", [b"", b"hello, this is no pickle", b"\x80\x02}q\x00."])
    def test_damaged(self, binary, content):
        binary.write_bytes(content)
        refused(binary.parent, "pytorch_model.bin: |tensor .* is missing")

    def test_truncated(self, binary):
        torch.save(random_gpt2().state_dict(), binary)
        binary.write_bytes(binary.read_bytes()[:3000])
        refused(binary.parent, "pytorch_model.bin: not a readable PyTorch file")

    def test_more_than_a_state_dict(self, binary):
        torch.save({"model": random_gpt2().state_dict(), "step": 3}, binary)
        refused(binary.parent, "expected a dictionary of tensors, but 'model' is OrderedDict")
        torch.save({1: torch.ones(2)}, binary)
        refused(binary.parent, "expected a dictionary from names to tensors, but 1 is not a name")
        torch.save([torch.ones(2)], binary)
        refused(binary.parent, "expected a dictionary of tensors, got list")
