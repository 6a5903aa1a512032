"""Which numbers of a card are coloured? All tasks at a glance, and each task's words and paths."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from interp.report.amounts import bounded, decimal
from interp.report.cards.frames import Shown
from interp.report.cards.words import kind, position
from interp.report.colours import Palette, paint, reach
from interp.report.heatmap import Cell, Heatmap
from interp.report.metrics import UNITS
from interp.report.sweeps.states import UNMEASURED
from interp.report.verdicts import VERDICTS

MOST_PATHS, _FEWEST_PATHS = 12, 3
_NOT_TESTABLE = ("—", "not testable, refused (the reason stands with the task), or not measured for this card")
_IDLE = ("=", "the same in both runs, or cannot reach the answer")


def at_a_glance(card: Shown) -> Heatmap:
    """Every task's evidence in a row: attention and probe in excess of their controls, and effects as shares."""
    kinds = list(dict.fromkeys(card.replacements["kind"]))
    columns = ("verdict", "attention", "probe", *(f"{kind(each)} ablation" for each in kinds))
    rows = tuple((task, _glance(card.of(task), task, kinds)) for task in card.tasks["task"])
    missing = any(not cell.measured for _, cells in rows for cell in cells[1:])
    return Heatmap("Task", columns, rows, (_NOT_TESTABLE,) if missing else ())


def by_word(card: Shown) -> Heatmap | None:
    """What patching brings back at each kind of word of one task; None where nothing was patched."""
    if card.positions.empty:
        return None
    rows = tuple(
        (position(row["position"]).removeprefix("the "), (_patched(row),)) for _, row in card.positions.iterrows()
    )
    idle = (card.positions["n_changed"] == 0).any()
    return Heatmap("Patched at", ("share",), rows, (_IDLE,) if idle else ())


def taken_out(card: Shown) -> Heatmap | None:
    """The effects of what is taken out of the head at one place of one task; None where nothing was."""
    if card.feature.empty:
        return None
    bound = reach(card.feature[["effect", "low", "high"]])
    names = {"feature": f"{card.verdicts['feature'].iloc[0]}, erased", "random directions": "random directions, erased"}
    rows = tuple(
        (names.get(str(row["what"]), str(row["what"])), _effect(row, bound)) for _, row in card.feature.iterrows()
    )
    unit = UNITS.get(card.verdicts["metric"].iloc[0], card.verdicts["metric"].iloc[0])
    return Heatmap("Taken out", (f"effect ({unit})", "95 % interval"), rows, ())


def by_path(paths: pd.DataFrame) -> Heatmap | None:
    """The largest direct paths of one task; None where there are none."""
    if paths.empty:
        return None
    names = [f"{sender} → {receiver}" for sender, receiver in zip(paths["sender"], paths["receiver"], strict=True)]
    shown = paths.assign(name=names).head(n_shown(paths))
    return Heatmap("Path", ("share",), tuple((row["name"], (_path(row),)) for _, row in shown.iterrows()), ())


def n_shown(paths: pd.DataFrame) -> int:
    """How many of the largest paths are worth a row: those that do not read as 0.00, and a few at least."""
    return max(_FEWEST_PATHS, min(MOST_PATHS, int((paths["normalised"].abs() >= 0.005).sum())))


def _path(row: pd.Series) -> Cell:
    return _valued(row["name"], *_ends(row))


def _glance(card: Shown, task: str, kinds: Sequence[str]) -> tuple[Cell, ...]:
    row = card.verdicts.iloc[0]
    verdict = VERDICTS[str(row["verdict"])]
    shares = card.replacements.set_index("kind")[["share", "share_low", "share_high"]].reindex(list(kinds))
    cells = [Cell(verdict.symbol, verdict.name, paint(0.0, "attention").style, f"{task}: {verdict.meaning}")]
    for name, column in (("attention", "excess"), ("probe", "probe_excess")):
        ends = (row.get(f"{column}_{end}", np.nan) for end in ("low", "high"))
        cells.append(_valued(f"{task}, {name} beyond its control", row[column], *ends, palette="attention"))
    for each in kinds:
        cells.append(_valued(f"{task}, {kind(each)} ablation", *shares.loc[each]))
    return tuple(cells)


def _effect(row: pd.Series, bound: float) -> tuple[Cell, Cell]:
    """An effect in its colour, and its interval in none."""
    text, (low, high) = decimal(row["effect"]), (row["low"], row["high"])
    said = f"{row['what']}: {bounded(row['effect'], low, high)}"
    ends = "—" if pd.isna(low) else f"[{decimal(low)}, {decimal(high)}]"
    plain = paint(0.0, "effect").style
    return Cell(text, "", paint(float(text), "effect", bound=bound).style, said), Cell(ends, "", plain, said)


def _patched(row: pd.Series) -> Cell:
    name = position(row["position"])
    if row["n_changed"] == 0:
        return Cell(_IDLE[0], "", "", f"{name}: {_IDLE[1]}")
    return _valued(name, *_ends(row))


def _ends(row: pd.Series) -> tuple[float, float, float]:
    return row["normalised"], row["normalised_low"], row["normalised_high"]


def _valued(name: str, value: float, low: float, high: float, *, palette: Palette = "effect") -> Cell:
    if pd.isna(value):
        return Cell("—", "", "", f"{name}: {UNMEASURED}")
    # Rounded before it is painted: what reads as 0.00 has one colour.
    text = decimal(value)
    return Cell(text, "", paint(float(text), palette).style, f"{name}: {bounded(value, low, high)}")
