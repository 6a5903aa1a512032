"""What a family's config or weights may ask for and this package does not do: refused by name."""

import json

import pytest
import torch
from foreign_models import VARIANTS, random_foreign
from refusals import change_config, refused
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertForSequenceClassification, BertModel

from interp.model.loading import load_model

OTHER = {"rope_type": "mrope", "factor": 4.0, "rope_theta": 10_000.0}


@pytest.fixture
def folder_of(tmp_path):
    def save(family, **fields):
        random_foreign(family, **fields).save_pretrained(tmp_path)
        return tmp_path

    return save


ASKS_FOR_MORE = {
    "llama": [
        ({"rope_parameters": OTHER}, r"rope_parameters=\{'rope_type': 'mrope'.* is not supported, expected"),
        (
            {"rope_parameters": None, "rope_scaling": {"type": "linear"}},
            "transformers does not read this config",
        ),
        ({"rope_parameters": {"full_attention": {"rope_type": "default"}}}, "rope_parameters={'full_attention'"),
        ({"rope_scaling": {"type": "yarn", "factor": "4"}}, "rope_scaling={'type': 'yarn'"),
        ({"is_causal": False}, "is_causal=False is not supported, expected True"),
        ({"head_dim": 0}, "head_dim: expected a whole number of at least 1, got 0"),
        ({"max_position_embeddings": None}, "max_position_embeddings: expected a whole number"),
        ({"rope_parameters": 3}, "rope_parameters=3 is not supported"),
        ({"rope_parameters": {"rope_theta": -1.0}}, "rotary_base: expected a positive number, got -1.0"),
        ({"rope_parameters": {"partial_rotary_factor": 0.5}}, "partial_rotary_factor=0.5 is not supported"),
        ({"hidden_act": "mish"}, "hidden_act='mish', expected one of gelu_new"),
        ({"quantization_config": {"bits": 4}}, r"quantization_config=\{'bits': 4\} is not supported"),
        ({"num_key_value_heads": 2}, "num_key_value_heads: expected a divisor of n_heads=3"),
        ({"num_attention_heads": 5, "head_dim": None}, "hidden_size=12 is not a multiple of num_attention_heads=5"),
        ({"intermediate_size": "leave out"}, "no field 'intermediate_size', which Llama needs"),
    ],
    "mistral": [
        ({"rope_scaling": OTHER}, "rope_scaling={'rope_type': 'mrope'"),
        ({"sliding_window": "4"}, "sliding_window='4' is not supported, expected 'a whole number of tokens"),
        ({"sliding_window": 4.0}, "sliding_window=4.0 is not supported"),
    ],
    "neox": [
        ({"rope_scaling": OTHER}, "rope_scaling={'rope_type': 'mrope'"),
        ({"is_causal": False}, "is_causal=False is not supported, expected True"),
        ({"rope_parameters": OTHER}, r"rope_parameters=\{'rope_type': 'mrope'"),
        ({"rope_parameters": {"partial_rotary_factor": 2.0}}, "partial_rotary_factor=2.0 is not supported"),
        ({"rope_parameters": {"partial_rotary_factor": "half"}}, "partial_rotary_factor='half' is not supported"),
        ({"use_parallel_residual": "yes"}, "use_parallel_residual: expected true or false, got 'yes'"),
    ],
    "bert": [
        ({"is_causal": True}, "is_causal=True is not supported, expected False"),
        ({"layer_norm_eps": True}, "layer_norm_eps: expected a positive number, got True"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type='relative_key' is not supported"),
        ({"is_decoder": True}, "is_decoder=True is not supported, expected False"),
        ({"hidden_act": "tanh"}, "hidden_act='tanh', expected one of"),
    ],
    "qwen2": [
        ({"use_sliding_window": True, "sliding_window": 4, "layer_types": ["full_attention", "chunked"]}, "layer_type")
    ],
    "qwen3_moe": [
        ({"mlp_only_layers": [0]}, r"mlp_only_layers=\[0\] is not supported, expected \[\]"),
        ({"decoder_sparse_step": 2}, "decoder_sparse_step=2 is not supported, expected 1"),
        ({"num_experts_per_tok": 5}, "num_experts: expected gated MLPs .* 1 to 4 of them active"),
    ],
    "mixtral": [({"num_local_experts": 0}, "n_experts|num_local_experts")],
    "gpt_oss": [
        ({"swiglu_limit": 9.0}, "swiglu_limit=9.0 is not supported, expected 7.0"),
        ({"attention_bias": False}, "attention_bias=False is not supported"),
        ({"quantization_config": {"quant_method": "mxfp4"}}, "its weights are quantised"),
    ],
    "gemma": [
        ({"hidden_size": None}, "hidden_size: expected a whole number of at least 1, got None"),
        ({"hidden_size": "big"}, "hidden_size: expected a whole number of at least 1, got 'big'"),
        ({"use_bidirectional_attention": True}, "use_bidirectional_attention=True is not supported"),
    ],
    "gemma2": [({"query_pre_attn_scalar": 0}, "query_pre_attn_scalar=0 is not supported, expected 'a number above 0'")],
    "gemma3": [({"attn_logit_softcapping": 3.0}, "attn_logit_softcapping=3.0 is not supported, expected None")],
    "olmo": [({"clip_qkv": 8.0}, "clip_qkv=8.0 is not supported, expected None")],
    "phi": [({"qk_layernorm": True}, "qk_layernorm=True is not supported, expected False")],
    "stablelm": [({"qk_layernorm": True}, "qk_layernorm=True is not supported, expected False")],
    "gptj": [({"rotary_dim": 3}, "rotary_dim: pairs of components turn, expected an even number")],
    "gpt_neo": [({"window_size": 0}, "window_size: expected a whole number of at least 1, got 0")],
    "opt": [
        ({"do_layer_norm_before": False}, "do_layer_norm_before=False is not supported, expected True"),
        ({"word_embed_proj_dim": 6}, "word_embed_proj_dim=6 is not supported, expected 12"),
    ],
    "bloom": [
        ({"apply_residual_connection_post_layernorm": True}, "post_layernorm=True is not supported"),
        ({"slow_but_exact": True, "pretraining_tp": 2}, "slow_but_exact=True is not supported"),
    ],
    "falcon": [({"alibi": True}, "alibi=True is not supported, expected 'False: its slopes are rounded to bfloat16'")],
    "gpt1": [
        ({"afn": "gelu_new"}, "afn='gelu_new', expected one of gelu, relu, silu, swish"),
        ({"n_embd": 13}, "n_embd=13 is not a multiple of n_head=3"),
    ],
}


@pytest.mark.parametrize(
    ("family", "fields", "message"), [(family, *each) for family, cases in ASKS_FOR_MORE.items() for each in cases]
)
def test_a_config_that_asks_for_something_else(folder_of, family, fields, message):
    folder = folder_of(family)
    change_config(folder, **fields)
    refused(folder, message)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"is_causal": False}, "is_causal=False is not supported, expected True"),
        ({"n_inner": 0.5}, "n_inner: expected a whole number of at least 0, got 0.5"),
        ({"n_positions": None}, "n_positions: expected a whole number of at least 1, got None"),
    ],
)
def test_a_gpt2_that_asks_for_something_else(gpt2, fields, message):
    change_config(gpt2, **fields)
    refused(gpt2, message)


