"""A residual stream read as if it were the last, by the model's own last norm and unembedding.

A boundary lies before each block and after the last one. The model's own last norm and unembedding read the stream
there as a distribution over the next token.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from interp.errors import InputError
from interp.model.sites import Site
from interp.model.transformer import HookedTransformer
from interp.shapes import Logits, PaddingMask, Residual, Tokens


def token_texts(model: HookedTransformer, ids: Int[Tensor, " token"]) -> list[str | None]:
    """The text of each id, with its leading space; None where the model has no tokenizer."""
    if model.tokenizer is None:
        return [None] * len(ids)
    distinct = ids.unique()
    texts = dict(zip(distinct.tolist(), model.to_str_tokens(distinct), strict=True))
    return [texts[each] for each in ids.tolist()]


def boundary_streams(model: HookedTransformer, tokens: Tokens, mask: PaddingMask) -> list[Residual]:
    """The stream that enters each block, and the one that enters the last norm."""
    names = [Site("resid_pre", layer).hook_name for layer in range(model.config.n_layers)]
    stop = model.config.n_layers  # the logits are computed from the streams
    last, cache = model.run_with_cache(tokens, attention_mask=mask, names_filter=names, stop_at_layer=stop)
    return [*(cache[name] for name in names), last]


def read_out(model: HookedTransformer, x: Residual) -> Logits:
    """The logits that the model would give if `x` were its last residual stream."""
    return model.unembed(model.ln_final(x))


def log_probabilities(logits: Float[Tensor, "*rows d_vocab"]) -> Float[Tensor, "*rows d_vocab"]:
    """Log-probabilities in nats, in at least 32-bit floats. Raises InputError for NaN."""
    nats = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-1)
    if nats.isnan().any():
        raise InputError("expected logits that are numbers, got NaN: the stream overflows its dtype; use float32")
    return nats


def kl_divergence(
    final: Float[Tensor, "*rows d_vocab"], read: Float[Tensor, "*rows d_vocab"]
) -> Float[Tensor, "*rows"]:
    """``sum p (log p - log q)`` in nats, of the model's own ``log p = final`` from ``log q = read``."""
    return (final.exp() * (final - read)).sum(-1)
