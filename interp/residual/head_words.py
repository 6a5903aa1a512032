"""Which words does a head look for, and what does it write? Rows of its QK and OV circuits, as words.

What these circuits leave out, ``circuits.py`` says.
"""

import pandas as pd
from jaxtyping import Float, Int
from torch import Tensor
from transformer_lens import FactoredMatrix

from interp.errors import InputError
from interp.model.devices import documented
from interp.model.transformer import HookedTransformer
from interp.residual.circuits import ov_circuit, qk_circuit
from interp.residual.vocabulary import token_texts


@documented
def looks_for(model: HookedTransformer, layer: int, head: int, word: str | int, *, top: int = 10) -> pd.DataFrame:
    """The key tokens to which a query token gives the largest scores.

    Args:
        model: The model.
        layer: The head's block, from 0.
        head: The head.
        word: The query: a text of one token, such as ``" are"``, or an id.
        top: How many keys are listed.

    Returns:
        One row a key token, the most looked for first: ``place`` (from 0), ``token``, ``text`` (None without a
        tokenizer), ``score`` (the attention score before the softmax, positions left out), ``excess`` (the score less
        its mean over the vocabulary: what is the same for all keys changes no pattern).

    Raises:
        InputError: No such head, `word` is no token, `top` is no number of tokens, or the head has no QK circuit.
    """
    scores = _row(qk_circuit(model, layer, head), model, word)
    best = _largest(scores, top)
    return _listed(model, best, score=scores[best], excess=scores[best] - scores.mean())


@documented
def writes(model: HookedTransformer, layer: int, head: int, word: str | int, *, top: int = 10) -> pd.DataFrame:
    """The tokens whose logits a head raises and lowers most where it attends to `word`.

    Args:
        model: The model.
        layer: The head's block, from 0.
        head: The head.
        word: What it attends to: a text of one token, such as ``" are"``, or an id.
        top: How many tokens are listed of either kind.

    Returns:
        One row a token, ``raised`` before ``lowered`` and the most changed first: ``change``, ``place`` (from 0),
        ``token``, ``text`` (None without a tokenizer), ``logit`` (less the mean over the vocabulary, and times the last
        norm's scale: compare logits with each other, not with the model's).

    Raises:
        InputError: No such head, `word` is no token, `top` is no number of tokens, or the stream is no sum.
    """
    logits = _row(ov_circuit(model, layer, head), model, word)
    logits = logits - logits.mean()
    raised, lowered = _largest(logits, top), _largest(-logits, top)
    parts = [
        _listed(model, raised, logit=logits[raised]).assign(change="raised"),
        _listed(model, lowered, logit=logits[lowered]).assign(change="lowered"),
    ]
    return pd.concat(parts, ignore_index=True)[["change", "place", "token", "text", "logit"]]


def _row(circuit: FactoredMatrix, model: HookedTransformer, word: object) -> Float[Tensor, " d_vocab"]:
    """One token's row of a circuit."""
    ids = model.to_ids(word)
    if ids.ndim:
        raise InputError(f"word: expected one token, got a tensor of shape {tuple(ids.shape)}")
    return circuit.A[ids] @ circuit.B


def _largest(values: Float[Tensor, " d_vocab"], n: int) -> Int[Tensor, " token"]:
    if not 1 <= n <= len(values):
        raise InputError(f"top: expected 1 to {len(values)} tokens (the vocabulary), got {n}")
    return values.topk(n).indices


def _listed(model: HookedTransformer, ids: Int[Tensor, " token"], **columns: Float[Tensor, " token"]) -> pd.DataFrame:
    """One row a token, in this order."""
    frame = pd.DataFrame({"place": range(len(ids)), "token": ids.cpu().numpy(), "text": token_texts(model, ids)})
    return frame.assign(**{name: values.cpu().numpy() for name, values in columns.items()})