def test_transformers_own_name_of_a_gpt2s_context(gpt2):
    context = load_model(gpt2).config.n_ctx
    change_config(gpt2, n_positions="leave out", n_ctx="leave out", max_position_embeddings=context)
    assert load_model(gpt2).config.n_ctx == context


OF_ANOTHER_MODEL = {
    "llama": [
        ({"num_key_value_heads": 1}, r"k_proj.weight': expected shape \(4, 12\), got \(12, 12\); does the config"),
        ({"head_dim": 6}, r"q_proj.weight': expected shape \(18, 12\), got \(12, 12\)"),
        ({"attention_bias": True}, "'model.layers.0.self_attn.q_proj.bias' is missing; did you mean"),
        ({"num_hidden_layers": 1}, "tensor 'model.layers.1.input_layernorm.weight' is not part of Llama"),
        ({"model_type": "qwen2"}, "tensor 'model.layers.0.self_attn.q_proj.bias' is missing"),
        ({"model_type": "bert"}, "'cls.predictions.transform.dense.weight' is missing: this model has no head"),
        ({"tie_word_embeddings": True}, "'lm_head.weight' and 'model.embed_tokens.weight' differ"),
        ({"intermediate_size": 10**25}, rf"gate_proj.weight': expected shape \({10**25}, 12\), got \(17, 12\)"),
    ],
    "mistral": [
        ({"vocab_size": 10**13}, r"embed_tokens.weight': expected shape \(10000000000000, 12\), got \(41, 12\)")
    ],
    "qwen2": [({"model_type": "llama"}, "tensor 'model.layers.0.self_attn.k_proj.bias' is not part of Llama")],
    "neox": [
        ({"attention_bias": False}, "attention.dense.bias' is not part of GPT-NeoX"),
        ({"hidden_size": 27}, r"embed_in.weight': expected shape \(41, 27\), got \(41, 24\)"),
    ],
    "bert": [
        ({"type_vocab_size": 5}, r"token_type_embeddings.weight': expected shape \(5, 12\), got \(2, 12\)"),
        ({"num_hidden_layers": 10**25}, "'bert.encoder.layer.2.attention.output.LayerNorm.weight' is missing"),
    ],
    "gpt1": [
        ({"n_positions": 99}, r"positions_embed.weight': expected shape \(99, 12\), got \(16, 12\)"),
        ({"model_type": "gpt2"}, "tensor 'transformer.wte.weight' is missing"),
    ],
}


