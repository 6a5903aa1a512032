"""What does a report on a calibration need? Its tables; see ``interp.calibration.calibrate.Calibration``.

What does a calibration say in plain words? Each rate with its interval and what it is a share of.
"""

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


def findings(frames: CalibrationFrames) -> list[str]:
    """The headline numbers, one sentence each; what is worst comes first."""
    by_claim = frames.false_discoveries.set_index(["kind", "claim"])
    able = by_claim.loc[("able", "tracks")].to_dict()
    by_model, by_head = (frames.recall.set_index("per").loc[per].to_dict() for per in ("model", "head and task"))
    per_model = frames.false_tracks.set_index("per").loc["model"].to_dict()
    false, true = _said_falsely(frames), _found(frames)
    found = [
        f"Worst of what is said falsely: {_claim(false.nlargest(1, ['rate', 'high']).iloc[0].to_dict())}.",
        f"Least of what is found: {_claim(true.nsmallest(1, ['rate', 'low']).iloc[0].to_dict())}.",
        f"Of the heads that track, {share(by_head)} are found to; of the models, all in {share(by_model)}.",
        f"Of the models with planted heads, {share(per_model)} have a head that is said to track and does not.",
        f"Of the models on which nothing tracks, and that are shown to do a task, {share(able)} have a head that is "
        "said to.",
    ]
    named = ", ".join(f"{row['role']} {share(row)}" for row in frames.decoys.to_dict("records") if row["of"])
    found.append(f"Decoys that get their own verdict: {named}.")
    found += [_single(row) for row in frames.single_heads.to_dict("records")]
    found += [_halved(row) for row in frames.halves.to_dict("records") if row["on all"] == "right"]
    return found


def _said_falsely(frames: CalibrationFrames) -> pd.DataFrame:
    """Rates of verdicts that are false, of planted, special and null models."""
    nulls, special = frames.false_discoveries, frames.special
    planted = frames.false_tracks[frames.false_tracks["per"] == "model"]
    return pd.concat(
        [
            planted.assign(kind="planted", claim="some head is said to track and does not"),
            special[special["claim"].str.contains("is said|contradicted")],
            nulls[(nulls["claim"] == "any false verdict") & (nulls["of"] > 0)],
        ],
        ignore_index=True,
    ).astype(dict.fromkeys(("rate", "low", "high"), float))


def _found(frames: CalibrationFrames) -> pd.DataFrame:
    """Rates of what is there and found, of planted, special and trained models of one head."""
    special, single, decoys = frames.special, frames.single_heads, frames.decoys
    planted = frames.recall[frames.recall["per"] == "model"]
    return pd.concat(
        [
            planted.assign(kind="planted", claim="all that track are found"),
            decoys[decoys["of"] > 0].assign(kind=decoys["role"], claim="its own verdict"),
            special[special["claim"].str.contains("found|named|verdict")],
            single.assign(kind="single head", claim=single["task"] + ", the right verdict"),
        ],
        ignore_index=True,
    ).astype(dict.fromkeys(("rate", "low", "high"), float))


def _claim(row: Mapping[str, Any]) -> str:
    return f"“{row['kind']}”, {row['claim']} in {share(row)}"


def _single(row: Mapping[str, Any]) -> str:
    """What is said of the only head of trained models."""
    if row["truth"] == "none":
        return f"Of {row['task']}, which trained models of one head cannot do, nothing is said in {share(row)}."
    return f"The only head of trained models is found to track {row['task']} in {share(row)}."


def _halved(row: Mapping[str, Any]) -> str:
    """What becomes of right verdicts on half of the examples."""
    whom = "idle heads" if row["heads"] == "idle" else f"heads {row['heads']}"
    return (
        f"With half of the examples, of {row['of']:,} right verdicts on {whom}, {row['right']:,} stay right, "
        f"{row['weaker']:,} say less, {row['undecided']:,} become undecided and {row['wrong']:,} wrong."
    )


def share(rate: Mapping[str, Any]) -> str:
    """``3 of 200 (1.5 % [0.3, 4.3])``."""
    if not rate["of"]:
        return "none of none"
    low, high = (f"{100 * rate[end]:.1f}" for end in ("low", "high"))
    return f"{rate['count']:,.0f} of {rate['of']:,.0f} ({100 * rate['rate']:.1f} % [{low}, {high}])"
