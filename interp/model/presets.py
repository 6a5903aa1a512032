"""The shapes of published models, and what a shape costs: parameters, bytes and floating-point operations.

A product of ``[n k]`` and ``[k m]`` counts ``2 n k m`` operations, an attention of T queries and T keys all of its
``T^2`` scores. Left out are norms, activations and the embedding's lookup, which are linear in the width, and what
relative positions and bilinear or additive scores add to the dot product.

Examples:
    >>> from interp.model.presets import forward_flops, preset, weight_bytes
    >>> gpt2 = preset("gpt2").config
    >>> weight_bytes(gpt2, torch.float32)
    497759232
    >>> forward_flops(gpt2, n_prompts=2, n_tokens=20) == 2 * forward_flops(gpt2, n_prompts=1, n_tokens=20)
    True
"""

from dataclasses import dataclass
from math import prod
from typing import Any

import torch

from interp.errors import ConfigError, suggest
from interp.model.config import TransformerConfig
from interp.model.loading.native import parameter_shapes

GPT2: dict[str, Any] = {"d_vocab": 50_257, "n_ctx": 1024, "biases": ("qkv", "o", "mlp", "norm")}
LLAMA: dict[str, Any] = {"normalization": "RMS", "positions": "rotary", "act_fn": "silu", "gated": True}
LLAMA |= {"biases": (), "tied": False}


@dataclass(frozen=True)
class Preset:
    """A published model's shape.

    Attributes:
        config: What it is made of.
        published: Its number of parameters, as published.
        digits: How many digits of that number were published; None for all.
        source: Where.
    """

    config: TransformerConfig
    published: int
    digits: int | None
    source: str


def _shape(n_layers: int, n_heads: int, d_model: int, **fields: Any) -> TransformerConfig:
    """Heads that share out the stream's width, and an MLP of four times that, unless told otherwise."""
    sizes = {"d_head": d_model // n_heads, "d_mlp": 4 * d_model}
    return TransformerConfig(n_layers=n_layers, n_heads=n_heads, d_model=d_model, **{**sizes, **fields})


_GPT1 = _shape(12, 12, 768, **{**GPT2, "d_vocab": 40_478, "n_ctx": 512, "norm_position": "post"})
_GPT3 = _shape(96, 96, 12_288, **{**GPT2, "n_ctx": 2048})
_LLAMA2 = _shape(32, 32, 4096, d_mlp=11_008, d_vocab=32_000, n_ctx=4096, **LLAMA)
_LLAMA2_70B = _shape(80, 64, 8192, d_mlp=28_672, d_vocab=32_000, n_ctx=4096, n_kv_heads=8, **LLAMA)

PRESETS: dict[str, Preset] = {
    "gpt": Preset(_GPT1, 117_000_000, 3, "Radford et al. (2018); Radford et al. (2019), table 2"),
    "gpt2": Preset(_shape(12, 12, 768, **GPT2), 124_439_808, None, "the published checkpoint of GPT-2 small"),
    "gpt2-medium": Preset(_shape(24, 16, 1024, **GPT2), 354_823_168, None, "the published checkpoint"),
    "gpt2-large": Preset(_shape(36, 20, 1280, **GPT2), 774_030_080, None, "the published checkpoint"),
    "gpt2-xl": Preset(_shape(48, 25, 1600, **GPT2), 1_557_611_200, None, "the published checkpoint"),
    "gpt3-175b": Preset(_GPT3, 175_000_000_000, 3, "Brown et al. (2020), table 2.1"),
    "llama-2-7b": Preset(_LLAMA2, 6_738_415_616, None, "the published checkpoint; Touvron et al. (2023)"),
    "llama-2-70b": Preset(_LLAMA2_70B, 68_976_648_192, None, "the published checkpoint; Touvron et al. (2023)"),
}

ALIASES = {"gpt2-small": "gpt2"}
"""Other names of presets."""


def preset(name: str) -> Preset:
    """The shape of a published model.

    Args:
        name: Such as ``gpt2`` or ``llama-2-7b``.

    Returns:
        Its config and its published number of parameters.

    Raises:
        ConfigError: No preset is called so.
    """
    name = ALIASES.get(name, name)
    if name not in PRESETS:
        raise ConfigError(f"no preset is called {name!r}; {suggest(name, PRESETS)}")
    return PRESETS[name]


def writing_flops(config: TransformerConfig) -> tuple[int, int]:
    """Operations of what one block's heads write for one token, and of its MLP."""
    mlp = (3 if config.gated else 2) * config.d_model * config.d_mlp
    if config.n_experts:
        mlp = config.n_active_experts * mlp + config.d_model * config.n_experts
    return 2 * config.n_heads * config.d_head * config.d_model, 2 * mlp


def block_flops(config: TransformerConfig, n_tokens: int, n_queries: int) -> int:
    """Operations of a block that makes keys for `n_tokens` and goes on with `n_queries` of them."""
    inner, shared = config.n_heads * config.d_head, config.kv_heads * config.d_head
    qkv, attend = 2 * config.d_model * (inner + 2 * shared), 4 * inner * n_tokens
    return qkv * n_tokens + n_queries * (attend + sum(writing_flops(config)))


def parameter_count(config: TransformerConfig) -> int:
    """How many numbers a model learns."""
    return sum(prod(shape) for _, shape in parameter_shapes(config))


def weight_bytes(config: TransformerConfig, dtype: torch.dtype) -> int:
    """Bytes of the weights.

    Args:
        config: The model.
        dtype: Of the weights.

    Returns:
        Bytes, of parameters alone.
    """
    return parameter_count(config) * dtype.itemsize


def cache_bytes(config: TransformerConfig, n_prompts: int, n_tokens: int, dtype: torch.dtype) -> int:
    """Bytes of all keys and values of some prompts, as generation keeps them."""
    return 2 * config.n_layers * config.kv_heads * config.d_head * n_prompts * n_tokens * dtype.itemsize


def forward_flops(config: TransformerConfig, n_prompts: int, n_tokens: int) -> int:
    """Operations of one forward pass with the logits of every position.

    Args:
        config: The model.
        n_prompts: Prompts.
        n_tokens: Tokens of each, special tokens included.

    Returns:
        Floating-point operations.
    """
    block = block_flops(config, n_tokens, n_tokens)
    head = 2 * config.d_model**2 if config.prediction_head else 0
    return n_prompts * (config.n_layers * block + n_tokens * (head + 2 * config.d_model * config.d_vocab))
