"""QK and OV circuits: which tokens a head reads from which, what it writes of them, and which heads it reads.

With ``E`` for what the head reads of a stream that holds a token's embedding and nothing else, ``E = norm(W_E)``:

- **QK**: ``(E W_Q + b_Q) (E W_K + b_K)^T``, the score that a query token gives a key token;
- **OV**: ``E W_V W_O W_U``, the logits that a head writes which attends to a token.

Both are ``[d_vocab d_vocab]``, and kept as two thin factors (TransformerLens' ``FactoredMatrix``): ``circuit[ids].AB``
has the rows of some tokens, and norms, singular values and eigenvalues need the factors only.

- **Composition**: a later head reads what an earlier one wrote into its queries (Q), its keys (K) or its values (V):
  ``||W_OV W_QK||``, ``||W_OV W_QK^T||`` or ``||W_OV W_OV'||`` (Frobenius norms), over the product of the two matrices'
  own norms: 0 (the one writes nothing that the other reads) to 1 (two matrices of rank one that meet exactly).
  Unrelated matrices score above 0, too: with the stream between them turned at random, the mean square is
  ``1 / d_model``, whose root is the baseline.

Circuits leave out positions, embedded or within attention (with rotary positions or ALiBi, query and key are at the
same place); what earlier layers write; the scales of the last norm and of a norm of what is written, held at 1, so that
an OV circuit's logits are known up to a positive factor; and what a head writes whatever it attends to, by the biases
of its norm and of its values.

Elhage et al. (2021), "A mathematical framework for transformer circuits".

Examples:
    >>> from interp.residual.circuits import composition_scores, looks_for, ov_circuit, qk_circuit
    >>> model = interp.load_model()
    >>> qk_circuit(model, 2, 2).shape == ov_circuit(model, 2, 2).shape == (model.cfg.d_vocab, model.cfg.d_vocab)
    True
    >>> len(looks_for(model, 2, 2, " are", top=5).summary())
    5
    >>> sorted(composition_scores(model).summary()["kind"].unique())
    ['K', 'Q', 'V']
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor
from transformer_lens import FactoredMatrix

from interp.errors import InputError
from interp.model.attention import Bilinear, Dot
from interp.model.devices import documented
from interp.model.provenance import model_provenance
from interp.model.transformer import HookedTransformer
from interp.residual.readout import token_texts
from interp.residual.stream import require_additive
from interp.result import Result

PerHead = Float[Tensor, "head d_model d_head"]
HeadBias = Float[Tensor, "head d_head"]
COMPOSITION = ["sender_layer", "sender_head", "receiver_layer", "receiver_head", "kind", "score"]


@dataclass(frozen=True, eq=False, repr=False)
class CircuitReading(Result):
    """What was read off a model's weights, without any prompt.

    Attributes:
        examples: The rows that the function describes: of heads, of pairs of heads, or of tokens.
        provenance: How it was made; ``reading`` is the function's name.
    """

    shown_by: ClassVar[str] = "results.stream"

    def summary(self) -> pd.DataFrame:
        """The same rows: weights have no examples."""
        return self.examples


@documented
@torch.no_grad()
def qk_circuit(model: HookedTransformer, layer: int, head: int) -> FactoredMatrix:
    """The score that each query token gives each key token, as in ``hook_attn_scores``, before the softmax.

    Args:
        model: One of ours.
        layer: The head's layer, from 0.
        head: The head, from 0.

    Returns:
        ``[d_vocab d_vocab]``, query tokens by key tokens. ``A`` holds each token's query, ``B`` each token's key.

    Raises:
        InputError: No such head, one whose score is no product of a query and a key, or a stream that is no sum.
    """
    _require_head(model, layer, head)
    W_Q, W_K, b_Q, b_K = (each[head] for each in _qk(model, layer))
    read = _read_embeddings(model, layer)
    return FactoredMatrix(read @ W_Q + b_Q, (read @ W_K + b_K).T)


@documented
@torch.no_grad()
def ov_circuit(model: HookedTransformer, layer: int, head: int) -> FactoredMatrix:
    """The logits that the head writes where it attends to a token: what it moves, straight to the unembedding.

    Args:
        model: One of ours.
        layer: The head's layer, from 0.
        head: The head, from 0.

    Returns:
        ``[d_vocab d_vocab]``, tokens attended to by tokens written, in logits times the last norm's scale.

    Raises:
        InputError: No such head, or a stream that is no sum.
    """
    _require_head(model, layer, head)
    return next(_ov_circuits(model, layer, [head]))


@documented
@torch.no_grad()
def copying_scores(model: HookedTransformer) -> CircuitReading:
    """Whether each head copies: the sum of its OV circuit's eigenvalues over the sum of their magnitudes.

    A positive eigenvalue belongs to a mixture of tokens that the head makes likelier where it attends to them (Elhage
    et al. 2021, "copying"). Of the ``d_vocab`` eigenvalues all but ``d_head`` are zero, and these are computed from a
    ``[d_head d_head]`` product.

    Args:
        model: One of ours.

    Returns:
        One row a head: ``layer``, ``head``, ``copying``: 1 where the head copies whatever it attends to, -1 where it
        makes it less likely, NaN where it writes nothing.

    Raises:
        InputError: The stream is no sum.

    Examples:
        >>> from interp.residual.circuits import copying_scores
        >>> copying_scores(interp.load_model()).summary().nlargest(1, "copying")[["layer", "head"]].values.tolist()
        [[2, 1]]
    """
    require_additive(model)
    rows = [
        (layer, head, _copying(circuit))
        for layer in range(model.config.n_layers)
        for head, circuit in enumerate(_ov_circuits(model, layer, range(model.config.n_heads)))
    ]
    return _reading(model, "copying_scores", pd.DataFrame(rows, columns=["layer", "head", "copying"]))


@documented
@torch.no_grad()
def copying_score(model: HookedTransformer, layer: int, head: int) -> float:
    """One head's score, as ``copying_scores`` has it."""
    return _copying(ov_circuit(model, layer, head))


