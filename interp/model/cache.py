"""Keys and values of the positions already read, so that generation computes each position once."""

from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from interp.errors import InputError
from interp.shapes import HeadVectors, PaddingMask

SeenMask = Bool[Tensor, "batch key_pos"]
AllHeadVectors = Float[Tensor, "batch key_pos head d_head"]


@dataclass
class LayerCache:
    """One layer's keys and values ``[batch pos head d_head]``."""

    k: Tensor | None = None
    v: Tensor | None = None

    def extend(self, k: HeadVectors, v: HeadVectors) -> tuple[AllHeadVectors, AllHeadVectors]:
        """Append the new positions and return all of them."""
        if self.k is not None and self.v is not None:
            k, v = torch.cat([self.k, k], dim=1), torch.cat([self.v, v], dim=1)
        self.k, self.v = k, v
        return k, v


@dataclass
class KeyValueCache:
    """All layers' keys and values, and which of the positions read so far are padding.

    Pass one to the model's forward together with the new tokens only; it is extended in place.
    """

    layers: list[LayerCache]
    attention_mask: SeenMask | None = field(default=None)

    @classmethod
    def empty(cls, n_layers: int) -> "KeyValueCache":
        """A cache that has read nothing yet."""
        return cls([LayerCache() for _ in range(n_layers)])

    def mask_with(self, new: PaddingMask) -> SeenMask:
        """The mask of all positions: those read so far, then the `new` ones.

        Raises:
            InputError: `new` has another number of rows.
        """
        if self.attention_mask is None:
            return new
        if len(new) != len(self.attention_mask):
            raise InputError(f"cache: it holds {len(self.attention_mask)} prompts, got {len(new)}; start an empty one")
        return torch.cat([self.attention_mask, new], dim=1)
