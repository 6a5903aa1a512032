"""What does one get of a scoring? Tables of heads and relations, with how they were made; see ``attention.py``."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from interp.methods.in_one_line import counted_verdicts
from interp.report.relations_sentences import leading

CELL = ["relation", "looks", "layer", "head"]


@dataclass(frozen=True)
class RelationResult:
    """How well every head finds every relation.

    Attributes:
        frame: One row per relation, direction, layer and head: ``relation``, ``looks`` (who at whom), ``layer``,
            ``head``, ``accuracy`` (share of the pairs whose most attended other word is a related one), ``attention``
            (mean on the related words), ``baseline`` (its name), ``accuracy_baseline``, ``excess`` with its interval
            ``low``, ``high`` (95 %, documents resampled), ``p`` (that the excess is no more than the minimum),
            ``p_adjusted`` (over all that was tested), ``p_absent`` (that it is the minimum at least),
            ``accuracy_random_head`` (mean of the layer's other heads), ``n`` (pairs scored),
            ``n_documents`` (of more than 1,000 in the corpus, groups of neighbours), ``chosen`` and ``verdict``. Where
            heads were chosen on another corpus, the others have no p and no verdict. What could not be measured is NaN.
        relations: One row per relation and direction: ``n_pairs``, ``n`` (scored), how many were not by reason
            (``ahead``: a causal model cannot look there; ``unaligned``; ``outside`` of the window; ``no choice``;
            ``no baseline``: in documents whose baseline nothing else could choose), ``n_documents``, the baselines
            ``offset`` (a position or fixed distance) and ``nearest`` (the nearest word of a part of speech) with their
            accuracies, and ``chance``.
        provenance: How the numbers were made.
    """

    frame: pd.DataFrame
    relations: pd.DataFrame
    provenance: Mapping[str, Any]

    def __repr__(self) -> str:
        verdicts = counted_verdicts(self.frame)
        return f"RelationResult({len(self.relations)} directions, heads in them: {verdicts}; the best of each: .best())"

    def _repr_html_(self) -> str:
        """What a notebook shows: the findings in words, the strongest with their intervals, and a figure if small."""
        from interp.report.glance import as_html
        from interp.report.relations import relations_glance

        return as_html(relations_glance(self))

    def best(self) -> pd.DataFrame:
        """The head of each relation and direction: the chosen one; of several, one that attends, by its excess."""
        return self.relations[CELL[:2]].merge(leading(self.frame), on=CELL[:2])

    def save(self, out: str | Path, maps: pd.DataFrame | None = None) -> Path:
        """Write tables, figures and one self-contained page into the folder `out`; see ``save_relations``.

        Args:
            out: The folder; made, or replaced where it holds an older report.
            maps: Example sentences, as ``relation_maps.relation_maps`` gives them; None for none.

        Raises:
            OutputError: If `out` cannot be used.
        """
        from interp.report.relations import save_relations

        return save_relations(self, maps, out)
