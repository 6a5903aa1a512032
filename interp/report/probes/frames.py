"""What does a report about probes need? The frames of a finished probing, checked once.

The report never sees a model: anything with these three attributes can be drawn, for example
``interp.methods.probes.result.ProbeResult``, or frames read back from a saved folder.
"""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import pandas as pd

from interp.errors import InputError
from interp.report.probes.measures import MEASURES, Measure
from interp.report.probes.verdicts import VERDICTS

BASELINES = ("majority", "embedding", "position", "untrained")
"""The controls of which the toughest is a cell's baseline."""
CONTROLS = (*BASELINES, "permuted")
FRAME_COLUMNS = (
    *(
        "site",
        "score",
        "low",
        "high",
        "baseline",
        "score_baseline",
        "excess",
        "excess_low",
        "excess_high",
        "p",
        "p_adjusted",
    ),
    *("score_seen", "control", "selectivity", "selectivity_low", "selectivity_high", *CONTROLS),
    *("bits", "compression", "compression_prior", "compression_control", "n", "n_documents", "n_lemmas", "verdict"),
)
EXAMPLE_COLUMNS = ("document", "template", "form", "value", "carrier", "lemma")


@runtime_checkable
class ProbeFrames(Protocol):
    """Cells that were probed for a feature; see ``interp.methods.probes.result.ProbeResult`` for every column."""

    @property
    def frame(self) -> pd.DataFrame:
        """One row per cell: its ``layer`` and ``head`` as far as it has any, the numbers and the verdict."""

    @property
    def examples(self) -> pd.DataFrame:
        """One row per word that was read."""

    @property
    def provenance(self) -> Mapping[str, Any]:
        """How the numbers were made."""


def check_probes(frames: ProbeFrames) -> None:
    """Refuse frames that could not be drawn, before anything is written.

    Raises:
        InputError: A column is missing, there is no cell, a cell stands twice, or a verdict or the measure is unknown.
    """
    for name, frame, columns in (
        ("frame", frames.frame, FRAME_COLUMNS),
        ("examples", frames.examples, EXAMPLE_COLUMNS),
    ):
        missing = [column for column in columns if column not in frame.columns]
        if missing:
            raise InputError(
                f"the probes' `{name}`: expected the columns {', '.join(columns)}, got none called "
                f"{', '.join(missing)}; build it with interp.probe"
            )
    _check_cells(frames.frame)
    if frames.provenance.get("measure") not in MEASURES:
        raise InputError(
            f"the probes' measure: expected {', '.join(MEASURES)}, got {frames.provenance.get('measure')!r}; add it to "
            "interp/report/probes/measures.py"
        )


def _check_cells(frame: pd.DataFrame) -> None:
    if frame.empty:
        raise InputError("the probes' `frame`: expected one cell at least, got none; there is nothing to report")
    labels = [name for name in ("site", "layer", "head") if name in frame]
    twice = frame.duplicated(labels)
    if twice.any():
        raise InputError(
            f"the probes' `frame`: expected one row per cell, got two for {frame.loc[twice, labels].iloc[0].to_dict()}"
        )
    unknown = sorted(set(frame["verdict"].astype(str)) - set(VERDICTS))
    if unknown:
        raise InputError(
            f"the verdicts on probes: expected {', '.join(VERDICTS)}, got {', '.join(unknown)}; add the new verdict to "
            "interp/report/probes/verdicts.py"
        )


def measure_of(frames: ProbeFrames) -> Measure:
    """What the probes are scored by."""
    return MEASURES[frames.provenance["measure"]]


def has_heads(frames: ProbeFrames) -> bool:
    """Whether cells are heads; else they are layers, or a single place before them."""
    return "head" in frames.frame


def scale_of(frames: ProbeFrames, column: str) -> tuple[float, float]:
    """What has no colour, and what has the strongest: the majority's level and 1; of selectivity 0, and as much."""
    majority = float(frames.frame["majority"].max())
    span = max(1 - majority, 0.01)
    low = 0.0 if column == "selectivity" else majority
    return low, low + span
