"""How do examples become shaded sentences? The query and the words that it should find marked, right or wrong said."""

from dataclasses import dataclass

import pandas as pd

from interp.report.amounts import percent
from interp.report.attended import Word, attending_heads
from interp.report.relations.frames import DIRECTION, EXAMPLE
from interp.report.relations.words import direction_name, head_name


@dataclass(frozen=True)
class Picture:
    """One sentence: where it stands and whether the head is right, and its words."""

    caption: str
    words: tuple[Word, ...]


@dataclass(frozen=True)
class PicturedHead:
    """A head on the examples of one direction; ``rows`` are these as ``embedded.attention_figure`` takes them."""

    title: str
    note: str
    pictures: tuple[Picture, ...]
    rows: pd.DataFrame


def pictured_heads(maps: pd.DataFrame, frame: pd.DataFrame) -> tuple[PicturedHead, ...]:
    """Every direction that has examples, in their order.

    Args:
        maps: One row per example and word; see ``frames.MAP_COLUMNS``.
        frame: One row per direction and head, with how often it is right.
    """
    cells = frame.set_index([*DIRECTION, "layer", "head"], drop=False).sort_index()
    return tuple(
        _pictured(rows, cells.loc[key]) for key, rows in maps.groupby([*DIRECTION, "layer", "head"], sort=False)
    )


def _pictured(rows: pd.DataFrame, cell: pd.Series) -> PicturedHead:
    examples = [each.sort_values("word").reset_index(drop=True) for _, each in rows.groupby(list(EXAMPLE), sort=False)]
    captions = [_caption(each) for each in examples]
    verdict = cell["verdict"] if pd.notna(cell["verdict"]) else ""
    placed = pd.concat(
        [
            each.assign(example=number, caption=caption, key_pos=each.index, query_pos=int(each["is_query"].idxmax()))
            for number, (each, caption) in enumerate(zip(examples, captions, strict=True))
        ]
    ).assign(task="", verdict=verdict)
    (head,) = attending_heads(placed, "")
    pictures = tuple(Picture(*pair) for pair in zip(captions, head.sentences, strict=True))
    note = f"Right in {percent(cell['accuracy'])} of all {cell['n']:,} pairs that were scored."
    title = f"{direction_name(cell['relation'], cell['looks'])}: head {head_name(cell)}"
    return PicturedHead(title, note, pictures, placed)


def _caption(rows: pd.DataFrame) -> str:
    first = rows.iloc[0]
    if first["is_right"]:
        outcome = "right here"
    else:
        choice = rows.loc[rows["is_choice"], "token"]
        instead = f"“{choice.iloc[0]}”" if len(choice) else "what is not shown"
        outcome = f"wrong here: it attends most to {instead}"
    return f"{first['sentence']} — {outcome}"
