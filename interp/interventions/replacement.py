"""What is put in an activation's place? Nothing, an average, or what it is on another sentence.

- **zero**: it becomes 0 (a head's ``z``: its biases stay).
- **mean**: the mean over all non-padding positions (special tokens hold some) of a reference set.
- **positional mean**: the same per layout and position; refused where positions do not mean the
  same thing.
- **template mean**: over all positions of the reference examples of the same template.
- **resample**: the activation of another reference example of the same template and length, never of
  the example itself, and the same for all examples of a unit. With K draws, K forward passes are
  made and their *effects* are averaged: averaging activations would be a positional mean.
- **patch**: the activation of the unit's other example, which ``Row.source`` names.
- **word**: what a head computes from another run's keys and values at the related word (``word_exchange.py``).
- **add**: something is added to it.
- **erase**: what can be read of a feature is taken out of it.

The reference set is ``task.references[unit.fold]``: prompts *and* counterfactuals, so that a mean
does not leak the answer, of a split that the unit is not in. It is run once for all layers.

Chan et al. (2022), "Causal scrubbing" (resampling); Wang et al. (2022), "Interpretability in the
wild" (mean ablation per template); Zhang & Nanda (2024), "Towards best practices of activation
patching" (how these differ).
"""

import hashlib
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from interp.errors import InputError
from interp.interventions.provenance import origin_of
from interp.interventions.rows import Batch, Row, read_source
from interp.model.devices import place_of
from interp.model.sites import Site
from interp.model.weights import hash_of_tensors


