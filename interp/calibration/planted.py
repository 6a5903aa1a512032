"""How is a transformer written by hand, so that chosen heads do a chosen thing and nothing else?

1. Words and places are embedded in a stream of named subspaces (``stream.py``).
2. A head's queries look for classes of words, words or places, and rest on the first token where it is not there for
   anything; its values read what it is to move (``head_weights.py``).
3. Layers are written one after the other: LayerNorm divides by the stream's norm, which is measured before each, so
   that a head reads and writes in units of the embedding.

Elhage et al. (2021), "A mathematical framework for transformer circuits", on heads as moving information between
subspaces; Lindner et al. (2023), "Tracr", on compiled transformers as ground truth.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from interp.calibration.head_weights import HeadWeights
from interp.calibration.language import LONGEST, tokenizer, vocabulary
from interp.calibration.roles import Planted
from interp.calibration.stream import Stream
from interp.model.config import TransformerConfig
from interp.model.devices import documented
from interp.model.transformer import HookedTransformer

LOGITS = 5.0
"""An answer's logit difference, about."""


@dataclass(frozen=True)
class Shape:
    """Of a planted model; see ``TransformerConfig``."""

    n_layers: int
    n_heads: int
    d_model: int = 96
    d_head: int = 18
    n_kv_heads: int | None = None

    @property
    def n_queries(self) -> int:
        """Heads that share keys and values; of these the first may have a purpose."""
        return self.n_heads // (self.n_kv_heads or self.n_heads)


@documented
def plant(
    shape: Shape, heads: Sequence[Planted], *, sharpness: float = 1.0, noise: float = 0.1, seed: int = 0
) -> HookedTransformer:
    """Write a model in which these heads do what they are there for; all others are idle.

    Args:
        shape: Of the model.
        heads: Those with a purpose, each at a place of its own.
        sharpness: Of their attention: 1 looks at hardly anything else.
        noise: What an idle head writes to the answers, where a tracker writes 1.
        seed: Of all random directions.
    """
    generator = torch.Generator().manual_seed(seed)
    model = _empty(shape)
    stream = Stream(shape.d_model, generator)
    placed = {(each.layer, each.head): each for each in heads}
    tokens = _random_prompts(seed)
    with torch.no_grad():
        model.embed.W_E.copy_(torch.stack([stream.embedding(word) for word in vocabulary()]))
        model.pos_embed.W_pos.copy_(stream.places())
        for layer, block in enumerate(model.blocks):
            norm = _norm(model, tokens, f"blocks.{layer}.hook_resid_pre")
            weights = HeadWeights(
                stream, d_head=shape.d_head, norm=norm, sharpness=sharpness, noise=noise, generator=generator
            )
            for first in range(0, shape.n_heads, shape.n_queries):
                queries, keys, values, outputs = weights.of(placed.get((layer, first)), shape.n_queries)
                attention: Any = block.attn
                attention.W_K[first // shape.n_queries] = keys
                attention.W_V[first // shape.n_queries] = values
                attention.W_Q[first : first + shape.n_queries] = queries
                attention.W_O[first : first + shape.n_queries] = outputs
        norm = _norm(model, tokens, f"blocks.{shape.n_layers - 1}.hook_resid_post")
        gain = LOGITS / 2 * norm / shape.d_model**0.5
        model.unembed.W_U.copy_(gain * torch.stack([stream.answer(word) for word in vocabulary()], dim=1))
    return model.eval()


def _empty(shape: Shape) -> HookedTransformer:
    """All weights are 0, but those of the norms."""
    config = TransformerConfig(
        n_layers=shape.n_layers,
        n_heads=shape.n_heads,
        n_kv_heads=shape.n_kv_heads,
        d_model=shape.d_model,
        d_head=shape.d_head,
        d_mlp=0,
        d_vocab=len(vocabulary()),
        n_ctx=LONGEST,
        tied=False,
    )
    model = HookedTransformer(config, tokenizer())
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.fill_(1.0 if name.endswith(".w") else 0.0)
    return model


def _random_prompts(seed: int) -> Tensor:
    """On which norms are measured."""
    tokens = np.random.default_rng(seed).integers(1, len(vocabulary()), (64, LONGEST))
    tokens[:, 0] = 0
    return torch.as_tensor(tokens)


def _norm(model: HookedTransformer, tokens: Tensor, name: str) -> float:
    """Of the stream, past the first token."""
    _, cache = model.run_with_cache(tokens, names_filter=name)
    return float(cache[name][:, 1:].norm(dim=-1).mean())
