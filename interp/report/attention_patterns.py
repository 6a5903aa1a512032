"""Attention patterns of heads on one sentence, as maps: queries down, keys across, the heads side by side.

1. Attention comes as an ``ActivationCache`` (heads are then called ``2.1``), or as an array: ``[query key]``,
   ``[head query key]`` or ``[batch head query key]``.
2. A weight below 0 or above 1 is no attention: scores before the softmax are told apart by ``scores=True``.
3. What a causal mask hides is hatched: scores of minus infinity, and the future where all of its weights are 0.
"""

import re
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any, NamedTuple

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import QuadMesh
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from interp.errors import InputError, shown
from interp.report.drawing import UNMEASURED, Figure, diverging, short
from interp.report.heatmap import SEQUENTIAL

Head = str | int | tuple[int, int]
MOST_HEADS = 144
_LONGEST_TOKEN = 16
_ROUNDING = 1e-3


class Patterns(NamedTuple):
    """The patterns of some heads on one sentence; a single head may have no name."""

    names: tuple[str, ...]
    weights: np.ndarray  # [head query key], NaN where the mask hides scores
    queries: tuple[str, ...]
    keys: tuple[str, ...]


def patterns_of(
    attention: Any,
    tokens: Sequence[str],
    heads: Sequence[Head] | Head | None,
    *,
    key_tokens: Sequence[str] | None = None,
    example: int = 0,
    scores: bool = False,
) -> Patterns:
    """Read patterns from whatever holds them; refuses what ``attention_pattern`` refuses."""
    if isinstance(attention, Mapping) or hasattr(attention, "cache_dict"):
        by_name = _from_cache(attention, heads, example, scores)
    else:
        by_name = _from_array(attention, heads, example)
    if len(by_name) > MOST_HEADS:
        raise InputError(f"heads: expected {MOST_HEADS} at most in one figure, got {len(by_name)}; say which")
    weights = np.stack(list(by_name.values()))
    queries, keys = _texts(tokens), _texts(tokens if key_tokens is None else key_tokens)
    if weights.shape[1:] != (len(queries), len(keys)):
        raise InputError(
            f"tokens: expected a text for each of {weights.shape[1]} query and {weights.shape[2]} key positions, got "
            f"{len(queries)} and {len(keys)}; take model.to_str_tokens of the same prompt, special tokens included"
        )
    if scores:
        return Patterns(tuple(by_name), np.where(np.isfinite(weights), weights, np.nan), queries, keys)
    low, high = np.nanmin(weights, initial=0.0), np.nanmax(weights, initial=0.0)
    if low < -_ROUNDING or high > 1 + _ROUNDING:
        raise InputError(
            f"attention: expected weights from 0 to 1, got {low:.3g} to {high:.3g}; for scores before the softmax give "
            "scores=True"
        )
    return Patterns(tuple(by_name), weights, queries, keys)


def token_text(token: object) -> str:
    """A token as a figure shows it: without the space before it, legible, and short."""
    text = str(token)
    return short(text.strip(" ").replace("\n", "\\n").replace("\t", "\\t") or "␣", _LONGEST_TOKEN)


def head_title(name: str, *, room: bool = True) -> str:
    """What stands above a head's pattern: ``layer 2, head 1`` of ``2.1``, ``L2H1`` where there is no room."""
    layer, dot, head = name.partition(".")
    if not dot:
        return name
    return f"layer {layer}, head {head}" if room else f"L{layer}H{head}"


def _as_array(values: Any) -> np.ndarray:
    """Numbers of any kind, a tensor's too, as doubles."""
    for step in ("detach", "cpu", "float"):  # NumPy has no bfloat16
        values = getattr(values, step)() if hasattr(values, step) and not isinstance(values, np.ndarray) else values
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"attention: expected an ActivationCache or an array of numbers, got {shown(values)}"
        ) from error


