"""The page of how much heads attend to what they should: a task's related word, or what a function looks at."""

from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd

from interp.report.drawing import Figure, require
from interp.report.heads_figures import head_map
from interp.report.heatmap import Heatmap, grid_of_heads, missing
from interp.report.results.one_table import cell_names, page_of_table, task_of
from interp.report.sections import Heatmaps, Page, Table
from interp.report.tables import Column
from interp.report.words import counted, decimal, estimate

_INTERVAL = "the 95 % interval of the estimate before it: a bootstrap that draws whole {}."


def page_of(result: Any) -> Page:
    """The sections of what ``task_attention`` or ``function_heads`` returns."""
    return _functions(result) if hasattr(result, "cells") else _task(result)


def task_attention(result: Any) -> Figure:
    """How much more of each head's attention goes to the related word than to its best baseline.

    Where the task names a feature: at the value at which that is most.

    Args:
        result: What ``interp.methods.task_attention.task_attention`` returns.

    Raises:
        InputError: It is something else.
    """
    attributes, made_by = ("examples", "summary", "testable", "provenance"), "interp.methods.task_attention"
    require(result, attributes, "task_attention", f"{made_by}.task_attention")
    title = f"{task_of(result.provenance)}: attention to the related word, less the best baseline's"
    return head_map(result.strongest(), "excess", title=title, signed=True, bound=1.0)


def _task(result: Any) -> Page:
    table = _largest_first(result.summary(), "excess")
    best = table.iloc[0]
    n = f"{counted(int(best['n']), 'unit')} in {counted(int(best['n_clusters']), 'cluster')}"
    where = [Column("feature_value", "where")] if table["feature_value"].any() else []
    columns = [Column("name"), Column("excess", "excess attention", "low", "high"), *where, Column("attention")]
    columns += [Column("attention_baseline"), Column("baseline"), Column("p")]
    columns += [Column("attention_self"), Column("attention_first"), Column("n", "units")]
    if result.testable:
        said = [
            f"Head {best['layer']}.{best['head']} gives the related word most beyond its best baseline, "
            f"“{best['baseline']}”: {estimate(best['excess'], best['low'], best['high'])} of its attention.",
            f"{n}; p is of one head by itself, not corrected for their number.",
        ]
    else:
        said = [
            "Not testable: the related word is the first token, or does not stand before the query, or no baseline "
            "could be chosen."
        ]
    reading = {
        "Excess": "the share of attention from the query to the related word, less the share that goes where the "
        "head's best baseline looks: a fixed offset, a position, or a distractor, chosen on other examples.",
        "[low, high]": _INTERVAL.format("clusters"),
    }
    maps = [("Excess attention", _heatmap(result.strongest(), "excess"))] if result.testable else []
    return page_of_table(
        result,
        f"Attention to the related word: {task_of(result.provenance)}",
        said,
        Table("Heads", "The largest excess first", table, columns, "heads.csv"),
        partial(task_attention, result),
        kind="attention",
        before=[Heatmaps("Heatmap", maps)] if maps else [],
        reading=list(reading.items()),
        evidence=n,
    )


def _functions(result: Any) -> Page:
    table, how = _largest_first(result.cells, "score"), result.provenance
    by_function = dict(list(result.cells.groupby("function", sort=False)))
    said = [
        f"{row['function'].capitalize()}: {row['name']} gives most, {estimate(row['score'], row['low'], row['high'])} "
        f"of its attention; chance is {decimal(row['chance'])}."
        for _, row in table.dropna(subset="score").drop_duplicates("function").iterrows()
    ]
    columns = [Column("function"), Column("name"), Column("score", "attention", "low", "high")]
    columns += [Column("chance"), Column("n_rows", "rows")]
    reading = {
        "Attention": "the mean share that a token gives to what the function looks at, where there is such a token.",
        "Chance": "what even attention over all visible tokens would give.",
        "[low, high]": _INTERVAL.format("rows"),
    }
    page = page_of_table(
        result,
        "Heads with known functions",
        said,
        Table("Heads", "The largest share first", table, columns, "heads.csv"),
        kind="attention",
        before=[Heatmaps("Heatmap", [(name, _heatmap(cells, "score")) for name, cells in by_function.items()])],
        reading=list(reading.items()),
        evidence=f"{counted(how['n_rows'], 'row')} of tokens ({how['rows']})",
    )
    draws = {
        name.replace(" ", "_"): partial(head_map, cells, "score", title=name, signed=False, bound=1.0)
        for name, cells in by_function.items()
    }
    call = "interp.plots.head_map(result.summary().query(\"function == 'induction'\"), 'score')"
    return replace(page, call=call, draws=draws)


def _largest_first(table: pd.DataFrame, column: str) -> pd.DataFrame:
    table = table.sort_values(column, ascending=False, kind="stable").reset_index(drop=True)
    return table.assign(name=cell_names(table, ("layer", "head")))


def _heatmap(cells: pd.DataFrame, column: str) -> Heatmap:
    texts = ["not measured" if pd.isna(value) else decimal(value) for value in cells[column]]
    titles = [f"H{name[1:]}: {text}" for name, text in zip(cell_names(cells, ("layer", "head")), texts, strict=True)]
    cells = cells.assign(task="", verdict="")
    reasons = missing("nothing to look at")
    return grid_of_heads(cells, "", column, titles, {}, palette="attention", bound=1.0, reasons=reasons).heatmap()
