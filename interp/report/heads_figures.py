"""What do the heads look like at a glance? Numbers of heads as maps: layers down, heads across.

Each function returns a ``matplotlib.figure.Figure`` of its own; nothing global is set and nothing is shown. Colours are
safe for colour-blind readers; every verdict also has a shape, and what was not measured is hatched, never 0.
"""

from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.artist import Artist

from interp.errors import InputError
from interp.report import drawing
from interp.report.drawing import Figure, chosen, diverging, require, short
from interp.report.heads_frames import VERDICTS, layer_by_head, shown_names, with_shown_names
from interp.report.heatmap import SEQUENTIAL, grid_of_heads, missing, reach
from interp.report.words import METRICS, UNITS

_LONGEST_TITLE = 48
_CELL, _SMALLEST_CELL, _MARKED_CELL, _WIDEST = 0.42, 0.1, 0.25, 3.8
"""Inches in the overview: of a cell of a small and of a large model, of one that holds a whole mark, and of a panel."""
_LEGEND = 1.9
"""Inches of a column of the legend."""
_ATTRIBUTES = ("cells", "tasks", "groups", "attention_maps")
Measure = Literal["attention", "effect", "probe"]
MEASURES: tuple[Measure, ...] = get_args(Measure)
_COLUMNS = {"attention": "excess", "effect": "effect", "probe": "probe_excess"}
_TITLES = {
    "attention": "attention to the related word, less the best\nbaseline's (colour from 0 up; below 0 neutral)",
    "effect": "effect of resampling ({unit}; a cost is negative)",
    "probe": "accuracy of a probe for {feature}, less the\ntoughest control's (colour from 0 up; below 0 neutral)",
}
_LABELS = {
    "excess": "attention to the\nrelated word, less the\nbest baseline's",
    "effect": "effect of resampling\n(share of the model's\n{base})",
    "probe_excess": "accuracy of a probe,\nless the toughest\ncontrol's",
}
"""Of the overview's colours, by column."""


def overview(report: Any) -> Figure:
    """All kinds of evidence and the verdicts, one column of panels per task.

    Effects are shares of the whole model's own metric, so that tasks with different scales can be
    compared: -1 is all of it. A task that the whole model does not do has no such share.
    """
    require(report, _ATTRIBUTES, "overview", "interp.heads")
    report = with_shown_names(report)
    frame, tasks = report.summary(), report.tasks
    columns = [name for name in _LABELS if name != "probe_excess" or frame[name].notna().any()]
    panels = {name: [layer_by_head(frame, task, name) for task in tasks["task"]] for name in columns}
    # A share of a base that is not above 0 says nothing.
    bases = tasks["base"].where(tasks["base_low"] > 0)
    panels["effect"] = [table / base for table, base in zip(panels["effect"], bases, strict=True)]
    metrics = [METRICS.get(metric, metric) for metric in tasks["metric"].unique()]
    n_layers, n_heads = panels["effect"][0].shape
    titles = [short(task, 26) for task in tasks["task"]]
    cell = min(_CELL, max(_SMALLEST_CELL, _WIDEST / max(n_layers, n_heads)))
    width = max(1.9, cell * n_heads, 0.09 * max(map(len, titles)))
    size = (width * len(tasks) + 1.9, len(panels) * max(1.7, cell * n_layers) + 1.1)
    figure = Figure(figsize=size, dpi=150, layout="compressed")
    axes = figure.subplots(len(panels), len(tasks), squeeze=False, sharex=True, sharey=True)
    handles: dict[str, Artist] = {}
    for row, (name, tables) in zip(axes, panels.items(), strict=True):
        diverges = name == "effect"
        cmap = diverging() if diverges else sns.color_palette(SEQUENTIAL, as_cmap=True)
        for ax, table, task in zip(row, tables, tasks["task"], strict=True):
            ends: Any = {"vmin": -1.0 if diverges else 0.0, "vmax": 1.0}
            drawing.draw_table(ax, table, cmap=cmap, **ends, annotate=False, cbar=False)
            marks = layer_by_head(frame, task, "verdict").to_numpy()
            handles |= drawing.mark_cells(ax, marks, VERDICTS, scale=min(1.0, cell / _MARKED_CELL))
            ax.set(xlabel="", ylabel="")
        row[0].set_ylabel("layer")
        label = _LABELS[name].format(base=metrics[0] if len(metrics) == 1 else "metric")
        figure.colorbar(row[0].collections[0], ax=list(row), aspect=12).set_label(label, fontsize=9)
    for above, below, title in zip(axes[0], axes[-1], titles, strict=True):
        above.set_title(title, fontsize=10, parse_math=False)
        below.set_xlabel("head")
    drawing.thin_ticks(axes[0, 0], int(_WIDEST / 0.16))  # all panels share them
    shown = {name: handles[name] for name in VERDICTS if name in handles}
    if any(table.isna().to_numpy().any() for tables in panels.values() for table in tables):
        shown["not testable"] = drawing.hatching()
    drawing.legend(figure, shown, min(3, max(1, int(figure.get_figwidth() / _LEGEND))))
    return figure