def _reading(model: HookedTransformer, name: str, rows: pd.DataFrame, **asked: Any) -> CircuitReading:
    return CircuitReading(rows, {**model_provenance(model), "reading": name, **asked})


def _copying(circuit: FactoredMatrix) -> float:
    eigenvalues = circuit.eigenvalues
    return float(eigenvalues.sum().real / eigenvalues.abs().sum())


def _ov_circuits(model: HookedTransformer, layer: int, heads: Iterable[int]) -> Iterator[FactoredMatrix]:
    """The circuits of a layer's heads, one after the other: each is as large as the vocabulary."""
    W_V, W_O = _ov(model, layer)
    # What the heads read of each embedding, less what they read of an empty stream: the norm's bias.
    varying, W_U = _read_embeddings(model, layer) - list(model.blocks)[layer].ln1.b, _wide(model.W_U)
    for head in heads:
        # What is added to the last stream, a sum, adds this to the logits, the last norm's scale held at 1.
        written = model.ln_final.share(W_O[head], torch.ones_like(W_O[head, :, :1])) @ W_U
        yield FactoredMatrix(varying @ W_V[head], written)


@documented
@torch.no_grad()
def composition_scores(model: HookedTransformer) -> CircuitReading:
    """How much of what each head writes each later head reads, by its weights alone.

    The receiver's norm is part of what it reads by, with its scale left out, which a score does not depend on. What
    LayerNorm lets nobody read, a writer's mean over ``d_model``, still counts in the writer's own norm: a model from
    ``center_writing_weights`` has none. Positions within attention are left out.

    Args:
        model: One of ours.

    Returns:
        One row a pair of heads in different layers and kind of composition: ``sender_layer``, ``sender_head``,
        ``receiver_layer``, ``receiver_head``, ``kind`` (``Q``, ``K``, ``V``), ``score`` (0 to 1, NaN where a head
        reads or writes nothing), ``baseline`` (the root mean square score of such matrices, one of them turned at
        random) and ``excess``, the difference. Empty for a model of one layer.

    Raises:
        InputError: The stream is no sum, or a score in attention is no product of a query and a key.
    """
    require_additive(model)
    circuits = [_circuits(model, layer) for layer in range(model.config.n_layers)]
    writes = [_unit(each["V"].collapse_l()) for each in circuits]
    rows = []
    for receiver, reads in enumerate(circuits):
        for kind, circuit in reads.items():
            read = _unit(circuit.collapse_r())
            for sender in range(receiver):
                met = torch.einsum("sem,rmf->sref", writes[sender], read).norm(dim=(-2, -1))
                for first, scores in enumerate(met.tolist()):
                    rows += [(sender, first, receiver, second, kind, score) for second, score in enumerate(scores)]
    baseline = model.config.d_model**-0.5
    frame = pd.DataFrame(rows, columns=COMPOSITION)
    frame = frame.assign(baseline=baseline, excess=frame["score"] - baseline)
    return _reading(model, "composition_scores", frame)


