"""Which relations and which heads fit into a picture? All heads of a small model, else those that matter for any.

1. Down go the directions in which anything was scored, the most telling first.
2. Across go the heads, layer by layer. Of more than ``MOST_HEADS``: those that attend to a relation or are its best
   head; of too many of these, the ones with the largest excess.
3. Colours reach to the largest excess of a direction with enough documents: what can be decided is told apart.
"""

from dataclasses import dataclass

import pandas as pd

from interp.report.relations.frames import DIRECTION, RelationFrames
from interp.report.relations.leading import leading
from interp.report.relations.verdicts import ATTENDS, FEWEST_DOCUMENTS

MOST_HEADS = 60
_FAINTEST_BOUND = 0.05


@dataclass(frozen=True)
class RelationPanel:
    """What stands where.

    Attributes:
        directions: The rows, as (relation, looks).
        heads: The columns, as (layer, head).
        n_heads: How many heads the model has.
        n_directions: How many directions have numbers.
        bound: The excess that has the strongest colour.
    """

    directions: tuple[tuple[str, str], ...]
    heads: tuple[tuple[int, int], ...]
    n_heads: int
    n_directions: int
    bound: float

    @property
    def left_out(self) -> str:
        """What is not in the picture, as a sentence; empty where all is."""
        parts = []
        if len(self.heads) < self.n_heads:
            parts.append(
                f"the {len(self.heads)} of {self.n_heads} heads that are the best for a relation or attend to one"
            )
        if len(self.directions) < self.n_directions:
            parts.append(f"the first {len(self.directions)} of {self.n_directions} directions")
        return f"Shown are {' and '.join(parts)}." if parts else ""

    def table(self, frame: pd.DataFrame, column: str) -> pd.DataFrame:
        """A column of `frame`, directions down and heads across; what was not measured is missing."""
        keyed = frame.set_index([*DIRECTION, "layer", "head"])[column].unstack(["layer", "head"])
        return keyed.reindex(index=pd.MultiIndex.from_tuples(self.directions), columns=list(self.heads))


def panel(frames: RelationFrames, most_directions: int | None = None) -> RelationPanel | None:
    """The picture of a scoring; None where nothing was scored.

    Args:
        frames: Of the scoring.
        most_directions: How many rows there is room for; None for all.
    """
    best = leading(frames.frame)
    if best.empty:
        return None
    directions = tuple(best[list(DIRECTION)].itertuples(index=False, name=None))
    decidable = best[best["n_documents"] >= FEWEST_DOCUMENTS]
    bound = (best if decidable.empty else decidable)["excess"].max()
    return RelationPanel(
        directions[:most_directions],
        _heads(frames.frame, best),
        len(frames.frame[["layer", "head"]].drop_duplicates()),
        len(directions),
        max(float(bound), 2 * float(frames.provenance["minimum"]), _FAINTEST_BOUND),
    )


def _heads(frame: pd.DataFrame, best: pd.DataFrame) -> tuple[tuple[int, int], ...]:
    every = sorted(set(frame[["layer", "head"]].itertuples(index=False, name=None)))
    if len(every) <= MOST_HEADS:
        return tuple(every)
    mattering = pd.concat([frame[frame["verdict"] == ATTENDS], best]).sort_values("excess", ascending=False)
    kept = mattering.drop_duplicates(["layer", "head"]).head(MOST_HEADS)
    return tuple(sorted(kept[["layer", "head"]].itertuples(index=False, name=None)))


def headings(heads: tuple[tuple[int, int], ...]) -> tuple[str, ...]:
    """Heads as L.H."""
    return tuple(f"{layer}.{head}" for layer, head in heads)


def row_names(frames: RelationFrames, panel: RelationPanel) -> tuple[str, ...]:
    """The rows' headings: the direction, and on how many pairs its numbers rest."""
    n = frames.relations.set_index(list(DIRECTION))["n"]
    return tuple(f"{relation}, {looks} (n\u00a0=\u00a0{n[relation, looks]:,})" for relation, looks in panel.directions)
