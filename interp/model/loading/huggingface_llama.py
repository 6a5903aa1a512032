"""Llama, Llama 2, Mistral and Qwen 2 as Hugging Face writes them (Touvron et al. 2023; Jiang et al. 2023).

RMSNorm, rotary positions, grouped heads and SwiGLU. They differ in their biases: Llama's and Mistral's have none (a
Llama's config can ask for them), Qwen 2's queries, keys and values have.
"""

import re
from dataclasses import replace
from typing import Any

from interp.model.config import Bias, TransformerConfig
from interp.model.loading.fields import HIDDEN, ForeignConfig
from interp.model.loading.layers import Parameters, embeddings, heads_in, heads_out, mlp_in, mlp_out, norm, require_head
from interp.model.loading.taker import Taker

FREQUENCIES = re.compile(r"\.rotary_emb\.inv_freq$")


def llama_config(config: ForeignConfig) -> TransformerConfig:
    """Our config of a Hugging Face Llama's.

    Raises:
        LoadError: A field is missing or asks for something that Llama as built here does not do.
    """
    biases: list[Bias] = ["qkv", "o"] if config.switch("attention_bias", False) else []
    biases += ["mlp"] if config.switch("mlp_bias", False) else []
    return _config(config, biases=tuple(biases), longest=2048)


def mistral_config(config: ForeignConfig) -> TransformerConfig:
    """Our config of a Hugging Face Mistral's.

    Each of its positions sees as many tokens as its sliding window is long. In a prompt within the window that is all
    of them, so the window is the longest prompt here (``n_ctx``), and the model is exact.

    Raises:
        LoadError: A field is missing or asks for something that Mistral as built here does not do.
    """
    whole = _config(config, biases=(), longest=131_072)
    window = config.get("sliding_window", 4096)
    if window is None:
        return whole
    if not isinstance(window, int) or window < 1:
        raise config.refusal("sliding_window", window, "a whole number of tokens, or null")
    return replace(whole, n_ctx=min(whole.n_ctx, window))


def qwen2_config(config: ForeignConfig) -> TransformerConfig:
    """Our config of a Hugging Face Qwen 2's.

    Raises:
        LoadError: A field is missing or asks for something that Qwen 2 as built here does not do: a sliding window.
    """
    config.require(use_sliding_window=False)
    return _config(config, biases=("qkv",), longest=32_768)


def _config(config: ForeignConfig, *, biases: tuple[Bias, ...], longest: int) -> TransformerConfig:
    config.require(is_causal=True)
    theta, part = config.rotary()
    if part not in (None, 1.0):
        raise config.refusal("partial_rotary_factor", part, 1.0)
    return config.transformer(
        **config.named(HIDDEN),
        **config.named_or(
            n_kv_heads=("num_key_value_heads", None),
            n_ctx=("max_position_embeddings", longest),
            eps=("rms_norm_eps", 1e-6),
            tied=("tie_word_embeddings", False),
        ),
        d_head=_head_width(config),
        act_fn=config.activation("hidden_act", "silu"),
        positions="rotary",
        rotary_base=theta,
        normalization="RMS",
        gated=True,
        biases=biases,
    )


def _head_width(config: ForeignConfig) -> Any:
    if config.get("head_dim") is None:
        return config.head_width("hidden_size", "num_attention_heads")
    return config.named({"d_head": "head_dim"})["d_head"]


def llama_weights(take: Taker, config: TransformerConfig) -> Parameters:
    """Our parameters from the tensors of a Hugging Face Llama, Mistral or Qwen 2."""
    body, d_model = take.prefix("model.", "embed_tokens.weight"), config.d_model
    require_head(take, "lm_head.weight", tied=config.tied)
    yield from embeddings(take, f"{body}embed_tokens.weight", "lm_head.weight", config)
    for layer in range(config.n_layers):
        theirs, ours = f"{body}layers.{layer}", f"blocks.{layer}"
        yield from norm(take, f"{theirs}.input_layernorm", f"{ours}.ln1", d_model, bias=False)
        for letter in "QKV":
            yield from heads_in(take, f"{theirs}.self_attn.{letter.lower()}_proj", f"{ours}.attn", letter, config)
        yield from heads_out(take, f"{theirs}.self_attn.o_proj", f"{ours}.attn", config)
        yield from norm(take, f"{theirs}.post_attention_layernorm", f"{ours}.ln2", d_model, bias=False)
        yield from mlp_in(take, f"{theirs}.mlp.gate_proj", f"{ours}.mlp", config, which="gate")
        yield from mlp_in(take, f"{theirs}.mlp.up_proj", f"{ours}.mlp", config)
        yield from mlp_out(take, f"{theirs}.mlp.down_proj", f"{ours}.mlp", config)
    yield from norm(take, f"{body}norm", "ln_final", d_model, bias=False)
