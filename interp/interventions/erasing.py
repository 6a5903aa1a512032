"""A replacement that takes out of an activation what can be read of a feature."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from interp.errors import InputError
from interp.interventions.replacement import Replacement
from interp.interventions.rows import Batch, Row
from interp.model.devices import place_of
from interp.model.sites import Site
from interp.model.weights import hash_of_tensors


@dataclass(frozen=True)
class Eraser:
    """An affine map after which a feature can no longer be read out: ``x - L R (x - mu)``.

    What the k rows of R read of ``x``, beyond what they read on average, is written back with the k columns of L, and
    taken away. Where ``R L = 1`` this is a projection, and R reads the same number ever after. ``methods/erasure`` says
    which R and L erase what.

    Belrose et al. (2023), "LEACE: perfect linear concept erasure in closed form".
    """

    mu: Float[Tensor, " d"]  # what stays as it is
    right: Float[Tensor, "rank d"]  # R, row by row; in 64-bit floats, as are all three
    left: Float[Tensor, "rank d"]  # L, column by column

    @classmethod
    def nothing(cls, d: int) -> "Eraser":
        """Leaves activations of this width as they are."""
        empty = torch.zeros(0, d, dtype=torch.float64)
        return cls(empty.new_zeros(d), empty, empty)

    @property
    def rank(self) -> int:
        """How many directions are erased."""
        return len(self.right)

    def __call__(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """`x` without what R reads."""
        return _erased(x, self.mu, self.right, self.left)

    def packed(self, rank: int) -> Float[Tensor, "row d"]:
        """mu, R and L one below the other, with rows of zeros where the rank is lower than `rank`."""
        missing = self.right.new_zeros(rank - self.rank, len(self.mu))
        return torch.cat([self.mu[None], self.right, missing, self.left, missing])


@dataclass(frozen=True)
class Erase(Replacement):
    """Activations are mapped by erasers."""

    # by fold and site: every draw's packed erasers, one for each head where the site has heads
    maps: Mapping[tuple[int, Site], Float[Tensor, "draw ..."]] = field(repr=False)
    draws: int = field()  # how many erasers there are to average the effects of
    name: ClassVar[str] = "erase"

    def __post_init__(self) -> None:
        for _, site in self.maps:
            if "key_pos" in site.axes:
                raise InputError(f"erase: {site.name!r} is not a vector to read a feature out of; choose another site")

    @classmethod
    def of(cls, model: Any, erasers: Mapping[tuple[int, Site], Sequence[Sequence[Eraser]]]) -> "Erase":
        """Erasers for `model`, on its device and in its dtype."""
        device, dtype = place_of(model)
        rank = max(each.rank for draws in erasers.values() for heads in draws for each in heads)
        maps = {}
        for (fold, site), draws in erasers.items():
            packed = torch.stack([torch.stack([each.packed(rank) for each in heads]) for heads in draws])
            maps[fold, site] = (packed if "head" in site.axes else packed.squeeze(1)).to(device, dtype)
        return cls(maps, len(next(iter(erasers.values()))))

    @property
    def breadth(self) -> int:
        """mu, the rows of R and the columns of L, and what they take away."""
        return 1 + max(each.shape[-2] for each in self.maps.values())

    def _told(self) -> str:
        named = {f"{fold} {site.hook_name}": each for (fold, site), each in self.maps.items()}
        return f"{self.name} {hash_of_tensors(named)}"

    def values(self, site: Site, batch: Batch, draw: int) -> Float[Tensor, "_ 1 ... row d"]:
        """The maps of each row's fold, the same at all positions; one for all rows where these are of one fold."""
        folds = [row.fold for row in batch.rows]
        different = folds if len(set(folds)) > 1 else folds[:1]
        return torch.stack([self.maps[fold, site][draw] for fold in different])[:, None]

    def new(self, old: Float[Tensor, "*batch d"], values: Float[Tensor, "*#batch row d"]) -> Float[Tensor, "*batch d"]:
        """`old`, mapped."""
        rank = values.shape[-2] // 2
        return _erased(old, values[..., 0, :], values[..., 1 : 1 + rank, :], values[..., 1 + rank :, :])

    def group(self, row: Row, draw: int) -> Hashable:
        """Rows of one fold are mapped alike."""
        return row.fold


def _erased(
    x: Float[Tensor, "*batch d"],
    mu: Float[Tensor, "*#batch d"],
    right: Float[Tensor, "*#batch rank d"],
    left: Float[Tensor, "*#batch rank d"],
) -> Float[Tensor, "*batch d"]:
    read = torch.einsum("...d,...kd->...k", x - mu, right)
    return x - torch.einsum("...k,...kd->...d", read, left)
