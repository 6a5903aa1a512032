"""llama2.c's models: Llama's architecture under Meta's names, from its training checkpoint or from a ``.bin`` file.

Its rotary positions turn neighbouring components ``(2 i, 2 i + 1)``; ours, as Hugging Face's, turn ``i`` with
``i + d_head / 2``. So the components of every query and key are put in another order, the even ones first: both sides
of a product alike, which leaves every score as it was.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import einops
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from interp.errors import LoadError
from interp.model.config import TransformerConfig
from interp.model.loading.build import Checkpoint
from interp.model.loading.checkpoint import file_state
from interp.model.loading.fields import ForeignConfig
from interp.model.loading.layers import Parameters, embeddings, heads_out, mlp_in, mlp_out, norm
from interp.model.loading.llama2c_tokenizer import tokenizer_beside
from interp.model.loading.nanogpt import is_tied
from interp.model.loading.taker import Taker

BUFFERS = re.compile(r"^freqs_(cos|sin)$|\.attention\.mask$")
W_E, W_U, W_1 = "tok_embeddings.weight", "output.weight", "layers.0.feed_forward.w1.weight"
FAMILY = "llama2.c"
SIZES = {
    "n_layers": "n_layers",
    "n_heads": "n_heads",
    "d_model": "dim",
    "d_mlp": "hidden_dim",
    "d_vocab": "vocab_size",
    "n_ctx": "max_seq_len",
}


def llama2c_checkpoint(path: Path, content: Mapping[str, Any], tokenizer: PreTrainedTokenizerBase | None) -> Checkpoint:
    """The training checkpoint that llama2.c wrote to `path`, whose `content` was read.

    Raises:
        LoadError: Its arguments describe no model, or its first layer has no neurons to count.
    """
    state = file_state(content["model"], path)
    if W_1 not in state or state[W_1].ndim != 2:
        raise LoadError(f"{path}: tensor {W_1!r} is no matrix here, which would say how many neurons there are")
    fields = {**content["model_args"], "hidden_dim": len(state[W_1])}
    config = llama2c_config(ForeignConfig(fields, f"{path}: model_args", FAMILY), tied=is_tied(state, W_E, W_U))
    tokenizer = tokenizer_beside(path, config.d_vocab) if tokenizer is None else tokenizer
    return Checkpoint(str(path), FAMILY, config, lambda: state, llama2c_weights, tokenizer, BUFFERS)


def llama2c_config(config: ForeignConfig, *, tied: bool) -> TransformerConfig:
    """Our config of llama2.c's arguments.

    Raises:
        LoadError: A field is missing or describes no model.
    """
    return config.transformer(
        **config.named(SIZES),
        **config.named_or(n_kv_heads=("n_kv_heads", None), eps=("norm_eps", 1e-5)),
        d_head=config.head_width("dim", "n_heads"),
        act_fn="silu",
        tied=tied,
        positions="rotary",
        normalization="RMS",
        gated=True,
        biases=(),
    )


def llama2c_weights(take: Taker, config: TransformerConfig) -> Parameters:
    """Our parameters from llama2.c's tensors."""
    yield from embeddings(take, W_E, W_U, config)
    for layer in range(config.n_layers):
        theirs, ours = f"layers.{layer}", f"blocks.{layer}"
        yield from norm(take, f"{theirs}.attention_norm", f"{ours}.ln1", config.d_model, bias=False)
        for letter, heads in (("Q", config.n_heads), ("K", config.kv_heads), ("V", config.kv_heads)):
            rows = take(f"{theirs}.attention.w{letter.lower()}.weight", heads * config.d_head, config.d_model)
            weight = einops.rearrange(rows, "(h e) d -> h d e", h=heads)
            yield f"{ours}.attn.W_{letter}", weight if letter == "V" else _by_halves(weight)
        yield from heads_out(take, f"{theirs}.attention.wo", f"{ours}.attn", config)
        yield from norm(take, f"{theirs}.ffn_norm", f"{ours}.ln2", config.d_model, bias=False)
        yield from mlp_in(take, f"{theirs}.feed_forward.w1", f"{ours}.mlp", config, which="gate")
        yield from mlp_in(take, f"{theirs}.feed_forward.w3", f"{ours}.mlp", config)
        yield from mlp_out(take, f"{theirs}.feed_forward.w2", f"{ours}.mlp", config)
    yield from norm(take, "norm", "ln_final", config.d_model, bias=False)


def _by_halves(weight: Float[Tensor, "head d_model d_head"]) -> Float[Tensor, "head d_model d_head"]:
    """The components of each head, the even ones first."""
    return einops.rearrange(weight, "h d (pair two) -> h d (two pair)", two=2)
