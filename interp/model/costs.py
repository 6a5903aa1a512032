"""What does a model cost? Parameters, bytes and floating-point operations, from its config alone.

A product of ``[n k]`` and ``[k m]`` counts ``2 n k m`` operations, an attention of T queries and T keys all of its
``T^2`` scores. Left out are norms, activations and the embedding's lookup, which are linear in the width, and what
relative positions and bilinear or additive scores add to the dot product.
"""

from dataclasses import dataclass
from math import prod

import torch

from interp.model.config import TransformerConfig
from interp.model.loading.native import parameter_shapes


@dataclass(frozen=True)
class LayerFlops:
    """Operations of one block for one token.

    Attributes:
        qkv: Its query, key and value.
        attend: Its query on one key, and that key's value.
        write: What the heads write.
        mlp: The MLP.
    """

    qkv: int
    attend: int
    write: int
    mlp: int

    @classmethod
    def of(cls, config: TransformerConfig) -> "LayerFlops":
        """Those of a config's blocks."""
        inner, shared = config.n_heads * config.d_head, config.kv_heads * config.d_head
        products = 3 if config.gated else 2
        return cls(
            qkv=2 * config.d_model * (inner + 2 * shared),
            attend=4 * inner,
            write=2 * inner * config.d_model,
            mlp=2 * products * config.d_model * config.d_mlp,
        )

    def block(self, n_tokens: int, n_queries: int, n_keys: int) -> int:
        """A block that makes keys for `n_tokens` and goes on with `n_queries` of them."""
        return self.qkv * n_tokens + n_queries * (self.attend * n_keys + self.write + self.mlp)


def parameter_count(config: TransformerConfig) -> int:
    """How many numbers a model learns."""
    return sum(prod(shape) for _, shape in parameter_shapes(config))


def weight_bytes(config: TransformerConfig, dtype: torch.dtype) -> int:
    """Bytes of the weights."""
    return parameter_count(config) * dtype.itemsize


def cache_bytes(config: TransformerConfig, n_prompts: int, n_tokens: int, dtype: torch.dtype) -> int:
    """Bytes of all keys and values of some prompts, as generation keeps them."""
    return 2 * config.n_layers * config.kv_heads * config.d_head * n_prompts * n_tokens * dtype.itemsize


def forward_flops(config: TransformerConfig, n_prompts: int, n_tokens: int) -> int:
    """Operations of one forward pass with the logits of every position."""
    block = LayerFlops.of(config).block(n_tokens, n_tokens, n_tokens)
    head = 2 * config.d_model**2 if config.prediction_head else 0
    return n_prompts * (config.n_layers * block + n_tokens * (head + 2 * config.d_model * config.d_vocab))
