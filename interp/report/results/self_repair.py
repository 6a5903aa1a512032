"""Self-repair: a head's direct effect beside its total effect, as a figure and as a page."""

from functools import partial
from typing import Any

import pandas as pd

from interp.report.dots import MOST_ROWS, Dots, dots_figure, series
from interp.report.drawing import Figure
from interp.report.results.words import largest_first, measured, page_of_table, task_of
from interp.report.sections import Page, Table
from interp.report.tables import Column

_MADE_BY = "interp.methods.self_repair.self_repair"


def self_repair(result: Any) -> Figure:
    """Direct and total effects of ablating each head, with 95 % intervals; what lies between them is self-repair.

    Of more than 40 heads, those with the largest repair.

    Args:
        result: What ``interp.methods.self_repair.self_repair`` returns.

    Raises:
        InputError: It is something else, or has no row.
    """
    table = measured(result, ("layer", "head", "direct", "total", "repair"), "self_repair", _MADE_BY)
    shown = table if len(table) <= MOST_ROWS else _largest_first(table).head(MOST_ROWS)
    names = _names(shown)
    drawn = {f"{name} effect": series(shown, name, f"{name}_low", f"{name}_high") for name in ("direct", "total")}
    few = "" if len(shown) == len(table) else f": the {len(shown)} largest repairs of {len(table)} heads"
    title = f"{task_of(result.provenance)}: direct and total effect of ablating each head{few}"
    return dots_figure(Dots(names, drawn, "effect (logits; a cost is negative)", title))


def page_of(result: Any) -> Page:
    """The page of every head, those with a share that is known first."""
    table = _largest_first(result.summary())
    known = int(table["repaired"].notna().sum())
    shown = Table(
        "Heads",
        "Heads with a direct effect to be repaired first, by the size of the repair",
        table.assign(name=_names(table)),
        (
            Column("name"),
            Column("direct", "direct effect (logits)", "direct_low", "direct_high"),
            Column("total", "total effect", "total_low", "total_high"),
            Column("repair", "self-repair", "repair_low", "repair_high"),
            Column("repaired", "share repaired", "repaired_low", "repaired_high"),
        ),
        "cells.csv",
    )
    sentences = [f"Of {len(table)} heads, {known} have a direct effect that is large enough to be repaired."]
    title = f"Self-repair: {task_of(result.provenance)}"
    return page_of_table(result, title, sentences, shown, partial(self_repair, result), "self_repair")


def _largest_first(table: pd.DataFrame) -> pd.DataFrame:
    """Heads with a share that is known come first."""
    return largest_first(table, "repair", table["repaired"].notna())


def _names(table: pd.DataFrame) -> list[str]:
    return [f"{layer}.{head}" for layer, head in zip(table["layer"], table["head"], strict=True)]