@pytest.mark.parametrize(
    ("family", "fields", "message"), [(family, *each) for family, cases in OF_ANOTHER_MODEL.items() for each in cases]
)
def test_a_config_of_another_model(folder_of, family, fields, message):
    folder = folder_of(family)
    change_config(folder, **fields)
    refused(folder, message)


@pytest.mark.parametrize("family", VARIANTS)
def test_a_foreign_key_is_named(folder_of, family):
    folder = folder_of(family)
    state = load_file(folder / "model.safetensors")
    save_file({**state, "adapter.lora_A": torch.ones(2)}, folder / "model.safetensors")
    refused(folder, "tensor 'adapter.lora_A' is not part of")


@pytest.mark.parametrize("family", VARIANTS)
def test_every_tensor_is_needed_and_has_its_shape(folder_of, family):
    """Without any one of them, or with one of another shape, the model is refused, and the message names it."""
    folder = folder_of(family)
    whole = load_file(folder / "model.safetensors")
    tried = [name for name in whole if ".1." not in name]
    for name in tried:
        save_file({each: tensor for each, tensor in whole.items() if each != name}, folder / "model.safetensors")
        refused(folder, f"tensor '{name}' is missing")
        save_file({**whole, name: torch.ones(3, 5)}, folder / "model.safetensors")
        refused(folder, rf"tensor '{name}': expected shape \(.*\), got \(3, 5\)")
    assert len(tried) > 8


@pytest.mark.parametrize("family", VARIANTS)
def test_no_numbers(folder_of, family):
    folder = folder_of(family)
    state = load_file(folder / "model.safetensors")
    name = max(state)
    save_file(state | {name: state[name].clone().fill_(torch.nan)}, folder / "model.safetensors")
    refused(folder, f"tensor '{name}': {state[name].numel()} of its {state[name].numel()} values are NaN or infinite")
    save_file(state | {name: state[name].to(torch.uint8)}, folder / "model.safetensors")
    refused(folder, f"tensor '{name}': expected one of float64, .*, got torch.uint8")


def test_a_truncated_shard_is_named(tmp_path):
    random_foreign("llama").save_pretrained(tmp_path, max_shard_size="2KB")
    shard = sorted(tmp_path.glob("model-0*.safetensors"))[1]
    content = shard.read_bytes()
    for length in (len(content) - 1, len(content) // 2, 5, 0):
        shard.write_bytes(content[:length])
        refused(tmp_path, f"{shard.name}: not a readable safetensors file")
    shard.unlink()
    refused(tmp_path, f"{shard.name}: not a readable safetensors file")


def test_a_shard_that_the_index_does_not_name(tmp_path):
    random_foreign("llama").save_pretrained(tmp_path, max_shard_size="2KB")
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    names = [name for name, shard in index["weight_map"].items() if shard == max(index["weight_map"].values())]
    for name in names:
        del index["weight_map"][name]
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    refused(tmp_path, f"tensor '{min(names)}' is missing")


@pytest.mark.parametrize("kind", [BertModel, BertForSequenceClassification])
def test_a_bert_that_predicts_no_tokens(kind):
    sizes = {"num_hidden_layers": 1, "hidden_size": 12, "num_attention_heads": 2, "intermediate_size": 9}
    refused(kind(BertConfig(**sizes)), "this model has no head that predicts tokens, so it has no logits")


@pytest.mark.parametrize(
    ("kind", "nearest"),
    [
        ("llama4", "; did you mean 'llama'"),
        ("roberta", "; did you mean 'bert'"),
        ("xyz", ""),
        ("gpt", "; did you mean 'gptj'"),
    ],
)
def test_an_unknown_architecture_names_the_nearest_and_the_bridge(folder_of, kind, nearest):
    folder = folder_of("llama")
    change_config(folder, model_type=kind)
    message = rf"architecture '{kind}' is not known here{nearest}; interp model families lists those that are; "
    refused(folder, message + r"load_model\('bridge:NAME'\) takes what TransformerLens knows")


def test_no_room_is_made_for_what_is_refused(folder_of, monkeypatch):
    folder = folder_of("llama")
    change_config(folder, num_key_value_heads=1)

    def made(*_arguments, **_options):
        raise AssertionError("a model was made")

    monkeypatch.setattr("interp.model.loading.tensors.HookedTransformer", made)
    refused(folder, "k_proj.weight': expected shape")
    change_config(folder, num_key_value_heads=3)
    with pytest.raises(AssertionError, match="a model was made"):
        load_model(folder)