def _circuits(model: HookedTransformer, layer: int) -> dict[str, FactoredMatrix]:
    """A layer's ``W_QK``, its transpose and ``W_OV``, ``[head d_model d_model]``, as far as its norm lets them read."""
    norm, width = list(model.blocks)[layer].ln1, model.config.d_model
    unit = torch.eye(width, device=model.W_E.device, dtype=_wide(model.W_E).dtype)
    read = norm.share(unit, torch.ones_like(unit[:, :1]))  # the norm as a matrix, its scale held at 1
    W_Q, W_K, _, _ = _qk(model, layer)
    W_V, W_O = _ov(model, layer)
    scores = FactoredMatrix(read @ W_Q, (read @ W_K).transpose(-2, -1))
    return {"Q": scores, "K": scores.T, "V": FactoredMatrix(read @ W_V, W_O)}


def _unit(factor: Float[Tensor, "head a b"]) -> Float[Tensor, "head a b"]:
    """Each head's matrix over its norm; NaN where it is zero."""
    return factor / factor.norm(dim=(-2, -1), keepdim=True)


@documented
def looks_for(model: HookedTransformer, layer: int, head: int, word: str | int, *, top: int = 10) -> CircuitReading:
    """The key tokens to which a query word gives the highest scores.

    Args:
        model: One of ours.
        layer: The head's layer, from 0.
        head: The head, from 0.
        word: A text of one token, such as ``" are"``, or an id.
        top: How many are listed.

    Returns:
        One row a key token, the most looked for first: ``place`` (from 0), ``token``, ``text`` (None without a
        tokenizer), ``score`` (the attention score before the softmax, positions left out), ``excess`` (the score less
        its mean over the vocabulary: what is the same for all keys changes no pattern).

    Raises:
        InputError: No such head, `word` is no token, `top` is no number of tokens, or the head has no QK circuit.
    """
    scores = _row(qk_circuit(model, layer, head), model, word)
    rows = _largest(model, scores, top, "score")
    rows["excess"] = rows["score"] - float(scores.mean())
    return _reading(model, "looks_for", rows, layer=layer, head=head, word=_told(model, word))


@documented
def writes(model: HookedTransformer, layer: int, head: int, word: str | int, *, top: int = 10) -> CircuitReading:
    """The tokens whose logits a head raises, and lowers, most where it attends to a word.

    Args:
        model: One of ours.
        layer: The head's layer, from 0.
        head: The head, from 0.
        word: A text of one token, such as ``" are"``, or an id.
        top: How many are listed of each.

    Returns:
        One row a token, ``raised`` before ``lowered`` and the most changed first: ``change``, ``place`` (from 0),
        ``token``, ``text`` (None without a tokenizer), ``logit`` (less the mean over the vocabulary, and times the last
        norm's scale: compare logits with each other, not with the model's).

    Raises:
        InputError: No such head, `word` is no token, `top` is no number of tokens, or the stream is no sum.

    Examples:
        >>> from interp.residual.circuits import writes
        >>> writes(interp.load_model(), 2, 2, " keys", top=2).summary().query("change == 'raised'")["text"].tolist()
        [' themselves', ' their']
    """
    logits = _row(ov_circuit(model, layer, head), model, word)
    logits = logits - logits.mean()
    raised, lowered = _largest(model, logits, top, "logit"), _largest(model, -logits, top, "logit")
    parts = [raised.assign(change="raised"), lowered.assign(change="lowered", logit=-lowered["logit"])]
    rows = pd.concat(parts, ignore_index=True)[["change", "place", "token", "text", "logit"]]
    return _reading(model, "writes", rows, layer=layer, head=head, word=_told(model, word))