def _from_cache(cache: Any, heads: Sequence[Head] | Head | None, example: int, scores: bool) -> dict[str, np.ndarray]:
    known = getattr(cache, "cache_dict", cache)
    what = "attn_scores" if scores else "pattern"
    found = {name: re.fullmatch(rf"blocks\.(\d+)\.attn\.hook_{what}", str(name)) for name in known}
    layers = {int(match[1]): _one_example(_as_array(known[name]), example) for name, match in found.items() if match}
    if not layers:
        raise InputError(
            f"attention: expected a cache with blocks.0.attn.hook_{what} or that of another layer, got one without; "
            "keep it, as by model.run_with_cache(prompt)"
        )
    every = {(layer, head): own for layer in sorted(layers) for head, own in enumerate(layers[layer])}
    listed = list(every) if heads is None else [_pair(each) for each in _several(heads)]
    for layer, head in listed:
        if (layer, head) not in every:
            there = f"layers {', '.join(map(str, sorted(layers)))} of {len(layers[min(layers)])} heads"
            raise InputError(f"heads: no head {layer}.{head} in the cache, which holds {there}")
    return {f"{layer}.{head}": every[layer, head] for layer, head in listed}


def _from_array(attention: Any, heads: Sequence[Head] | Head | None, example: int) -> dict[str, np.ndarray]:
    values = _as_array(attention)
    if values.ndim == 2 and heads is None:
        return {"": values}
    values = values[None] if values.ndim == 2 else values
    if values.ndim not in (3, 4):
        raise InputError(
            f"attention: expected [query key], [head query key] or [batch head query key], got {values.ndim} axes"
        )
    values = _one_example(values, example)
    listed = list(range(len(values))) if heads is None else _several(heads)
    for each in listed:
        if not isinstance(each, int | np.integer) or isinstance(each, bool) or not 0 <= each < len(values):
            raise InputError(
                f"heads: expected numbers from 0 to {len(values) - 1}, as an array has no layers, got {each!r}"
            )
    return {f"head {each}": values[int(each)] for each in listed}


def _one_example(values: np.ndarray, example: int) -> np.ndarray:
    if values.ndim == 3:
        return values
    if not 0 <= example < len(values):
        raise InputError(f"example: expected a prompt from 0 to {len(values) - 1}, got {example!r}")
    return values[example]


def _several(heads: Sequence[Head] | Head) -> list[Any]:
    pair = isinstance(heads, tuple) and len(heads) == 2 and all(isinstance(each, int) for each in heads)
    listed = [heads] if pair or isinstance(heads, str | int | np.integer) else list(heads)
    if not listed:
        raise InputError("heads: expected one at least, got none; leave it out for all")
    return listed


def _pair(head: Any) -> tuple[int, int]:
    try:
        layer, number = map(int, head.split(".") if isinstance(head, str) else head)
    except (TypeError, ValueError) as error:
        raise InputError(f"heads: expected heads such as '2.1' or (2, 1), got {head!r}") from error
    return layer, number


def _texts(tokens: Any) -> tuple[str, ...]:
    if isinstance(tokens, str):
        raise InputError(f"tokens: expected a list of texts, one a position, got the text {shown(tokens)}")
    return tuple(map(token_text, tokens))