class Replacement:
    """Where new values come from; unless it says otherwise, they take the place of what was there.

    Attributes:
        name: What it is called, as in ``replacement="mean"``.
        draws: How many different replacements there are to average the effects of.
        from_source: Whether the values are those of ``Row.source``, and so the row's own up to where the tokens differ.
    """

    name: str
    draws: int = 1
    from_source: bool = False

    @property
    def keeps(self) -> tuple[Site, ...]:
        """Activations of a batch that it keeps while cells are run."""
        return ()

    @property
    def breadth(self) -> int:
        """How many numbers its values have for each number that they change."""
        return 1

    @property
    def identity(self) -> str | None:
        """Equal for those that have the same values for the same model and rows, in other processes, too.

        None where nobody can tell, as of somebody's own class.
        """
        return self._told() if type(self).__module__.startswith("interp.") else None

    def _told(self) -> str | None:
        """What tells it from others of its class; None where nothing does."""
        return None

    def values(self, site: Site, batch: Batch, draw: int) -> Float[Tensor, "..."]:
        """What new activations at `site` are made of, in a shape that broadcasts to it, perhaps with axes within."""
        raise NotImplementedError

    def new(self, old: Float[Tensor, "..."], values: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """What `old` becomes with `values`, in a shape that broadcasts to it; `old` stays as it is."""
        return values

    def group(self, row: Row, draw: int) -> Hashable:
        """Equal for rows that get equal values where they have read equal tokens; None where nothing is known."""
        return None


class Later(Mapping[Any, Float[Tensor, "..."]]):
    """Activations of `model` that are computed when the first of them is asked for, so that a kept result needs none.

    The last bits depend on the `memory_budget`, the bytes that are held meanwhile; None for the device's default.
    Another process gets them computed, with the ``origin_of`` the model in its place.
    """

    def __init__(
        self, compute: Callable[[], Mapping[Any, Float[Tensor, "..."]]], model: Any, memory_budget: int | None
    ):
        self._compute, self.model, self.memory_budget = compute, model, memory_budget

    @cached_property
    def _computed(self) -> Mapping[Any, Float[Tensor, "..."]]:
        return self._compute()

    def __getitem__(self, key: Any) -> Float[Tensor, "..."]:
        return self._computed[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._computed)

    def __len__(self) -> int:
        return len(self._computed)

    def __reduce__(self) -> tuple[Any, ...]:
        origin = self.model if isinstance(self.model, str) else origin_of(self.model)
        return Later, (partial(dict, dict(self._computed)), origin, self.memory_budget)


@dataclass(frozen=True)
class Zero(Replacement):
    """Every value becomes 0."""

    name: ClassVar[str] = "zero"
    reference_hash: ClassVar[None] = None

    def _told(self) -> str:
        return self.name

    def values(self, site: Site, batch: Batch, draw: int) -> Float[Tensor, "..."]:
        """One 0 for all."""
        return torch.zeros([1] * len(site.axes), device=batch.tokens.device)

    def group(self, row: Row, draw: int) -> Hashable:
        """All rows are alike."""
        return ()


ALIKE: Mapping[str, Callable[[Row], Hashable]] = {
    "mean": lambda row: row.fold,
    "template_mean": lambda row: (row.fold, row.template),
    "positional_mean": lambda row: (row.fold, row.layout, len(row.tokens)),
}
"""The kinds of mean, each with what rows have in common that share one."""


@dataclass(frozen=True)
class Means(Replacement):
    """Averages over the reference examples that are alike: over all their positions, or position by position.

    They hold for whatever is measured; resamples belong to the rows that they were drawn for.

    Attributes:
        means: By what rows have in common (``ALIKE``) and site, without the axis of the batch; of a positional mean,
            with an axis of position.
        reference_hash: Of the reference sets.
        name: Which mean.
    """

    means: Mapping[tuple[Hashable, Site], Float[Tensor, "..."]] = field(repr=False)
    reference_hash: str
    name: str = "mean"

    def _told(self) -> str:
        return f"{self.name} of {self.reference_hash}{_given(self.means)}"

    def group(self, row: Row, draw: int) -> Hashable:
        """Rows that share a mean are alike."""
        return ALIKE[self.name](row)

    def values(self, site: Site, batch: Batch, draw: int) -> Float[Tensor, "batch ..."]:
        """The mean of each row's group."""
        found = torch.stack([self.means[self.group(row, 0), site] for row in batch.rows])
        return found if self.name == "positional_mean" else found[:, None]


@dataclass(frozen=True)
class Resample(Replacement):
    """The activation of another reference example of the same template and length.

    Attributes:
        activations: By reference row and site, without the batch's axis.
        donors: By example and length, one reference row per draw. The examples of a unit, and the right and the wrong
            sentence of an example, get the same donor where they are equally long.
        draws: How many resamples.
        reference_hash: Of the reference sets.
    """

    activations: Mapping[tuple[int, Site], Float[Tensor, "..."]] = field(repr=False)
    donors: Mapping[tuple[int, int], Sequence[int]] = field(repr=False)
    draws: int = field()  # without the default of one
    reference_hash: str
    name: ClassVar[str] = "resample"

    def _told(self) -> str:
        drawn = hashlib.sha256(repr(sorted((row, tuple(donors)) for row, donors in self.donors.items())).encode())
        return f"{self.name} of {self.reference_hash} by {drawn.hexdigest()}{_given(self.activations)}"

    def values(self, site: Site, batch: Batch, draw: int) -> Float[Tensor, "batch ..."]:
        """The `draw`-th donor's activations, row by row."""
        return torch.stack([self.activations[self.group(row, draw), site] for row in batch.rows])

    def group(self, row: Row, draw: int) -> int:
        """Rows are alike that have one donor: the reference row that stands in for them."""
        return self.donors[row.example, len(row.tokens)][draw]


@dataclass(frozen=True)
class Patch(Replacement):
    """The same activation in another run: that of ``Row.source``.

    The last batch's activations are kept, so that one forward pass serves all cells.
    """

    model: Any = field(repr=False)  # follows TransformerLens' protocol
    sites: tuple[Site, ...] = field(repr=False)  # what cells are going to ask for
    name: ClassVar[str] = "patch"
    from_source: ClassVar[bool] = True
    _kept: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def _told(self) -> str:  # ``sources_of`` says whose activations they are
        return self.name

    @property
    def keeps(self) -> tuple[Site, ...]:
        """What is kept of a batch's sources."""
        return self.sites

    def __getstate__(self) -> dict[str, Any]:
        """Without what another process runs for itself."""
        return vars(self) | {"_kept": {}}

    def read(self, batch: Batch) -> Mapping[str, Tensor]:
        """The source runs' activations at all sites, by hook name."""
        return read_source(self.model, batch, (each.hook_name for each in self.sites))

    def values(self, site: Site, batch: Batch, draw: int) -> Float[Tensor, "batch ..."]:
        """What takes the place of what is at `site`."""
        if self._kept.get("batch") is not batch:
            self._kept.update(batch=batch, activations=self.read(batch))
        activations: Mapping[str, Tensor] = self._kept["activations"]
        return activations[site.hook_name]

    def group(self, row: Row, draw: int) -> Hashable:
        """Rows are alike where their sources have read equal tokens, too; sharing of prefixes compares these."""
        return ()


@dataclass(frozen=True)
class Add(Replacement):
    """Something is added."""

    # what, from the site and the batch; in a shape that broadcasts to the site's
    added: Callable[[Site, Batch], Float[Tensor, "..."]] = field(repr=False)
    # whether it is the difference to ``Row.source``, and so nothing up to where the tokens differ
    from_source: bool = False
    keeps: tuple[Site, ...] = field(default=(), repr=False)  # activations that are kept of a run and of its source
    # what is added, in words that nothing else is called by; None where the sweep is not to be kept
    identity: str | None = None
    name: ClassVar[str] = "add"

    def values(self, site: Site, batch: Batch, draw: int) -> Float[Tensor, "..."]:
        """What is added."""
        return self.added(site, batch)

    def new(self, old: Float[Tensor, "..."], values: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """The sum."""
        return old + values


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


def _given(activations: Mapping[Any, Float[Tensor, "..."]]) -> str:
    """What tells activations from others of the same reference set and model: their hash, where they are given."""
    if isinstance(activations, Later):
        return "" if activations.memory_budget is None else f" within {activations.memory_budget} bytes"
    return f" given as {hash_of_tensors({repr(key): value for key, value in activations.items()})}"


def sources_of(replacement: Replacement) -> list[Any]:
    """The models that its values come from; of what was computed in another process, their ``origin_of``."""
    held = [each.model for each in vars(replacement).values() if isinstance(each, Later)]
    return [*held, replacement.model] if isinstance(replacement, Patch) else held


def compute_now(replacement: Replacement) -> None:
    """Compute a replacement's activations before memory is taken for anything else."""
    for held in vars(replacement).values():
        if isinstance(held, Later):
            len(held)  # which computes them
