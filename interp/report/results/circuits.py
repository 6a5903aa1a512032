"""Pages of what was read off weights: copying and composition of heads, and the words that one looks for or writes."""

from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd

from interp.report.heads_figures import head_map
from interp.report.results.words import page_of_table
from interp.report.sections import Page, Table
from interp.report.tables import Column, columns_of
from interp.report.words import decimal, listed, visible

_LEFT_OUT = "Circuits are of the weights alone: they leave out positions and what other layers write."


def page_of(result: Any) -> Page:
    """The page of a reading of weights."""
    how = result.provenance
    if how["reading"] == "copying_scores":
        return _copying(result)
    title, said, shown = _composition(result) if how["reading"] == "composition_scores" else _words(result)
    return page_of_table(result, title, [said, _LEFT_OUT], shown, kind="residual")


def _copying(result: Any) -> Page:
    table = result.examples.sort_values("copying", ascending=False, kind="stable")
    table, best = table.assign(name=_names(table, "layer", "head")), table.iloc[0]
    said = [
        f"Head {best['layer']:.0f}.{best['head']:.0f} copies most: {decimal(best['copying'])}. A head that scores 1 "
        "raises the logits of whatever it attends to; one that scores -1 lowers them.",
        _LEFT_OUT,
    ]
    shown = Table("Heads", "The largest score first", table, columns_of("name", "copying"), "heads.csv")
    draw = partial(head_map, result.examples, "copying", title="copying score", signed=True, bound=1.0)
    page = page_of_table(result, "Copying scores", said, shown, draw, "copying", kind="residual")
    return replace(page, call="interp.plots.head_map(result.summary(), 'copying')")


def _composition(result: Any) -> tuple[str, str, Table]:
    table = result.examples.sort_values("excess", ascending=False, kind="stable")
    table = table.assign(
        sender=_names(table, "sender_layer", "sender_head"),
        receiver=_names(table, "receiver_layer", "receiver_head"),
    )
    best = table.groupby("kind").head(1)
    pairs = [
        f"{row['receiver']} of {row['sender']} ({row['kind']}, {decimal(row['score'])})" for _, row in best.iterrows()
    ]
    said = f"Of what earlier heads write, these read most into queries, keys and values: {listed(pairs)}."
    columns = (
        Column("receiver"),
        Column("sender", "what is written by"),
        *columns_of("kind", "score", "excess"),
    )
    shown = Table("Pairs", "The largest excess over unrelated matrices first", table, columns, "pairs.csv")
    return "Composition of heads", said if pairs else "A model of one layer has no pairs of heads to compose.", shown


def _words(result: Any) -> tuple[str, str, Table]:
    how, table = result.provenance, result.examples
    head, word = f"head {how['layer']}.{how['head']}", visible(how["word"])
    texts = table["text"].fillna(table["token"].map("#{}".format)).map(visible)
    if how["reading"] == "looks_for":
        title, said = f"What {head} looks for", f"From “{word}”, {head} looks most for {listed(texts.tolist())}."
        columns = columns_of("word", "score", "excess")
    else:
        up, down = (listed(texts[table["change"] == each].tolist()) for each in ("raised", "lowered"))
        title, said = f"What {head} writes", f"Where it attends to “{word}”, {head} raises {up}, and lowers {down}."
        columns = columns_of("word", "change", "logit")
    return title, said, Table("Words", "The largest first", table.assign(word=texts), columns, "words.csv")


def _names(table: pd.DataFrame, layer: str, head: str) -> list[str]:
    return [f"head {layer}.{head}" for layer, head in zip(table[layer], table[head], strict=True)]