_LARGEST, _LARGEST_OF_MANY, _LARGEST_OF_HUNDREDS, _SMALLEST = 5.6, 2.7, 1.0, 0.9
"""Inches of a panel."""
_LEFT, _RIGHT, _TITLE, _GAP = 0.3, 0.75, 0.3, 0.12
_SMALLEST_LETTERS = 4.0
_TITLED = 1.1
"""Inches that a title with words takes."""


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

    Attention has colours from 0 to 1, the same in all panels; scores diverge from 0. What a causal model cannot look at
    is hatched.

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
    weights = given.weights if scores or key_tokens is not None else _without_future(given.weights)
    figure, axes, letters, wide = _panels(given)
    reach = max(1.0, float(np.nanmax(np.abs(given.weights), initial=0.0))) if scores else 1.0
    n_heads, n_across = len(given.names), axes.shape[1]
    for number, (ax, name) in enumerate(zip(axes.flat, given.names, strict=False)):
        mesh = _draw_map(ax, weights[number], reach, scores)
        roomy = wide > _TITLED
        ax.set_title(head_title(name, room=roomy), fontsize=9 if roomy else 7)
        _name(ax.xaxis, given.keys if number + n_across >= n_heads else (), letters, turned=90)
        _name(ax.yaxis, given.queries if number % n_across == 0 else (), letters, turned=0)
    for ax in axes.flat[n_heads:]:
        ax.set_axis_off()
    bar = figure.colorbar(mesh, cax=figure.axes[-1])
    bar.set_label("score" if scores else "attention", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    return figure


def _without_future(weights: np.ndarray) -> np.ndarray:
    """Patterns ``[head query key]`` with NaN in place of the future, where no head gives any of it attention."""
    ahead = np.triu(np.ones(weights.shape[1:], dtype=bool), k=1)
    if weights.shape[1] != weights.shape[2] or np.any(weights[:, ahead] != 0):
        return weights
    return np.where(ahead, np.nan, weights)


def _panels(given: Patterns) -> tuple[Figure, np.ndarray, float, float]:
    """Panels of one size, and in the end a bar of colours; all in inches, so that no layout has to be tried out.

    With their axes ``[down across]`` come the points of the tokens' letters (0 where there is no room for them), and
    the width of a panel.
    """
    n_heads, n_tokens = len(given.names), max(len(given.keys), len(given.queries))
    n_across = min(n_heads, 4 if n_heads <= 16 else 12)
    n_down = ceil(n_heads / n_across)
    largest = _LARGEST if n_heads == 1 else _LARGEST_OF_MANY if n_heads <= 16 else _LARGEST_OF_HUNDREDS
    cell = max(_SMALLEST, min(largest, 0.26 * n_tokens)) / n_tokens
    letters = min(8.0, 72 * 0.8 * cell)
    letters = letters if letters >= _SMALLEST_LETTERS else 0.0
    longest = max(map(len, (*given.queries, *given.keys)))
    margin = _LEFT + (0.0084 * letters * longest + 0.1 if letters else 0.3)
    wide, high = cell * len(given.keys), cell * len(given.queries)
    width, height = margin + n_across * (wide + _GAP) + _RIGHT, margin + n_down * (high + _TITLE) + _TITLE
    figure = Figure(figsize=(width, height), dpi=150)
    places = {"left": margin / width, "right": 1 - (_RIGHT + _GAP) / width, "bottom": margin / height}
    places |= {"top": 1 - _TITLE / height, "wspace": _GAP / wide, "hspace": _TITLE / high}
    axes = figure.subplots(n_down, n_across, squeeze=False, gridspec_kw=places)
    figure.text((margin + width - _RIGHT) / 2 / width, 0.06 / height, "to", fontsize=8, ha="center")
    figure.text(0.1 / width, (margin + height) / 2 / height, "from", fontsize=8, va="center", rotation=90)
    long = min(height - margin - _TITLE, 2 * high + _TITLE)  # no longer than two panels
    figure.add_axes(((width - _RIGHT) / width, (height - _TITLE - long) / height, 0.13 / width, long / height))
    return figure, axes, letters, wide


def _draw_map(ax: Axes, weights: np.ndarray, reach: float, scores: bool) -> QuadMesh:
    high, wide = weights.shape
    if np.isnan(weights).any():  # what is missing lies behind the cells, in one piece
        behind = Rectangle((0, 0), wide, high, facecolor="0.92", edgecolor="0.6", linewidth=0, zorder=0)
        behind.set_hatch(UNMEASURED)
        ax.add_patch(behind)
    palette = diverging() if scores else sns.color_palette(SEQUENTIAL, as_cmap=True)
    low = -reach if scores else 0.0
    ax.set(aspect="equal", xlim=(0, wide), ylim=(high, 0))
    return ax.pcolormesh(np.ma.masked_invalid(weights), cmap=palette, vmin=low, vmax=reach, rasterized=True)


def _name(axis: Axis, texts: Sequence[str], letters: float, turned: float) -> None:
    """The texts along an axis; where there is no room for each, some positions' numbers."""
    axis.set_tick_params(length=0, labelsize=letters or 7)
    if letters or not texts:
        axis.set_ticks(np.arange(len(texts)) + 0.5, labels=texts, rotation=turned, parse_math=False)
    else:
        axis.set_major_locator(MaxNLocator(3, integer=True, prune="upper"))
