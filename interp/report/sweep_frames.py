"""A sweep as its page, its figures and the terminal take it, and what its cells are called.

A result knows no prompts: positions are called by the tokens that its provenance has, or by those that are given.
"""

import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from interp.errors import InputError
from interp.report.drawing import require
from interp.report.words import visible


@dataclass(frozen=True, eq=False)
class SweepFrames:
    """A sweep, its cells summarised once.

    Attributes:
        result: Of ``interp.ablate``, ``interp.patch``, ``interp.path_patch`` or ``greedy``.
        tokens: One row per position, where these mean the same in all prompts: ``pos``, ``token`` (the commonest
            there) and ``share`` (of the prompts that have it); empty where positions have names of their own.
    """

    result: Any
    tokens: pd.DataFrame

    @cached_property
    def cells(self) -> pd.DataFrame:
        """The result's ``summary``."""
        with warnings.catch_warnings():
            # That there is nothing to recover is hatched, and said in the legend.
            warnings.simplefilter("ignore", RuntimeWarning)
            table: pd.DataFrame = self.result.summary()
        return table

    @cached_property
    def runs(self) -> pd.DataFrame:
        """The runs that cells are held against."""
        found: pd.DataFrame = self.result.runs()
        return found

    @property
    def examples(self) -> pd.DataFrame:
        """One row per cell and example."""
        rows: pd.DataFrame = self.result.examples
        return rows

    @property
    def labels(self) -> tuple[str, ...]:
        """The columns that name a cell."""
        return tuple(self.result.labels)

    @property
    def provenance(self) -> Mapping[str, Any]:
        """How the numbers were made."""
        how: Mapping[str, Any] = self.result.provenance
        return how

    @property
    def estimates(self) -> pd.DataFrame | None:
        """After a screen one row per cell, measured or not: the labels, ``estimate`` and what it was ``chosen`` for."""
        screen = getattr(self.result, "screen", None)
        return None if screen is None else screen.summary()[[*self.labels, "estimate", "chosen"]]

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
        return getattr(self.result, "screen", None) is None and self.metric != "kl_divergence"

    @property
    def complete(self) -> bool:
        """Whether every example that was asked for is there."""
        return bool(self.provenance.get("complete", True))

    @property
    def n_measured(self) -> int:
        """How many examples there are."""
        return int(self.examples["example"].nunique())

    @property
    def n_asked(self) -> int | None:
        """How many examples were asked for; None where that is not known."""
        known: int | None = self.provenance.get("n_asked")
        return known


_TOKENS = ["pos", "token", "share"]


def sweep_frames(result: Any, tokens: Sequence[str] | None = None) -> SweepFrames:
    """A sweep, with the text at each position; None for what its provenance has, or numbers.

    Raises:
        InputError: It is no sweep, has no row, or there are fewer texts than positions.
    """
    require(result, ("examples", "provenance", "labels", "summary", "runs"), "sweep", "interp.ablate or interp.patch")
    if result.examples.empty:
        raise InputError("sweep: expected a row at least, got an empty frame; there is nothing to draw")
    return SweepFrames(result, _tokens(result, tokens))


def _tokens(result: Any, tokens: Sequence[str] | None) -> pd.DataFrame:
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
