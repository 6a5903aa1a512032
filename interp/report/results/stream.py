"""The residual stream taken apart, read early by a lens, and heads' circuits: figures and pages."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from interp.errors import InputError
from interp.report.attention_patterns import token_text
from interp.report.dots import dots_figure, series
from interp.report.drawing import Figure, draw_table, finish, label_text, one_panel, require_rows, wrapped_title
from interp.report.heads_figures import head_map
from interp.report.heatmap import SEQUENTIAL, ink
from interp.report.results.one_table import MADE_BY, cell_names, largest_first, measured, page_of_table
from interp.report.sections import Page, Table
from interp.report.tables import Column, columns_of
from interp.report.words import counted, decimal, listed, percent, visible

_MOST_COMPONENTS, _MOST_TOKENS, _MOST_READ = 40, 80, 60
"""Components of a figure, and tokens of a prompt that is drawn: of the stream, and of a lens."""
_LENSES = {"logit lens": "kl_logit_lens", "tuned lens": "kl_tuned_lens"}
_LEFT_OUT = "Circuits are of the weights alone: they leave out positions and what other layers write."
_page = partial(page_of_table, kind="residual")


def page_of(result: Any) -> Page:
    """The page of a stream, of what its parts write to a logit, of a lens, of two compared, or of a circuit."""
    pages = {
        "ResidualStream": _stream,
        "LogitAttribution": _attribution,
        "LensReading": _reading,
        "LensComparison": _compared,
        "CircuitReading": _circuit,
    }
    return pages[type(result).__name__](result)


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
    norms = measured("stream", stream, "label", "example", "pos", "norm", needs=("labels",))
    own = _prompt(norms, "stream", example, _MOST_TOKENS)
    order = list(dict.fromkeys(own["label"]))
    table = own.pivot(index="label", columns="pos", values="norm").loc[order]
    largest = table.max(axis=1).nlargest(_MOST_COMPONENTS).index
    table = table.loc[[label for label in order if label in largest]]
    table.columns = pd.Index(_position_names(own, list(table.columns), tokens))
    top = float(np.nanmax(table.to_numpy(dtype=float), initial=0.0)) or 1.0
    size = (max(4.4, 0.42 * table.shape[1] + 2.4), 0.22 * len(table) + 1.7)
    few = "" if len(order) == len(table) else f"; the {len(table)} largest of {len(order)}"
    figure, ax = _by_position(table, "norm", top, size, 3, f"what each component writes to the residual stream{few}")
    ax.tick_params(labelsize=7.5)
    ax.set(xlabel="", ylabel="")
    return figure


def _stream(result: Any) -> Page:
    table = result.summary().sort_values("norm_last", ascending=False, kind="stable")
    kinds = ", ".join(f"{kind} {n}" for kind, n in table["kind"].value_counts().items())
    said = [
        f"{len(table)} components sum to the residual stream ({kinds}).",
        f"At the last token, {table['label'].iloc[0]} writes most: a norm of {decimal(table['norm_last'].iloc[0])}"
        f"{_mean_of(result.examples['example'].nunique())}.",
    ]
    table = table.assign(component=table["label"], last=table["norm_last"], all=table["norm"], n_tokens=table["n"])
    columns = columns_of("component", "kind", "last", "all", "n_tokens")
    shown = Table("Components", "The largest at the last token first", table, columns, "components.csv")
    draw = partial(stream, result, example=int(result.examples["example"].iloc[0]))
    short = result.examples["pos"].max() < _MOST_TOKENS
    return _page(result, "Residual stream", said, shown, draw, drawn=short)


def _mean_of(n_prompts: int) -> str:
    return "" if n_prompts == 1 else f", the mean of {n_prompts} prompts"


def logit_attribution(result: Any, *, most: int = 20) -> Figure:
    """Which component pushed the logit (difference) up, and which down: bars, the largest first; they sum to it.

    Of several prompts, bars are means and dots the prompts; the rest of many components is one bar.

    Args:
        result: What ``interp.direct_logit_attribution`` returns.
        most: How many components have a bar of their own.

    Raises:
        InputError: It is something else, has no row, or `most` is below 1.
    """
    frame = measured("logit_attribution", result, "label", "kind", "example", "attribution")
    if not isinstance(most, int | np.integer) or most < 1:
        raise InputError(f"most: expected a whole number from 1, got {most!r}")
    table = frame.pivot(index="label", columns="example", values="attribution").loc[list(dict.fromkeys(frame["label"]))]
    order = table.mean(axis=1).abs().sort_values(ascending=False, kind="stable").index
    shown = table.loc[order[:most]]
    if len(order) > most:
        rest = table.loc[order[most:]].sum()
        shown = pd.concat([shown, rest.to_frame(f"the other {len(order) - most}").T])
    figure, ax = one_panel(6.2, 0.25 * len(shown) + 1.4)
    red, blue = (sns.color_palette("RdBu", 8)[place] for place in (0, -1))
    means, place = shown.mean(axis=1).to_numpy(), np.arange(len(shown))
    ax.barh(place, means, color=[blue if each >= 0 else red for each in means], height=0.7)
    if shown.shape[1] > 1:
        ax.plot(shown.to_numpy(), place, "o", color="0.25", markersize=2, alpha=0.6)
    ax.axvline(0, color="0.4", linewidth=0.8)
    n, total = table.shape[1], table.sum().mean()
    of = "" if n == 1 else f", mean of {n} prompts (dots)"
    title = f"direct logit attribution{of}: all of it sums to {decimal(total)}"
    finish(ax, title, "attribution (logits)", rows=list(map(label_text, shown.index)))
    return figure


def _attribution(result: Any) -> Page:
    table = largest_first(result.summary(), "attribution")
    up, down = (_three(table[sign * table["attribution"] > 0]) for sign in (1, -1))
    what = "The logit" if result.provenance["wrong"] is None else "The logit difference"
    said = [
        f"{what} is {decimal(table['attribution'].sum())}{_mean_of(int(table['n'].max()))}.",
        f"{up} push it up most; {down} push it down. This is what each writes directly; what it causes "
        "through later layers is found by ablation or patching.",
    ]
    table = table.assign(component=table["label"], n_prompts=table["n"])
    columns = columns_of("component", "kind", "attribution", "n_prompts")
    shown = Table("Components", "The largest first", table, columns, "components.csv")
    return _page(result, "Direct logit attribution", said, shown, partial(logit_attribution, result))


def _three(largest_first: pd.DataFrame) -> str:
    """The first three, such as ``L2 mlp (+3.73)``."""
    rows = largest_first.head(3)[["label", "attribution"]].itertuples(index=False)
    return listed([f"{label} ({attribution:+.2f})" for label, attribution in rows]) or "nothing"


def logit_lens(reading: Any, *, example: int = 0, tokens: Sequence[str] | None = None) -> Figure:
    """The first guess at every depth and position: its text, coloured by its probability; framed where it is right.

    Args:
        reading: What ``interp.residual.logit_lens.logit_lens`` returns.
        example: Which prompt.
        tokens: The text at each position, with padding where there is some, in place of those of the tokenizer.

    Raises:
        InputError: It is no such reading, has no such prompt, fewer texts than positions, or a prompt of more than 60
            tokens.
    """
    place = ("depth", "example", "pos", "log_prob")
    rows = measured("logit_lens", reading, *place, "rank", "entropy", "kl", needs=("top",))
    top = require_rows(reading.top, (*place, "place", "token", "text"), "logit_lens", MADE_BY["logit_lens"])
    own = _prompt(rows, "logit_lens", example, _MOST_READ)
    own = own.assign(right=own["rank"].eq(0).fillna(False).astype(bool))
    first = _with_texts(top[(top["example"] == example) & (top["place"] == 0)])
    shown = first.pivot(index="depth", columns="pos").sort_index(ascending=False)
    right = own.pivot(index="depth", columns="pos", values="right").reindex_like(shown["text"])
    names = _position_names(own, right.columns.tolist(), tokens)
    chance = np.exp(shown["log_prob"].astype(float)).set_axis(names, axis=1)
    size = (max(4.0, 1.9 + 0.72 * chance.shape[1]), max(2.2, 1.5 + 0.36 * len(chance)))
    title = "the model's first guess, were it to stop there (framed: what comes next in the prompt)"
    figure, ax = _by_position(chance, "probability", 1.0, size, 8, title)
    ax.tick_params(labelsize=8)
    ax.set(xlabel="read at", ylabel="blocks before it")
    palette = sns.color_palette(SEQUENTIAL, as_cmap=True)
    look: dict[str, Any] = {"fontsize": 7, "ha": "center", "va": "center", "parse_math": False}
    for (row, column), text in np.ndenumerate(shown["text"].to_numpy()):
        if pd.isna(text):
            continue
        readable = ink(to_hex(palette(chance.iat[row, column])))
        ax.text(column + 0.5, row + 0.5, token_text(text)[:10], color=readable, **look)
        if right.iat[row, column]:
            ax.add_patch(Rectangle((column, row), 1, 1, fill=False, edgecolor="black", linewidth=1.4, clip_on=False))
    return figure


def _reading(result: Any) -> Page:
    table, examples = result.summary(), result.examples
    first, before, last = (table.iloc[row] for row in (0, -2, -1))
    said = [
        f"Read at {len(table)} depths, over {counted(int(table['n'].max()), 'token')} of "
        f"{counted(examples['example'].nunique(), 'prompt')}; numbers are means over tokens. The last depth is the "
        "model's own output.",
        f"The KL divergence from that output falls from {decimal(first['kl'])} nats at the embeddings to "
        f"{decimal(before['kl'])} before the last block.",
    ]
    if table["right"].notna().all():
        said.append(
            f"The next token is the first guess for {percent(first['right'])} of the tokens at the embeddings, for "
            f"{percent(before['right'])} before the last block, and for {percent(last['right'])} at the end."
        )
    headings = {"depth": "blocks before it", "kl": "KL from the output (nats)", "rank": "rank of the next token"}
    headings |= {"log_prob": "its log-probability", "entropy": "entropy (nats)", "n": "tokens"}
    columns = list(map(Column, headings, headings.values()))
    shown = Table("Depths", "The model's own output first", table.iloc[::-1], columns, "depths.csv")
    draw = partial(logit_lens, result, example=int(examples["example"].iloc[0]))
    title = "Logit lens" if result.provenance.get("lens", "logit lens") == "logit lens" else "Lens with a translator"
    return _page(result, title, said, shown, draw, drawn=examples["pos"].max() < _MOST_READ)


def _prompt(rows: pd.DataFrame, figure: str, example: int, most: int) -> pd.DataFrame:
    """The rows of one prompt, which is short enough to be drawn."""
    own = rows[rows["example"] == example]
    if own.empty:
        first, last = rows["example"].agg(["min", "max"])
        raise InputError(f"example: expected a prompt from {first} to {last}, got {example!r}")
    if (n := own["pos"].nunique()) > most:
        raise InputError(
            f"{figure}: expected a prompt of {most} tokens at most, got {n}; read a shorter one, or draw .summary()"
        )
    return own


def _position_names(rows: pd.DataFrame, positions: Sequence[int], tokens: Sequence[str] | None) -> list[str]:
    """The text at each position: that of `tokens`, or of the `rows` of one prompt; its number where neither has any."""
    if tokens is None:
        known = {} if "text" not in rows else rows.drop_duplicates("pos").set_index("pos")["text"].dropna()
        return [token_text(known[each]) if each in known else str(each) for each in positions]
    if isinstance(tokens, str) or len(tokens) <= max(positions):
        raise InputError(f"tokens: expected a text for each position up to {max(positions)}, got {len(tokens)}")
    return [token_text(tokens[each]) for each in positions]


def _by_position(
    table: pd.DataFrame, label: str, top: float, size: tuple[float, float], longest: int, title: str
) -> tuple[Figure, Axes]:
    """Numbers from 0 to `top` with positions across; their names are turned where one is longer than `longest`."""
    figure, ax = one_panel(*size)
    palette = sns.color_palette(SEQUENTIAL, as_cmap=True)
    draw_table(ax, table, cmap=palette, vmin=0.0, vmax=top, annotate=False, cbar=True, label=label)
    ax.set_aspect("auto")
    ax.tick_params(axis="x", rotation=90 if max(map(len, table.columns)) > longest else 0)
    wrapped_title(ax, title)
    return figure, ax


def lenses(result: Any) -> Figure:
    """How far each depth is from the model's own output by the logit lens and by a tuned one: means over tokens.

    Args:
        result: What ``interp.residual.tuned_lens.compare_lenses`` returns.

    Raises:
        InputError: It is something else, or has no row.
    """
    measured("lenses", result, "depth", *_LENSES.values())
    table = result.summary().assign(unknown=np.nan)
    drawn = {name: series(table, column, "unknown", "unknown") for name, column in _LENSES.items()}
    rows = [counted(depth, "block") for depth in table["depth"]]
    return dots_figure(rows, drawn, "KL from the model's own output (nats)", "read after so many blocks")


def _compared(result: Any) -> Page:
    table = result.summary()
    nearer = int((table["kl_tuned_lens"] < table["kl_logit_lens"]).sum())
    said = (
        f"The tuned lens is nearer to the model's own output at {nearer} of {len(table) - 1} depths before it; means "
        f"over {counted(int(table['n'].max()), 'token')}."
    )
    kls = [Column(column, f"KL, {name} (nats)") for name, column in _LENSES.items()]
    columns = [Column("depth", "blocks before it"), *kls, Column("n", "tokens")]
    shown = Table("Depths", "Mean divergence from the model's own output", table, columns, "depths.csv")
    return _page(result, "Lenses compared", [said], shown, partial(lenses, result))


def _circuit(result: Any) -> Page:
    reading = result.provenance["reading"]
    if reading == "copying_scores":
        return _copying(result)
    title, said, shown = _composition(result) if reading == "composition_scores" else _words(result)
    return _page(result, title, [said, _LEFT_OUT], shown)


def _copying(result: Any) -> Page:
    table = result.examples.sort_values("copying", ascending=False, kind="stable")
    table = table.assign(name=cell_names(table, ("layer", "head")))
    said = (
        f"{table['name'].iloc[0].capitalize()} copies most: {decimal(table['copying'].iloc[0])}. A head that scores 1 "
        "raises the logits of whatever it attends to; one that scores -1 lowers them."
    )
    shown = Table("Heads", "The largest score first", table, columns_of("name", "copying"), "heads.csv")
    page = _page(result, "Copying scores", [said, _LEFT_OUT], shown, partial(copying, result))
    return replace(page, call="interp.plots.head_map(result.summary(), 'copying')")


def copying(result: Any) -> Figure:
    """Every head's copying score in its place."""
    return head_map(result.examples, "copying", title="copying score", signed=True, bound=1.0)


