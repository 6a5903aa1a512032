"""What is changed where? Heads of one layer, at some or all positions, and what replaces them."""

from dataclasses import dataclass

import torch

from interp.errors import InputError
from interp.interventions.replacement import Replacement
from interp.interventions.rows import Batch
from interp.model.sites import Site
from interp.shapes import HeadVectors


@dataclass(frozen=True)
class Intervention:
    """Replace the ``z`` of heads, the attention-weighted values before ``W_O``.

    Attributes:
        layer: The block.
        heads: Heads of this block.
        replacement: Where the new values come from.
        positions: Token positions that are replaced, counted from 0; None for all.

    Raises:
        InputError: No heads, or a head or position that is negative or named twice.
    """

    layer: int
    heads: tuple[int, ...]
    replacement: Replacement
    positions: tuple[int, ...] | None = None

    def __post_init__(self):
        for name, given in (("heads", self.heads), ("positions", self.positions)):
            if given is not None and (not given or min(given) < 0 or len(set(given)) < len(given)):
                raise InputError(f"{name}: expected different numbers from 0, at least one, got {given}")

    @property
    def hook_name(self) -> str:
        """TransformerLens' name of the point."""
        return Site("z", self.layer).hook_name

    def apply(self, z: HeadVectors, batch: Batch, draw: int) -> HeadVectors:
        """A new ``z`` with the replacement in place; the given one stays as it is."""
        positions = range(z.shape[1]) if self.positions is None else self.positions
        pos = torch.tensor(list(positions), device=z.device)[:, None]
        head = torch.tensor(self.heads, device=z.device)
        changed = z.clone()
        changed[:, pos, head] = self.replacement.values(self.layer, batch, draw).to(z).expand_as(z)[:, pos, head]
        return changed

    def reaches(self, metric_start: int, n_layers: int) -> bool:
        """Whether a change here can reach logits from position `metric_start` on.

        Attention is causal and reads what earlier layers wrote: the last layer's ``z`` moves the
        logits of its own position only; an earlier layer's those of all later positions.
        """
        if self.positions is None or self.layer < n_layers - 1:
            return True
        return any(position >= metric_start for position in self.positions)
