"""What do the heads look like at a glance? Frames to matplotlib figures, layers down, heads across.

Each function returns a ``matplotlib.figure.Figure`` of its own; nothing global is set and nothing
is shown. Colours are safe for colour-blind readers; every verdict also has a shape, and what was
not measured is hatched, never 0.
"""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from numpy.typing import ArrayLike

from interp.report.colours import FAINTEST_BOUND
from interp.report.frames import layer_by_head
from interp.report.verdicts import VERDICTS

_MOST_ANNOTATED = 200
_UNITS = {"logit_difference": "logits", "sentence_log_probability": "nats"}


def attention_heatmap(frame: pd.DataFrame, task: str) -> Figure:
    """Share of each head's attention that goes from the query to the related word, 0 to 1."""
    table = layer_by_head(frame, task, "attention")
    figure = _figure(*table.shape)
    ax = figure.subplots()
    _attention(ax, table)
    _mark_verdicts(ax, frame, task)
    ax.set_title(f"{task}: attention to the related word", fontsize=10)
    _legend(figure, frame[frame["task"] == task], missing=bool(table.isna().to_numpy().any()))
    return figure


def effect_heatmap(frame: pd.DataFrame, task: str) -> Figure:
    """Mean effect of ablating each head, in units of the task's metric; a drop is negative."""
    table = layer_by_head(frame, task, "effect")
    figure = _figure(*table.shape)
    ax = figure.subplots()
    _effects(ax, table, bound=_bound(table))
    _mark_verdicts(ax, frame, task)
    metric = str(frame.loc[frame["task"] == task, "metric"].iloc[0])
    ax.set_title(f"{task}: effect of ablation ({_UNITS.get(metric, metric)})", fontsize=10)
    _legend(figure, frame[frame["task"] == task], missing=bool(table.isna().to_numpy().any()))
    return figure


def overview(frame: pd.DataFrame, tasks: list[str] | None = None) -> Figure:
    """Both kinds of evidence and the verdicts, one column of panels per task.

    Args:
        frame: One row per layer, head and task.
        tasks: The tasks to draw, in this order; all of them in the frame's order if left out.
    """
    names = list(frame["task"].unique()) if tasks is None else tasks
    attention = {task: layer_by_head(frame, task, "attention") for task in names}
    effect = {task: layer_by_head(frame, task, "effect") for task in names}
    n_layers, n_heads = next(iter(effect.values())).shape
    size = (max(1.9, 0.42 * n_heads) * len(names) + 1.6, 2 * max(1.5, 0.42 * n_layers) + 1.1)
    figure = Figure(figsize=size, dpi=150, layout="constrained")
    axes = figure.subplots(2, len(names), squeeze=False, sharex=True, sharey=True)
    bound = max(_bound(table) for table in effect.values())
    for (above, below), task in zip(axes.T, names, strict=True):
        _attention(above, attention[task], annotate=False, cbar=False)
        _effects(below, effect[task], bound=bound, annotate=False, cbar=False)
        for ax in (above, below):
            _mark_verdicts(ax, frame, task, height=0.5)
            ax.set(xlabel="", ylabel="")
        above.set_title(_short(task), fontsize=10)
        below.set_xlabel("head")
    for row, label in zip(
        axes, ("attention to the\nrelated word", "effect of ablation\n(logits or nats)"), strict=True
    ):
        row[0].set_ylabel("layer")
        figure.colorbar(row[0].collections[0], ax=list(row), label=label, aspect=12)
    missing = any(table.isna().to_numpy().any() for table in (*attention.values(), *effect.values()))
    _legend(figure, frame[frame["task"].isin(names)], missing=missing)
    return figure


def _figure(n_layers: int, n_heads: int) -> Figure:
    size = (max(4.2, 0.62 * n_heads + 1.6), max(2.6, 0.55 * n_layers + 1.5))
    return Figure(figsize=size, dpi=150, layout="constrained")


def _bound(table: pd.DataFrame) -> float:
    """What the colours of effects reach to: the largest magnitude, and one nat at least."""
    return max(FAINTEST_BOUND, *np.abs(table.to_numpy(dtype=float, na_value=0.0)).ravel())


def _attention(ax: Axes, table: pd.DataFrame, *, annotate: bool = True, cbar: bool = True) -> None:
    palette = sns.color_palette("mako_r", as_cmap=True)
    _heatmap(ax, table, cmap=palette, vmin=0.0, vmax=1.0, annotate=annotate, cbar=cbar)


def _effects(ax: Axes, table: pd.DataFrame, *, bound: float, annotate: bool = True, cbar: bool = True) -> None:
    palette = sns.color_palette("RdBu", as_cmap=True)
    _heatmap(ax, table, cmap=palette, vmin=-bound, vmax=bound, annotate=annotate, cbar=cbar)


def _heatmap(
    ax: Axes, table: pd.DataFrame, *, cmap: Colormap, vmin: float, vmax: float, annotate: bool, cbar: bool
) -> None:
    values = table.astype(float)
    sns.heatmap(
        values,
        ax=ax,
        cmap=cmap,
        vmin=vmin,
        vmax=vmax,
        annot=annotate and values.size <= _MOST_ANNOTATED,
        fmt=".2f",
        annot_kws={"fontsize": 8, "va": "bottom"},
        linewidths=0.5,
        linecolor="white",
        square=not annotate,
        cbar=cbar,
        xticklabels=False,
        yticklabels=False,
    )
    # Seaborn would draw the whole figure for every panel, to see whether its labels overlap.
    ax.set_xticks(np.arange(values.shape[1]) + 0.5, labels=[str(head) for head in values.columns])
    ax.set_yticks(np.arange(values.shape[0]) + 0.5, labels=[str(layer) for layer in values.index])
    for row, column in np.argwhere(values.isna().to_numpy()):
        ax.add_patch(Rectangle((column, row), 1, 1, facecolor="0.92", edgecolor="0.6", hatch="////", linewidth=0))
    ax.tick_params(length=0)


def _mark_verdicts(ax: Axes, frame: pd.DataFrame, task: str, *, height: float = 0.72) -> None:
    """Draw each verdict's shape in its cell, `height` of the way down."""
    verdicts = layer_by_head(frame, task, "verdict").to_numpy()
    for name in set(frame["verdict"]) - {"none"}:
        rows, columns = np.nonzero(verdicts == name)
        if len(rows):
            ax.add_line(_marker(name, columns + 0.5, rows + height))


def _marker(name: str, x: ArrayLike = (), y: ArrayLike = ()) -> Line2D:
    """A verdict's shape at every (x, y), edged black or white so that it shows on any colour."""
    verdict = VERDICTS[name]
    return Line2D(
        x,
        y,
        linestyle="none",
        marker=verdict.marker,
        markersize=7,
        markerfacecolor="black" if verdict.filled else "white",
        markeredgecolor="white" if verdict.filled else "black",
        markeredgewidth=0.4 if verdict.filled else 1.2,
    )


def _legend(figure: Figure, frame: pd.DataFrame, *, missing: bool) -> None:
    """Explain the shapes that occur in `frame`, below the panels."""
    present = set(frame["verdict"]) - {"none"}
    labels = [name for name in VERDICTS if name in present]
    handles: list[Artist] = [_marker(name) for name in labels]
    if missing:
        handles.append(Patch(facecolor="0.92", edgecolor="0.6", hatch="////", linewidth=0))
        labels.append("not testable")
    if handles:
        figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8, frameon=False)


def _short(task: str, most: int = 26) -> str:
    name = task.rsplit("/", 1)[-1]
    return name if len(name) <= most else name[: most - 1] + "…"
