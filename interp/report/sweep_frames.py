"""What does a sweep's report need? The data frames of a finished sweep, and what was asked, in words.

The report never sees a model: whoever ran the sweep fills this in, for example the command line.

What does a report need to know of a sweep that stands by itself, without its task? What the result itself says.

A result knows no prompts: positions are called by their numbers unless their texts are given, and the runs that cells
are held against have means and no intervals.

What is a cell called, and what are the headings of a table of cells?
"""

import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pandas as pd

from interp.errors import InputError
from interp.report.drawing import require
from interp.report.words import visible

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


_TOKENS = ["pos", "token", "share"]


class SweepLike(Protocol):
    """What a sweep gives; see ``interp.interventions.sweep.SweepResult``."""

    @property
    def examples(self) -> pd.DataFrame:
        """One row per cell and example."""

    @property
    def provenance(self) -> Mapping[str, Any]:
        """How the numbers were made."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The columns that name a cell."""

    def summary(self) -> pd.DataFrame:
        """One row per cell."""

    def runs(self) -> pd.DataFrame:
        """The runs that cells are held against."""


def sweep_frames(result: SweepLike | SweepFrames, tokens: Sequence[str] | None = None) -> SweepFrames:
    """The report's frames of a sweep.

    Args:
        result: What ``interp.ablate``, ``interp.patch`` or ``interp.path_patch`` returns; or the frames themselves.
        tokens: The text at each position, where all prompts have one length; None for numbers.

    Raises:
        InputError: It is no sweep, has no row, or there are fewer texts than positions.
    """
    if isinstance(result, SweepFrames):
        return result
    require(result, ("examples", "provenance", "labels", "summary", "runs"), "sweep", "interp.ablate or interp.patch")
    if result.examples.empty:
        raise InputError("sweep: expected a row at least, got an empty frame; there is nothing to draw")
    with warnings.catch_warnings():
        # That there is nothing to recover is hatched, and said in the legend.
        warnings.simplefilter("ignore", RuntimeWarning)
        cells = result.summary()
    screen = getattr(result, "screen", None)
    how = result.provenance
    return SweepFrames(
        cells=cells,
        examples=result.examples,
        labels=tuple(result.labels),
        runs=result.runs(),
        tokens=_tokens(result, tokens),
        estimates=None if screen is None else screen.frame[[*result.labels, "estimate", "chosen"]],
        task={
            "Question": how.get("question", ""),
            "Left out": "; ".join(f"{name}: {n}" for name, n in how.get("dropped", {}).items()),
            "Coverage": "; ".join(f"{name}: {share:.0f} %" for name, share in how.get("coverage", {}).items()),
        },
        n_examples=how.get("n_asked"),
        provenance=result.provenance,
    )


def _tokens(result: SweepLike, tokens: Sequence[str] | None) -> pd.DataFrame:
    if tokens is None:
        known = result.provenance.get("positions", [])
        return pd.DataFrame([[pos, *each] for pos, each in enumerate(known)], columns=_TOKENS)
    frame = result.examples
    places = [each for axis in ("pos", "key") if axis in frame for each in frame[axis].unique()]
    named = [each for each in places if isinstance(each, str)]
    if named or not places:
        got = f"cells called {named[0]!r}" if named else "a sweep without positions"
        raise InputError(f"tokens: expected a sweep by position, whose positions have numbers, got {got}; leave it out")
    texts = list(tokens)
    if len(texts) <= max(places):
        raise InputError(
            f"tokens: expected a text for each position up to {max(places)}, got {len(texts)}; give those of one "
            "prompt, special tokens included, as model.to_str_tokens has them"
        )
    return pd.DataFrame({"pos": range(len(texts)), "token": texts, "share": 1.0})


_POSITIONS = ("pos", "key")
PATH = ("sender", "via", "receiver")
"""What names a path that was patched along."""
GROWING = ("step", "layer", "head")
"""What names a set of heads that grows by one at each step."""


@dataclass(frozen=True)
class Names:
    """Names of cells and of what they are made of.

    Attributes:
        tokens: See ``SweepFrames``.
    """

    tokens: pd.DataFrame

    def cell(self, labels: Mapping[str, Hashable]) -> str:
        """A cell's name, such as ``head 2.1``, ``layer 2, related``, ``neuron 0.17`` or ``0.1 → 2.3.k``."""
        if tuple(labels) == PATH:
            return " → ".join(str(node) for node in labels.values() if node)
        if tuple(labels) == GROWING:
            return "the set up to head {layer}.{head} (step {step})".format(**labels)
        rest = dict(labels)
        parts = []
        for unit in ("head", "neuron"):
            if {"layer", unit} <= rest.keys():
                parts.append(f"{unit} {rest.pop('layer')}.{rest.pop(unit)}")
        parts += [self._part(axis, value) for axis, value in rest.items()]
        return ", ".join(parts)

    def headings(self, axis: str, values: Sequence[Hashable]) -> list[str]:
        """Short headings for the values of one axis; a position is called by its token, where all have the same."""
        if axis not in _POSITIONS or self.tokens.empty:
            return [str(value) for value in values]
        return [self._token(value) for value in values]

    def _part(self, axis: str, value: Hashable) -> str:
        if axis in _POSITIONS and isinstance(value, str):
            return value
        if axis not in _POSITIONS:
            return str(value) if axis == "heads" else f"{axis} {value}"
        token, share = self._known().get(value, ("", 0.0))
        what = "position" if axis == "pos" else "attention to position"
        return f"{what} {value} ({token})" if share == 1 else f"{what} {value}"

    def _token(self, position: Hashable) -> str:
        """The token, or the position with the commonest one and an ellipsis."""
        token, share = self._known().get(position, ("", 0.0))
        if not token:
            return str(position)
        return token if share == 1 else f"{position}: {token}…"

    def _known(self) -> dict[Hashable, tuple[str, float]]:
        rows = self.tokens[["pos", "token", "share"]].itertuples(index=False, name=None)
        return {position: (visible(token), share) for position, token, share in rows}
