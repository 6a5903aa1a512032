"""What does one head read and write, as matrices? Its weights, with what stands between them and the stream.

- A head of queries reads the keys and values of its group (grouped-query attention).
- What compares queries with keys, a factor or a matrix, goes into ``W_Q``.
- A norm divides by a scale that depends on the whole stream; with the scale held, it is linear (``Norm.share``).
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from interp.errors import InputError
from interp.model.attention import Attention, Bilinear, Dot
from interp.model.transformer import HookedTransformer

Vectors = Float[Tensor, "row d_model"]


class QKWeights(NamedTuple):
    """What scores a key ``y`` for a query ``x``: ``(x W_Q + b_Q) . (y W_K + b_K)``, positions left out."""

    W_Q: Float[Tensor, "d_model d_head"]
    W_K: Float[Tensor, "d_model d_head"]
    b_Q: Float[Tensor, " d_head"]
    b_K: Float[Tensor, " d_head"]


class OVWeights(NamedTuple):
    """What a head moves of what it attends to, ``y W_V W_O``; its bias ``b_V W_O`` is the same whatever that is."""

    W_V: Float[Tensor, "d_model d_head"]
    W_O: Float[Tensor, "d_head d_model"]


@torch.no_grad()
def qk_weights(model: HookedTransformer, layer: int, head: int) -> QKWeights:
    """The weights of a head's queries, and of the keys that they are compared with, in at least 32-bit floats.

    Raises:
        InputError: No such head, or one whose score is no product of a query and a key.
    """
    attn, shared = _attention(model, layer, head)
    W_Q, b_Q = wide(attn.W_Q[head]), wide(attn.b_Q[head])
    W_K, b_K = wide(attn.W_K[shared]), wide(attn.b_K[shared])
    if isinstance(attn.score, Dot):
        return QKWeights(W_Q * attn.score.scale, W_K, b_Q * attn.score.scale, b_K)
    if isinstance(attn.score, Bilinear):
        between = wide(attn.score.w_score[head])
        return QKWeights(W_Q @ between, W_K, b_Q @ between, b_K)
    raise InputError(
        "scores: expected a product of query and key ('scaled_dot', 'dot', 'bilinear'), got 'additive', which has no "
        "QK circuit; read the attention pattern instead"
    )


@torch.no_grad()
def ov_weights(model: HookedTransformer, layer: int, head: int) -> OVWeights:
    """The weights of the values that a head reads, and of what it writes of them, in at least 32-bit floats.

    Raises:
        InputError: No such head.
    """
    attn, shared = _attention(model, layer, head)
    return OVWeights(wide(attn.W_V[shared]), wide(attn.W_O[head]))


def _attention(model: HookedTransformer, layer: int, head: int) -> tuple[Attention, int]:
    """A head's layer, and the number of the keys and values that it reads."""
    for name, value, n in (("layer", layer, model.config.n_layers), ("head", head, model.config.n_heads)):
        if not 0 <= value < n:
            raise InputError(f"{name}: expected 0 to {n - 1}, got {value}")
    attn = list(model.blocks)[layer].attn
    return attn, head // attn.group


@torch.no_grad()
def read_embeddings(model: HookedTransformer, layer: int) -> Float[Tensor, "d_vocab d_model"]:
    """What a layer's heads read of a stream that holds nothing but a token's embedding, for every token."""
    every = torch.arange(model.config.d_vocab, device=model.W_E.device)
    return wide(list(model.blocks)[layer].read_by_attention(model.embed(every[None])))[0]


@torch.no_grad()
def reading_matrix(model: HookedTransformer, layer: int) -> Float[Tensor, "d_model d_model"]:
    """What a layer's norm makes of the stream's unit vectors, its scale held at 1: the norm as a matrix."""
    norm = list(model.blocks)[layer].ln1
    unit = torch.eye(model.config.d_model, device=model.W_E.device, dtype=wide(model.W_E).dtype)
    return norm.share(unit, torch.ones_like(unit[:, :1]))


@torch.no_grad()
def written_logits(model: HookedTransformer, vectors: Vectors) -> Float[Tensor, "row d_vocab"]:
    """What vectors that are added to the last stream, a sum, add to the logits, the last norm's scale held at 1."""
    return model.ln_final.share(vectors, torch.ones_like(vectors[:, :1])) @ wide(model.W_U)


def wide(tensor: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """In at least 32-bit floats: half precision has no eigenvalues, and rounds sums over the vocabulary."""
    return tensor.detach().to(torch.promote_types(tensor.dtype, torch.float32))
