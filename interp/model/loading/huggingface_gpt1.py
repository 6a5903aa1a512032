"""GPT-1 as Hugging Face writes it (``openai-gpt``; Radford et al. 2018): GPT-2's layers, with the norms behind them."""

from interp.model.config import Activation, TransformerConfig
from interp.model.loading.fields import ForeignConfig
from interp.model.loading.huggingface_gpt2 import BIASES, gpt2_blocks, gpt_sizes
from interp.model.loading.layers import Parameters, conv1d, embeddings, require_head
from interp.model.loading.taker import Taker

ACT_FNS: dict[str, Activation] = {"gelu": "gelu_new", "relu": "relu", "silu": "silu", "swish": "silu"}
"""Its own names: what it calls ``gelu`` is the tanh approximation."""


def gpt1_config(config: ForeignConfig) -> TransformerConfig:
    """Our config of a Hugging Face OpenAI-GPT's: post-norm, no norm before the unembedding.

    Raises:
        LoadError: A field is missing or asks for something that GPT-1 as built here does not do.
    """
    return config.transformer(
        **gpt_sizes(config),
        **config.named_or(
            n_ctx=("n_positions", 512), eps=("layer_norm_epsilon", 1e-5), tied=("tie_word_embeddings", True)
        ),
        act_fn=config.activation("afn", "gelu", ACT_FNS),
        norm_position="post",
        biases=BIASES,
    )


def gpt1_weights(take: Taker, config: TransformerConfig) -> Parameters:
    """Our parameters from a Hugging Face OpenAI-GPT's tensors, with or without the ``transformer.`` prefix."""
    body = take.prefix("transformer.", "tokens_embed.weight")
    require_head(take, "lm_head.weight", tied=config.tied)
    yield from embeddings(take, f"{body}tokens_embed.weight", "lm_head.weight", config)
    yield "pos_embed.W_pos", take(f"{body}positions_embed.weight", config.n_ctx, config.d_model)
    yield from gpt2_blocks(take, f"{body}h", config, conv1d)
