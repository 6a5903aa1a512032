"""Pairs of heads: every pair's interaction in its place, as a figure and as a page."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from interp.report.dots import MOST_ROWS, Dots, dots_figure, series
from interp.report.drawing import Figure, diverging, draw_table, hatching, wrapped_title
from interp.report.results.words import largest_first, measured, page_of_table, task_of, unit_of
from interp.report.sections import Page, Table
from interp.report.tables import Column

_MOST_HEADS = 30
_MARKS = {"redundant": ("v", "black"), "in series": ("^", "white")}
_MADE_BY = "interp.methods.head_sets.pairwise"


def pairs(result: Any) -> Figure:
    """How much more two heads cost together than one by one: below 0 each hides what the other does.

    Colours reach as far above 0 as below. A triangle that points down marks redundant pairs, a white one that points
    up pairs in series. Of more than 30 heads, the 40 largest interactions are dots with 95 % intervals.

    Args:
        result: What ``interp.methods.head_sets.pairwise`` returns.

    Raises:
        InputError: It is something else, or has no row.
    """
    table, about = measured(result, ("first", "second", "interaction"), "pairs", _MADE_BY), _about(result)
    names = list(dict.fromkeys([*table["first"], *table["second"]]))
    if len(names) > _MOST_HEADS:
        return _dots(_largest_first(table), about)
    return _matrix(table, names, about)


def page_of(result: Any) -> Page:
    """The page of every pair, those that are decided first."""
    table, unit = result.summary(), unit_of(result.provenance)
    found = table["relation"].value_counts()
    said = ", ".join(
        f"{found[name]} {name}" for name in ("redundant", "in series", "additive", "undecided") if name in found
    )
    first = _largest_first(table)
    shown = Table(
        "Pairs",
        "Decided pairs first, by the size of their interaction",
        first.assign(heads=first["first"] + " and " + first["second"]),
        (
            Column("heads"),
            Column("interaction", f"interaction ({unit})", "low", "high"),
            Column("relation"),
            Column("effect", f"effect together ({unit})"),
            Column("p_adjusted"),
        ),
        "cells.csv",
    )
    sentences = [f"{_about(result)}. Of {len(table)} pairs: {said}."]
    return page_of_table(result, "Heads ablated two by two", sentences, shown, partial(pairs, result), "pairs")


def _matrix(table: pd.DataFrame, names: list[str], about: str) -> Figure:
    """Both halves are the same; the diagonal is no pair."""
    half = table.pivot(index="first", columns="second", values="interaction").reindex(index=names, columns=names)
    shown = half.combine_first(half.T).loc[names, names]
    bound = max(float(table["minimum"].max()), float(np.nanmax(np.abs(table["interaction"]), initial=0.0)))
    size = (max(4.6, 0.46 * len(names) + 1.8), max(3.4, 0.4 * len(names) + 1.5))
    figure = Figure(figsize=size, dpi=150, layout="constrained")
    ax = figure.subplots()
    draw_table(ax, shown, cmap=diverging(), vmin=-bound, vmax=bound, annotate=True, cbar=True, label="interaction")
    ax.set(xlabel="head", ylabel="head")
    present = [name for name in _MARKS if (table["relation"] == name).any()]
    for name in present:
        rows = table[table["relation"] == name]
        first, second = (np.array([names.index(each) for each in rows[side]]) for side in ("first", "second"))
        ax.add_line(_mark(name, np.append(second, first) + 0.5, np.append(first, second) + 0.78))
    handles = [*(_mark(name) for name in present), hatching()]
    wrapped_title(ax, about)
    labels = [*present, "no pair, or not measured"]
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    return figure


def _mark(name: str, x: Any = (), y: Any = ()) -> Line2D:
    shape, colour = _MARKS[name]
    edge = "white" if colour == "black" else "black"
    mark = Line2D(x, y, linestyle="none", marker=shape, markersize=6, markeredgewidth=0.7)
    mark.set(markerfacecolor=colour, markeredgecolor=edge)
    return mark


def _dots(table: pd.DataFrame, about: str) -> Figure:
    shown = table.head(MOST_ROWS)
    rows = [f"{first} and {second}" for first, second in zip(shown["first"], shown["second"], strict=True)]
    title = f"{about}: the {len(shown)} largest interactions of {len(table)}"
    return dots_figure(Dots(rows, {"interaction": series(shown, "interaction", "low", "high")}, "interaction", title))


def _largest_first(table: pd.DataFrame) -> pd.DataFrame:
    return largest_first(table, "interaction", table["relation"].isin(_MARKS))


def _about(result: Any) -> str:
    return f"{task_of(result.provenance)}: effect of both together, less the effects of each"
