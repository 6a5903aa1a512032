"""Effects by cell, replacement, head or pair of heads, and gradients' estimates of them: figures and pages."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from interp.report.card_evidence import spoken
from interp.report.dots import MOST_ROWS, dots_figure, series
from interp.report.drawing import Figure, finish, one_panel, require, require_rows, style
from interp.report.heads_figures import head_map
from interp.report.heads_frames import Verdict, head_names
from interp.report.heatmap import Grid, missing
from interp.report.results.one_table import (
    cell_names,
    largest_first,
    largest_names,
    measured,
    page_of_table,
    task_of,
    unit_of,
)
from interp.report.sections import Page, Table
from interp.report.tables import Column, columns_of
from interp.report.words import estimate

_MOST = 30
"""Cells, components or heads of a figure."""
_MARKS = {
    "redundant": Verdict("redundant", "▼", "v", True, "each head hides what the other does"),
    "in series": Verdict("in series", "△", "^", False, "each head needs the other"),
}


def page_of(result: Any) -> Page:
    """The page of estimates, of a screen by them, or of effects that are compared."""
    pages = {
        "AttributionResult": _estimated,
        "Screen": _screened,
        "PairwiseResult": _paired,
        "ReplacementComparison": _replaced,
        "SelfRepairResult": _repaired,
    }
    return pages[type(result).__name__](result)


def estimates(result: Any) -> Figure:
    """Estimated effects of patching: of layers by heads as a map, else the 30 largest as dots with 95 % intervals.

    Args:
        result: What ``interp.methods.attribution.attribute`` returns.

    Raises:
        InputError: It is something else, or has no row.
    """
    measured("estimates", result, "estimate", needs=("labels", "provenance"))
    table, unit = result.summary(), unit_of(result.provenance)
    title = f"{task_of(result.provenance)}: estimated effect of patching {result.provenance['site']} ({unit})"
    if tuple(result.labels) == ("layer", "head"):
        return head_map(table, "estimate", title=title, signed=True)
    shown = largest_first(table, "estimate").head(_MOST)
    few = "" if len(shown) == len(table) else f": the {len(shown)} largest of {len(table)}"
    drawn = {"estimate": series(shown, "estimate", "low", "high")}
    return dots_figure(cell_names(shown, result.labels), drawn, f"estimated effect ({unit})", f"{title}{few}")


def _estimated(result: Any) -> Page:
    table = largest_first(result.summary(), "estimate")
    table = table.assign(name=cell_names(table, result.labels))
    effect = Column("estimate", f"estimated effect ({unit_of(result.provenance)})", "low", "high")
    columns = (Column("name", "cell"), effect, Column("n_units"))
    title = f"Estimated by {_spaced(result.provenance['method'])}: {task_of(result.provenance)}"
    said = "Intervals are of the estimates, not of the effects; interp.patch measures those."
    shown = Table("Cells", "The largest estimates first", table, columns, "cells.csv")
    return page_of_table(result, title, [said], shown, partial(estimates, result))


def screen(found: Any) -> Figure:
    """Estimates beside exact effects, cell by cell: those at the top, and the audit drawn from the others.

    Args:
        found: What ``interp.patch(..., screen=True).screen`` is.

    Raises:
        InputError: It is something else, or nothing was measured.
    """
    require(found, ("cells", "recall", "method"), "screen", "interp.patch(..., screen=True).screen")
    frame = require_rows(found.cells, ("estimate", "effect", "chosen"), "screen", "interp.patch(..., screen=True)")
    figure, ax = one_panel(4.8, 4.2)
    for number, which in enumerate(("top", "audit")):
        rows = frame[frame["chosen"] == which]
        ax.plot(rows["estimate"], rows["effect"], linestyle="none", markersize=5, label=which, **style(number))
    ends = np.array([*ax.get_xlim(), *ax.get_ylim()])
    ax.plot([ends.min(), ends.max()], [ends.min(), ends.max()], color="0.6", linewidth=0.8, zorder=0, label="equal")
    ax.legend(fontsize=8, frameon=False)
    left = int((frame["chosen"] == "not measured").sum())
    title = f"screen by {_spaced(found.method)}: {left} of {len(frame)} cells not measured"
    finish(ax, title, "estimate by gradients", "exact effect")
    return figure


def _screened(found: Any) -> Page:
    table, recall, n = largest_first(found.cells, "effect"), found.recall(), found.cells["chosen"].value_counts()
    labels = [name for name in table.columns if name not in ("estimate", "effect", "chosen")]
    table = table.assign(name=cell_names(table, labels))
    columns = (Column("name", "cell"), Column("effect", "exact effect"), *columns_of("estimate", "chosen"))
    said = (
        f"Of {len(table)} cells, the {n.get('top', 0)} with the largest estimates by {_spaced(found.method)} were "
        f"measured, and {n.get('audit', 0)} drawn from the others. Of the {recall.sought} largest effects, a share of "
        f"{estimate(recall.estimate, recall.low, recall.high)} is among them."
    )
    shown = Table("Cells", "The largest exact effects first", table, columns, "cells.csv")
    return page_of_table(found, "Screen", [said], shown, partial(screen, found))


def _spaced(method: str) -> str:
    return str(method).replace("_", " ")


def replacements(result: Any) -> Figure:
    """Every component's effect under every replacement, with 95 % intervals; grey is too small to count.

    Of more than 30 components, those with the largest effect under any.

    Args:
        result: What ``interp.methods.replacements_compared.compare_replacements`` returns.

    Raises:
        InputError: It is something else, or has no row.
    """
    measured("replacements", result, "replacement", "effect", needs=("provenance", "replacements", "labels"))
    table = result.summary()
    table = table.assign(name=cell_names(table, result.labels))
    rows, n = largest_names(table, _MOST), table["name"].nunique()
    own = {each: table[table["replacement"] == each].set_index("name").reindex(rows) for each in result.replacements}
    drawn = {spoken(each): series(effects, "effect", "low", "high") for each, effects in own.items()}
    few = "" if len(rows) == n else f" (the {len(rows)} largest of {n})"
    title = f"{task_of(result.provenance)}: effect of ablation by what replaces it{few}"
    across = f"effect ({unit_of(result.provenance)}; a cost is negative; grey: too small to count)"
    return dots_figure(rows, drawn, across, title, ignored=float(table["minimum"].mean()))


def _replaced(result: Any) -> Page:
    table, found, how = result.summary(), result.conclusions(), result.provenance
    texts = [
        f"{estimate(effect, low, high)}: {state}"
        for effect, low, high, state in table[["effect", "low", "high", "state"]].itertuples(index=False)
    ]
    table = table.assign(component=cell_names(table, result.labels), text=texts)
    sizes = table["effect"].abs().groupby(table["component"]).max().sort_values(ascending=False)
    said = table.pivot(index="component", columns="replacement", values="text").loc[sizes.index].reset_index()
    n = found["agreement"].value_counts()
    finding = (
        f"Of {len(found)} components, {n.get('agrees', 0)} come to one conclusion under all replacements, "
        f"{n.get('flips', 0)} to contrary ones, and {n.get('open', 0)} are open."
    )
    caption = f"The largest effects first ({unit_of(how)}), with the conclusion under each replacement"
    columns = (Column("component"), *(Column(each, spoken(each)) for each in result.replacements))
    title, shown = f"Replacements compared: {task_of(how)}", Table("Components", caption, said, columns, "cells.csv")
    return page_of_table(result, title, [finding], shown, partial(replacements, result))


def self_repair(result: Any) -> Figure:
    """Direct and total effects of ablating each head, with 95 % intervals; what lies between them is self-repair.

    Of more than 40 heads, those with the largest repair.

    Args:
        result: What ``interp.methods.self_repair.self_repair`` returns.

    Raises:
        InputError: It is something else, or has no row.
    """
    measured("self_repair", result, "layer", "head", "direct", "total", "repair", needs=("provenance",))
    table = result.summary()
    shown = table if len(table) <= MOST_ROWS else _largest_repairs_first(table).head(MOST_ROWS)
    drawn = {f"{name} effect": series(shown, name, f"{name}_low", f"{name}_high") for name in ("direct", "total")}
    few = "" if len(shown) == len(table) else f": the {len(shown)} largest repairs of {len(table)} heads"
    title = f"{task_of(result.provenance)}: direct and total effect of ablating each head{few}"
    return dots_figure(head_names(shown), drawn, "effect (logits; a cost is negative)", title)


def _repaired(result: Any) -> Page:
    table = _largest_repairs_first(result.summary())
    headings = {"direct": "direct effect (logits)", "total": "total effect", "repair": "self-repair"}
    headings["repaired"] = "share repaired"
    columns = [Column(name, heading, f"{name}_low", f"{name}_high") for name, heading in headings.items()]
    caption = "Heads with a direct effect to be repaired first, by the size of the repair"
    shown = Table("Heads", caption, table.assign(name=head_names(table)), [Column("name"), *columns], "cells.csv")
    known = int(table["repaired"].notna().sum())
    said = f"Of {len(table)} heads, {known} have a direct effect that is large enough to be repaired."
    title = f"Self-repair: {task_of(result.provenance)}"
    return page_of_table(result, title, [said], shown, partial(self_repair, result))


def _largest_repairs_first(table: pd.DataFrame) -> pd.DataFrame:
    """Heads with a share that is known come first."""
    return largest_first(table, "repair", table["repaired"].notna())


def pairs(result: Any) -> Figure:
    """How much more two heads cost together than one by one: below 0 each hides what the other does.

    Colours reach as far above 0 as below. A triangle that points down marks redundant pairs, a white one that points
    up pairs in series. Of more than 30 heads, the 40 largest interactions are dots with 95 % intervals.

    Args:
        result: What ``interp.methods.head_sets.pairwise`` returns.

    Raises:
        InputError: It is something else, or has no row.
    """
    measured("pairs", result, "first", "second", "interaction", needs=("provenance",))
    table = result.summary()
    names = list(dict.fromkeys([*table["first"], *table["second"]]))
    if len(names) <= _MOST:
        return _grid(table, names).figure(_interaction(result), "interaction")
    shown = _decided_first(table).head(MOST_ROWS)
    drawn = {"interaction": series(shown, "interaction", "low", "high")}
    title = f"{_interaction(result)}: the {len(shown)} largest interactions of {len(table)}"
    return dots_figure((shown["first"] + " and " + shown["second"]).tolist(), drawn, "interaction", title)


def _grid(table: pd.DataFrame, names: list[str]) -> Grid:
    """Both halves are the same; the diagonal is no pair."""
    both = pd.concat([table, table.rename(columns={"first": "second", "second": "first"})])
    both["relation"] = both["relation"].where(both["relation"].isin(list(_MARKS)), "")
    values, marks = (
        both.pivot(index="first", columns="second", values=column).reindex(index=names, columns=names)
        for column in ("interaction", "relation")
    )
    bound = max(float(table["minimum"].max()), float(np.nanmax(np.abs(table["interaction"]), initial=0.0)))
    none = missing("no pair, or not measured")
    return Grid("head", "head", values, values.to_numpy(), marks.to_numpy(), _MARKS, "effect", bound, reasons=none)


def _paired(result: Any) -> Page:
    table, unit = _decided_first(result.summary()), unit_of(result.provenance)
    n = table["relation"].value_counts()
    counts = ", ".join(f"{n[name]} {name}" for name in ("redundant", "in series", "additive", "undecided") if name in n)
    columns = (
        Column("heads"),
        Column("interaction", f"interaction ({unit})", "low", "high"),
        Column("relation"),
        Column("effect", f"effect together ({unit})"),
        Column("p_adjusted"),
    )
    table = table.assign(heads=table["first"] + " and " + table["second"])
    shown = Table("Pairs", "Decided pairs first, by the size of their interaction", table, columns, "cells.csv")
    said = f"{_interaction(result)}. Of {len(table)} pairs: {counts}."
    return page_of_table(result, "Heads ablated two by two", [said], shown, partial(pairs, result))


def _decided_first(table: pd.DataFrame) -> pd.DataFrame:
    return largest_first(table, "interaction", table["relation"].isin(_MARKS))


def _interaction(result: Any) -> str:
    return f"{task_of(result.provenance)}: effect of both together, less the effects of each"
