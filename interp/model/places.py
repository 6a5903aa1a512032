"""Who stands where, and who may look at whom? What attention has to know beside its queries and keys."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from interp.model.cache import SeenMask

Mask = Bool[Tensor, "#batch 1 query_pos key_pos"]


@dataclass(frozen=True)
class Places:
    """The queries and keys of one attention.

    Attributes:
        query: The position of each query in its prompt, padding not counted.
        key: The same of each key.
        mask: True where a query may look; None where `causal` says all.
        causal: Whether queries and keys are the same tokens and, where there is no mask, each looks at itself and those
            before; otherwise, where there is no mask, at all.
    """

    query: Int[Tensor, "#batch query_pos"]
    key: Int[Tensor, "#batch key_pos"]
    mask: Mask | None
    causal: bool

    def allowed(self) -> Mask:
        """True where a query may look."""
        if self.mask is not None:
            return self.mask
        shape = (1, 1, self.query.shape[1], self.key.shape[1])
        everywhere = torch.ones(shape, dtype=torch.bool, device=self.query.device)
        return everywhere.tril() if self.causal else everywhere

    def distances(self) -> Int[Tensor, "#batch query_pos key_pos"]:
        """How far before its query each key stands; negative for keys behind."""
        return self.query[:, :, None] - self.key[:, None, :]


def looks_back_only(model: Any) -> bool:
    """Whether the attention of `model`, ours or one that follows TransformerLens' protocol, is causal."""
    own = getattr(getattr(model, "config", None), "causal", None)
    return getattr(model.cfg, "attention_dir", "causal") == "causal" if own is None else bool(own)


def positions_of(seen: SeenMask) -> Int[Tensor, "batch key_pos"]:
    """Where each token stands in its prompt, padding not counted."""
    return (seen.long().cumsum(-1) - 1).clamp(min=0)


def places_of(seen: SeenMask, n_new: int, *, causal: bool) -> Places:
    """The places of the last `n_new` of the tokens that are seen.

    A padding position may look at itself, so that its (unused) softmax stays finite.
    """
    positions = positions_of(seen)
    n = seen.shape[1]
    if bool(seen.all()) and (n == n_new or not causal):
        return Places(positions[:, n - n_new :], positions, None, causal)
    key = torch.arange(n, device=seen.device)
    query = key[n - n_new :, None]
    visible = seen[:, None, :] & (key <= query) if causal else seen[:, None, :].expand(-1, n_new, -1)
    return Places(positions[:, n - n_new :], positions, (visible | (key == query))[:, None], causal)
