"""How does a result show itself in a notebook? A sentence or a few, the strongest findings, and where they come from.

1. The sentences are those of the result's page, where it has one.
2. A table has ten rows at most, each estimate with its interval; what is left out is counted, and said where it is.
3. A figure stands there where it is small: drawing grows with the number of cells, and showing a result must not wait.
4. One line says which model, how many units, which seed, and whether the numbers were audited.

Everything is escaped (``html.py``), and no colour is set: it suits a light and a dark notebook.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np
import pandas as pd

from interp.report.drawing import Figure, inline, ordinary_style, pictures
from interp.report.html import render
from interp.report.notebook import DPI, MOST_ROWS, MOST_SENTENCES, made
from interp.report.tables import TableCell
from interp.report.words import estimate, or_dash


@dataclass(frozen=True)
class Glance:
    """What a notebook shows of a result.

    Attributes:
        title: What it is, in a few words.
        sentences: What was found, the most telling first.
        table: The strongest findings as text; its columns are the headings.
        n_rows: How many rows there are with those that the table leaves out.
        rest: Where all of them are, such as ``.frame``.
        provenance: How the numbers were made.
        figure: The call that draws it, such as ``interp.plots.sweep(result)``.
        draw: Draws that figure; None where it is too large to stand here.
    """

    title: str
    sentences: Sequence[str]
    table: pd.DataFrame
    n_rows: int
    rest: str
    provenance: Mapping[str, Any]
    figure: str
    draw: Callable[[], Figure] | None = None


@ordinary_style()
def as_html(glance: Glance) -> str:
    """A fragment of HTML for ``_repr_html_``."""
    drawn = {} if glance.draw is None else pictures({glance.figure: glance.draw}, DPI)
    rows = glance.table.head(MOST_ROWS).astype(str).to_numpy().tolist()
    return render(
        "notebook.html",
        title=glance.title,
        sentences=glance.sentences[:MOST_SENTENCES],
        n_more_sentences=max(0, len(glance.sentences) - MOST_SENTENCES),
        heads=[],
        columns=list(glance.table.columns),
        rows=[[TableCell(text, "") for text in row] for row in rows],
        n_more=glance.n_rows - min(len(glance.table), MOST_ROWS),
        rest=glance.rest,
        picture=next((inline(png) for png in drawn.values()), None),
        call=glance.figure,
        saved=False,
        provenance=made(glance.provenance),
    )


def with_interval(frame: pd.DataFrame, value: str, low: str, high: str, unit: str = "") -> list[str]:
    """Estimates with their intervals, as text; said where one is not measured, or has no interval."""
    rows = frame.reindex(columns=[value, low, high]).to_numpy(dtype=float, na_value=np.nan).tolist()
    return ["not measured" if isnan(at) else estimate(at, start, end, unit) for at, start, end in rows]


def numbers(values: pd.Series, digits: int = 3) -> list[str]:
    """Numbers as text, without a minus before 0; an em dash where there is none."""
    return [or_dash(each, digits) for each in values]
