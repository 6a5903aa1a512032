"""The tables of a head's card, with its tasks named for readers, and those of their numbers that are coloured."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from interp.errors import InputError
from interp.report.heads_frames import VERDICTS, shown_names
from interp.report.heatmap import Cell, Heatmap, Palette, paint, reach
from interp.report.words import UNITS, bounded, decimal, visible

_PATHS = ("sender", "receiver", "reads", "normalised", "normalised_low", "normalised_high", "effect", "n_units")
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "shares": ("metric", "base", "effect", "share", "share_low", "share_high", "minimum"),
    "halves": ("evidence", "half", "estimate", "low", "high", "minimum", "passes"),
    "replacements": (
        *("replacement", "effect", "low", "high", "minimum", "state", "share", "share_low", "share_high"),
        *("rank", "n_heads", "n_units", "reason"),
    ),
    "agreement": ("first", "second", "kendall", "low", "high"),
    "positions": ("position", "normalised", "normalised_low", "normalised_high", "n_changed", "n_examples"),
    "feeds": _PATHS,
    "readers": _PATHS,
    "feature": ("what", "effect", "low", "high", "n_units", "n_clusters"),
    "circuits": ("word", "role", "n_examples", "circuit", "place", "text", "score"),
    "groups": (
        *("heads", "missed", "head", "member", "mean_together", "mean_together_low", "mean_together_high"),
        *("mean_share", "mean_share_low", "mean_share_high", "minimum"),
    ),
    "left_out": ("part", "reason"),
}
"""What each table of a card has to have beside ``task``."""


def named(card: Any) -> Any:
    """A ``HeadCard`` with every task named for readers.

    Raises:
        InputError: A table lacks a column, or a verdict is unknown.
    """
    for name, columns in COLUMNS.items():
        missing = [column for column in ("task", *columns) if column not in getattr(card, name).columns]
        if missing:
            raise InputError(
                f"a card's `{name}`: expected the columns task, {', '.join(columns)}, got no {missing[0]}; build it "
                "with interp.methods.head_card"
            )
    unknown = sorted(set(card.verdicts["verdict"].astype(str)) - set(VERDICTS))
    if unknown:
        raise InputError(f"a card's verdicts: expected {', '.join(VERDICTS)}, got {', '.join(unknown)}")
    names = shown_names([str(task) for task in card.tasks["task"]])
    return replace(card, **{name: each.assign(task=each["task"].map(names)) for name, each in _frames(card).items()})


def of_task(card: Any, task: str) -> Any:
    """The card of one task; `card` and `task` are named for readers."""
    return replace(card, **{name: each[each["task"] == task] for name, each in _frames(card).items()})


def _frames(card: Any) -> dict[str, pd.DataFrame]:
    return {name: getattr(card, name) for name in ("verdicts", "tasks", "attention_maps", *COLUMNS)}


def measured(card: Any) -> list[str]:
    """The tasks of which more is known than a dossier says."""
    known = {*card.replacements["task"], *card.left_out["task"]}
    return [task for task in card.tasks["task"] if task in known]


def unit_of(card: Any) -> str:
    """The unit of the metric of a card of one task."""
    metric = str(card.verdicts["metric"].iloc[0])
    return UNITS.get(metric, metric)


_POSITIONS = {
    "related": "the related word",
    "rest": "the other words",
    "query": "the query",
    "last": "the last token",
    "all": "all words together",
}
"""Of the task's names for positions, those that need words of their own."""


def position(name: str) -> str:
    """A position's name in a sentence."""
    return _POSITIONS.get(name, name if name == "BOS" else f"the {name}")


def spoken(name: str) -> str:
    """A replacement's name in a sentence."""
    return name.replace("_", " ")


def quoted(text: str) -> str:
    """A token in a sentence: without its leading space, and visible."""
    return f"“{visible(text)}”"


MOST_PATHS, _FEWEST_PATHS = 12, 3
_NOT_TESTABLE = ("—", "not testable, refused (the reason stands with the task), or not measured for this card")


def at_a_glance(card: Any) -> Heatmap:
    """Every task's evidence in a row: attention and probe in excess of their controls, and effects as shares."""
    kinds = list(dict.fromkeys(card.replacements["replacement"]))
    columns = ("verdict", "attention", "probe", *(f"{spoken(each)} ablation" for each in kinds))
    rows = tuple((task, _glance(of_task(card, task), task, kinds)) for task in card.tasks["task"])
    missing = any(not cell.measured for _, cells in rows for cell in cells[1:])
    return Heatmap("Task", columns, rows, (_NOT_TESTABLE,) if missing else ())


