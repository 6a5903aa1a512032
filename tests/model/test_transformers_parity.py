"""Logits equal transformers' GPT-2, from every source that a model can be loaded from."""

import json

import pytest
import torch
from tiny_models import WORDS, random_gpt2, random_tokens, relative_error, word_tokenizer
from transformers import GPT2Model

from interp.model.loading import load_model

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}
SHAPES = {
    "one layer, one head": {"n_layer": 1, "n_head": 1, "n_embd": 4},
    "default": {},
    "wide": {"n_layer": 3, "n_head": 8, "n_embd": 64, "vocab_size": 301, "n_positions": 33},
    "n_inner": {"n_inner": 7},
    "untied": {"tie_word_embeddings": False},
    "gelu": {"activation_function": "gelu"},
    "relu": {"activation_function": "relu"},
    "gelu_pytorch_tanh": {"activation_function": "gelu_pytorch_tanh"},
    "eps": {"layer_norm_epsilon": 0.1},
}


def assert_equal_logits(model, theirs, dtype=torch.float64):
    tokens = random_tokens(model, length=model.config.n_ctx)
    with torch.no_grad():
        assert relative_error(model(tokens), theirs.to(dtype)(tokens).logits) < TOLERANCE[dtype]


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("fields", SHAPES.values(), ids=SHAPES.keys())
def test_a_module_object(fields, dtype):
    theirs = random_gpt2(**fields)
    assert_equal_logits(load_model(theirs, dtype=dtype), theirs, dtype)


@pytest.mark.parametrize("fields", [{}, {"tie_word_embeddings": False}], ids=["tied", "untied"])
def test_a_folder_with_a_pytorch_file(tmp_path, fields):
    theirs = random_gpt2(**fields)
    theirs.config.save_pretrained(tmp_path)
    torch.save(theirs.state_dict(), tmp_path / "pytorch_model.bin")
    assert_equal_logits(load_model(tmp_path, dtype="float64"), theirs)


def test_a_checkpoint_of_the_bare_transformer_with_old_buffers(tmp_path):
    theirs = random_gpt2()
    theirs.config.save_pretrained(tmp_path)
    bare = GPT2Model(theirs.config).double()
    bare.load_state_dict(theirs.transformer.state_dict())
    buffers = {"h.0.attn.bias": torch.ones(1, 1, 16, 16, dtype=torch.uint8), "h.0.attn.masked_bias": torch.tensor(-1e4)}
    torch.save({**bare.state_dict(), **buffers}, tmp_path / "pytorch_model.bin")
    assert_equal_logits(load_model(tmp_path, dtype="float64"), theirs)
    assert_equal_logits(load_model(bare, dtype="float64"), theirs)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_weights_are_what_the_checkpoint_holds(tmp_path, dtype):
    theirs = random_gpt2().to(dtype)
    theirs.save_pretrained(tmp_path)
    model = load_model(tmp_path, dtype=dtype)
    joined = theirs.transformer.h[1].attn.c_attn.weight.split(12, dim=1)
    for letter, matrix in zip("QKV", joined, strict=True):
        ours = getattr(model.blocks[1].attn, f"W_{letter}")
        for head in range(3):
            assert torch.equal(ours[head], matrix[:, 4 * head : 4 * head + 4])
    assert torch.equal(model.W_U, theirs.lm_head.weight.T)
    assert model.hash == load_model(tmp_path, dtype=torch.float64).hash


def test_a_checkpoint_of_several_dtypes_is_not_rounded(tmp_path):
    theirs = random_gpt2()
    theirs.config.save_pretrained(tmp_path)
    state = {name: p.half() if name.endswith("wte.weight") else p.float() for name, p in theirs.state_dict().items()}
    del state["lm_head.weight"]
    torch.save(state, tmp_path / "pytorch_model.bin")
    model = load_model(tmp_path)
    assert torch.equal(model.blocks[0].mlp.W_in, state["transformer.h.0.mlp.c_fc.weight"])
    assert torch.equal(model.W_E, state["transformer.wte.weight"].float())


def test_tokenizer_files_are_read(tmp_path):
    tokenizer = word_tokenizer()
    random_gpt2(vocab_size=len(tokenizer)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    model = load_model(tmp_path)
    text = "The keys to the cabinet are on the table."
    assert model.to_tokens(text)[0].tolist() == [tokenizer.bos_token_id, *tokenizer.encode(text)]
    assert model.to_single_token(" keys") == tokenizer.convert_tokens_to_ids("Ġkeys")


def test_gpt2_on_the_hub_names_no_bos_in_its_files_and_has_one(tmp_path):
    tokenizer = word_tokenizer()
    random_gpt2(vocab_size=len(tokenizer)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 1024}))
    model = load_model(tmp_path)
    assert model.tokenizer.bos_token == model.tokenizer.eos_token == "<|endoftext|>"
    assert model.to_tokens("keys")[0, 0] == tokenizer.bos_token_id
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"eos_token": "."}))
    named = load_model(tmp_path).tokenizer
    assert (named.bos_token, named.eos_token) == ("<|endoftext|>", ".")


def test_a_tokenizer_given_explicitly_wins(tmp_path):
    beside, given = word_tokenizer(), word_tokenizer()
    theirs = random_gpt2(vocab_size=len(beside))
    theirs.save_pretrained(tmp_path)
    beside.save_pretrained(tmp_path)
    assert load_model(tmp_path, tokenizer=given).tokenizer is given
    assert load_model(theirs, tokenizer=given).tokenizer is given
    assert load_model(theirs).tokenizer is None
    assert len(WORDS) == len(given) - 258


def test_the_module_object_is_left_alone():
    theirs = random_gpt2()
    before = {name: p.clone() for name, p in theirs.state_dict().items()}
    model = load_model(theirs, dtype="float64")
    with torch.no_grad():
        model.W_E.zero_()
        model.blocks[0].attn.b_Q.zero_()
    assert all(torch.equal(before[name], p) for name, p in theirs.state_dict().items())


def test_a_model_loads_in_evaluation_mode():
    assert not load_model(random_gpt2().train()).training
