"""Keys and values of the positions already read, so that generation computes each position once."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from interp.shapes import HeadVectors


@dataclass
class LayerCache:
    """One layer's keys and values ``[batch pos head d_head]``."""

    k: Tensor | None = None
    v: Tensor | None = None

    def extend(self, k: HeadVectors, v: HeadVectors) -> tuple[HeadVectors, HeadVectors]:
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
    attention_mask: Tensor | None = field(default=None)

    @classmethod
    def empty(cls, n_layers: int) -> "KeyValueCache":
        """A cache that has read nothing yet."""
        return cls([LayerCache() for _ in range(n_layers)])

    def extend_mask(self, new: Tensor) -> Tensor:
        """Append the new positions' mask ``[batch pos]`` and return that of all positions."""
        self.attention_mask = new if self.attention_mask is None else torch.cat([self.attention_mask, new], dim=1)
        return self.attention_mask
