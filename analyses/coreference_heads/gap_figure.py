"""Who resolves GAP's pronouns? The best heads beside the rules, for masculine and feminine pronouns."""

from typing import Any

import numpy as np
import pandas as pd

from interp.report.dots import dots_figure
from interp.report.drawing import Figure, require, require_rows
from interp.report.sections import Page, Picture, Sentences, Table
from interp.report.tables import Column, columns_of
from interp.report.words import about, counted, estimate, percent

_MADE_BY = "analyses.coreference_heads.gap.gap"
_COLUMNS = ("name", "layer", "f1", "f1_masculine", "f1_feminine", "chosen")
_MOST = 15


def gap_figure(result: Any) -> Figure:
    """F1 of the best heads and of the rules; of the head that was chosen on other passages, with its 95 % interval.

    Args:
        result: What ``analyses.coreference_heads.gap.gap`` returns.

    Raises:
        InputError: It is something else, or has no row.
    """
    require(result, ("cells", "best", "left_out"), "gap", _MADE_BY)
    frame = require_rows(result.cells, _COLUMNS, "gap", _MADE_BY)
    shown = _shown(frame).head(_MOST + int(frame["layer"].isna().sum()))
    ends = {name: np.where(shown["chosen"], result.best[name], np.nan) for name in ("low", "high")}
    drawn = {"all": pd.DataFrame({"estimate": shown["f1"].to_numpy(dtype=float), **ends})}
    for name in ("masculine", "feminine"):
        values = shown[f"f1_{name}"].to_numpy(dtype=float)
        drawn[name] = pd.DataFrame({"estimate": values, "low": np.nan, "high": np.nan})
    rows = [f"{name} (chosen)" if own else str(name) for name, own in zip(shown["name"], shown["chosen"], strict=True)]
    title = (
        f"GAP: F1 over {int(result.best['n']):,} passages, rules and the best of {frame['layer'].notna().sum()} heads"
    )
    return dots_figure(rows, drawn, "F1 (with the chosen head's 95 % interval)", title, origin=None)


def page_of(result: Any) -> Page:
    """What a notebook shows of it, and what it is saved as."""
    best, table = result.best, _shown(result.cells)
    excess = estimate(best["excess"], best["excess_low"], best["excess_high"], "")
    f1 = estimate(best["f1"], best["low"], best["high"], "")
    said = [
        f"Head {best['name']}, chosen on other passages, has an F1 of {f1}; "
        f"“{best['baseline']}” has {best['f1_baseline']:.2f}. Accuracy {percent(best['accuracy'])} against "
        f"{percent(best['accuracy_baseline'])}: excess {excess}, p = {best['p']:.4f}; {best['n']:,} passages of "
        f"{best['n_pages']:,} pages."
    ]
    left_out = {reason: n for reason, n in result.left_out.items() if n}
    if left_out:
        said.append(f"Not scored: {', '.join(f'{n:,} {reason}' for reason, n in left_out.items())}.")
    columns = [Column("name", "head or rule"), Column("f1", "F1"), Column("f1_masculine", "masculine")]
    columns += [Column("f1_feminine", "feminine"), *columns_of("bias", "chosen")]
    shown = table.assign(chosen=["●" if each else "" for each in table["chosen"]])
    sections = (
        Picture("Figure", "gap", lambda: gap_figure(result), "F1 of heads and rules", inline=True),
        Sentences("Findings", said),
        Table("Heads and rules", "Rules, then the chosen head, then the others by their F1", shown, columns, "gap.csv"),
    )
    return Page(
        title="GAP",
        kind="attention",
        sections=sections,
        provenance=result.provenance,
        about=about(result.provenance, counted(best["n"], "passage")),
        call="gap_figure(result)",
        frames={"gap": result.cells},
        draws={"gap": lambda: gap_figure(result)},
    )


def _shown(frame: pd.DataFrame) -> pd.DataFrame:
    """The rules, then the heads, by their F1; the chosen head comes first of these."""
    order = frame.assign(_head=frame["layer"].notna(), _own=~frame["chosen"].astype(bool), _f1=-frame["f1"])
    return order.sort_values(["_head", "_own", "_f1"], kind="stable").drop(columns=["_head", "_own", "_f1"])
