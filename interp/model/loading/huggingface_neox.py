"""GPT-NeoX as Hugging Face writes it (Black et al. 2022; Pythia, Biderman et al. 2023).

Rotary positions in a part of each head, attention and MLP side by side, untied. Queries, keys and values of one head
stand together in one matrix: its rows are ``[head, (q, k, v), d_head]``.
"""

import re

import einops

from interp.model.config import LARGEST, Bias, TransformerConfig
from interp.model.loading.fields import HIDDEN, ForeignConfig
from interp.model.loading.layers import Parameters, embeddings, heads_out, linear, mlp_in, mlp_out, norm, require_head
from interp.model.loading.taker import Taker

LEFT_OUT = re.compile(r"\.attention\.(bias|masked_bias|rotary_emb\.inv_freq)$")


def neox_config(config: ForeignConfig) -> TransformerConfig:
    """Our config of a Hugging Face GPT-NeoX'.

    Raises:
        LoadError: A field is missing or asks for something that GPT-NeoX as built here does not do.
    """
    config.require(is_causal=True)
    d_head = config.head_width("hidden_size", "num_attention_heads")
    theta, part = config.rotary("rotary_emb_base", "rotary_pct")
    part = 0.25 if part is None else part
    if not isinstance(part, int | float) or not 0 < part <= 1:
        raise config.refusal("partial_rotary_factor", part, "a part of a head, from 0 to 1")
    biases: list[Bias] = ["qkv", "o"] if config.switch("attention_bias", True) else []
    return config.transformer(
        **config.named(HIDDEN),
        **config.named_or(
            n_ctx=("max_position_embeddings", 2048),
            eps=("layer_norm_eps", 1e-5),
            tied=("tie_word_embeddings", False),
            parallel=("use_parallel_residual", True),
        ),
        d_head=d_head,
        act_fn=config.activation("hidden_act", "gelu"),
        positions="rotary",
        rotary_dim=int(min(d_head, LARGEST) * part),  # a whole number can be beyond every float
        rotary_base=theta,
        biases=(*biases, "mlp", "norm"),
    )


def neox_weights(take: Taker, config: TransformerConfig) -> Parameters:
    """Our parameters from a Hugging Face GPT-NeoX' tensors."""
    body, d_model = take.prefix("gpt_neox.", "embed_in.weight"), config.d_model
    unembed = "lm_head.weight" if "lm_head.weight" in take else "embed_out.weight"  # its name since, and before, 5.0
    require_head(take, unembed, tied=config.tied)
    yield from embeddings(take, f"{body}embed_in.weight", unembed, config)
    for layer in range(config.n_layers):
        theirs, ours = f"{body}layers.{layer}", f"blocks.{layer}"
        yield from norm(take, f"{theirs}.input_layernorm", f"{ours}.ln1", d_model)
        yield from _heads_in(take, f"{theirs}.attention.query_key_value", f"{ours}.attn", config)
        yield from heads_out(take, f"{theirs}.attention.dense", f"{ours}.attn", config)
        yield from norm(take, f"{theirs}.post_attention_layernorm", f"{ours}.ln2", d_model)
        yield from mlp_in(take, f"{theirs}.mlp.dense_h_to_4h", f"{ours}.mlp", config)
        yield from mlp_out(take, f"{theirs}.mlp.dense_4h_to_h", f"{ours}.mlp", config)
    yield from norm(take, f"{body}final_layer_norm", "ln_final", d_model)


def _heads_in(take: Taker, name: str, ours: str, config: TransformerConfig) -> Parameters:
    heads = config.n_heads
    joined = linear(take, name, config.d_model, 3 * heads * config.d_head)
    for letter, weight in zip("QKV", einops.rearrange(joined, "d (h c e) -> c h d e", h=heads, c=3), strict=True):
        yield f"{ours}.W_{letter}", weight
    if "qkv" in config.biases:
        bias = take(f"{name}.bias", joined.shape[1])
        for letter, each in zip("QKV", einops.rearrange(bias, "(h c e) -> c h e", h=heads, c=3), strict=True):
            yield f"{ours}.b_{letter}", each
