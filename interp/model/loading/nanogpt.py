"""nanoGPT's training checkpoint, ``ckpt.pt``: ``model`` (the state dict) and ``model_args`` among other things.

Its layers are called as GPT-2's are, but kept as PyTorch's ``Linear`` keeps them. Three things depend on when and how
it was trained:

1. Without PyTorch's own attention, each layer's mask is registered as ``attn.bias``.
2. Since January 2023 the embeddings are tied; both are in the file, and whether they are equal tells.
3. Since 27 January 2023, ``model_args`` say whether there are ``bias``; before, there always were. Since 17 May 2023,
   its GELU is the exact one; before, it was the tanh approximation, and nothing in the file says which. It is read as
   the exact one where ``bias`` is named, and as the approximation where it is not. In what was trained between the two
   dates, each neuron is then off by at most 0.0005.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from interp.model.config import TransformerConfig
from interp.model.loading.build import Checkpoint
from interp.model.loading.checkpoint import file_state
from interp.model.loading.fields import ForeignConfig
from interp.model.loading.huggingface_gpt2 import BIASES, MASKS, gpt2_blocks, gpt_sizes
from interp.model.loading.layers import Matrix, Parameters, embeddings, linear, norm
from interp.model.loading.taker import Taker

W_E, W_U = "transformer.wte.weight", "lm_head.weight"


def nanogpt_checkpoint(path: Path, content: Mapping[str, Any], tokenizer: PreTrainedTokenizerBase | None) -> Checkpoint:
    """The checkpoint that nanoGPT wrote to `path`, whose `content` was read.

    Raises:
        LoadError: Its arguments describe no model, or ``model`` is no state dict.
    """
    config = nanogpt_config(ForeignConfig(content["model_args"], f"{path}: model_args", "nanoGPT"))
    state = file_state(content["model"], path)
    config = replace(config, tied=is_tied(state, W_E, W_U))
    return Checkpoint(str(path), "nanoGPT", config, lambda: state, nanogpt_weights, tokenizer, MASKS)


def is_tied(state: Mapping[str, Tensor], embed: str, unembed: str) -> bool:
    """Whether the unembedding is the embedding, or is not there at all."""
    if unembed not in state or embed not in state:
        return unembed not in state
    one, other = state[embed], state[unembed]
    return one.dtype == other.dtype and torch.equal(one, other)


def nanogpt_config(config: ForeignConfig) -> TransformerConfig:
    """Our config of nanoGPT's ``model_args``.

    Raises:
        LoadError: A field is missing or describes no model.
    """
    return config.transformer(
        **gpt_sizes(config),
        **config.named({"n_ctx": "block_size"}),
        act_fn="gelu" if "bias" in config.fields else "gelu_new",
        biases=BIASES if config.switch("bias", True) else (),
    )


def nanogpt_weights(take: Taker, config: TransformerConfig, matrix: Matrix = linear) -> Parameters:
    """Our parameters from the tensors of nanoGPT, or of minGPT since 2022, which has the same names."""
    yield from embeddings(take, W_E, W_U, config)
    yield "pos_embed.W_pos", take("transformer.wpe.weight", config.n_ctx, config.d_model)
    yield from gpt2_blocks(take, "transformer.h", config, matrix)
    yield from norm(take, "transformer.ln_f", "ln_final", config.d_model, bias="norm" in config.biases)
