"""What does a report about relations need? The frames of a finished scoring, checked once.

The report never sees a model: anything with these three attributes can be drawn, for example
``interp.methods.relations.result.RelationResult``, or frames read back from a saved folder.
"""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import pandas as pd

from interp.errors import InputError
from interp.report.relations.verdicts import VERDICTS

DIRECTION = ("relation", "looks")
FRAME_COLUMNS = (
    *(*DIRECTION, "layer", "head", "accuracy", "attention", "baseline", "accuracy_baseline", "excess", "low", "high"),
    *("p", "p_adjusted", "accuracy_random_head", "n", "n_documents", "chosen", "verdict"),
)
REASONS = ("ahead", "unaligned", "outside", "no choice", "no baseline")
RELATION_COLUMNS = (
    *(*DIRECTION, "n_pairs", "n", *REASONS, "n_documents"),
    *("offset", "accuracy_offset", "nearest", "accuracy_nearest", "chance"),
)
MAP_COLUMNS = (
    *(*DIRECTION, "layer", "head", "rank", "document", "sentence", "query", "word", "token", "weight"),
    *("is_query", "is_related", "is_choice", "is_right"),
)
EXAMPLE = (*DIRECTION, "document", "sentence", "query")
"""What tells the examples of ``attention_maps`` apart."""


@runtime_checkable
class RelationFrames(Protocol):
    """Heads scored on relations; see ``interp.methods.relations.result.RelationResult`` for every column."""

    @property
    def frame(self) -> pd.DataFrame:
        """One row per relation, direction, layer and head: the numbers and the verdict."""

    @property
    def relations(self) -> pd.DataFrame:
        """One row per relation and direction: how many pairs there are, and what position explains."""

    @property
    def provenance(self) -> Mapping[str, Any]:
        """How the numbers were made."""


def check_relations(frames: RelationFrames, maps: pd.DataFrame | None) -> None:
    """Refuse frames that could not be drawn, before anything is written.

    Args:
        frames: Of the scoring.
        maps: Of the examples, ``MAP_COLUMNS``; None without.

    Raises:
        InputError: A column is missing, a verdict is unknown, or a direction of the heads is not described.
    """
    _check_columns("frame", frames.frame, FRAME_COLUMNS)
    _check_columns("relations", frames.relations, RELATION_COLUMNS)
    if maps is not None:
        _check_columns("attention maps", maps, MAP_COLUMNS)
    unknown = sorted(set(frames.frame["verdict"].dropna()) - set(VERDICTS))
    if unknown:
        raise InputError(
            f"the verdicts on relations: expected {', '.join(VERDICTS)}, got {', '.join(unknown)}; "
            "add the new verdict to interp/report/relations/verdicts.py"
        )
    described = set(frames.relations[list(DIRECTION)].itertuples(index=False, name=None))
    undescribed = sorted(set(frames.frame[list(DIRECTION)].itertuples(index=False, name=None)) - described)
    if undescribed:
        raise InputError(
            "the `relations`: expected a row for every relation and direction of the heads, "
            f"got none for {', '.join(map(' '.join, undescribed))}; add it"
        )


def is_causal(frames: RelationFrames) -> bool:
    """Whether the model looks back only."""
    return bool(frames.provenance["attention_dir"] == "causal")


def _check_columns(name: str, frame: pd.DataFrame, columns: tuple[str, ...]) -> None:
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise InputError(
            f"the relations' `{name}`: expected the columns {', '.join(columns)}, got none called "
            f"{', '.join(missing)}; build it with interp.attend"
        )
