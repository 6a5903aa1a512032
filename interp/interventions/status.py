"""Did an intervention do anything? A status for each example, and warnings for what did nothing."""

import warnings
from collections.abc import Callable, Hashable, Sequence

import numpy as np
import pandas as pd
from jaxtyping import Bool

from interp.interventions.intervention import READ_BY_LATER_POSITIONS, Intervention, changed_positions
from interp.interventions.measured import Outcome
from interp.interventions.rows import Row

ABSENT = "absent"
"""Of examples that do not have the positions that a cell is about: they are not measured."""


class Statuses:
    """Says of each example what a cell did to it; see ``SweepResult``."""

    def __init__(self, rows: Sequence[Row], n_layers: int, *, causal: bool):
        """Know the rows.

        Args:
            rows: Those of all examples.
            n_layers: Of the model.
            causal: Whether its attention is.
        """
        self._rows, self._n_layers, self._causal = rows, n_layers, causal
        self._n_examples = 1 + max(row.example for row in rows)
        self._known: dict[Hashable, Bool[np.ndarray, " example"]] = {}

    def of(self, interventions: Sequence[Intervention], outcome: Outcome) -> np.ndarray:
        """One status per example."""
        reached = np.any([self._reached(each) for each in interventions], axis=0)
        from_another_run = any(
            each.replacement.from_source or each.replacement.kind == "resample" for each in interventions
        )
        unmoved = "identical input" if from_another_run else "no-op"
        moved = (outcome.change_norm > 0) & self._may_move(interventions)
        status = np.where(moved, "changed", unmoved)
        status = np.where(reached | ~moved, status, "unreachable")
        status = np.where(outcome.fired == 0, "no-op", status)
        return np.where(self._present(interventions), status, ABSENT).astype(object)

    def _present(self, interventions: Sequence[Intervention]) -> Bool[np.ndarray, " example"]:
        """Whether the example has a position that the cell is about."""
        key = ("present", *(each.places for each in interventions))
        return self._by_example(key, lambda row: any(each.at(row) for each in interventions))

    def _reached(self, each: Intervention) -> Bool[np.ndarray, " example"]:
        last = each.site.layer == self._n_layers - 1
        key = ("reached", last and each.site.name not in READ_BY_LATER_POSITIONS, each.places)
        return self._by_example(key, lambda row: each.reaches(row, self._n_layers, causal=self._causal))

    def _may_move(self, interventions: Sequence[Intervention]) -> Bool[np.ndarray, " example"]:
        """Whether the other run has read other tokens, where all is patched from there."""
        if not all(each.replacement.from_source for each in interventions):
            return np.ones(self._n_examples, dtype=bool)
        key = ("moves", *(each.places for each in interventions))
        return self._by_example(key, lambda row: any(changed_positions(interventions, row, causal=self._causal)))

    def _by_example(self, key: Hashable, holds: Callable[[Row], bool]) -> Bool[np.ndarray, " example"]:
        if key not in self._known:
            self._known[key] = np.zeros(self._n_examples, dtype=bool)
            for row in self._rows:
                self._known[key][row.example] |= holds(row)
        return self._known[key]


def warn_of_no_ops(frame: pd.DataFrame, labels: Sequence[str], *, twins: bool) -> None:
    """Warn of cells that changed nothing, and of different heads that claim changes and give the same bits.

    Args:
        frame: Of a sweep.
        labels: The columns that name a cell.
        twins: Whether equal bits say anything; where values are 0 or 1 they do not.
    """
    seen: dict[bytes, tuple[object, ...]] = {}
    for label, cell in frame.groupby(list(labels), sort=False):
        if (cell["status"] == "no-op").all():
            warnings.warn(
                f"{_name(labels, label)}: the intervention changed nothing on any example (it acted "
                f"{int(cell['fired'].sum())} times); a dead component, or a replacement equal to what it writes",
                RuntimeWarning,
                stacklevel=4,
            )
        elif twins and {"head", "heads"} & set(labels) and (cell["status"] == "changed").any():
            twin = seen.setdefault(cell["value"].to_numpy().tobytes(), label)
            if _heads(labels, twin) != _heads(labels, label):
                warnings.warn(
                    f"{_name(labels, twin)} and {_name(labels, label)} give bit-identical results although both "
                    "changed; do their interventions reach the metric?",
                    RuntimeWarning,
                    stacklevel=4,
                )


def _heads(labels: Sequence[str], label: tuple[object, ...]) -> list[object]:
    """Which heads a cell is about."""
    return [value for name, value in zip(labels, label, strict=True) if name in ("layer", "head", "heads")]


def _name(labels: Sequence[str], label: tuple[object, ...]) -> str:
    """What a cell is called: ``head 2.1``, or its labels one by one."""
    if list(labels) == ["layer", "head"]:
        return f"head {label[0]}.{label[1]}"
    return ", ".join(f"{name} {value}" for name, value in zip(labels, label, strict=True))
