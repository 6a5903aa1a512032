"""The tables of a head's card, with its tasks named for readers, and those of their numbers that are coloured."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from interp.report.heads_frames import VERDICTS, frames_by_task, require_columns, require_verdicts, with_shown_names
from interp.report.heatmap import Cell, Heatmap, Palette, paint, reach
from interp.report.words import UNITS, decimal, estimate

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
MOST_PATHS, _FEWEST_PATHS = 12, 3
_NOT_TESTABLE = ("—", "not testable, refused (the reason stands with the task), or not measured for this card")
_POSITIONS = {
    "related": "the related word",
    "rest": "the other words",
    "query": "the query",
    "last": "the last token",
    "all": "all words together",
    "BOS": "BOS",
}
"""Of the task's names for positions, those that need words of their own."""


def named(card: Any) -> Any:
    """A ``HeadCard`` with every task named for readers.

    Raises:
        InputError: A table lacks a column, or a verdict is unknown.
    """
    for name, columns in COLUMNS.items():
        require_columns(f"a card's `{name}`", getattr(card, name), ("task", *columns), "interp.methods.head_card")
    require_verdicts("a card's verdicts", card.verdicts)
    return with_shown_names(card)


def of_task(card: Any, task: str) -> Any:
    """The card of one task; `card` and `task` are named for readers."""
    return replace(card, **{name: each[each["task"] == task] for name, each in frames_by_task(card).items()})


def measured(card: Any) -> list[str]:
    """The tasks of which more is known than a dossier says."""
    known = {*card.replacements["task"], *card.left_out["task"]}
    return [task for task in card.tasks["task"] if task in known]


def unit_of(card: Any) -> str:
    """The unit of the metric of a card of one task."""
    metric = str(card.verdicts["metric"].iloc[0])
    return UNITS.get(metric, metric)


def position(name: str) -> str:
    """A position's name in a sentence."""
    return _POSITIONS.get(name, f"the {name}")


def spoken(name: str) -> str:
    """A replacement's name in a sentence."""
    return name.replace("_", " ")


def at_a_glance(card: Any) -> Heatmap:
    """Every task's evidence in a row: attention and probe in excess of their controls, and effects as shares."""
    kinds = list(dict.fromkeys(card.replacements["replacement"]))
    columns = ("verdict", "attention", "probe", *(f"{spoken(each)} ablation" for each in kinds))
    rows = []
    for task in card.tasks["task"]:
        own = of_task(card, task)
        evidence, verdict = own.verdicts.iloc[0], VERDICTS[str(own.verdicts["verdict"].iloc[0])]
        cells = [Cell(verdict.symbol, verdict.name, paint(0.0, "attention").style, f"{task}: {verdict.meaning}")]
        for name, column in (("attention", "excess"), ("probe", "probe_excess")):
            numbers = evidence.reindex([column, f"{column}_low", f"{column}_high"])
            cells.append(_cell(f"{task}, {name} beyond its control", *numbers, palette="attention"))
        shares = own.replacements.set_index("replacement")[["share", "share_low", "share_high"]].reindex(kinds)
        cells += [_cell(f"{task}, {spoken(each)} ablation", *shares.loc[each]) for each in kinds]
        rows.append((task, tuple(cells)))
    missing = any(not cell.measured for _, cells in rows for cell in cells)
    return Heatmap("Task", columns, tuple(rows), (_NOT_TESTABLE,) if missing else ())


def maps_of(card: Any) -> list[tuple[str, Heatmap]]:
    """Of a card of one task, what patching brings back and what is taken out, each with its caption."""
    acting = card.positions[card.positions["n_changed"] > 0]  # where patching changes anything
    words = [position(each).removeprefix("the ") for each in acting["position"]]
    maps = {
        "What it writes, by word: share brought back": _shares("Patched at", words, acting),
        "Direct paths into it: share brought back": by_path(card.feeds),
        "Direct paths from it: share brought back": by_path(card.readers),
        "Taken out where it reads: the effect; a cost is negative": _taken_out(card),
    }
    return [(caption, each) for caption, each in maps.items() if each.rows]


def by_path(paths: pd.DataFrame) -> Heatmap:
    """The largest direct paths of one task."""
    first = paths.head(n_shown(paths))
    return _shares("Path", path_names(first), first)


def path_names(paths: pd.DataFrame) -> list[str]:
    """From whom to whom each path leads."""
    return [f"{sender} → {receiver}" for sender, receiver in zip(paths["sender"], paths["receiver"], strict=True)]


def n_shown(paths: pd.DataFrame) -> int:
    """How many of the largest paths are worth a row: those that do not read as 0.00, and a few at least."""
    return max(_FEWEST_PATHS, min(MOST_PATHS, int((paths["normalised"].abs() >= 0.005).sum())))


def _shares(corner: str, names: Sequence[str], rows: pd.DataFrame) -> Heatmap:
    """One column: the share of the answer that each row brings back."""
    ends = rows[["normalised", "normalised_low", "normalised_high"]].itertuples(index=False, name=None)
    cells = tuple((name, (_cell(name, *each),)) for name, each in zip(names, ends, strict=True))
    return Heatmap(corner, ("share",), cells, ())


def _taken_out(card: Any) -> Heatmap:
    """Each effect in its colour, and its interval in none."""
    if card.feature.empty:
        return Heatmap("Taken out", (), (), ())
    bound, feature = reach(card.feature[["effect", "low", "high"]]), card.verdicts["feature"].iloc[0]
    names = {"feature": f"{feature}, erased", "random directions": "random directions, erased"}
    rows = []
    for row in card.feature.itertuples():
        effect = _cell(row.what, row.effect, row.low, row.high, bound=bound)
        ends = "—" if pd.isna(row.low) else estimate(row.effect, row.low, row.high).partition(" ")[2]
        cells = (effect, Cell(ends, "", paint(0.0, "effect").style, effect.title))
        rows.append((names.get(row.what, row.what), cells))
    return Heatmap("Taken out", (f"effect ({unit_of(card)})", "95 % interval"), tuple(rows), ())


def _cell(name: str, *numbers: float, palette: Palette = "effect", bound: float = 1.0) -> Cell:
    """An estimate in its colour, with its interval where one hovers over it."""
    value, low, high = numbers
    if pd.isna(value):
        return Cell("—", "", "", f"{name}: not measured")
    # Rounded before it is painted: what reads as 0.00 has one colour.
    text = decimal(value)
    return Cell(text, "", paint(float(text), palette, bound=bound).style, f"{name}: {estimate(value, low, high)}")
