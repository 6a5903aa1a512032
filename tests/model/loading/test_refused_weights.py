"""Weights that are not those of the architecture, or more than tensors."""

import json
import pickle

import pytest
import torch
from refusals import change_config, refused
from safetensors.torch import load_file, save_file
from tiny_models import random_gpt2

from interp.model.loading import load_model


def change_weights(folder, change):
    state = load_file(folder / "model.safetensors")
    change(state)
    save_file(state, folder / "model.safetensors")


class TestWeights:
    def test_none(self, gpt2):
        (gpt2 / "model.safetensors").unlink()
        refused(gpt2, "no weights here; expected model.safetensors, .*, or pytorch_model.bin")

    def test_missing_tensor(self, gpt2):
        change_weights(gpt2, lambda state: state.pop("transformer.h.1.attn.c_proj.weight"))
        refused(gpt2, "tensor 'transformer.h.1.attn.c_proj.weight' is missing")

    def test_missing_unembedding(self, gpt2):
        change_weights(gpt2, lambda state: state.pop("lm_head.weight"))
        refused(gpt2, "tensor 'lm_head.weight' is missing")

    def test_extra_tensor(self, gpt2):
        change_weights(gpt2, lambda state: state.update({"transformer.h.7.ln_1.bias": torch.ones(12)}))
        refused(gpt2, "tensor 'transformer.h.7.ln_1.bias' is not part of GPT-2")

    @pytest.mark.parametrize("name", ["transformer.wpe.weight", "lm_head.weight", "transformer.h.0.mlp.c_fc.bias"])
    def test_wrong_shape(self, gpt2, name):
        change_weights(gpt2, lambda state: state.update({name: torch.ones(3, 5)}))
        refused(gpt2, rf"tensor '{name}': expected shape \(.*\), got \(3, 5\)")

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

    @pytest.mark.parametrize("value", [torch.nan, torch.inf])
    def test_no_numbers(self, gpt2, value):
        change_weights(gpt2, lambda state: state["transformer.h.1.ln_2.weight"].fill_(value))
        refused(gpt2, "tensor 'transformer.h.1.ln_2.weight': 12 of its 12 values are NaN or infinite")

    def test_quantised(self, gpt2):
        name = "transformer.wte.weight"
        change_weights(gpt2, lambda state: state.update({name: state[name].to(torch.int8)}))
        refused(gpt2, f"tensor '{name}': expected one of float64, .*, got torch.int8")

    def test_a_tied_config_with_an_unembedding_of_its_own(self, gpt2):
        change_config(gpt2, tie_word_embeddings=True)
        refused(gpt2, "the config ties the embeddings, but 'lm_head.weight' and 'transformer.wte.weight' differ")

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
        refused(binary.parent, "expected a dictionary from names to tensors, but 1 is no name")
        torch.save([torch.ones(2)], binary)
        refused(binary.parent, "expected a dictionary of tensors, got list")

    def test_a_sparse_tensor(self, binary):
        state = random_gpt2().state_dict()
        torch.save({**state, "transformer.wpe.weight": state["transformer.wpe.weight"].to_sparse()}, binary)
        refused(binary.parent, "tensor 'transformer.wpe.weight' is stored as torch.sparse_coo; save it dense")
