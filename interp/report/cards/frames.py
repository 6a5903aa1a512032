"""What does the card of a head need? Its data frames, checked once, with the tasks named for readers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import pandas as pd

from interp.errors import InputError
from interp.report.frames import Dossier, check_frames
from interp.report.names import shown_names

_PATHS = ("sender", "receiver", "reads", "normalised", "normalised_low", "normalised_high", "effect", "n_units")
_SHARE = ("normalised", "normalised_low", "normalised_high")
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "shares": ("metric", "base", "effect", "share", "share_low", "share_high", "minimum"),
    "halves": ("evidence", "half", "estimate", "low", "high", "minimum", "passes"),
    "replacements": (
        *("kind", "effect", "low", "high", "minimum", "state", "share", "share_low", "share_high"),
        *("rank", "n_heads", "n_units", "reason"),
    ),
    "agreement": ("first", "second", "kendall", "low", "high"),
    "positions": ("position", *_SHARE, "n_changed", "n_examples"),
    "feeds": _PATHS,
    "readers": _PATHS,
    "feature": ("what", "effect", "low", "high", "n_units", "n_clusters"),
    "circuits": ("word", "role", "n_examples", "circuit", "place", "text", "score"),
    "groups": (
        *("heads", "missed", "head", "member", "mean_together", "mean_together_low", "mean_together_high"),
        *("mean_share", "mean_share_low", "mean_share_high", "minimum"),
    ),
    "left_out": ("part", "reason"),
}
"""What each frame has to have beside ``task``."""


@runtime_checkable
class CardFrames(Protocol):
    """The frames of a card; see ``interp.methods.head_card.HeadCard`` for what they are."""

    @property
    def name(self) -> str:
        """Of the head, such as ``2.1``."""

    @property
    def verdicts(self) -> pd.DataFrame:
        """One row a task, as a dossier's."""

    @property
    def tasks(self) -> pd.DataFrame:
        """One row a task."""

    @property
    def shares(self) -> pd.DataFrame:
        """Effects as shares."""

    @property
    def halves(self) -> pd.DataFrame:
        """Both halves."""

    @property
    def replacements(self) -> pd.DataFrame:
        """Effects by the kind of ablation."""

    @property
    def agreement(self) -> pd.DataFrame:
        """How alike two kinds order the heads."""

    @property
    def positions(self) -> pd.DataFrame:
        """What patching brings back, by word."""

    @property
    def feeds(self) -> pd.DataFrame:
        """Paths into the head."""

    @property
    def readers(self) -> pd.DataFrame:
        """Paths from the head."""

    @property
    def feature(self) -> pd.DataFrame:
        """Effects of taking out its values at the related word, and the feature that is read there."""

    @property
    def circuits(self) -> pd.DataFrame:
        """What its weights look for and write."""

    @property
    def groups(self) -> pd.DataFrame:
        """The head ablated together with others."""

    @property
    def attention_maps(self) -> pd.DataFrame:
        """Where it looks on a few sentences."""

    @property
    def left_out(self) -> pd.DataFrame:
        """What could not be measured, and why."""

    @property
    def copying(self) -> float:
        """How much it copies."""

    @property
    def provenance(self) -> Mapping[str, Any]:
        """How the numbers were made."""


@dataclass(frozen=True)
class Shown:
    """A card whose tasks have names for readers; attributes as in ``CardFrames``."""

    name: str
    verdicts: pd.DataFrame
    tasks: pd.DataFrame
    shares: pd.DataFrame
    halves: pd.DataFrame
    replacements: pd.DataFrame
    agreement: pd.DataFrame
    positions: pd.DataFrame
    feeds: pd.DataFrame
    readers: pd.DataFrame
    feature: pd.DataFrame
    circuits: pd.DataFrame
    groups: pd.DataFrame
    attention_maps: pd.DataFrame
    left_out: pd.DataFrame
    copying: float
    provenance: Mapping[str, Any]

    @property
    def measured(self) -> tuple[str, ...]:
        """The tasks of which more is known than a dossier says."""
        known = {*self.replacements["task"], *self.left_out["task"]}
        return tuple(task for task in self.tasks["task"] if task in known)

    def of(self, task: str) -> "Shown":
        """The rows of one task."""
        frames = {name: frame[frame["task"] == task] for name, frame in _frames(self).items()}
        return Shown(**{**vars(self), **frames})


def shown(card: CardFrames) -> Shown:
    """The card with every task named for readers.

    Raises:
        InputError: The frames are not a card's.
    """
    _check(card)
    names = shown_names([str(task) for task in card.tasks["task"]])
    frames = {name: frame.assign(task=frame["task"].map(names)) for name, frame in _frames(card).items()}
    return Shown(**frames, name=card.name, copying=card.copying, provenance=card.provenance)


def as_dossier(card: CardFrames) -> Dossier:
    """The card's verdicts as a dossier of one head, for what is written about dossiers."""
    nothing = card.verdicts.head(0)
    return Dossier(card.verdicts, nothing, card.tasks, card.groups, nothing, card.attention_maps, card.provenance)


def _frames(card: CardFrames) -> dict[str, pd.DataFrame]:
    return {name: getattr(card, name) for name in ("verdicts", "tasks", "attention_maps", *COLUMNS)}


def _check(card: CardFrames) -> None:
    check_frames(as_dossier(card))
    for name, columns in COLUMNS.items():
        missing = [column for column in ("task", *columns) if column not in getattr(card, name).columns]
        if missing:
            raise InputError(
                f"a card's `{name}`: expected the columns task, {', '.join(columns)}, got no {missing[0]}; build it "
                "with interp.methods.head_card"
            )
