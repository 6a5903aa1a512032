"""llama2.c's models: the file for its C program in both versions, and its training checkpoint."""

import struct

import pytest
import torch
from refusals import refused
from tiny_models import random_tokens, relative_error
from written_checkpoints import MAGIC, export, llama
from written_models import LLAMA

from interp.model.loading import load_model


def error(source, theirs, dtype="float64"):
    model = load_model(source, dtype=dtype)
    tokens = random_tokens(model, length=model.config.n_ctx)
    with torch.no_grad():
        return relative_error(model(tokens), theirs(tokens))


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(
    "fields", [{}, {"tied": False}, {"n_kv_heads": 4}, {"n_kv_heads": 1, "hidden_dim": 7}], ids=str
)
def test_logits(tmp_path, fields, version):
    theirs = llama(**fields)
    path = export(theirs, tmp_path / "model.bin", version)
    assert error(path, theirs, "float32") < 1e-5
    assert error(path, theirs.double()) < 1e-10
    assert load_model(tmp_path).config.tied == fields.get("tied", True)


def test_the_training_checkpoint_is_the_same_model(tmp_path):
    theirs = llama()
    state = {f"_orig_mod.{name}": tensor for name, tensor in theirs.state_dict().items()}
    state["_orig_mod.freqs_cos"] = torch.ones(10, 3)
    content = {"model": state, "model_args": LLAMA | {"multiple_of": 32, "dropout": 0.0}, "iter_num": 5}
    torch.save(content, tmp_path / "ckpt.pt")
    model = load_model(tmp_path)
    assert model.hash == load_model(export(theirs, tmp_path / "model.bin", 1)).hash
    message = "'layers.0.feed_forward.w1.weight' is no matrix here, which would say how many neurons there are"
    state["_orig_mod.layers.0.feed_forward.w1.weight"] = torch.tensor(1.0)
    torch.save(content, tmp_path / "ckpt.pt")
    refused(tmp_path / "ckpt.pt", message)
    del state["_orig_mod.layers.0.feed_forward.w1.weight"]
    torch.save(content, tmp_path / "ckpt.pt")
    refused(tmp_path / "ckpt.pt", message)


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("change", [-4, -1, 4])
def test_a_file_of_another_length(tmp_path, version, change):
    path = export(llama(), tmp_path / "model.bin", version)
    content = path.read_bytes()
    path.write_bytes(content[:change] if change < 0 else content + bytes(change))
    sizes = f"expected {len(content)} bytes of a llama2.c model of version {version} .*, got {len(content) + change};"
    refused(path, sizes)


def test_a_header_of_more_than_can_be_held(tmp_path):
    path = export(llama(), tmp_path / "model.bin")
    content = bytearray(path.read_bytes())
    content[8:12] = struct.pack("<i", 2**31 - 1)
    path.write_bytes(content)
    refused(path, r"expected \d{14} bytes of a llama2.c model")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected a llama2.c header of at least 28 bytes, got 0"),
        (b"hello", "expected a llama2.c header of at least 28 bytes, got 5"),
        (bytes(100), "header: dim: expected a whole number of at least 1, got 0"),
        (struct.pack("<7i", 24, 20, 2, 5, 5, 43, 10), "header: dim=24 is not a multiple of n_heads=5"),
        (struct.pack("<7i", 24, 20, 2, 4, 3, 43, 10), "header: n_kv_heads: expected a divisor of n_heads=4"),
        (struct.pack("<Ii", MAGIC, 1) + bytes(50), "expected a llama2.c header of 256 bytes, got 58"),
        (struct.pack("<Ii", MAGIC, 2) + bytes(300), "version 2 of llama2.c's format is quantised to 8 bits"),
        (struct.pack("<Ii", MAGIC, 7) + bytes(300), "version 7 of llama2.c's format is unknown here"),
    ],
)
def test_what_is_no_such_file(tmp_path, content, message):
    (tmp_path / "model.bin").write_bytes(content)
    refused(tmp_path / "model.bin", message)


def test_numbers_that_are_none(tmp_path):
    theirs = llama()
    with torch.no_grad():
        theirs.layers[1].attention["wk"].weight[0, 0] = torch.nan
    refused(export(theirs, tmp_path / "model.bin", 1), "'layers.1.attention.wk.weight': 1 of its 288 values are NaN")
