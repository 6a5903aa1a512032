"""What is known of every head? One number each, as a map: layers down, heads across."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
import seaborn as sns

from interp.errors import InputError
from interp.report.colours import SEQUENTIAL
from interp.report.drawing import draw_table, hatching, map_size, short, thin_ticks, wrapped_title
from interp.report.figure import Figure
from interp.report.frames import HeadsFrames, layer_by_head
from interp.report.given import chosen, require, require_rows
from interp.report.names import shown_names, with_shown_names
from interp.report.plots import attention_heatmap, effect_heatmap, probe_heatmap
from interp.report.styles import diverging

Measure = Literal["attention", "effect", "probe"]
_DRAWN = {"attention": attention_heatmap, "effect": effect_heatmap, "probe": probe_heatmap}


def heads(report: HeadsFrames, task: str | None = None, measure: Measure = "effect") -> Figure:
    """One kind of evidence on one task, every head in its place, with the verdicts' shapes.

    Args:
        report: What ``interp.heads`` returns.
        task: One of its tasks; None where it has only one.
        measure: ``attention`` (to the related word, less the best baseline's), ``effect`` (of ablation, in the metric's
            unit) or ``probe`` (accuracy for the task's feature, less the toughest control's).

    Raises:
        InputError: It is no such report, or has no such task; an unknown measure; or no probe on this task.
    """
    require(report, ("frame", "tasks", "groups", "attention_maps"), "heads", "interp.heads")
    which = chosen("task", task, [str(each) for each in report.tasks["task"]])
    measured = chosen("measure", measure, get_args(Measure))
    named = with_shown_names(report)
    own = shown_names([str(each) for each in report.tasks["task"]])[which]
    if measured == "probe" and named.frame.loc[named.frame["task"] == own, "probe_excess"].isna().all():
        raise InputError(
            f"measure: task {which!r} was not probed: it has no feature, or probes were left out; expected one of "
            "'attention', 'effect'"
        )
    return _DRAWN[measured](named.frame, own)


def head_map(
    frame: pd.DataFrame, column: str, *, title: str = "", signed: bool | None = None, bound: float | None = None
) -> Figure:
    """Any number that a frame has of every head, such as ``copying_scores`` or ``result.summary()``.

    Args:
        frame: One row a head: ``layer``, ``head`` and `column`.
        column: What is drawn.
        title: Of the figure; the column's name where it is empty.
        signed: Whether colours diverge from 0, as far above as below; else they run from 0 up. None for whether
            any value is below 0.
        bound: What has the strongest colour; None for the largest size there is.

    Raises:
        InputError: A column is missing or holds no numbers, there is no row, a head stands twice, or `bound` is not
            above 0.
    """
    require_rows(frame, ("layer", "head", column), "head_map", "a method that scores heads")
    numeric = pd.to_numeric(frame[column], errors="coerce").astype(float)
    if numeric.isna().sum() > frame[column].isna().sum():
        raise InputError(f"head_map: expected numbers in {column!r}, got {frame[column].iloc[0]!r}")
    if frame.duplicated(["layer", "head"]).any():
        twice = frame.loc[frame.duplicated(["layer", "head"]), ["layer", "head"]].iloc[0].tolist()
        raise InputError(
            f"head_map: expected one row a head, got several of {twice[0]}.{twice[1]}; choose some rows first, as "
            "frame[frame['task'] == ...]"
        )
    if bound is not None and not bound > 0:
        raise InputError(f"bound: expected a number above 0, got {bound!r}")
    table = layer_by_head(frame.assign(task="", **{column: numeric}), "", column)
    return _drawn(table, title or column, (numeric < 0).any() if signed is None else signed, bound)


def _drawn(table: pd.DataFrame, title: str, signed: bool, bound: float | None) -> Figure:
    values = table.to_numpy(dtype=float)
    known = np.abs(values[np.isfinite(values)])
    top = bound if bound is not None else float(known.max()) if known.size and known.max() > 0 else 1.0
    figure = Figure(figsize=map_size(*table.shape), dpi=150, layout="constrained")
    ax = figure.subplots()
    how: Mapping[str, Any] = {"cmap": diverging() if signed else sns.color_palette(SEQUENTIAL, as_cmap=True)}
    draw = partial(draw_table, ax, table, annotate=True, cbar=True, **how)
    draw(vmin=-top if signed else 0.0, vmax=top)
    thin_ticks(ax)
    ax.set(xlabel="head", ylabel="layer")
    wrapped_title(ax, short(title, 200))
    if np.isnan(values).any():
        figure.legend([hatching()], ["not measured"], loc="outside lower center", fontsize=8, frameon=False)
    return figure
