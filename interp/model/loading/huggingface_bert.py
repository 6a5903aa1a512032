"""BERT as Hugging Face writes it (Devlin et al. 2019), with the head that predicts masked tokens.

Left out are the parts that say nothing about tokens: the pooler and the head for the next sentence.
"""

import re

from interp.model.config import TransformerConfig
from interp.model.loading.fields import HIDDEN, ForeignConfig
from interp.model.loading.layers import Parameters, embeddings, heads_in, heads_out, mlp_in, mlp_out, norm, require_head
from interp.model.loading.taker import Taker

LEFT_OUT = re.compile(r"(^|\.)pooler\.|(^|\.)cls\.seq_relationship\.|(^|\.)embeddings\.position_ids$")
HEAD = "cls.predictions"


def bert_config(config: ForeignConfig) -> TransformerConfig:
    """Our config of a Hugging Face BERT's: bidirectional, post-norm, the embedding normalised too.

    Raises:
        LoadError: A field is missing or asks for something that BERT as built here does not do.
    """
    config.require(is_decoder=False, is_causal=False, add_cross_attention=False)
    if config.get("position_embedding_type") is not None:
        config.require(position_embedding_type="absolute")
    return config.transformer(
        **config.named(HIDDEN),
        **config.named_or(
            n_ctx=("max_position_embeddings", 512),
            eps=("layer_norm_eps", 1e-12),
            tied=("tie_word_embeddings", True),
            n_token_types=("type_vocab_size", 2),
        ),
        d_head=config.head_width("hidden_size", "num_attention_heads"),
        act_fn=config.activation("hidden_act", "gelu"),
        norm_position="post",
        causal=False,
        embed_norm=True,
        prediction_head=True,
    )


def bert_weights(take: Taker, config: TransformerConfig) -> Parameters:
    """Our parameters from a Hugging Face ``BertForMaskedLM``'s or ``BertForPreTraining``'s tensors.

    Raises:
        LoadError: The head that predicts tokens is missing.
    """
    body = take.prefix("bert.", "embeddings.word_embeddings.weight")
    require_head(take, f"{HEAD}.transform.dense.weight")
    d_model = config.d_model
    words = f"{body}embeddings.word_embeddings.weight"
    yield from embeddings(take, words, f"{HEAD}.decoder.weight", config)
    yield "pos_embed.W_pos", take(f"{body}embeddings.position_embeddings.weight", config.n_ctx, d_model)
    kinds = config.n_token_types
    if kinds:
        yield "token_type_embed.W_token_type", take(f"{body}embeddings.token_type_embeddings.weight", kinds, d_model)
    yield from norm(take, f"{body}embeddings.LayerNorm", "ln_embed", d_model)
    for layer in range(config.n_layers):
        yield from _block(take, f"{body}encoder.layer.{layer}", f"blocks.{layer}", config)
    yield "ln_final.W", take(f"{HEAD}.transform.dense.weight", d_model, d_model).T
    yield "ln_final.b", take(f"{HEAD}.transform.dense.bias", d_model)
    yield from norm(take, f"{HEAD}.transform.LayerNorm", "ln_final.ln", d_model)
    yield from _unembedding_bias(take, config)


def _block(take: Taker, theirs: str, ours: str, config: TransformerConfig) -> Parameters:
    for letter, name in (("Q", "query"), ("K", "key"), ("V", "value")):
        yield from heads_in(take, f"{theirs}.attention.self.{name}", f"{ours}.attn", letter, config)
    yield from heads_out(take, f"{theirs}.attention.output.dense", f"{ours}.attn", config)
    yield from norm(take, f"{theirs}.attention.output.LayerNorm", f"{ours}.ln1", config.d_model)
    yield from mlp_in(take, f"{theirs}.intermediate.dense", f"{ours}.mlp", config)
    yield from mlp_out(take, f"{theirs}.output.dense", f"{ours}.mlp", config)
    yield from norm(take, f"{theirs}.output.LayerNorm", f"{ours}.ln2", config.d_model)


def _unembedding_bias(take: Taker, config: TransformerConfig) -> Parameters:
    """The decoder's bias. It is kept under one or both of two names; where both are there, the decoder's is added."""
    names = [name for name in (f"{HEAD}.decoder.bias", f"{HEAD}.bias") if name in take] or [f"{HEAD}.bias"]
    biases = [take(name, config.d_vocab) for name in names]
    yield "unembed.b_U", biases[0]
