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

    Pass one to the model's forward together with the new tokens only; it is extended when the pass has succeeded.
    """

    layers: list[LayerCache]
    attention_mask: SeenMask | None = field(default=None)

    @classmethod
    def empty(cls, n_layers: int) -> "KeyValueCache":
        """A cache that has read nothing yet."""
        return cls([LayerCache() for _ in range(n_layers)])

    def step(self, new: PaddingMask, n_layers: int) -> tuple["KeyValueCache", SeenMask]:
        """A cache for one pass over `new` positions, and the mask of all; ``commit`` takes over what the pass has read.

        A pass that fails on its way through the layers thus leaves this cache as it was.

        Args:
            new: True for tokens, False for padding.
            n_layers: The model's.

        Raises:
            InputError: The model has another number of layers, or `new` another number of rows.
        """
        if len(self.layers) != n_layers:
            raise InputError(
                f"cache: it holds {len(self.layers)} layers, the model has {n_layers}; "
                f"start with KeyValueCache.empty({n_layers})"
            )
        before = new[:, :0] if self.attention_mask is None else self.attention_mask
        if len(new) != len(before):
            raise InputError(f"cache: it holds {len(before)} prompts, got {len(new)}; start an empty one")
        seen = torch.cat([before, new], dim=1)
        return KeyValueCache([LayerCache(layer.k, layer.v) for layer in self.layers], seen), seen

    def commit(self, step: "KeyValueCache") -> None:
        """Take over what a finished pass has read into its `step`."""
        self.layers, self.attention_mask = step.layers, step.attention_mask
