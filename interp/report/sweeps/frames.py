"""What does a sweep's report need? The data frames of a finished sweep, and what was asked, in words.

The report never sees a model: whoever ran the sweep fills this in, for example the command line.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from interp.errors import InputError

CELL_COLUMNS = ("effect", "low", "high", "p", "p_adjusted", "base", "value", "accuracy_base", "accuracy_intervened")
COUNTS = ("n_units", "n_clusters")
NORMALISED = ("normalised", "normalised_low", "normalised_high")
RUN_COLUMNS = ("run", "mean", "low", "high", "accuracy", "above_chance", *COUNTS)


@dataclass(frozen=True)
class SweepFrames:
    """A sweep, as its report takes it.

    Attributes:
        cells: One row per cell: its labels, ``CELL_COLUMNS``, ``COUNTS`` and, where activations were patched,
            ``NORMALISED``.
        examples: One row per cell and example: the labels, ``example``, ``status`` and the effect.
        labels: The columns that name a cell.
        runs: One row per ``run`` that the cells are held against, ``RUN_COLUMNS``: the unablated model, or the clean
            and the corrupted run: the metric's ``mean`` with its interval, ``accuracy`` (NaN where it is not known),
            and whether it is shown to be ``above_chance`` (None where nobody knows).
        tokens: One row per position, where these mean the same in all prompts: ``pos``, ``token`` (the commonest
            there) and ``share`` (of the prompts that have it); empty where positions have names of their own.
        estimates: After a screen one row per cell, measured or not: the labels, ``estimate`` of the effect, and what it
            was ``chosen`` for; without a screen None.
        task: Facts about the task for the page's top, by their names.
        n_examples: How many examples were asked for; None where that is not known.
        provenance: How the numbers were made.

    Raises:
        InputError: A column is missing, or there is no cell.
    """

    cells: pd.DataFrame
    examples: pd.DataFrame
    labels: tuple[str, ...]
    runs: pd.DataFrame
    tokens: pd.DataFrame
    estimates: pd.DataFrame | None
    task: Mapping[str, str]
    n_examples: int | None
    provenance: Mapping[str, Any]

    def __post_init__(self) -> None:
        patched = NORMALISED if "direction" in self.provenance else ()
        expected = {
            "cells": (*self.labels, *CELL_COLUMNS, *COUNTS, *patched),
            "examples": (*self.labels, "example", "status"),
            "runs": RUN_COLUMNS,
            "tokens": ("pos", "token", "share"),
        }
        for name, columns in expected.items():
            missing = [column for column in columns if column not in getattr(self, name).columns]
            if missing:
                raise InputError(f"a sweep's `{name}`: expected the columns {', '.join(columns)}, got no {missing[0]}")
        if self.cells.empty:
            raise InputError("a sweep's `cells`: expected at least one, got none; there is nothing to report")

    @property
    def patched(self) -> bool:
        """Whether activations were patched; else components were ablated."""
        return "direction" in self.provenance

    @property
    def metric(self) -> str:
        """What was measured."""
        return str(self.provenance["metric"])

    @property
    def tested(self) -> bool:
        """Whether cells have a p: those of a screen were chosen on the same units, and a divergence has no sign."""
        return self.estimates is None and self.metric != "kl_divergence"

    @property
    def complete(self) -> bool:
        """Whether every example that was asked for is there."""
        return bool(self.provenance.get("complete", True))

    @property
    def n_measured(self) -> int:
        """How many examples there are."""
        return int(self.examples["example"].nunique())
