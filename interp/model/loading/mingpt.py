"""minGPT's training checkpoint: ``model.pt``, a state dict, and ``config.json``, whose ``model`` describes it.

minGPT writes the config before it has filled it in, so sizes that are null there are read off the tensors, and the
number of heads off the ``model_type``. There are two generations of names:

===========  ======================================  ==========================================================
since 2022   ``transformer.h.0.attn.c_attn.weight``  as GPT-2, kept as ``Linear`` keeps it, on 23 and 24 June 2022
                                                     as ``Conv1D`` does; the tanh approximation
2020         ``blocks.0.attn.query.weight``          queries, keys and values apart, in copies of it also together
                                                     (``blocks.0.attn.c_attn.weight``); the exact GELU
===========  ======================================  ==========================================================

Both keep each layer's mask, and an unembedding of its own.
"""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor
from transformers import PreTrainedTokenizerBase

from interp.errors import LoadError
from interp.model.config import TransformerConfig
from interp.model.loading.build import Checkpoint
from interp.model.loading.checkpoint import State
from interp.model.loading.fields import ForeignConfig
from interp.model.loading.huggingface_gpt2 import BIASES, gpt_sizes
from interp.model.loading.layers import (
    Matrix,
    Parameters,
    conv1d,
    embeddings,
    heads_in,
    heads_out,
    joined_heads_in,
    linear,
    mlp_in,
    mlp_out,
    norm,
)
from interp.model.loading.nanogpt import nanogpt_weights
from interp.model.loading.taker import Taker

MASKS = re.compile(r"\.attn\.(bias|mask)$")
LAYER = re.compile(r"(?:transformer\.h|blocks)\.(\d+)\.")
SIZES = {
    "openai-gpt": (12, 12, 768),
    "gpt2": (12, 12, 768),
    "gpt2-medium": (24, 16, 1024),
    "gpt2-large": (36, 20, 1280),
    "gpt2-xl": (48, 25, 1600),
    "gopher-44m": (8, 16, 512),
    "gpt-mini": (6, 6, 192),
    "gpt-micro": (4, 4, 128),
    "gpt-nano": (3, 3, 48),
}
"""By minGPT's names of them: layers, heads of a layer and width."""


def mingpt_checkpoint(
    path: Path, state: State, written: Mapping[str, Any], tokenizer: PreTrainedTokenizerBase | None
) -> Checkpoint:
    """The checkpoint that minGPT wrote to `path`, whose tensors and whose ``config.json`` were read.

    Raises:
        LoadError: The config describes no model, or neither it nor a tensor tells a size.
    """
    described = written.get("model")
    if not isinstance(described, dict):
        raise LoadError(
            f"{path}: the config.json beside it has no 'model', which minGPT writes; expected at least "
            '{"model": {"n_head": ...}}'
        )
    first = "tok_emb.weight" in state
    fields = ForeignConfig(_filled_in(described, state, first), f"{path.parent / 'config.json'}", "minGPT")
    config = mingpt_config(fields, first)
    weights = first_mingpt_weights if first else partial(nanogpt_weights, matrix=_matrix(state))
    return Checkpoint(str(path), "minGPT", config, lambda: state, weights, tokenizer, MASKS)


def _matrix(state: Mapping[str, Tensor]) -> Matrix:
    """How the matrices of layers are kept: ``c_attn``, which is no square, tells."""
    joined = state.get("transformer.h.0.attn.c_attn.weight")
    return conv1d if joined is not None and joined.ndim == 2 and joined.shape[0] < joined.shape[1] else linear


def _filled_in(described: Mapping[str, Any], state: Mapping[str, Tensor], first: bool) -> dict[str, Any]:
    """The sizes that the config names, and for those that it does not, those of the tensors."""
    embed, positions = ("tok_emb.weight", "pos_emb") if first else ("transformer.wte.weight", "transformer.wpe.weight")
    found: dict[str, Any] = {"n_layer": len({match[1] for name in state if (match := LAYER.match(name))})}
    if embed in state and state[embed].ndim == 2:
        found |= {"vocab_size": state[embed].shape[0], "n_embd": state[embed].shape[1]}
    if positions in state and state[positions].ndim >= 2:
        found["block_size"] = state[positions].shape[-2]
    kind = described.get("model_type")
    if isinstance(kind, str) and kind in SIZES and SIZES[kind][::2] == (found["n_layer"], found.get("n_embd")):
        found["n_head"] = SIZES[kind][1]  # heads leave no trace in the shapes
    return found | {name: value for name, value in described.items() if value is not None}


def mingpt_config(config: ForeignConfig, first: bool) -> TransformerConfig:
    """Our config of minGPT's sizes; `first` where the weights are of its first generation.

    Raises:
        LoadError: A field is missing or describes no model.
    """
    return config.transformer(
        **gpt_sizes(config),
        **config.named({"n_ctx": "block_size"}),
        act_fn="gelu" if first else "gelu_new",
        tied=False,
        biases=BIASES,
    )


def first_mingpt_weights(take: Taker, config: TransformerConfig) -> Parameters:
    """Our parameters from the tensors of a minGPT of 2020."""
    d_model = config.d_model
    yield from embeddings(take, "tok_emb.weight", "head.weight", config)
    yield "pos_embed.W_pos", take("pos_emb", 1, config.n_ctx, d_model)[0]
    for layer in range(config.n_layers):
        block = f"blocks.{layer}"
        yield from norm(take, f"{block}.ln1", f"{block}.ln1", d_model)
        yield from _first_attention(take, f"{block}.attn", config)
        yield from norm(take, f"{block}.ln2", f"{block}.ln2", d_model)
        yield from mlp_in(take, f"{block}.mlp.0", f"{block}.mlp", config)
        yield from mlp_out(take, f"{block}.mlp.2", f"{block}.mlp", config)
    yield from norm(take, "ln_f", "ln_final", d_model)


def _first_attention(take: Taker, attn: str, config: TransformerConfig) -> Parameters:
    """A layer's attention, with queries, keys and values apart, or in one matrix, as later in ``c_attn``."""
    joined = f"{attn}.c_attn.weight" in take
    if joined:
        yield from joined_heads_in(take, f"{attn}.c_attn", attn, config, linear)
    else:
        for letter, name in (("Q", "query"), ("K", "key"), ("V", "value")):
            yield from heads_in(take, f"{attn}.{name}", attn, letter, config)
    yield from heads_out(take, f"{attn}.{'c_proj' if f'{attn}.c_proj.weight' in take else 'proj'}", attn, config)
