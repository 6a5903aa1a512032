"""Logits equal transformers', for every family and odd shapes of it, from a module, a folder and shards."""

import json

import pytest
import torch
from foreign_models import (
    CASES,
    FROM_ZERO,
    MODEL_TYPES,
    PLAIN,
    VARIANTS,
    WITHOUT_CASTS,
    random_foreign,
    remove_casts,
)
from safetensors.torch import load_file, save_file
from tiny_models import random_gpt2, random_tokens, relative_error
from transformers import BertConfig, BertForPreTraining

from interp.model.loading import load_model, save_model
from interp.model.loading.huggingface import FAMILIES


def error(model, theirs):
    tokens = random_tokens(model, length=model.config.n_ctx)
    with torch.no_grad():
        return relative_error(model(tokens), theirs(tokens).logits)


def test_every_family_is_tested():
    """GPT-2 by itself, in ``test_transformers_parity.py``."""
    assert {MODEL_TYPES.get(each, each) for each in VARIANTS} | {"gpt2"} == set(FAMILIES)


@pytest.mark.parametrize(("family", "variant"), CASES, ids=str)
def test_logits_equal_transformers_in_32_bits(family, variant):
    theirs = random_foreign(family, dtype=torch.float32, **VARIANTS[family][variant])
    assert error(load_model(theirs), theirs) < 1e-5


@pytest.mark.parametrize(("family", "variant"), CASES, ids=str)
def test_logits_equal_transformers_in_64_bits(family, variant, monkeypatch):
    theirs = random_foreign(family, **VARIANTS[family][variant])
    model = load_model(theirs, dtype="float64")
    assert error(model, theirs) < 1e-6
    if family in WITHOUT_CASTS and model.config.rotary_frequencies is None:
        remove_casts(monkeypatch)
        assert error(model, theirs) < 1e-10


@pytest.mark.parametrize("shard", ["1GB", "2KB"])
@pytest.mark.parametrize(("family", "variant"), CASES, ids=str)
def test_a_folder_in_one_file_or_in_shards_is_the_module(tmp_path, family, variant, shard):
    theirs = random_foreign(family, **VARIANTS[family][variant])
    theirs.save_pretrained(tmp_path, max_shard_size=shard)
    assert (tmp_path / "model.safetensors").exists() == (shard == "1GB")
    model, same = load_model(tmp_path, dtype="float64"), load_model(theirs, dtype="float64")
    assert model.config == same.config
    assert model.hash == same.hash


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("family", VARIANTS)
def test_half_precision_is_kept_and_widened_exactly(tmp_path, family, dtype):
    theirs = random_foreign(family, dtype=dtype)
    theirs.save_pretrained(tmp_path)
    model = load_model(tmp_path, dtype=dtype)
    assert {parameter.dtype for parameter in model.parameters()} == {dtype}
    assert {buffer.dtype for buffer in model.buffers()} <= {dtype}
    wide = type(theirs).from_pretrained(
        tmp_path, dtype=torch.float64, **PLAIN
    )  # .double() would keep rounded frequencies
    assert load_model(tmp_path).hash == load_model(wide, dtype="float64").hash
    assert (model.hash == load_model(tmp_path).hash) == (family not in FROM_ZERO)  # 1 + w is rounded


@pytest.mark.parametrize("family", VARIANTS)
def test_what_is_converted_is_the_same_model(tmp_path, family):
    model = load_model(random_foreign(family), dtype="float64")
    again = load_model(save_model(model, tmp_path), dtype="float64")
    assert again.config == model.config
    tokens = random_tokens(model)
    assert torch.equal(again(tokens), model(tokens))


@pytest.mark.parametrize("family", VARIANTS)
def test_weights_lie_in_memory_as_those_of_a_model_made_here(family):
    """So that all heads' projections stay one matrix product, without a copy."""
    model = load_model(random_foreign(family))
    made = type(model)(model.config)
    for (name, one), (_, other) in zip(model.named_parameters(), made.named_parameters(), strict=True):
        strides = [
            [stride for size, stride in zip(each.shape, each.stride(), strict=True) if size > 1]
            for each in (one, other)
        ]
        assert strides[0] == strides[1], name


def test_a_window_is_what_a_query_sees():
    """Of a longer prompt, the logits behind a window depend on what is in it, and in the layers that have one alone."""
    model = load_model(random_foreign("gemma3"))  # the first of two layers sees 5 positions
    tokens = random_tokens(model, length=16)
    moved = tokens.clone()
    moved[:, 0] = (tokens[:, 0] + 1) % 41
    names = ["blocks.0.hook_resid_post", "blocks.1.hook_resid_post"]
    (_, one), (_, other) = (model.run_with_cache(each, names_filter=names) for each in (tokens, moved))
    first, second = ((one[name] != other[name]).any(-1).all(0).tolist() for name in names)
    assert first == [True] * 5 + [False] * 11
    assert second == [True] * 16


