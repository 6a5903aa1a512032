"""What does a report need to know of a sweep that stands by itself, without its task? What the result itself says.

A result knows no prompts: positions are called by their numbers unless their texts are given, and the runs that cells
are held against have means and no intervals.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pandas as pd

from interp.errors import InputError
from interp.report.given import require
from interp.report.sweeps.frames import RUN_COLUMNS, SweepFrames

_TOKENS = ["pos", "token", "share"]


class SweepLike(Protocol):
    """What a sweep gives; see ``interp.interventions.sweep.SweepResult``."""

    @property
    def frame(self) -> pd.DataFrame:
        """One row per cell and example."""

    @property
    def provenance(self) -> Mapping[str, Any]:
        """How the numbers were made."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The columns that name a cell."""

    def summary(self) -> pd.DataFrame:
        """One row per cell."""


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
    require(result, ("frame", "provenance", "labels", "summary"), "sweep", "interp.ablate or interp.patch")
    if result.frame.empty:
        raise InputError("sweep: expected a row at least, got an empty frame; there is nothing to draw")
    with warnings.catch_warnings():
        # That there is nothing to recover is hatched, and said in the legend.
        warnings.simplefilter("ignore", RuntimeWarning)
        cells = result.summary()
    screen = getattr(result, "screen", None)
    return SweepFrames(
        cells=cells,
        examples=result.frame,
        labels=tuple(result.labels),
        runs=_runs(cells, result.provenance),
        tokens=_tokens(result.frame, tokens),
        estimates=None if screen is None else screen.frame[[*result.labels, "estimate", "chosen"]],
        task={},
        n_examples=None,
        provenance=result.provenance,
    )


def _runs(cells: pd.DataFrame, provenance: Mapping[str, Any]) -> pd.DataFrame:
    """Those that cells are held against, by their means: of cells on different examples, the mean of these."""
    names = {"clean": "clean", "corrupted": "corrupted"} if "direction" in provenance else {"unablated": "base"}
    n_units, n_clusters = int(cells["n_units"].max()), int(cells["n_clusters"].max())
    rows = [
        (name, float(cells[column].mean()), np.nan, np.nan, np.nan, None, n_units, n_clusters)
        for name, column in names.items()
    ]
    return pd.DataFrame(rows, columns=list(RUN_COLUMNS))


def _tokens(frame: pd.DataFrame, tokens: Sequence[str] | None) -> pd.DataFrame:
    if tokens is None:
        return pd.DataFrame(columns=_TOKENS)
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
