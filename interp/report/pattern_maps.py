"""What do heads' patterns look like? Queries down, keys across, the heads side by side."""

from collections.abc import Sequence
from math import ceil
from typing import Any

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from interp.report.colours import SEQUENTIAL
from interp.report.drawing import UNMEASURED
from interp.report.patterns import Head, Patterns, patterns_of
from interp.report.styles import diverging

_MOST_NAMED = 60
_LARGEST, _SMALLEST, _LARGEST_OF_MANY = 5.2, 1.5, 2.6
"""Inches of a panel."""


def attention_pattern(
    attention: Any,
    tokens: Sequence[str],
    *,
    heads: Sequence[Head] | Head | None = None,
    key_tokens: Sequence[str] | None = None,
    example: int = 0,
    scores: bool = False,
) -> Figure:
    """How much attention each token (down) gives to each (across), one panel a head.

    Attention has colours from 0 to 1, the same in all panels; scores diverge from 0.

    Args:
        attention: An ``ActivationCache`` with patterns, or an array: ``[query key]``, ``[head query key]`` or
            ``[batch head query key]``.
        tokens: The text at each position, as ``model.to_str_tokens`` gives them.
        heads: Which: of a cache ``"2.1"`` or ``(2, 1)``, or several of these; of an array numbers. None for all.
        key_tokens: What is attended to, where that is another text, as a translator's source.
        example: Which prompt of a batch.
        scores: Whether these are scores before the softmax; what the mask hides is hatched.

    Raises:
        InputError: There are no such heads (or more than 144), no such example, more or fewer tokens than positions, or
            weights that are no attention.
    """
    given = patterns_of(attention, tokens, heads, key_tokens=key_tokens, example=example, scores=scores)
    n_heads, n_keys = len(given.names), len(given.keys)
    n_across = min(n_heads, 4 if n_heads <= 16 else 12)
    n_down = ceil(n_heads / n_across)
    side = max(_SMALLEST, min(_LARGEST if n_heads == 1 else _LARGEST_OF_MANY, 0.24 * n_keys))
    named = side / n_keys > 0.085 if n_heads > 1 else n_keys <= _MOST_NAMED
    margin = 0.07 * max(map(len, (*given.queries, *given.keys))) if named else 0.2
    high = side * len(given.queries) / n_keys
    size = (n_across * side + margin + 1.2, n_down * (high + 0.35) + margin + 0.6)
    figure = Figure(figsize=size, dpi=150, layout="constrained")
    axes = figure.subplots(n_down, n_across, squeeze=False, sharex=True, sharey=True)
    reach = max(1.0, float(np.nanmax(np.abs(given.weights), initial=0.0))) if scores else 1.0
    for number, ax in enumerate(axes.flat):
        if number < n_heads:
            _draw(ax, given, number, reach, scores)
        else:
            ax.set_axis_off()
    _name(axes, given, n_heads, min(8.0, 72 * side / n_keys * 0.8), named=named)
    bar = figure.colorbar(axes[0, 0].collections[0], ax=axes, aspect=max(10, 9 * n_down), fraction=0.05, shrink=0.9)
    bar.set_label("score" if scores else "attention", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    return figure


def _draw(ax: Axes, given: Patterns, number: int, reach: float, scores: bool) -> None:
    weights = given.weights[number]
    palette = diverging() if scores else sns.color_palette(SEQUENTIAL, as_cmap=True)
    low = -reach if scores else 0.0
    # What is missing lies behind the cells, in one piece.
    ax.add_patch(_behind(weights.shape))
    ax.pcolormesh(np.ma.masked_invalid(weights), cmap=palette, vmin=low, vmax=reach, rasterized=True)
    ax.set_aspect("equal")
    ax.set_xlim(0, weights.shape[1])
    ax.set_ylim(weights.shape[0], 0)
    ax.set_title(given.names[number], fontsize=9)


def _behind(shape: tuple[int, ...]) -> Rectangle:
    return Rectangle(
        (0, 0), shape[1], shape[0], facecolor="0.92", edgecolor="0.6", hatch=UNMEASURED, linewidth=0, zorder=0
    )


def _name(axes: np.ndarray, given: Patterns, n_heads: int, size: float, *, named: bool) -> None:
    """Texts at the left and below; where there is no room for each, numbers of positions."""
    for ax in axes[:, 0]:
        ax.set_ylabel("from", fontsize=8)
        if named:
            ax.set_yticks(np.arange(len(given.queries)) + 0.5, labels=given.queries, fontsize=size, parse_math=False)
    for number in range(axes.shape[1]):
        own = [ax for ax in axes[:, number] if ax.axison]
        own[-1].set_xlabel("to", fontsize=8)
        if named:
            ticks = np.arange(len(given.keys)) + 0.5
            own[-1].set_xticks(ticks, labels=given.keys, rotation=90, fontsize=size, parse_math=False)
            own[-1].tick_params(axis="x", labelbottom=True)
    for ax in axes.flat[:n_heads]:
        ax.tick_params(length=0, labelsize=size if named else 7)
