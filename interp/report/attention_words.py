"""Attention along a sentence: shaded words, for a page and a notebook, and arcs from a word to those it looks at."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from interp.errors import InputError
from interp.report.attention_patterns import Head, Patterns, patterns_of
from interp.report.drawing import LINE, Figure
from interp.report.heatmap import paint
from interp.report.words import visible

_LEAST, _WRITTEN = 0.02, 0.1
"""Attention from which on there is an arc, and a number at it."""
_BEHIND = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.85}
_MOST_ROWS, _MOST_TOKENS = 24, 120


@dataclass(frozen=True)
class Word:
    """One token of a sentence, with the attention that it gets."""

    text: str
    weight: str
    style: str
    is_query: bool
    is_related: bool

    @classmethod
    def of(cls, token: object, weight: float, *, is_query: bool, is_related: bool = False) -> "Word":
        """A word with the colour of its weight; one whose weight is not known has none."""
        if pd.isna(weight):
            return cls(visible(token), "—", "", is_query, is_related)
        return cls(visible(token), f"{weight:.2f}", paint(weight, "attention").style, is_query, is_related)

    @property
    def share(self) -> float:
        """Its weight as a number, 0 where it is not known."""
        return 0.0 if self.weight == "—" else float(self.weight)


@dataclass(frozen=True)
class PicturedHead:
    """A head on some sentences, each a caption and its words; ``rows`` are what ``html.attention_figure`` takes."""

    title: str
    note: str
    pictures: tuple[tuple[str, tuple[Word, ...]], ...]
    rows: pd.DataFrame = field(default_factory=pd.DataFrame, compare=False)


def pictured_head(rows: pd.DataFrame, *, title: str, note: str = "") -> PicturedHead:
    """One head on sentences: rows with ``example``, ``key_pos``, what ``Word`` takes, and ``caption`` where known."""
    placed = rows.sort_values(["example", "key_pos"]).assign(task="", rank=0)
    pictures = []
    for _, own in placed.groupby("example"):
        words = [
            Word.of(row.token, row.weight, is_query=bool(row.is_query), is_related=bool(row.is_related))
            for row in own.itertuples()
        ]
        pictures.append((str(own["caption"].iloc[0]) if "caption" in own else "", tuple(words)))
    return PicturedHead(title, note, tuple(pictures), placed)


def attending_heads(attention_maps: pd.DataFrame, task: str) -> tuple[PicturedHead, ...]:
    """One task's top heads, best first, each with its attention from the query on example sentences."""
    by_head = attention_maps[attention_maps["task"] == task].groupby(["rank", "layer", "head"])
    return tuple(pictured_head(rows, title=f"Head {layer}.{head}") for (_, layer, head), rows in by_head)


def scored(maps: pd.DataFrame) -> pd.DataFrame:
    """Of whole patterns, the rows of the query that is scored: the last that is kept of each sentence."""
    return maps[maps["query_pos"] == maps.groupby(["task", "rank", "example"])["query_pos"].transform("max")]


def attention_arcs(
    attention: Any,
    tokens: Sequence[str],
    *,
    query: int = -1,
    heads: Sequence[Head] | Head | None = None,
    example: int = 0,
) -> Figure:
    """The attention of one word, as arcs to the words that it looks at; the thicker and darker, the more.

    Args:
        attention: As for ``attention_pattern``.
        tokens: The text at each position.
        query: The position that looks; -1 for the last.
        heads: As for ``attention_pattern``; 24 at most.
        example: Which prompt of a batch.

    Raises:
        InputError: As for ``attention_pattern``; no such position; or a sentence of more than 120 tokens.
    """
    given, query = patterns_from(attention, tokens, query, heads, example, "attention_arcs")
    n = len(given.keys)
    longest, step = max(map(len, given.keys)), 0.46 if n <= 40 else 0.24
    turned = longest > 5 or n > 20
    texts = (0.075 * longest if turned else 0.2) + 0.15
    figure = Figure(
        figsize=(max(4.0, step * n + 0.9), 1.15 * len(given.names) + texts + 0.35), dpi=150, layout="constrained"
    )
    axes = figure.subplots(len(given.names), 1, squeeze=False, sharex=True)[:, 0]
    for number, ax in enumerate(axes):
        _draw_arcs(ax, given, number, query)
    last = axes[-1]
    size = min(8.5, 72 * step * 0.75)
    last.set_xticks(np.arange(n), labels=given.keys, fontsize=size, rotation=60 if turned else 0, parse_math=False)
    for place, text in enumerate(last.get_xticklabels()):
        text.set(ha="right" if turned else "center", rotation_mode="anchor")
        text.set_fontweight("bold" if place == query else "normal")
    return figure


def patterns_from(
    attention: Any, tokens: Sequence[str], query: int, heads: Sequence[Head] | Head | None, example: int, who: str
) -> tuple[Patterns, int]:
    """The patterns, and the position that looks, from 0."""
    given = patterns_of(attention, tokens, heads, example=example)
    n = len(given.keys)
    if not -n <= query < n:
        raise InputError(f"query: expected a position from 0 to {n - 1}, or -1 for the last, got {query!r}")
    if len(given.names) > _MOST_ROWS or n > _MOST_TOKENS:
        raise InputError(
            f"{who}: expected {_MOST_ROWS} heads and {_MOST_TOKENS} tokens at most, got "
            f"{len(given.names)} and {n}; say which heads, or draw attention_pattern"
        )
    return given, query % n


def _draw_arcs(ax: Axes, given: Patterns, number: int, query: int) -> None:
    weights, n = np.nan_to_num(given.weights[number][query]), len(given.keys)
    farthest = max(query, n - 1 - query, 1)
    for key in np.flatnonzero(weights >= _LEAST).tolist():
        weight = min(float(weights[key]), 1.0)
        width, alpha = 0.6 + 5 * weight, 0.25 + 0.75 * weight
        top = 0.25 + 0.65 * abs(key - query) / farthest
        if key == query:
            ax.plot([query], [0.05], "o", color=LINE, markersize=4 + 8 * weight, alpha=alpha, zorder=3)
            top = 0.22
        else:
            t = np.linspace(0, np.pi, 60)
            x = query + (key - query) * (1 - np.cos(t)) / 2
            ax.plot(x, top * np.sin(t), color=LINE, linewidth=width, alpha=alpha, solid_capstyle="round", zorder=2)
        if weight >= _WRITTEN:
            place = (query - 0.35, 0.14) if key == query else ((query + key) / 2, top)
            ax.text(*place, f"{weight:.2f}", fontsize=7, ha="center", va="center", bbox=_BEHIND, zorder=5)
    ax.plot([query], [0], "v", color="black", markersize=6, zorder=4, clip_on=False)
    ax.set_xlim(-0.6, n - 0.4)
    ax.set_ylim(0, 1.12)
    ax.set_yticks([])
    ax.tick_params(axis="x", length=0)
    ax.set_ylabel(given.names[number], rotation=0, ha="right", va="center", fontsize=9)
    for side in ("left", "right", "top"):
        ax.spines[side].set_visible(False)
