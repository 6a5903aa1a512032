"""What do heads' patterns look like? Queries down, keys across, the heads side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from interp.report.drawing import UNMEASURED, Figure, diverging
from interp.report.heatmap import SEQUENTIAL
from interp.report.patterns import Head, Patterns, patterns_of

_LARGEST, _LARGEST_OF_MANY, _LARGEST_OF_HUNDREDS, _SMALLEST = 5.6, 2.7, 1.0, 0.9
"""Inches of a panel."""
_LEFT, _RIGHT, _TITLE, _GAP = 0.3, 0.75, 0.3, 0.12
_SMALLEST_LETTERS = 4.0


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
    plan = _Plan.of(given)
    figure, axes = plan.figure()
    reach = max(1.0, float(np.nanmax(np.abs(given.weights), initial=0.0))) if scores else 1.0
    for number, ax in enumerate(axes.flat):
        if number < len(given.names):
            _draw(ax, given, number, reach, scores)
        else:
            ax.set_axis_off()
    _name(axes, given, plan)
    bar = figure.colorbar(axes[0, 0].collections[0], cax=plan.bar(figure))
    bar.set_label("score" if scores else "attention", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    return figure


@dataclass(frozen=True)
class _Plan:
    """Where everything stands, in inches: panels of one size, so that no layout has to be tried out.

    Attributes:
        n_across: Panels of a row.
        n_down: Rows of panels.
        wide: Of a panel.
        high: Of a panel.
        letters: Points of the tokens' letters; 0 where there is no room for them.
        margin: What the longest token takes.
    """

    n_across: int
    n_down: int
    wide: float
    high: float
    letters: float
    margin: float

    @classmethod
    def of(cls, given: Patterns) -> "_Plan":
        """Of panels for these patterns."""
        n_heads, n_keys = len(given.names), max(len(given.keys), len(given.queries))
        n_across = min(n_heads, 4 if n_heads <= 16 else 12)
        largest = _LARGEST if n_heads == 1 else _LARGEST_OF_MANY if n_heads <= 16 else _LARGEST_OF_HUNDREDS
        cell = max(_SMALLEST, min(largest, 0.26 * n_keys)) / n_keys
        letters = min(8.0, 72 * 0.8 * cell)
        letters = letters if letters >= _SMALLEST_LETTERS else 0.0
        margin = 0.0084 * letters * max(map(len, (*given.queries, *given.keys))) + 0.1 if letters else 0.3
        size = (cell * len(given.keys), cell * len(given.queries))
        return cls(n_across, ceil(n_heads / n_across), *size, letters, margin)

    @property
    def _size(self) -> tuple[float, float]:
        wide = _LEFT + self.margin + self.n_across * (self.wide + _GAP) + _RIGHT
        return wide, _TITLE + self.n_down * (self.high + _TITLE) + self.margin + _LEFT

    def figure(self) -> tuple[Figure, np.ndarray]:
        """The figure and its panels, ``[down across]``."""
        (wide, high), left, below = self._size, _LEFT + self.margin, _LEFT + self.margin
        figure = Figure(figsize=(wide, high), dpi=150)
        places = {"left": left / wide, "right": 1 - (_RIGHT + _GAP) / wide, "bottom": below / high}
        gaps = {"wspace": _GAP / self.wide, "hspace": _TITLE / self.high}
        axes = figure.subplots(
            self.n_down, self.n_across, squeeze=False, gridspec_kw={**places, **gaps, "top": 1 - _TITLE / high}
        )
        figure.text((left + (wide - _RIGHT)) / 2 / wide, 0.06 / high, "to", fontsize=8, ha="center")
        figure.text(0.1 / wide, (below + high) / 2 / high, "from", fontsize=8, va="center", rotation=90)
        return figure, axes

    def bar(self, figure: Figure) -> Axes:
        """The place of the colours' bar: beside the panels, no longer than two of them."""
        (wide, high), below = self._size, _LEFT + self.margin
        long = min(high - below - _TITLE, 2 * self.high + _TITLE)
        return figure.add_axes(((wide - _RIGHT) / wide, (high - _TITLE - long) / high, 0.13 / wide, long / high))


def _draw(ax: Axes, given: Patterns, number: int, reach: float, scores: bool) -> None:
    weights = given.weights[number]
    palette = diverging() if scores else sns.color_palette(SEQUENTIAL, as_cmap=True)
    low = -reach if scores else 0.0
    if np.isnan(weights).any():  # what is missing lies behind the cells, in one piece
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


def _name(axes: np.ndarray, given: Patterns, plan: _Plan) -> None:
    """Texts at the left and below the panels; where there is no room for each, some positions' numbers."""
    n_heads = len(given.names)
    for number, ax in enumerate(axes.flat[:n_heads]):
        ax.tick_params(length=0, labelsize=plan.letters or 7)
        outer = {"x": number + plan.n_across >= n_heads, "y": number % plan.n_across == 0}
        for axis, texts in (("x", given.keys), ("y", given.queries)):
            if not outer[axis]:
                ax.tick_params(axis=axis, labelbottom=False, labelleft=False)
            elif plan.letters:
                name = ax.set_xticks if axis == "x" else ax.set_yticks
                name(np.arange(len(texts)) + 0.5, labels=texts, rotation=90 if axis == "x" else 0, parse_math=False)
            else:
                (ax.xaxis if axis == "x" else ax.yaxis).set_major_locator(MaxNLocator(3, integer=True, prune="upper"))
