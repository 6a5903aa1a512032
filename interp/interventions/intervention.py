"""Interventions, the cells that they are made in, and whether they did anything.

An intervention is a site, the heads or neurons of it, the positions, and what replaces them. Every example gets a
status, and a cell that did nothing gets a warning.
"""

import math
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Num
from torch import Tensor

from interp.arguments import named_arguments
from interp.errors import InputError
from interp.interventions.replacement import Erase, Replacement
from interp.interventions.rows import Batch, Row
from interp.model.devices import sent
from interp.model.sites import SITES, Site, require_sites

Positions = tuple[int, ...] | Mapping[int, tuple[int, ...]] | None
UNWRITTEN = ("embed", "pos_embed", "scores")
"""Sites that sweeps do not write: the first two are ``resid_pre`` of layer 0, and scores show only in the pattern."""
WRITTEN = tuple(name for name in SITES if name not in UNWRITTEN)
"""Sites that sweeps write."""

READ_BY_LATER_POSITIONS = ("resid_pre", "k", "v", "k_input", "v_input")
"""Sites of a layer whose value at a position is read by that layer's attention from later positions."""

READ_THROUGH_KEY_HEADS = ("k", "v", "k_input", "v_input")
"""Sites with one entry for each head of keys and values, of which there may be fewer than of queries."""


@named_arguments
def heads_at(site: str, model: Any) -> int:
    """How many heads a site of `model` has."""
    shared = getattr(model.cfg, "n_key_value_heads", None)
    n: int = shared if shared and site in READ_THROUGH_KEY_HEADS else model.cfg.n_heads
    return n


def has_values_by_head(model: Any) -> bool:
    """Whether the model shows each head's own values."""
    known = getattr(model, "hook_dict", None)  # TransformerLens' protocol does not promise one
    return heads_at("v", model) == model.cfg.n_heads and (known is None or Site("v", 0).hook_name in known)


def written_sites(model: Any, layers: Iterable[int]) -> list[Site]:
    """What heads write, and each head's own values where the model shows them."""
    names = ["z", "v"] if has_values_by_head(model) else ["z"]
    return [Site(name, layer) for name in names for layer in layers]