def _told(model: HookedTransformer, word: str | int) -> str:
    """The word that was asked for, as text where there is a tokenizer."""
    (text,) = token_texts(model, model.to_ids(word)[None])
    return f"#{word}" if text is None else text


def _row(circuit: FactoredMatrix, model: HookedTransformer, word: object) -> Float[Tensor, " d_vocab"]:
    """One token's row of a circuit."""
    ids = model.to_ids(word)
    if ids.ndim:
        raise InputError(f"word: expected one token, got a tensor of shape {tuple(ids.shape)}")
    return circuit.A[ids] @ circuit.B


def _largest(model: HookedTransformer, values: Float[Tensor, " d_vocab"], top: int, name: str) -> pd.DataFrame:
    """One row for each of the tokens with the largest values."""
    if not 1 <= top <= len(values):
        raise InputError(f"top: expected 1 to {len(values)} tokens (the vocabulary), got {top}")
    best = values.topk(top)
    columns = {"place": range(top), "token": best.indices.cpu().numpy(), "text": token_texts(model, best.indices)}
    return pd.DataFrame({**columns, name: best.values.cpu().numpy()})


def _require_head(model: HookedTransformer, layer: int, head: int) -> None:
    require_additive(model)
    for name, value, n in (("layer", layer, model.config.n_layers), ("head", head, model.config.n_heads)):
        if not 0 <= value < n:
            raise InputError(f"{name}: expected 0 to {n - 1}, got {value}")


def _qk(model: HookedTransformer, layer: int) -> tuple[PerHead, PerHead, HeadBias, HeadBias]:
    """``W_Q``, ``W_K``, ``b_Q``, ``b_K`` of a layer's heads; what compares queries with keys goes into ``W_Q``."""
    attn, config = list(model.blocks)[layer].attn, model.config
    if config.qk_norm != "none" or config.score_cap is not None:
        why = "normalises queries and keys" if config.qk_norm != "none" else "caps scores"
        raise InputError(
            f"scores: expected a product of query and key, but this model {why}, so it has no QK circuit; read the "
            "attention pattern instead"
        )
    W_Q, b_Q = _wide(attn.W_Q), _wide(attn.b_Q)
    W_K, b_K = (_wide(each).repeat_interleave(attn.group, dim=0) for each in (attn.W_K, attn.b_K))
    if isinstance(attn.score, Dot):
        return W_Q * attn.score.scale, W_K, b_Q * attn.score.scale, b_K
    if isinstance(attn.score, Bilinear):
        between = _wide(attn.score.w_score)
        return W_Q @ between, W_K, (b_Q[:, None] @ between)[:, 0], b_K
    raise InputError(
        "scores: expected a product of query and key ('scaled_dot', 'dot', 'bilinear'), got 'additive', which has no "
        "QK circuit; read the attention pattern instead"
    )


def _ov(model: HookedTransformer, layer: int) -> tuple[PerHead, Float[Tensor, "head d_head d_model"]]:
    """``W_V`` and ``W_O`` of a layer's heads; the bias ``b_V W_O`` is the same whatever a head attends to."""
    block = list(model.blocks)[layer]
    attn, W_O = block.attn, _wide(block.attn.W_O)
    W_O = block.ln1_post.share(W_O, torch.ones_like(W_O[..., :1]))  # as of the last norm, the scale is held at 1
    return _wide(attn.W_V).repeat_interleave(attn.group, dim=0), W_O


def _read_embeddings(model: HookedTransformer, layer: int) -> Float[Tensor, "d_vocab d_model"]:
    """What a layer's heads read of a stream that holds nothing but a token's embedding, for every token."""
    every = torch.arange(model.config.d_vocab, device=model.W_E.device)
    return _wide(list(model.blocks)[layer].read_by_attention(model.ln_embed(model.embed(every[None]))))[0]


def _wide(tensor: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """In at least 32-bit floats: half precision has no eigenvalues, and rounds sums over the vocabulary."""
    return tensor.detach().to(torch.promote_types(tensor.dtype, torch.float32))
