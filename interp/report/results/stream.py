"""Who writes how much to the residual stream, and who to the answer? Norms of components, and attributions."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pandas as pd
import seaborn as sns

from interp.errors import InputError
from interp.report.attention_patterns import token_text
from interp.report.drawing import Figure, despined, draw_table, label_text, require, require_rows, wrapped_title
from interp.report.glance import Glance, numbers
from interp.report.heatmap import SEQUENTIAL
from interp.report.words import decimal

_MOST_COMPONENTS, _MOST_TOKENS = 40, 80
_MADE_BY = "interp.residual_stream"
_ATTRIBUTED = ("label", "kind", "example", "attribution")


class StreamLike(Protocol):
    """A stream taken apart; see ``interp.residual.stream.ResidualStream``."""

    @property
    def labels(self) -> pd.DataFrame:
        """One row a component."""

    def norms(self) -> pd.DataFrame:
        """One row a component, prompt and position."""


def stream(stream: StreamLike, *, example: int = 0, tokens: Sequence[str] | None = None) -> Figure:
    """How large what each component writes is at every position; of many components, the 40 largest.

    Args:
        stream: What ``interp.residual_stream`` returns.
        example: Which prompt.
        tokens: The text at each position; None for numbers.

    Raises:
        InputError: It is no such stream, has no such prompt, fewer texts than positions, or a prompt of more than 80
            tokens.
    """
    require(stream, ("labels", "norms"), "stream", _MADE_BY)
    norms = stream.norms()
    own = norms[norms["example"] == example]
    if own.empty:
        raise InputError(f"example: expected a prompt from 0 to {norms['example'].max()}, got {example!r}")
    order = list(dict.fromkeys(own["label"]))
    table = own.pivot(index="label", columns="pos", values="norm").loc[order]
    if table.shape[1] > _MOST_TOKENS:
        raise InputError(f"stream: expected a prompt of {_MOST_TOKENS} tokens at most, got {table.shape[1]}")
    largest = table.max(axis=1).nlargest(_MOST_COMPONENTS).index
    table = table.loc[[label for label in order if label in set(largest)]]
    if tokens is not None:
        if isinstance(tokens, str) or len(tokens) <= max(table.columns):
            raise InputError(f"tokens: expected a text for each position up to {max(table.columns)}, got {len(tokens)}")
        table.columns = pd.Index([token_text(tokens[each]) for each in table.columns])
    size = (max(4.4, 0.42 * table.shape[1] + 2.4), 0.22 * len(table) + 1.7)
    figure = Figure(figsize=size, dpi=150, layout="constrained")
    ax = figure.subplots()
    top = float(np.nanmax(table.to_numpy(dtype=float), initial=0.0)) or 1.0
    palette = sns.color_palette(SEQUENTIAL, as_cmap=True)
    draw_table(ax, table, cmap=palette, vmin=0.0, vmax=top, annotate=False, cbar=True, label="norm")
    ax.set_aspect("auto")
    ax.tick_params(axis="x", rotation=90 if max(map(len, map(str, table.columns))) > 3 else 0)
    ax.tick_params(labelsize=7.5)
    ax.set(xlabel="", ylabel="")
    few = "" if len(order) == len(table) else f"; the {len(table)} largest of {len(order)}"
    wrapped_title(ax, f"what each component writes to the residual stream{few}")
    return figure


def logit_attribution(frame: pd.DataFrame, *, most: int = 20) -> Figure:
    """Which component pushed the logit (difference) up, and which down: bars, the largest first; they sum to it.

    Of several prompts, bars are means and dots the prompts; the rest of many components is one bar.

    Args:
        frame: What ``interp.direct_logit_attribution`` returns.
        most: How many components have a bar of their own.

    Raises:
        InputError: It is no such frame, has no row, or `most` is below 1.
    """
    frame = require_rows(frame, _ATTRIBUTED, "logit_attribution", "interp.direct_logit_attribution")
    if not isinstance(most, int | np.integer) or most < 1:
        raise InputError(f"most: expected a whole number from 1, got {most!r}")
    table = frame.pivot(index="label", columns="example", values="attribution").loc[list(dict.fromkeys(frame["label"]))]
    order = table.mean(axis=1).abs().sort_values(ascending=False, kind="stable").index
    shown = table.loc[order[:most]]
    if len(order) > most:
        rest = table.loc[order[most:]].sum()
        shown = pd.concat([shown, rest.to_frame(f"the other {len(order) - most}").T])
    figure = Figure(figsize=(6.2, 0.25 * len(shown) + 1.4), dpi=150, layout="constrained")
    ax = figure.subplots()
    red, blue = (sns.color_palette("RdBu", 8)[place] for place in (0, -1))
    means, place = shown.mean(axis=1).to_numpy(), np.arange(len(shown))
    ax.barh(place, means, color=[blue if each >= 0 else red for each in means], height=0.7)
    if shown.shape[1] > 1:
        for values in shown.to_numpy().T:
            ax.plot(values, place, "o", color="0.25", markersize=2, alpha=0.6)
    ax.axvline(0, color="0.4", linewidth=0.8)
    ax.set_yticks(place, labels=list(map(label_text, shown.index)), parse_math=False)
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.set_xlabel("attribution (logits)", fontsize=9)
    n, total = table.shape[1], table.sum().mean()
    of = "" if n == 1 else f", mean of {n} prompts (dots)"
    wrapped_title(ax, f"direct logit attribution{of}: all of it sums to {decimal(total)}")
    despined(ax, left=True)
    ax.tick_params(axis="y", length=0)
    return figure


def stream_glance(stream: Any) -> Glance:
    """What a notebook shows of a stream: its largest components at the last token of the first prompt."""
    norms, n = stream.norms(), stream.labels["kind"].value_counts(sort=False)
    n_prompts = norms["example"].nunique()
    kinds = ", ".join(f"{count} {kind}" for kind, count in n.items())
    first = norms[norms["example"] == norms["example"].min()]
    last = first[first["pos"] == first["pos"].max()].sort_values("norm", ascending=False, kind="stable")
    shown = pd.DataFrame(
        {"component": last["label"], "kind": last["kind"], "norm at the last token": numbers(last["norm"], 2)}
    )
    return Glance(
        "Residual stream",
        [f"{len(stream.labels)} components that sum to the stream of {n_prompts} prompts, by kind: {kinds}."],
        shown,
        len(shown),
        ".norms()",
        {},
        "interp.plots.stream(stream)",
    )
