"""What does a report on a calibration need? Its tables; see ``interp.calibration.calibrate.Calibration``."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import pandas as pd


@runtime_checkable
class CalibrationFrames(Protocol):
    """The tables of a calibration."""

    @property
    def frame(self) -> pd.DataFrame:
        """Of every model, layer, head and task: verdict and truth."""

    @property
    def false_discoveries(self) -> pd.DataFrame:
        """By kind of null and claim."""

    @property
    def recall(self) -> pd.DataFrame:
        """Of trackers: per model, and per head and task."""

    @property
    def false_tracks(self) -> pd.DataFrame:
        """Per model, and per head and task."""

    @property
    def decoys(self) -> pd.DataFrame:
        """By role."""

    @property
    def special(self) -> pd.DataFrame:
        """By kind of model and claim."""

    @property
    def single_heads(self) -> pd.DataFrame:
        """By task, of trained models of one head."""

    @property
    def confusion(self) -> pd.DataFrame:
        """Roles down, verdicts across."""

    @property
    def halves(self) -> pd.DataFrame:
        """What becomes of verdicts on half of the examples."""

    @property
    def curves(self) -> Mapping[str, pd.DataFrame]:
        """By what is harder."""

    @property
    def provenance(self) -> Mapping[str, Any]:
        """How the numbers were made."""
