"""How much of what a head does is made up for when it is gone? Its direct effect beside its total effect."""

from typing import Any

import pandas as pd

from interp.report.dots import MOST_ROWS, Dots, dots_figure, series
from interp.report.drawing import Figure, require, require_rows
from interp.report.glance import MOST_DRAWN, Glance, with_interval
from interp.report.results.words import task_of

_MADE_BY = "interp.methods.self_repair.self_repair"


def self_repair(result: Any) -> Figure:
    """Direct and total effects of ablating each head, with 95 % intervals; what lies between them is self-repair.

    Of more than 40 heads, those with the largest repair.

    Args:
        result: What ``interp.methods.self_repair.self_repair`` returns.

    Raises:
        InputError: It is something else, or has no row.
    """
    require(result, ("frame", "summary", "provenance"), "self_repair", _MADE_BY)
    require_rows(result.frame, ("layer", "head", "direct", "total", "repair"), "self_repair", _MADE_BY)
    table = result.summary()
    shown = table if len(table) <= MOST_ROWS else _largest_first(table).head(MOST_ROWS)
    names = _names(shown)
    drawn = {f"{name} effect": series(shown, name, f"{name}_low", f"{name}_high") for name in ("direct", "total")}
    few = "" if len(shown) == len(table) else f": the {len(shown)} largest repairs of {len(table)} heads"
    title = f"{task_of(result.provenance)}: direct and total effect of ablating each head{few}"
    return dots_figure(Dots(names, drawn, "effect (logits; a cost is negative)", title))


def self_repair_glance(result: Any) -> Glance:
    """What a notebook shows of it."""
    table = _largest_first(result.summary())
    known = int(table["repaired"].notna().sum())
    shown = pd.DataFrame(
        {
            "head": _names(table),
            "direct effect (logits)": with_interval(table, "direct", "direct_low", "direct_high"),
            "total effect": with_interval(table, "total", "total_low", "total_high"),
            "self-repair": with_interval(table, "repair", "repair_low", "repair_high"),
            "share repaired": with_interval(table, "repaired", "repaired_low", "repaired_high"),
        }
    )
    return Glance(
        f"Self-repair: {task_of(result.provenance)}",
        [f"Of {len(table)} heads, {known} have a direct effect that is large enough to be repaired."],
        shown,
        len(table),
        ".summary()",
        result.provenance,
        "interp.plots.self_repair(result)",
        (lambda: self_repair(result)) if len(table) <= MOST_DRAWN else None,
    )


def _largest_first(table: pd.DataFrame) -> pd.DataFrame:
    """Heads with a share that is known come first."""
    order = table.assign(_known=table["repaired"].notna(), _size=table["repair"].abs())
    return order.sort_values(["_known", "_size"], ascending=False, kind="stable").drop(columns=["_known", "_size"])


def _names(table: pd.DataFrame) -> list[str]:
    return [f"{layer}.{head}" for layer, head in zip(table["layer"], table["head"], strict=True)]