@dataclass(frozen=True)
class Intervention:
    """Replace an activation, or a part of it.

    Attributes:
        site: The point, with its layer.
        replacement: Where the new values come from.
        heads: Heads, at a site that has them; None for all.
        positions: Token positions that are replaced, counted from 0; None for all; or those of each example, by its
            number. At ``pattern`` they are the positions that attend.
        units: Neurons, at ``mlp_pre`` and ``mlp_post``; None for all.
        keys: Positions that are attended to, at ``pattern``; None for all.

    Raises:
        InputError: A site that is not written, something chosen that the site does not have, or a number that is
            negative or named twice.
    """

    site: Site
    replacement: Replacement
    heads: tuple[int, ...] | None = None
    positions: Positions = None
    units: tuple[int, ...] | None = None
    keys: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.site.name in UNWRITTEN:
            raise InputError(f"site {self.site.name!r}: sweeps do not write there; use resid_pre, or pattern")
        for name, axis in (("heads", "head"), ("units", "d_mlp"), ("keys", "key_pos")):
            chosen = getattr(self, name)
            if chosen is not None and axis not in self.site.axes:
                raise InputError(f"{name}: site {self.site.name!r} has none; leave them out")
            _require_numbers(name, chosen)
        if self.units is not None and isinstance(self.replacement, Erase):
            raise InputError("units: an eraser reads all neurons of a layer together; leave them out")
        fixed = self.positions if isinstance(self.positions, tuple | None) else None
        _require_numbers("positions", fixed)

    @property
    def places(self) -> Hashable:
        """Equal for interventions at the same positions of every row; a mapping by example is equal to itself alone."""
        return self.positions if isinstance(self.positions, tuple | None) else id(self.positions)

    def check(self, model: Any) -> None:
        """Refuse heads, neurons, layers and sites that `model` does not have; the message says which there are."""
        sizes = {
            "layer": ((self.site.layer,), model.cfg.n_layers),
            "heads": (self.heads, heads_at(self.site.name, model)),
            "units": (self.units, getattr(model.cfg, "d_mlp", None)),
        }
        for name, (chosen, n) in sizes.items():
            if n is not None and chosen is not None and max(each or 0 for each in chosen) >= n:
                raise InputError(f"{name}: the model has {n} (0 to {n - 1}), got {chosen}; choose among these")
        require_sites(model, [self.site], WRITTEN)

    def at(self, row: Row) -> tuple[int, ...]:
        """The positions of `row` that are replaced.

        Raises:
            InputError: It does not have one of them, or something is patched that nothing in the source corresponds to.
        """
        n = len(row.tokens)
        if self.keys is not None and max(self.keys) >= n:
            raise InputError(f"keys: {row.run.example.text!r} has {n} tokens (0 to {n - 1}), got {self.keys}")
        positions = self.positions[row.example] if isinstance(self.positions, Mapping) else self.positions
        if positions is None:
            positions = tuple(range(n))
        elif positions and not 0 <= min(positions) <= max(positions) < n:
            raise InputError(
                f"position {max(positions)}: {row.run.example.text!r} has {n} tokens (0 to {n - 1}); choose among these"
            )
        if self.replacement.from_source and any(row.source_positions[each] < 0 for each in positions):
            raise InputError(
                f"patching {row.run.example.prompt!r} ({len(row.run.prompt)} tokens) from a prompt of another length "
                f"({len((row.source or row.run).prompt)}): some positions correspond to none there; patch "
                "by pos, which leaves these out, or leave such items out"
            )
        return positions

    def where(self, batch: Batch) -> Bool[Tensor, "batch pos"]:
        """Which positions of the batch are replaced."""
        return batch.marked(self.at)

    def values(self, batch: Batch, draw: int) -> Float[Tensor, "..."]:
        """The replacement's values, with all axes of the site, in a shape that broadcasts to its activation's."""
        found = self.replacement.values(self.site, batch, draw % self.replacement.draws)
        return found[(None,) * (len(self.site.axes) - found.ndim)]

    def reaches(self, row: Row, sight: Sequence[float], *, causal: bool = True) -> bool:
        """Whether a change here can reach the logits that decide.

        Attention reads what earlier layers wrote: what the last layer computes after its keys and values moves the
        logits of its own position only. What is earlier moves those of later positions, as far as the layers from there
        on can see (`sight`, by layer), and, where attention is not `causal`, of earlier ones.
        """
        first = row.run.critical
        last = len(row.tokens) - 1 - len(row.run.after) - bool(row.continuation)
        far = self.carried(sight)
        return any(first - far <= each <= (last if causal else last + far) for each in self.at(row))

    def carried(self, sight: Sequence[float]) -> float:
        """How many positions the attention of this layer and later ones carries a change at most."""
        return math.fsum(sight[(self.site.layer or 0) + (self.site.name not in READ_BY_LATER_POSITIONS) :])

    def apply(self, old: Float[Tensor, "..."], batch: Batch, draw: int) -> Float[Tensor, "..."]:
        """A new activation with the replacement in place; the given one stays as it is."""
        return self.put(old, batch, self.values(batch, draw))

    def put(self, old: Float[Tensor, "..."], batch: Batch, values: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """The same, of these values."""
        return torch.where(self._mask(old, batch), self.replacement.new(old, values.to(old)), old)

    def _mask(self, old: Float[Tensor, "..."], batch: Batch) -> Bool[Tensor, "..."]:
        """True where `old` is replaced, in a shape that broadcasts to it."""
        axes = self.site.axes
        mask = self.where(batch)
        position = axes.index("query_pos" if "query_pos" in axes else "pos")
        shape = [1] * len(axes)
        shape[0], shape[position] = mask.shape
        mask = mask.reshape(shape)
        for axis, chosen in (("head", self.heads), ("d_mlp", self.units), ("key_pos", self.keys)):
            if chosen is not None:
                mask = mask & _one_hot(axes.index(axis), chosen, old)
        return mask


def changed_positions(
    interventions: Sequence[Intervention], row: Row, *, causal: bool = True
) -> tuple[tuple[int, ...], ...]:
    """For each of a cell's interventions, the positions of `row` where it can change anything.

    Where all patch in the source's activations, that is where the source has read other tokens: from the first one on
    or, where attention is not `causal`, anywhere if there is one. After anything else, a patch changes what the other
    intervention has changed.
    """
    start = 0
    if all(each.replacement.from_source for each in interventions):
        start = row.first_difference
        start = 0 if start < len(row.tokens) and not causal else start
    return tuple(tuple(position for position in each.at(row) if position >= start) for each in interventions)


ROUNDING = {
    torch.float64: 32 * 2.0**-52,
    torch.float32: 32 * 2.0**-23,
    torch.float16: 2.0**-10,
    torch.bfloat16: 2.0**-7,
}
"""Relative changes that the order of a sum can make, by dtype."""


def squared_change(old: Float[Tensor, "entry ..."], new: Float[Tensor, "entry ..."]) -> Float[Tensor, " entry"]:
    """``||a' - a||^2`` of every entry; 0 where rounding explains it, relative to the part that is replaced."""
    # In 16 bits the squares of small changes would vanish.
    wide = torch.promote_types(old.dtype, torch.float32)
    difference = (new - old).to(wide)
    moved = difference.square().reshape(len(old), -1).sum(1)
    replaced = torch.where(difference != 0, old, 0).to(wide).square().reshape(len(old), -1).sum(1)
    return torch.where(moved > ROUNDING[old.dtype] ** 2 * replaced, moved, 0)


def _one_hot(axis: int, chosen: tuple[int, ...], like: Tensor) -> Tensor:
    if max(chosen) >= like.shape[axis]:
        raise InputError(f"{chosen}: the activation has {like.shape[axis]} (0 to {like.shape[axis] - 1}) there")
    mask = np.zeros(like.shape[axis], dtype=bool)
    mask[list(chosen)] = True
    return sent(mask, like.device).reshape([-1 if each == axis else 1 for each in range(like.ndim)])


def _require_numbers(name: str, chosen: tuple[int, ...] | None) -> None:
    if chosen is not None and (not chosen or min(chosen) < 0 or len(set(chosen)) < len(chosen)):
        raise InputError(f"{name}: expected different numbers from 0, at least one, got {chosen}")


@dataclass(frozen=True)
class Cell:
    """Interventions that are made together."""

    labels: Mapping[str, Hashable]  # what the cell is called: ``layer``, ``head``, ``pos`` ...
    interventions: tuple[Intervention, ...]


ABSENT = "absent"
"""Of examples that do not have the positions that a cell is about: they are not measured."""


class Statuses:
    """Says what a cell did to each example; the statuses are those of ``SweepResult``."""

    def __init__(self, rows: Sequence[Row], sight: Sequence[float], *, causal: bool):
        self._rows, self._sight, self._causal = rows, sight, causal
        self._n_examples = 1 + max(row.example for row in rows)
        self._known: dict[Hashable, Bool[np.ndarray, " example"]] = {}

    def of(
        self,
        interventions: Sequence[Intervention],
        fired: Num[np.ndarray, " example"],
        change_norm: Float[np.ndarray, " example"],
    ) -> np.ndarray:
        """One status per example, by how often the interventions acted and how far they moved the activation."""
        places = [each.places for each in interventions]
        present = self._by_example(("present", *places), lambda row: any(each.at(row) for each in interventions))
        moved = change_norm > 0
        if all(each.replacement.from_source for each in interventions):  # where that run has read other tokens
            differs = lambda row: any(changed_positions(interventions, row, causal=self._causal))  # noqa: E731
            moved &= self._by_example(("moves", *places), differs)
        reached = np.any([self._reached(each) for each in interventions], axis=0)
        made = [each.replacement for each in interventions]
        unmoved = "identical input" if any(each.from_source or each.name == "resample" for each in made) else "no-op"
        status = np.select(
            [~present, fired == 0, ~moved, ~reached], [ABSENT, "no-op", unmoved, "unreachable"], "changed"
        )
        return status.astype(object)

    def _reached(self, each: Intervention) -> Bool[np.ndarray, " example"]:
        key = ("reached", each.carried(self._sight), each.places)
        return self._by_example(key, lambda row: each.reaches(row, self._sight, causal=self._causal))

    def _by_example(self, key: Hashable, holds: Callable[[Row], bool]) -> Bool[np.ndarray, " example"]:
        if key not in self._known:
            self._known[key] = np.zeros(self._n_examples, dtype=bool)
            for row in self._rows:
                self._known[key][row.example] |= holds(row)
        return self._known[key]


def warn_of_no_ops(frame: pd.DataFrame, labels: Sequence[str], *, twins: bool) -> None:
    """Warn of cells that changed nothing, and of different heads that claim changes and give the same bits.

    `labels` are the columns that name a cell; `twins` says whether equal bits mean anything, as of 0 and 1 they do not.
    """
    seen: dict[bytes, tuple[object, ...]] = {}
    no_op, changed = ((frame["status"] == each).to_numpy(dtype=bool) for each in ("no-op", "changed"))
    values, fired = frame["value"].to_numpy(), frame["fired"].to_numpy()
    for label, rows in frame.assign(row=np.arange(len(frame))).groupby(list(labels), sort=False)["row"]:
        said = ""
        if no_op[rows].all():
            said = (
                f"{_name(labels, label)}: the intervention changed nothing on any example (it acted "
                f"{int(fired[rows].sum())} times); a dead component, or a replacement equal to what it writes"
            )
        elif twins and {"head", "heads"} & set(labels) and changed[rows].any():
            twin = seen.setdefault(values[rows].tobytes(), label)
            pairs = zip(labels, twin, label, strict=True)
            if any(one != other for name, one, other in pairs if name in ("layer", "head", "heads")):
                both = f"{_name(labels, twin)} and {_name(labels, label)}"
                said = (
                    f"{both} give bit-identical results although both changed; do their interventions reach the metric?"
                )
        if said:
            warnings.warn(said, RuntimeWarning, stacklevel=4)


def _name(labels: Sequence[str], label: tuple[object, ...]) -> str:
    """What a cell is called: ``head 2.1``, or its labels one by one."""
    if list(labels) == ["layer", "head"]:
        return f"head {label[0]}.{label[1]}"
    return ", ".join(f"{name} {value}" for name, value in zip(labels, label, strict=True))