LONG = {"short_factor": [1.0, 1.5], "long_factor": [2.0, 4.0]}


@pytest.mark.parametrize(
    ("family", "old", "new"),
    [
        ("llama", {"rope_theta": 77.0}, {"rope_theta": 77.0, "rope_type": "default"}),
        (
            "neox",
            {"rotary_emb_base": 77, "rotary_pct": 0.5},
            {"rope_theta": 77, "rope_type": "default", "partial_rotary_factor": 0.5},
        ),
        (
            "phi3",
            {"rope_theta": 77.0, "rope_scaling": {"type": "yarn", **LONG}},
            {"rope_theta": 77.0, "rope_type": "longrope", "original_max_position_embeddings": 12, **LONG},
        ),
    ],
)
def test_configs_from_before_version_5(tmp_path, family, old, new):
    trained = {"original_max_position_embeddings": 12} if family == "phi3" else {}
    theirs = random_foreign(family, rope_parameters=new, **trained)
    theirs.save_pretrained(tmp_path)
    fields = json.loads((tmp_path / "config.json").read_text())
    written = fields.pop("rope_parameters")
    assert {name: written[name] for name in new} == new
    (tmp_path / "config.json").write_text(json.dumps(fields | {"rope_scaling": None} | old))
    model = load_model(tmp_path, dtype="float64")
    assert model.config == load_model(theirs).config
    assert model.config.rotary_base == 77
    assert error(model, theirs) < 1e-6


ONE_LOCAL = {"sliding_window": 4, "layer_types": ["full_attention", "sliding_attention"]}


@pytest.mark.parametrize(
    ("family", "fields"),
    [
        ("mixtral", {"rope_parameters": None}),  # whose own base is a million
        ("gpt_oss", {"rope_parameters": {"rope_type": "default"}}),
        ("mixtral", ONE_LOCAL),  # which has a window in every layer, whatever its config says of layers
        ("phi3", ONE_LOCAL),
        ("qwen3_moe", {"use_sliding_window": True, **ONE_LOCAL}),
    ],
)
def test_what_a_config_leaves_out_or_says_in_vain_is_what_transformers_makes_of_it(tmp_path, family, fields):
    theirs = random_foreign(family, **fields)
    theirs.save_pretrained(tmp_path)
    written = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(written | fields))
    assert error(load_model(tmp_path, dtype="float64"), theirs) < 1e-6


def test_a_bert_that_was_trained_on_two_tasks():
    fields = {"num_hidden_layers": 1, "hidden_size": 12, "num_attention_heads": 2, "intermediate_size": 9}
    theirs = BertForPreTraining(BertConfig(vocab_size=41, max_position_embeddings=16, **fields)).double().eval()
    assert any("pooler" in name for name in theirs.state_dict())
    model = load_model(theirs, dtype="float64")
    tokens = random_tokens(model)
    with torch.no_grad():
        assert relative_error(model(tokens), theirs(tokens).prediction_logits) < 1e-10


def test_an_old_bert_with_gamma_beta_and_position_ids(tmp_path):
    theirs = random_foreign("bert")
    theirs.save_pretrained(tmp_path)
    state = load_file(tmp_path / "model.safetensors")
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): each
        for name, each in state.items()
    }
    assert len(old.keys() - state.keys()) == 12
    save_file(old | {"bert.embeddings.position_ids": torch.arange(16)}, tmp_path / "model.safetensors")
    assert load_model(tmp_path, dtype="float64").hash == load_model(theirs, dtype="float64").hash


@pytest.mark.parametrize(
    ("family", "buffer"),
    [
        ("llama", "model.layers.0.self_attn.rotary_emb.inv_freq"),
        ("neox", "gpt_neox.layers.0.attention.rotary_emb.inv_freq"),
        ("neox", "gpt_neox.layers.1.attention.bias"),
        ("neox", "gpt_neox.layers.1.attention.masked_bias"),
        ("gpt1", "transformer.h.1.attn.bias"),
    ],
)
def test_registered_masks_and_frequencies_are_left_out(tmp_path, family, buffer):
    theirs = random_foreign(family)
    theirs.save_pretrained(tmp_path)
    state = load_file(tmp_path / "model.safetensors")
    save_file({**state, buffer: torch.ones(1, 1, 16, 16, dtype=torch.bool)}, tmp_path / "model.safetensors")
    assert load_model(tmp_path, dtype="float64").hash == load_model(theirs, dtype="float64").hash


def test_a_gpt2_has_no_bias_in_its_unembedding():
    model = load_model(random_gpt2())
    assert "unembed" not in model.config.biases
    assert not model.b_U.any()
    assert "unembed.b_U" not in dict(model.named_parameters())
