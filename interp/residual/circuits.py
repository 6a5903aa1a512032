"""Which tokens does a head read from which, and what does it write of them? QK and OV circuits (Elhage et al. 2021).

With ``E`` for what the head reads of a stream that holds a token's embedding and nothing else, ``E = norm(W_E)``:

- **QK**: ``(E W_Q + b_Q) (E W_K + b_K)^T``, the score that a query token gives a key token;
- **OV**: ``E W_V W_O W_U``, the logits that a head writes which attends to a token.

Both are ``[d_vocab d_vocab]``, and kept as two thin factors (TransformerLens' ``FactoredMatrix``): ``circuit[ids].AB``
has the rows of some tokens, and norms, singular values and eigenvalues need the factors only.

What is left out:

- positions: those embedded, and those within attention, so that with rotary positions or ALiBi a score is that of a
  query and a key at the same place;
- what earlier layers write: in a later layer, a circuit is the direct path from the embedding;
- the last norm's scale, held at 1: an OV circuit's logits are known up to a positive factor;
- what a head writes whatever it attends to, by the biases of its norm and of its values.
"""

import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor
from transformer_lens import FactoredMatrix

from interp.model.devices import documented
from interp.model.transformer import HookedTransformer
from interp.residual.head_weights import OVWeights, ov_weights, qk_weights, read_embeddings, written_logits
from interp.residual.stream import require_additive

Embeddings = Float[Tensor, "d_vocab d_model"]


@documented
@torch.no_grad()
def qk_circuit(model: HookedTransformer, layer: int, head: int) -> FactoredMatrix:
    """The score that each query token gives each key token, as in ``hook_attn_scores``, before the softmax.

    Args:
        model: The model.
        layer: The head's block, from 0.
        head: The head.

    Returns:
        ``[d_vocab d_vocab]``, query tokens by key tokens. ``A`` holds each token's query, ``B`` each token's key.

    Raises:
        InputError: No such head, one whose score is no product of a query and a key, or a stream that is no sum.
    """
    require_additive(model)
    weights, read = qk_weights(model, layer, head), read_embeddings(model, layer)
    return FactoredMatrix(read @ weights.W_Q + weights.b_Q, (read @ weights.W_K + weights.b_K).T)


@documented
@torch.no_grad()
def ov_circuit(model: HookedTransformer, layer: int, head: int) -> FactoredMatrix:
    """The logits that the head writes where it attends to a token: what it moves, straight to the unembedding.

    Args:
        model: The model.
        layer: The head's block, from 0.
        head: The head.

    Returns:
        ``[d_vocab d_vocab]``, tokens attended to by tokens written, in logits times the last norm's scale.

    Raises:
        InputError: No such head, or a stream that is no sum.
    """
    require_additive(model)
    return _ov(model, ov_weights(model, layer, head), _varying(model, layer))


@documented
@torch.no_grad()
def copying_scores(model: HookedTransformer) -> pd.DataFrame:
    """Does each head copy? The sum of its OV circuit's eigenvalues over the sum of their magnitudes.

    A positive eigenvalue belongs to a mixture of tokens that the head makes likelier where it attends to them (Elhage
    et al. 2021, "copying"). Of the ``d_vocab`` eigenvalues all but ``d_head`` are zero, and these are computed from a
    ``[d_head d_head]`` product.

    Returns:
        One row a head: ``layer``, ``head``, ``copying``: 1 where the head copies whatever it attends to, -1 where it
        makes it less likely, NaN where it writes nothing.

    Raises:
        InputError: The stream is no sum.
    """
    require_additive(model)
    rows = []
    for layer in range(model.config.n_layers):
        varying = _varying(model, layer)
        for head in range(model.config.n_heads):
            rows.append((layer, head, _copying(_ov(model, ov_weights(model, layer, head), varying))))
    return pd.DataFrame(rows, columns=["layer", "head", "copying"])


@documented
@torch.no_grad()
def copying_score(model: HookedTransformer, layer: int, head: int) -> float:
    """One head's score, as ``copying_scores`` has it.

    Args:
        model: The model.
        layer: The head's block, from 0.
        head: The head.

    Raises:
        InputError: No such head, or the stream is no sum.
    """
    return _copying(ov_circuit(model, layer, head))


def _copying(circuit: FactoredMatrix) -> float:
    eigenvalues = circuit.eigenvalues
    return float(eigenvalues.sum().real / eigenvalues.abs().sum())


def _ov(model: HookedTransformer, weights: OVWeights, varying: Embeddings) -> FactoredMatrix:
    return FactoredMatrix(varying @ weights.W_V, written_logits(model, weights.W_O))


def _varying(model: HookedTransformer, layer: int) -> Embeddings:
    """What the heads read of each embedding, less what they read of an empty stream: the norm's bias."""
    return read_embeddings(model, layer) - list(model.blocks)[layer].ln1.b
