"""The page of how much heads attend to what they should: a task's related word, or what a function looks at."""

from functools import partial
from typing import Any

import pandas as pd

from interp.report.drawing import Figure, require
from interp.report.heads_figures import head_map
from interp.report.heatmap import Cell, Heatmap, head_grid, paint
from interp.report.notebook import MOST_DRAWN
from interp.report.results.words import task_of
from interp.report.sections import Facts, Heatmaps, Page, Picture, Section, Sentences, Table
from interp.report.tables import Column
from interp.report.words import about, counted, decimal, estimate

_MADE_BY = "interp.methods.task_attention.task_attention"
_INTERVAL = ("[low, high]", "the 95 % interval of the estimate before it: a bootstrap that draws whole {}.")


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
    require(result, ("examples", "summary", "testable", "provenance"), "task_attention", _MADE_BY)
    title = f"{task_of(result.provenance)}: attention to the related word, less the best baseline's"
    return head_map(result.strongest(), "excess", title=title, signed=True, bound=1.0)


def _task(result: Any) -> Page:
    table = result.summary().sort_values("excess", ascending=False, kind="stable").reset_index(drop=True)
    table, how = _named(table), result.provenance
    n = f"{counted(int(table['n'].iloc[0]), 'unit')} in {counted(int(table['n_clusters'].iloc[0]), 'cluster')}"
    where = [Column("feature_value", "where")] if table["feature_value"].any() else []
    columns = [Column("name"), Column("excess", "excess attention", "low", "high"), *where, Column("attention")]
    columns += [Column("attention_baseline"), Column("baseline"), Column("p")]
    columns += [Column("attention_self"), Column("attention_first"), Column("n", "units")]
    found: list[Section] = []
    if result.testable:
        found.append(Heatmaps("Heatmap", [("Excess attention", _grid(result.strongest(), "excess"))]))
        first = table.iloc[0]
        said = [
            f"Head {first['layer']}.{first['head']} gives the related word most beyond its best baseline, "
            f"“{first['baseline']}”: {estimate(first['excess'], first['low'], first['high'])} of its attention.",
            f"{n}; p is of one head by itself, not corrected for their number.",
        ]
    else:
        said = [
            "Not testable: the related word is the first token, or does not stand before the query, or no baseline "
            "could be chosen."
        ]
    if len(table) <= MOST_DRAWN:
        found.append(Picture("", "task_attention", partial(task_attention, result), "Excess attention of every head"))
    found.append(Sentences("Findings", said))
    found.append(Table("Heads", "The largest excess first", table, columns, "heads.csv"))
    reading = [
        (
            "Excess",
            "the share of attention from the query to the related word, less the share that goes where the head's best "
            "baseline looks: a fixed offset, a position, or a distractor, chosen on other examples.",
        ),
        (_INTERVAL[0], _INTERVAL[1].format("clusters")),
    ]
    return Page(
        title=f"Attention to the related word: {task_of(how)}",
        kind="attention",
        sections=(*found, Facts("How to read this", reading)),
        provenance=how,
        about=about(how, n),
        call="interp.plots.task_attention(result)",
        frames={"heads": table.drop(columns="name")},
        draws={"attention": partial(task_attention, result)},
    )


def _functions(result: Any) -> Page:
    table, how = _named(result.cells.sort_values("score", ascending=False, kind="stable")), result.provenance
    best = table.dropna(subset="score").drop_duplicates("function")
    names = list(result.cells["function"].unique())
    maps = [(name, _grid(result.cells[result.cells["function"] == name], "score")) for name in names]
    said = [
        f"{row['function'].capitalize()}: head {row['layer']}.{row['head']} gives most, "
        f"{estimate(row['score'], row['low'], row['high'])} of its attention; chance is {decimal(row['chance'])}."
        for _, row in best.iterrows()
    ]
    columns = [Column("function"), Column("name"), Column("score", "attention", "low", "high")]
    columns += [Column("chance"), Column("n_rows", "rows")]
    found: list[Section] = [
        Heatmaps("Heatmap", maps),
        Sentences("Findings", said),
        Table("Heads", "The largest share first", table, columns, "heads.csv"),
    ]
    reading = [
        ("Attention", "the mean share that a token gives to what the function looks at, where there is such a token."),
        ("Chance", "what even attention over all visible tokens would give."),
        (_INTERVAL[0], _INTERVAL[1].format("rows")),
    ]
    n = f"{counted(how['n_rows'], 'row')} of tokens ({how['rows']})"
    return Page(
        title="Heads with known functions",
        kind="attention",
        sections=(*found, Facts("How to read this", reading)),
        provenance=how,
        about=about(how, n),
        call="interp.plots.head_map(result.summary().query(\"function == 'induction'\"), 'score')",
        frames={"heads": result.cells},
        draws={name.replace(" ", "_"): partial(_function_map, result, name) for name in names},
    )


def _function_map(result: Any, name: str) -> Figure:
    return head_map(result.cells[result.cells["function"] == name], "score", title=name, signed=False, bound=1.0)


def _named(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(name=[f"head {row['layer']}.{row['head']}" for _, row in table.iterrows()])


def _grid(cells: pd.DataFrame, column: str) -> Heatmap:
    hatched = (("", "nothing to look at"),) if cells[column].isna().any() else ()
    return head_grid(cells, partial(_cell, column=column), hatched)


def _cell(row: pd.Series, column: str) -> Cell:
    name = f"Head {row['layer']}.{row['head']}"
    if pd.isna(row[column]):
        return Cell("—", "", "", f"{name}: not measured")
    text = decimal(row[column])
    return Cell(text, "", paint(float(text), "attention").style, f"{name}: {text}")
