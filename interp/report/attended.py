"""Which words does a head look at? Its attention from the query, as shaded words of a sentence."""

from dataclasses import dataclass

import pandas as pd

from interp.report.heatmap import paint
from interp.report.words import visible


@dataclass(frozen=True)
class Word:
    """One token of a sentence, with the attention that it gets."""

    text: str
    weight: str
    style: str
    is_query: bool
    is_related: bool


@dataclass(frozen=True)
class AttendingHead:
    """One of a task's top heads and the sentences that it is shown on."""

    layer: int
    head: int
    sentences: tuple[tuple[Word, ...], ...]


def attending_heads(attention_maps: pd.DataFrame, task: str) -> tuple[AttendingHead, ...]:
    """One task's top heads, best first, each with its attention on example sentences.

    Args:
        attention_maps: One row per task, head, example and key position, with the weight from the
            query position to it.
        task: The task to show.
    """
    maps = attention_maps[attention_maps["task"] == task].sort_values(["rank", "example", "key_pos"])
    return tuple(
        AttendingHead(int(layer), int(head), tuple(_sentence(rows) for _, rows in of_head.groupby("example")))
        for (_, layer, head), of_head in maps.groupby(["rank", "layer", "head"])
    )


def scored(maps: pd.DataFrame) -> pd.DataFrame:
    """Of whole patterns, the rows of the query that is scored: the last that is kept of each sentence."""
    return maps[maps["query_pos"] == maps.groupby(["task", "rank", "example"])["query_pos"].transform("max")]


def _sentence(rows: pd.DataFrame) -> tuple[Word, ...]:
    return tuple(
        Word(
            text=visible(row.token),
            weight="—" if pd.isna(row.weight) else f"{row.weight:.2f}",
            style="" if pd.isna(row.weight) else paint(row.weight, "attention").style,
            is_query=bool(row.is_query),
            is_related=bool(row.is_related),
        )
        for row in rows.itertuples()
    )
