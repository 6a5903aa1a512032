"""Do two heads work together? Composition scores of every earlier head with every later one (Elhage et al. 2021).

A later head reads what an earlier one wrote into its queries (Q), its keys (K) or its values (V):
``||W_OV W_QK||``, ``||W_OV W_QK^T||`` or ``||W_OV W_OV'||`` (Frobenius norms), over the product of the two matrices'
own norms. 1 is the most, for two matrices of rank one that meet exactly; 0 means that the one writes nothing that the
other reads.

Two matrices that have nothing to do with each other score above 0 as well. Were the stream turned at random between
them, the mean square of their score would be exactly ``1 / d_model``; its root is the baseline.
"""

from typing import Literal

import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor
from transformer_lens import FactoredMatrix

from interp.model.devices import documented
from interp.model.transformer import HookedTransformer
from interp.residual.head_weights import ov_weights, qk_weights, reading_matrix
from interp.residual.stream import require_additive

Kind = Literal["Q", "K", "V"]
COLUMNS = ["sender_layer", "sender_head", "receiver_layer", "receiver_head", "kind", "score"]


@documented
@torch.no_grad()
def composition_scores(model: HookedTransformer) -> pd.DataFrame:
    """How much of what each head writes each later head reads, by its weights alone.

    The receiver's norm is part of what it reads by, with its scale left out, which a score does not depend on. What
    LayerNorm lets nobody read, a writer's mean over ``d_model``, still counts in the writer's own norm: a model from
    ``center_writing_weights`` has none. Positions within attention are left out.

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
                rows += [(sender, first, receiver, second, kind, score) for first, second, score in _entries(met)]
    baseline = model.config.d_model**-0.5
    frame = pd.DataFrame(rows, columns=COLUMNS)
    return frame.assign(baseline=baseline, excess=frame["score"] - baseline)


def _circuits(model: HookedTransformer, layer: int) -> dict[Kind, FactoredMatrix]:
    """A layer's ``W_QK``, its transpose and ``W_OV``, ``[head d_model d_model]``, as far as its norm lets them read."""
    read, heads = reading_matrix(model, layer), range(model.config.n_heads)
    qk, ov = [qk_weights(model, layer, head) for head in heads], [ov_weights(model, layer, head) for head in heads]
    queries = read @ torch.stack([each.W_Q for each in qk])
    keys = read @ torch.stack([each.W_K for each in qk])
    values = read @ torch.stack([each.W_V for each in ov])
    scores = FactoredMatrix(queries, keys.transpose(-2, -1))
    return {"Q": scores, "K": scores.T, "V": FactoredMatrix(values, torch.stack([each.W_O for each in ov]))}


def _unit(factor: Float[Tensor, "head a b"]) -> Float[Tensor, "head a b"]:
    """Each head's matrix over its norm; NaN where it is zero."""
    return factor / factor.norm(dim=(-2, -1), keepdim=True)


def _entries(scores: Float[Tensor, "sender receiver"]) -> list[tuple[int, int, float]]:
    return [(first, second, score) for first, row in enumerate(scores.tolist()) for second, score in enumerate(row)]
