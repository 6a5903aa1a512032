"""Checkpoints from strangers: every format that is read here, with its config, its weights and its tokenizer."""

import struct
from contextlib import suppress

import pytest
import torch
from cases import Reader, try_all
from damage import BYTES, deep, inserted, json_changed, safetensors_header
from damaged_tensors import content_changed, saved_otherwise
from foreign_models import random_foreign
from kinds_of_tokenizers import byte_level, wordpiece
from tiny_models import random_gpt2, random_model, word_tokenizer
from written_checkpoints import export, llama, nano, save_min, save_nano
from written_models import LLAMA, SIZES, FirstMinGPT, drawn

from interp.errors import InputError, LoadError
from interp.model.loading import load_model, save_model

JSON = (*BYTES, inserted, deep, *[json_changed] * 16)
SAFETENSORS = (*BYTES, *[safetensors_header] * 10)
TORCH = (*BYTES, saved_otherwise, saved_otherwise, *[content_changed] * 14)
FOLDER = {"config.json": JSON, "model.safetensors": SAFETENSORS}
TEXT = "The keys to the cabinet"


def of_family(family, tokenizer=None):
    def write(folder):
        fields = {} if tokenizer is None else {"vocab_size": len(tokenizer)}
        random_foreign(family, dtype=torch.float32, **fields).save_pretrained(folder)
        if tokenizer is not None:
            tokenizer.save_pretrained(folder)

    return write


def in_shards(folder):
    random_gpt2().save_pretrained(folder, max_shard_size="2KB")


def as_pickle(folder):
    module = random_gpt2()
    module.config.save_pretrained(folder)
    torch.save(module.state_dict(), folder / "pytorch_model.bin")


def with_merges(folder):
    """GPT-2 with a tokenizer as it was before ``tokenizer.json``."""
    random_gpt2(vocab_size=300).save_pretrained(folder)
    alphabet = sorted(byte_level().get_vocab())
    words = ("<|endoftext|>", *alphabet, "Ġt", "he", "Ġthe")
    (folder / "vocab.json").write_text("{" + ",".join(f"{_quoted(word)}: {at}" for at, word in enumerate(words)) + "}")
    (folder / "merges.txt").write_text("#version: 0.2\nĠ t\nh e\nĠt he\n")


def _quoted(word):
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'


def bin_with_tokenizer(folder):
    pieces = [
        "<unk>",
        "\n<s>\n",
        "\n</s>\n",
        *(f"<0x{byte:02X}>" for byte in range(256)),
        *" abcdef",
        "ab",
        "abc",
        " a",
    ]
    content = struct.pack("<I", 7)
    for at, piece in enumerate(pieces):
        content += struct.pack("<fI", -float(at), len(piece)) + piece.encode()
    (folder / "tokenizer.bin").write_bytes(content)
    export(llama(vocab_size=len(pieces)), folder / "model.bin", 1)


def llama_checkpoint(folder):
    content = {"model": llama().state_dict(), "model_args": LLAMA | {"multiple_of": 32}, "iter_num": 5}
    torch.save(content, folder / "ckpt.pt")


def run(model):
    """One forward pass, and of a text where there is a tokenizer; that may be refused, as a text without a BOS is."""
    with torch.no_grad():
        logits = model(torch.zeros(1, min(model.config.n_ctx, 4), dtype=torch.int64))
        assert logits.shape[-1] == model.config.d_vocab
        if model.tokenizer is not None:
            with suppress(InputError):  # a damaged tokenizer may know no BOS, or more words than the model
                model(TEXT)


def of_a_folder(name, write, files):
    return Reader(name, write, load_model, files, LoadError, run)


def of_a_file(name, write, file, damages, **more):
    return Reader(name, write, lambda folder: load_model(folder / file), {file: damages, **more}, LoadError, run)


WORDPIECE = wordpiece("the", "key", "##s", "to", "cabinet")
READERS = (
    of_a_folder("native", lambda folder: save_model(random_model(), folder), FOLDER),
    of_a_folder(
        "native rotary",
        lambda folder: save_model(random_model(positions="rotary", d_head=6, normalization="RMS"), folder),
        FOLDER,
    ),
    of_a_folder(
        "native sinusoidal", lambda folder: save_model(random_model(positions="sinusoidal", tied=False), folder), FOLDER
    ),
    of_a_folder(
        "native tokenizer",
        lambda folder: save_model(random_model(tokenizer=word_tokenizer()), folder),
        {"tokenizer.json": JSON, "tokenizer_config.json": JSON},
    ),
    of_a_folder("gpt2", lambda folder: random_gpt2(tie_word_embeddings=False).save_pretrained(folder), FOLDER),
    of_a_folder("gpt2 in shards", in_shards, {"model.safetensors.index.json": JSON}),
    of_a_folder("gpt2 as a pickle", as_pickle, {"config.json": JSON, "pytorch_model.bin": TORCH}),
    of_a_folder("gpt2 with merges", with_merges, {"vocab.json": JSON, "merges.txt": (*BYTES, inserted)}),
    *(of_a_folder(each, of_family(each), FOLDER) for each in ("gpt1", "llama", "mistral", "qwen2", "neox")),
    of_a_folder("bert", of_family("bert", WORDPIECE), {**FOLDER, "tokenizer.json": JSON}),
    of_a_file("nanogpt", lambda folder: save_nano(folder, nano(), bias=True), "ckpt.pt", TORCH),
    of_a_folder(
        "mingpt",
        lambda folder: save_min(folder, nano(tied=False, mask=True), n_head=3, **{"model_type": None}),
        {"config.json": JSON, "model.pt": TORCH},
    ),
    of_a_folder(
        "first mingpt",
        lambda folder: save_min(folder, drawn(FirstMinGPT(**SIZES)), n_head=3),
        {"config.json": JSON, "model.pt": TORCH},
    ),
    of_a_file("llama2.c checkpoint", llama_checkpoint, "ckpt.pt", TORCH),
    of_a_file("llama2.c version 0", lambda folder: export(llama(), folder / "model.bin"), "model.bin", BYTES),
    of_a_file("llama2.c version 1", bin_with_tokenizer, "model.bin", BYTES, **{"tokenizer.bin": BYTES}),
)


@pytest.mark.parametrize("n", [15, pytest.param(120, marks=pytest.mark.slow)])
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_a_damaged_checkpoint_is_refused_or_loaded_whole(reader, n, tmp_path, record_property):
    record_property("malformed", try_all(reader, n, tmp_path, refused=0.2))
