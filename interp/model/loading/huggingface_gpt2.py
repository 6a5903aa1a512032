"""GPT-2 as Hugging Face writes it (Radford et al. 2019): ``Conv1D`` weights, queries, keys and values in one matrix."""

import re
from typing import Any

from interp.model.config import Bias, TransformerConfig
from interp.model.loading.fields import ForeignConfig
from interp.model.loading.layers import (
    Matrix,
    Parameters,
    conv1d,
    embeddings,
    heads_out,
    joined_heads_in,
    mlp_in,
    mlp_out,
    norm,
    require_head,
)
from interp.model.loading.taker import Taker

MASKS = re.compile(r"\.attn\.(bias|masked_bias)$|^multiple_choice_head\.")
BIASES: tuple[Bias, ...] = ("qkv", "o", "mlp", "norm")
CONTEXT = ("n_positions", "max_position_embeddings", "n_ctx")
"""What the longest prompt is called: by GPT-2, by ``transformers`` in general, and in old configs."""


def gpt2_config(config: ForeignConfig) -> TransformerConfig:
    """Our config of a Hugging Face GPT-2's.

    Raises:
        LoadError: A field is missing or asks for something that GPT-2 as built here does not do.
    """
    config.require(scale_attn_weights=True, scale_attn_by_inverse_layer_idx=False, add_cross_attention=False)
    config.require(is_causal=True)
    longest = next((name for name in CONTEXT if name in config.fields), CONTEXT[0])
    return config.transformer(
        **gpt_sizes(config, "n_inner"),
        **config.named_or(n_ctx=(longest, 1024), eps=("layer_norm_epsilon", 1e-5), tied=("tie_word_embeddings", True)),
        act_fn=config.activation("activation_function", "gelu_new"),
        biases=BIASES,
    )


def gpt_sizes(config: ForeignConfig, inner: str | None = None) -> dict[str, Any]:
    """The sizes that have the same names in every GPT, nanoGPT's and minGPT's too.

    `inner` is the field that says how many neurons there are, where they may be others than four times the width.

    Raises:
        LoadError: One is missing, or the heads cannot share the width.
    """
    sizes = config.named({"n_layers": "n_layer", "n_heads": "n_head", "d_model": "n_embd", "d_vocab": "vocab_size"})
    sizes["d_head"], sizes["d_mlp"] = config.head_width("n_embd", "n_head"), 4 * sizes["d_model"]
    if inner is not None and config.get(inner) is not None:
        sizes |= config.named({"d_mlp": inner})
    return sizes


def gpt2_weights(take: Taker, config: TransformerConfig) -> Parameters:
    """Our parameters from a Hugging Face GPT-2's tensors, with or without the ``transformer.`` prefix."""
    body = take.prefix("transformer.", "wte.weight")
    require_head(take, "lm_head.weight", tied=config.tied)
    yield from embeddings(take, f"{body}wte.weight", "lm_head.weight", config)
    yield "pos_embed.W_pos", take(f"{body}wpe.weight", config.n_ctx, config.d_model)
    yield from gpt2_blocks(take, f"{body}h", config, conv1d)
    yield from norm(take, f"{body}ln_f", "ln_final", config.d_model)


def gpt2_blocks(take: Taker, body: str, config: TransformerConfig, matrix: Matrix) -> Parameters:
    """The blocks of a model that calls its layers as GPT-2 does, with its matrices kept as `matrix` reads them."""
    for layer in range(config.n_layers):
        theirs, ours, biased = f"{body}.{layer}", f"blocks.{layer}", "norm" in config.biases
        yield from norm(take, f"{theirs}.ln_1", f"{ours}.ln1", config.d_model, bias=biased)
        yield from joined_heads_in(take, f"{theirs}.attn.c_attn", f"{ours}.attn", config, matrix)
        yield from heads_out(take, f"{theirs}.attn.c_proj", f"{ours}.attn", config, matrix)
        yield from norm(take, f"{theirs}.ln_2", f"{ours}.ln2", config.d_model, bias=biased)
        yield from mlp_in(take, f"{theirs}.mlp.c_fc", f"{ours}.mlp", config, matrix)
        yield from mlp_out(take, f"{theirs}.mlp.c_proj", f"{ours}.mlp", config, matrix)