def _glance(card: Any, task: str, kinds: Sequence[str]) -> tuple[Cell, ...]:
    row = card.verdicts.iloc[0]
    verdict = VERDICTS[str(row["verdict"])]
    shares = card.replacements.set_index("replacement")[["share", "share_low", "share_high"]].reindex(kinds)
    cells = [Cell(verdict.symbol, verdict.name, paint(0.0, "attention").style, f"{task}: {verdict.meaning}")]
    for name, column in (("attention", "excess"), ("probe", "probe_excess")):
        ends = (row.get(f"{column}_{end}", np.nan) for end in ("low", "high"))
        cells.append(_valued(f"{task}, {name} beyond its control", row[column], *ends, palette="attention"))
    for each in kinds:
        cells.append(_valued(f"{task}, {spoken(each)} ablation", *shares.loc[each]))
    return tuple(cells)


def maps_of(card: Any) -> list[tuple[str, Heatmap]]:
    """Of a card of one task, what patching brings back and what is taken out, each with its caption."""
    maps = {
        "What it writes, by word: share brought back": _by_word(card),
        "Direct paths into it: share brought back": by_path(card.feeds),
        "Direct paths from it: share brought back": by_path(card.readers),
        "Taken out where it reads: the effect; a cost is negative": _taken_out(card),
    }
    return [(caption, each) for caption, each in maps.items() if each is not None]


def _by_word(card: Any) -> Heatmap | None:
    """Where patching changes anything; None where it does nowhere, or nothing was patched."""
    acting = card.positions[card.positions["n_changed"] > 0]
    if acting.empty:
        return None
    names = [position(each).removeprefix("the ") for each in acting["position"]]
    return _shares("Patched at", names, acting)


def _taken_out(card: Any) -> Heatmap | None:
    if card.feature.empty:
        return None
    bound = reach(card.feature[["effect", "low", "high"]])
    names = {"feature": f"{card.verdicts['feature'].iloc[0]}, erased", "random directions": "random directions, erased"}
    rows = tuple(
        (names.get(str(row["what"]), str(row["what"])), _effect(row, bound)) for _, row in card.feature.iterrows()
    )
    return Heatmap("Taken out", (f"effect ({unit_of(card)})", "95 % interval"), rows, ())


def by_path(paths: pd.DataFrame) -> Heatmap | None:
    """The largest direct paths of one task; None where there are none."""
    if paths.empty:
        return None
    first = paths.head(n_shown(paths))
    names = [f"{sender} → {receiver}" for sender, receiver in zip(first["sender"], first["receiver"], strict=True)]
    return _shares("Path", names, first)


def _shares(corner: str, names: Sequence[str], rows: pd.DataFrame) -> Heatmap:
    """One column: the share of the answer that each row brings back."""
    ends = rows[["normalised", "normalised_low", "normalised_high"]].itertuples(index=False, name=None)
    cells = tuple((name, (_valued(name, *each),)) for name, each in zip(names, ends, strict=True))
    return Heatmap(corner, ("share",), cells, ())


def n_shown(paths: pd.DataFrame) -> int:
    """How many of the largest paths are worth a row: those that do not read as 0.00, and a few at least."""
    return max(_FEWEST_PATHS, min(MOST_PATHS, int((paths["normalised"].abs() >= 0.005).sum())))


def _effect(row: pd.Series, bound: float) -> tuple[Cell, Cell]:
    """An effect in its colour, and its interval in none."""
    text, (low, high) = decimal(row["effect"]), (row["low"], row["high"])
    said = f"{row['what']}: {bounded(row['effect'], low, high)}"
    ends = "—" if pd.isna(low) else f"[{decimal(low)}, {decimal(high)}]"
    plain = paint(0.0, "effect").style
    return Cell(text, "", paint(float(text), "effect", bound=bound).style, said), Cell(ends, "", plain, said)


def _valued(name: str, value: float, low: float, high: float, *, palette: Palette = "effect") -> Cell:
    if pd.isna(value):
        return Cell("—", "", "", f"{name}: not measured")
    # Rounded before it is painted: what reads as 0.00 has one colour.
    text = decimal(value)
    return Cell(text, "", paint(float(text), palette).style, f"{name}: {bounded(value, low, high)}")
