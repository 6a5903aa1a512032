"""Which runs have to be made? Those of every cell on every row that it changes, in bundles of like ones.

A *trajectory* is one row under one cell and draw. Trajectories of a cell are bundled where the same positions are
replaced. Rows that begin with the same tokens, and get the same replacements there, share that beginning: it belongs
to one of them, its owner, and is computed once.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Int

from interp.interventions.intervention import Intervention, changed_positions
from interp.interventions.rows import Batch, Row

Interventions = Sequence[Intervention]


@dataclass(frozen=True)
class RowClass:
    """Rows of a batch that a cell treats alike.

    Attributes:
        rows: Their numbers in the batch.
        positions: Those that each intervention changes.
        own: The first position that is the row's own; earlier ones belong to other rows of the cell.
    """

    rows: Int[np.ndarray, " row"]
    positions: tuple[tuple[int, ...], ...]
    own: int


@dataclass(frozen=True)
class RowClasses:
    """All rows of a batch that a cell changes.

    Attributes:
        classes: By what is changed.
        owner: By row and position, the row that the position is computed in; None where nothing is shared.
        causal: Whether only what follows a change can change.
    """

    classes: tuple[RowClass, ...]
    owner: Int[np.ndarray, "batch pos"] | None
    causal: bool

    @property
    def n_rows(self) -> int:
        """How many rows are changed."""
        return sum(len(each.rows) for each in self.classes)

    def n_tokens(self, length: int) -> int:
        """How many positions of rows of this length are computed, once all that can change are."""
        if not self.causal:
            return self.n_rows * length
        starts = (max(each.own, min(min(one) for one in each.positions if one)) for each in self.classes)
        return sum(len(each.rows) * (length - start) for each, start in zip(self.classes, starts, strict=True))


class Classifier:
    """Sorts a batch's rows into classes, once for every way to choose positions."""

    def __init__(self, batch: Batch, *, causal: bool):
        self._batch, self._causal = batch, causal
        self._known: dict[Hashable, RowClasses] = {}

    def classes(self, interventions: Interventions, draw: int) -> RowClasses:
        """The rows that `interventions` change."""
        kinds = tuple((each.places, id(each.replacement)) for each in interventions)
        key = (kinds, draw if any(each.replacement.draws > 1 for each in interventions) else 0)
        if key not in self._known:
            self._known[key] = self._classify(interventions, draw)
        return self._known[key]

    def _classify(self, interventions: Interventions, draw: int) -> RowClasses:
        rows = self._batch.rows
        changes = [changed_positions(interventions, row, causal=self._causal) for row in rows]
        changed = [number for number, positions in enumerate(changes) if any(positions)]
        owner = self._owners(interventions, draw, changed, changes) if self._causal else None
        found: dict[Hashable, list[int]] = {}
        for number in changed:
            own = 0 if owner is None else int((owner[number] == number).argmax())
            found.setdefault((changes[number], own), []).append(number)
        classes = tuple(RowClass(np.array(rows), *key) for key, rows in found.items())
        return RowClasses(classes, owner, self._causal)

    def _owners(
        self, interventions: Interventions, draw: int, changed: Sequence[int], changes: Sequence[Hashable]
    ) -> Int[np.ndarray, "batch pos"] | None:
        """Who computes what: of rows that begin alike, the first in alphabetical order."""
        owner = np.repeat(np.arange(len(self._batch.rows))[:, None], self._batch.length, axis=1)
        groups: dict[Hashable, list[int]] = {}
        for number in changed:
            row = self._batch.rows[number]
            alike = tuple(each.replacement.group(row, draw % each.replacement.draws) for each in interventions)
            if None not in alike and len(row.tokens) == len(row.source_tokens):
                groups.setdefault((alike, changes[number]), []).append(number)
        from_source = any(each.replacement.from_source for each in interventions)
        shared = False
        for group in groups.values():
            ordered = sorted(group, key=lambda each: _text(self._batch.rows[each], from_source))
            for before, number in pairwise(ordered):
                begin = _common(self._batch.rows[before], self._batch.rows[number], from_source)
                owner[number, :begin] = owner[before, :begin]
                shared |= begin > 0
        return owner if shared else None


def _text(row: Row, from_source: bool) -> tuple[tuple[int, int], ...]:
    """What a row reads, token by token, with what its source reads."""
    return tuple(zip(row.tokens, row.source_tokens if from_source else row.tokens, strict=True))


def _common(one: Row, other: Row, from_source: bool) -> int:
    """How many tokens two rows have in common from the start; at most all but the last, which stays a row's own."""
    pairs = zip(_text(one, from_source), _text(other, from_source), strict=True)
    same = next((number for number, (a, b) in enumerate(pairs) if a != b), len(one.tokens))
    return min(same, len(one.tokens) - 1)
