"""How do relations and heads become a table that a browser colours? Excess in points, with the verdict's symbol."""

import pandas as pd

from interp.report.amounts import interval, p_value, percent, points
from interp.report.heatmap import Cell, Heatmap
from interp.report.relations.colours import paint_excess
from interp.report.relations.frames import DIRECTION, RelationFrames
from interp.report.relations.panel import RelationPanel, headings, row_names
from interp.report.relations.verdicts import VERDICTS
from interp.report.relations.words import direction_name, head_name


def relation_heatmap(frames: RelationFrames, panel: RelationPanel) -> Heatmap:
    """Colour the excess of every head of `panel`."""
    cells = frames.frame.set_index([*DIRECTION, "layer", "head"], drop=False).sort_index()
    rows = tuple(
        (name, tuple(_cell(cells.loc[(*direction, *head)], panel.bound) for head in panel.heads))
        for direction, name in zip(panel.directions, row_names(frames, panel), strict=True)
    )
    return Heatmap("Relation", headings(panel.heads), rows, ())


def _cell(row: pd.Series, bound: float) -> Cell:
    text = points(row["excess"], 0)
    symbol = VERDICTS[row["verdict"]].symbol if pd.notna(row["verdict"]) else ""
    # Rounded before it is painted: what reads as 0 has one colour.
    return Cell(text, symbol, paint_excess(float(text) / 100, bound).style, _title(row))


def _title(row: pd.Series) -> str:
    ends = [f"excess {points(row['excess'])} points"]
    if pd.notna(row["low"]):
        ends[0] += f" {interval(row['low'], row['high'])}"
    ends += [p_value(row["p_adjusted"])] if pd.notna(row["p_adjusted"]) else []
    verdict = row["verdict"] if pd.notna(row["verdict"]) else "not tested"
    return (
        f"Head {head_name(row)}, {direction_name(row['relation'], row['looks'])}: right in {percent(row['accuracy'])}, "
        f"{row['baseline']} in {percent(row['accuracy_baseline'])}; {', '.join(ends)} ({verdict})"
    )