def _composition(result: Any) -> tuple[str, str, Table]:
    table = result.examples.sort_values("excess", ascending=False, kind="stable")
    for side in ("sender", "receiver"):
        heads = table[[f"{side}_layer", f"{side}_head"]].set_axis(["layer", "head"], axis=1)
        table = table.assign(**{side: cell_names(heads, heads)})
    best = table.groupby("kind").head(1)[["receiver", "sender", "kind", "score"]].itertuples(index=False)
    pairs = [f"{receiver} of {sender} ({kind}, {decimal(score)})" for receiver, sender, kind, score in best]
    said = f"Of what earlier heads write, these read most into queries, keys and values: {listed(pairs)}."
    columns = (Column("receiver"), Column("sender", "what is written by"), *columns_of("kind", "score", "excess"))
    shown = Table("Pairs", "The largest excess over unrelated matrices first", table, columns, "pairs.csv")
    return "Composition of heads", said if pairs else "A model of one layer has no pairs of heads to compose.", shown


def _words(result: Any) -> tuple[str, str, Table]:
    how, table = result.provenance, _with_texts(result.examples)
    table = table.assign(word=table["text"].map(visible))
    head, word = f"head {how['layer']}.{how['head']}", visible(how["word"])
    if how["reading"] == "looks_for":
        title, found = f"What {head} looks for", listed(table["word"].tolist())
        said, columns = f"From “{word}”, {head} looks most for {found}.", columns_of("word", "score", "excess")
    else:
        up, down = (listed(table.loc[table["change"] == each, "word"].tolist()) for each in ("raised", "lowered"))
        title, said = f"What {head} writes", f"Where it attends to “{word}”, {head} raises {up}, and lowers {down}."
        columns = columns_of("word", "change", "logit")
    return title, said, Table("Words", "The largest first", table, columns, "words.csv")


def _with_texts(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows, in which a token without a text is called by its number."""
    return rows.assign(text=rows["text"].fillna(rows["token"].map("#{}".format)))
