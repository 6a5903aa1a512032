"""What was once found in malformed checkpoints: sizes that are only claimed, and other libraries' tracebacks."""

import json
import struct
import zipfile

import pytest
import torch
from cases import assert_plain, bounded
from foreign_models import random_foreign
from tiny_models import random_model
from written_checkpoints import nano, save_nano
from written_models import SIZES

from interp.errors import LoadError
from interp.model.loading import load_model, save_model
from interp.model.loading.tokenizer import read_tokenizer_bin

BASE = [b"<unk>", b"\n<s>\n", b"\n</s>\n", b"a", b"b", b"ab"]


def refused(source, message, read=load_model):
    with bounded(5, 2**30), pytest.raises(LoadError, match=message) as raised:
        read(source)
    assert_plain(str(raised.value))


def change_config(folder, **fields):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | fields))
    return folder


@pytest.mark.parametrize("n_ctx", [10**9, 10**25])
def test_a_table_of_positions_that_no_weights_vouch_for(tmp_path, n_ctx):
    save_model(random_model(positions="sinusoidal"), tmp_path)
    refused(change_config(tmp_path, n_ctx=n_ctx), f"at most 134,217,728, got {n_ctx} times 12")


@pytest.mark.parametrize(
    ("family", "fields", "message"),
    [
        ("llama", {"rope_parameters": {"rope_type": "default", "rope_theta": -(10**400)}}, "rotary_base: expected a"),
        ("neox", {"hidden_size": 3 * 10**400}, "tensor 'gpt_neox.embed_in.weight': expected shape"),
        ("neox", {"attention_bias": "false"}, "attention_bias: expected true or false, got 'false'"),
        ("llama", {"attention_bias": 1}, "attention_bias: expected true or false, got 1"),
        ("llama", {"mlp_bias": []}, r"mlp_bias: expected true or false, got \[\]"),
    ],
)
def test_fields_that_are_no_such_thing(tmp_path, family, fields, message):
    random_foreign(family).save_pretrained(tmp_path)
    refused(change_config(tmp_path, **fields), message)


class TestPyTorchFiles:
    @pytest.mark.parametrize(("bias", "said"), [(torch.ones(3), "tensor"), ("no", "'no'"), (None, "None")])
    def test_a_switch_that_is_none(self, tmp_path, bias, said):
        refused(save_nano(tmp_path, nano(), bias=bias), f"model_args: bias: expected true or false, got {said}")

    def test_lists_that_would_take_forever_to_write_out(self, tmp_path):
        shared = []
        for _ in range(60):
            shared = [shared] * 4
        refused(save_nano(tmp_path, nano(), bias=True, n_layer=shared), "n_layer: expected a whole number")

    def test_a_number_repeated_to_a_vocabulary(self, tmp_path):
        state = nano(tied=False).state_dict()
        state["transformer.wte.weight"] = torch.ones(1, 12).expand(10**10, 12)
        sizes = SIZES | {"vocab_size": 10**10, "bias": True}
        torch.save({"model": state, "model_args": sizes}, tmp_path / "ckpt.pt")
        refused(tmp_path / "ckpt.pt", "expected tensors with numbers of their own, got .* repeated to 480,0")

    def test_one_layer_repeated_to_many(self, tmp_path):
        state = nano(n_layer=1).state_dict()
        for name in [name for name in state if ".h.0." in name]:
            state |= {name.replace(".h.0.", f".h.{layer}."): state[name] for layer in range(1, 40)}
        sizes = SIZES | {"n_layer": 40, "bias": True}
        torch.save({"model": state, "model_args": sizes}, tmp_path / "ckpt.pt")
        refused(tmp_path / "ckpt.pt", "expected tensors with numbers of their own")

    @pytest.mark.parametrize("pickled", [{}, {"ckpt/data.pkl": bytes(2**28)}], ids=["all", "a bomb"])
    def test_packed_parts(self, tmp_path, pickled):
        """Mapped, they would be other numbers; unpacked, a few of their bytes fill the memory."""
        with zipfile.ZipFile(save_nano(tmp_path, nano(), bias=True)) as whole:
            parts = {part.filename: whole.read(part) for part in whole.infolist()}
        with zipfile.ZipFile(tmp_path / "packed.pt", "w", zipfile.ZIP_DEFLATED) as packed:
            for name, held in (parts | pickled).items():
                packed.writestr(name, held)
        refused(tmp_path / "packed.pt", "expected a PyTorch file, which is not compressed, got 'ckpt/data.pkl' packed")


class TestTokenizersOfLlama2c:
    def write(self, folder, pieces, scores=None):
        content = struct.pack("<I", max(map(len, pieces)))
        for score, piece in zip(scores or range(len(pieces)), pieces, strict=True):
            content += struct.pack("<fI", score, len(piece)) + piece
        (folder / "tokenizer.bin").write_bytes(content)
        return folder / "tokenizer.bin"

    def read(self, path):
        return read_tokenizer_bin(path, len(BASE))

    def test_one_that_is_right(self, tmp_path):
        assert self.read(self.write(tmp_path, BASE))("ab").input_ids[-1] == 5

    @pytest.mark.parametrize("score", [float("nan"), float("inf")])
    def test_a_score_that_is_no_number(self, tmp_path, score):
        path = self.write(tmp_path, BASE, [score] * len(BASE))
        refused(path, f"token 0: expected a number as its score, got {score}", self.read)

    def test_a_token_of_a_whole_book(self, tmp_path):
        path = self.write(tmp_path, [*BASE[:-1], b"a" * 100_000])
        refused(path, "token 5: expected at most 1,024 bytes, got 100,000", self.read)

    def test_too_few_for_their_ends(self, tmp_path):
        refused(self.write(tmp_path, BASE[:2]), "expected at least three tokens", self.read)