def heads(report: Any, task: str | None = None, measure: Measure = "effect") -> Figure:
    """One kind of evidence on one task, every head in its place, with the verdicts' shapes.

    The colours of attention and of probes run from 0 to 1: below 0 the baseline, or the control, has more, and is as
    neutral as 0.

    Args:
        report: What ``interp.heads`` returns.
        task: One of its tasks; None where it has only one.
        measure: ``attention`` (to the related word, less the best baseline's), ``effect`` (of ablation, in the metric's
            unit) or ``probe`` (accuracy for the task's feature, less the toughest control's).

    Raises:
        InputError: It is no such report, or has no such task; an unknown measure; or no probe on this task.
    """
    require(report, _ATTRIBUTES, "heads", "interp.heads")
    which = chosen("task", task, [str(each) for each in report.tasks["task"]])
    measured = chosen("measure", measure, MEASURES)
    frame = report.summary()[report.summary()["task"] == which]
    if measured == "probe" and frame["probe_excess"].isna().all():
        raise InputError(
            f"measure: task {which!r} was not probed: it has no feature, or probes were left out; expected one of "
            "'attention', 'effect'"
        )
    how: Any = {"palette": "effect" if measured == "effect" else "attention", "reasons": missing("not testable")}
    how["bound"] = reach(frame["effect"]) if measured == "effect" else 1.0
    grid = grid_of_heads(frame, which, _COLUMNS[measured], [""] * len(frame), VERDICTS, **how)
    metric, feature = str(frame["metric"].iloc[0]), short(str(frame["feature"].iloc[0]), 30)
    said = _TITLES[measured].format(unit=UNITS.get(metric, metric), feature=feature)
    name = shown_names([str(each) for each in report.tasks["task"]])[which]
    return grid.figure(f"{short(name, _LONGEST_TITLE)}\n{said}", "")


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
    drawing.require_rows(frame, ("layer", "head", column), "head_map", "a method that scores heads")
    numeric = pd.to_numeric(frame[column], errors="coerce").astype(float)
    if numeric.isna().sum() > frame[column].isna().sum():
        raise InputError(f"head_map: expected numbers in {column!r}, got {frame[column].iloc[0]!r}")
    twice = frame.loc[frame.duplicated(["layer", "head"]), ["layer", "head"]]
    if len(twice):
        raise InputError(
            f"head_map: expected one row a head, got several of {'.'.join(map(str, twice.iloc[0]))}; choose some rows "
            "first, as frame[frame['task'] == ...]"
        )
    if bound is not None and not bound > 0:
        raise InputError(f"bound: expected a number above 0, got {bound!r}")
    sizes = numeric[np.isfinite(numeric)].abs()
    how: Any = {"palette": "effect" if (signed is None and (numeric < 0).any()) or signed else "attention"}
    how["bound"] = bound if bound is not None else float(sizes.max()) if sizes.any() else 1.0
    rows = frame.assign(task="", verdict="", **{column: numeric})
    return grid_of_heads(rows, "", column, [""] * len(rows), {}, **how).figure(short(title or column, 200), "")
