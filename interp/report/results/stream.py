"""The residual stream taken apart, and what its components write to a logit: figures and pages."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns

from interp.errors import InputError
from interp.report.drawing import Figure, despined, draw_table, label_text, require, require_rows, wrapped_title
from interp.report.heatmap import SEQUENTIAL
from interp.report.results.words import largest_first, page_of_table, position_names
from interp.report.sections import Page, Table
from interp.report.tables import columns_of
from interp.report.words import decimal, listed

_MOST_COMPONENTS, _MOST_TOKENS = 40, 80
_STREAM, _ATTRIBUTION = "interp.residual_stream", "interp.direct_logit_attribution"


def stream(stream: Any, *, example: int = 0, tokens: Sequence[str] | None = None) -> Figure:
    """How large what each component writes is at every position; of many components, the 40 largest.

    Args:
        stream: What ``interp.residual_stream`` returns.
        example: Which prompt.
        tokens: The text at each position, in place of those that the model's tokenizer gives.

    Raises:
        InputError: It is no such stream, has no such prompt, fewer texts than positions, or a prompt of more than 80
            tokens.
    """
    require(stream, ("labels", "examples"), "stream", _STREAM)
    norms = require_rows(stream.examples, ("label", "example", "pos", "norm"), "stream", _STREAM)
    own = norms[norms["example"] == example]
    if own.empty:
        raise InputError(f"example: expected a prompt from 0 to {norms['example'].max()}, got {example!r}")
    order = list(dict.fromkeys(own["label"]))
    table = own.pivot(index="label", columns="pos", values="norm").loc[order]
    if table.shape[1] > _MOST_TOKENS:
        raise InputError(f"stream: expected a prompt of {_MOST_TOKENS} tokens at most, got {table.shape[1]}")
    largest = table.max(axis=1).nlargest(_MOST_COMPONENTS).index
    table = table.loc[[label for label in order if label in set(largest)]]
    table.columns = pd.Index(position_names(own, list(table.columns), tokens))
    size = (max(4.4, 0.42 * table.shape[1] + 2.4), 0.22 * len(table) + 1.7)
    figure = Figure(figsize=size, dpi=150, layout="constrained")
    ax = figure.subplots()
    top = float(np.nanmax(table.to_numpy(dtype=float), initial=0.0)) or 1.0
    palette = sns.color_palette(SEQUENTIAL, as_cmap=True)
    draw_table(ax, table, cmap=palette, vmin=0.0, vmax=top, annotate=False, cbar=True, label="norm")
    ax.set_aspect("auto")
    ax.tick_params(axis="x", rotation=90 if max(map(len, table.columns)) > 3 else 0)
    ax.tick_params(labelsize=7.5)
    ax.set(xlabel="", ylabel="")
    few = "" if len(order) == len(table) else f"; the {len(table)} largest of {len(order)}"
    wrapped_title(ax, f"what each component writes to the residual stream{few}")
    return figure


def logit_attribution(result: Any, *, most: int = 20) -> Figure:
    """Which component pushed the logit (difference) up, and which down: bars, the largest first; they sum to it.

    Of several prompts, bars are means and dots the prompts; the rest of many components is one bar.

    Args:
        result: What ``interp.direct_logit_attribution`` returns.
        most: How many components have a bar of their own.

    Raises:
        InputError: It is something else, has no row, or `most` is below 1.
    """
    require(result, ("examples", "summary"), "logit_attribution", _ATTRIBUTION)
    frame = require_rows(
        result.examples, ("label", "kind", "example", "attribution"), "logit_attribution", _ATTRIBUTION
    )
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


def page_of(result: Any) -> Page:
    """The page of a stream taken apart, or of an attribution."""
    return _stream(result) if hasattr(result, "components") else _attribution(result)


def _stream(result: Any) -> Page:
    table = result.summary().sort_values("norm_last", ascending=False, kind="stable")
    kinds = ", ".join(f"{kind} {n}" for kind, n in table["kind"].value_counts().items())
    n, first = result.examples["example"].nunique(), table.iloc[0]
    said = [
        f"{len(table)} components sum to the residual stream ({kinds}).",
        f"At the last token, {first['label']} writes most: a norm of {decimal(first['norm_last'])}"
        f"{'' if n == 1 else f', the mean of {n} prompts'}.",
    ]
    shown = Table(
        "Components",
        "The largest at the last token first",
        table.rename(columns={"label": "component", "norm_last": "last", "norm": "all"}).assign(n_tokens=table["n"]),
        columns_of("component", "kind", "last", "all", "n_tokens"),
        "components.csv",
    )
    draw = partial(stream, result, example=int(result.examples["example"].iloc[0]))
    short = result.examples["pos"].max() < _MOST_TOKENS
    return page_of_table(result, "Residual stream", said, shown, draw if short else None, "stream", kind="residual")


def _attribution(result: Any) -> Page:
    table, how = result.summary(), result.provenance
    up, down = (_named(table[sign * table["attribution"] > 0]) for sign in (1, -1))
    what = "The logit" if how["wrong"] is None else "The logit difference"
    n = int(table["n"].max())
    said = [
        f"{what} is {decimal(table['attribution'].sum())}{'' if n == 1 else f', the mean of {n} prompts'}.",
        f"{up} push it up most; {down} push it down. This is what each writes directly; what it causes "
        "through later layers is found by ablation or patching.",
    ]
    shown = Table(
        "Components",
        "The largest first",
        largest_first(table, "attribution").rename(columns={"label": "component"}).assign(n_prompts=table["n"]),
        columns_of("component", "kind", "attribution", "n_prompts"),
        "components.csv",
    )
    draw = partial(logit_attribution, result)
    return page_of_table(result, "Direct logit attribution", said, shown, draw, "logit_attribution", kind="residual")


def _named(components: pd.DataFrame) -> str:
    """The three with the largest attribution, such as ``L2 mlp (+3.73)``."""
    largest = largest_first(components, "attribution").head(3)
    return listed([f"{row['label']} ({row['attribution']:+.2f})" for _, row in largest.iterrows()]) or "nothing"
