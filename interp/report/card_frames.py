"""What does the card of a head need? Its data frames, checked once, with the tasks named for readers.

What are the parts of a card called, for readers?

Which numbers of a card are coloured? All tasks at a glance, and each task's words and paths.

How does one read a card? The few lines that every number and word on it rests on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd

from interp.errors import InputError
from interp.report.heads_frames import VERDICTS, shown_names
from interp.report.heads_reading import what_p_is
from interp.report.heatmap import Cell, Heatmap, Palette, paint, reach
from interp.report.sweep_cells import UNMEASURED
from interp.report.words import UNITS, bounded, decimal, visible

_PATHS = ("sender", "receiver", "reads", "normalised", "normalised_low", "normalised_high", "effect", "n_units")
_SHARE = ("normalised", "normalised_low", "normalised_high")
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "shares": ("metric", "base", "effect", "share", "share_low", "share_high", "minimum"),
    "halves": ("evidence", "half", "estimate", "low", "high", "minimum", "passes"),
    "replacements": (
        *("kind", "effect", "low", "high", "minimum", "state", "share", "share_low", "share_high"),
        *("rank", "n_heads", "n_units", "reason"),
    ),
    "agreement": ("first", "second", "kendall", "low", "high"),
    "positions": ("position", *_SHARE, "n_changed", "n_examples"),
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
"""What each frame has to have beside ``task``."""


@runtime_checkable
class CardFrames(Protocol):
    """The frames of a card; see ``interp.methods.head_card.HeadCard`` for what they are."""

    @property
    def name(self) -> str:
        """Of the head, such as ``2.1``."""

    @property
    def verdicts(self) -> pd.DataFrame:
        """One row a task, as a dossier's."""

    @property
    def tasks(self) -> pd.DataFrame:
        """One row a task."""

    @property
    def shares(self) -> pd.DataFrame:
        """Effects as shares."""

    @property
    def halves(self) -> pd.DataFrame:
        """Both halves."""

    @property
    def replacements(self) -> pd.DataFrame:
        """Effects by the kind of ablation."""

    @property
    def agreement(self) -> pd.DataFrame:
        """How alike two kinds order the heads."""

    @property
    def positions(self) -> pd.DataFrame:
        """What patching brings back, by word."""

    @property
    def feeds(self) -> pd.DataFrame:
        """Paths into the head."""

    @property
    def readers(self) -> pd.DataFrame:
        """Paths from the head."""

    @property
    def feature(self) -> pd.DataFrame:
        """Effects of taking out its values at the related word, and the feature that is read there."""

    @property
    def circuits(self) -> pd.DataFrame:
        """What its weights look for and write."""

    @property
    def groups(self) -> pd.DataFrame:
        """The head ablated together with others."""

    @property
    def attention_maps(self) -> pd.DataFrame:
        """Where it looks on a few sentences."""

    @property
    def left_out(self) -> pd.DataFrame:
        """What could not be measured, and why."""

    @property
    def copying(self) -> float:
        """How much it copies."""

    @property
    def provenance(self) -> Mapping[str, Any]:
        """How the numbers were made."""


@dataclass(frozen=True)
class Shown:
    """A card whose tasks have names for readers; attributes as in ``CardFrames``."""

    name: str
    verdicts: pd.DataFrame
    tasks: pd.DataFrame
    shares: pd.DataFrame
    halves: pd.DataFrame
    replacements: pd.DataFrame
    agreement: pd.DataFrame
    positions: pd.DataFrame
    feeds: pd.DataFrame
    readers: pd.DataFrame
    feature: pd.DataFrame
    circuits: pd.DataFrame
    groups: pd.DataFrame
    attention_maps: pd.DataFrame
    left_out: pd.DataFrame
    copying: float
    provenance: Mapping[str, Any]

    @property
    def measured(self) -> tuple[str, ...]:
        """The tasks of which more is known than a dossier says."""
        known = {*self.replacements["task"], *self.left_out["task"]}
        return tuple(task for task in self.tasks["task"] if task in known)

    def of(self, task: str) -> "Shown":
        """The rows of one task."""
        frames = {name: frame[frame["task"] == task] for name, frame in _frames(self).items()}
        return Shown(**{**vars(self), **frames})


def shown(card: CardFrames) -> Shown:
    """The card with every task named for readers.

    Raises:
        InputError: The frames are not a card's.
    """
    _check(card)
    names = shown_names([str(task) for task in card.tasks["task"]])
    frames = {name: frame.assign(task=frame["task"].map(names)) for name, frame in _frames(card).items()}
    return Shown(**frames, name=card.name, copying=card.copying, provenance=card.provenance)


@dataclass(frozen=True)
class Dossier:
    """The card's rows as the sentences of a dossier take them."""

    cells: pd.DataFrame
    tasks: pd.DataFrame
    groups: pd.DataFrame
    replication: pd.DataFrame
    attention_maps: pd.DataFrame

    def summary(self) -> pd.DataFrame:
        """One row a task."""
        return self.cells


def as_dossier(card: CardFrames) -> Dossier:
    """The card's verdicts as a dossier of one head, for what is written about dossiers."""
    nothing = card.verdicts.head(0)
    return Dossier(card.verdicts, card.tasks, card.groups, nothing, card.attention_maps)


def _frames(card: CardFrames) -> dict[str, pd.DataFrame]:
    return {name: getattr(card, name) for name in ("verdicts", "tasks", "attention_maps", *COLUMNS)}


def _check(card: CardFrames) -> None:
    for name, columns in COLUMNS.items():
        missing = [column for column in ("task", *columns) if column not in getattr(card, name).columns]
        if missing:
            raise InputError(
                f"a card's `{name}`: expected the columns task, {', '.join(columns)}, got no {missing[0]}; build it "
                "with interp.methods.head_card"
            )


POSITIONS = {
    "related": "the related word",
    "rest": "the other words",
    "query": "the query",
    "last": "the last token",
    "all": "all words together",
}
"""Of the task's names for positions, those that need words of their own."""
READS = {
    "q": "its queries",
    "k": "its keys",
    "v": "its values",
}
PARTS = {
    "replacements": "ablation under every replacement",
    "agreement": "agreement of the replacements",
    "positions": "patching by word",
    "feeds": "direct paths into the head",
    "readers": "direct paths from the head",
    "feature": "what is taken out where it reads",
    "circuits": "circuits",
}
TAKEN_OUT = {
    "values at the related word": "putting the mean in place of its values at the related word",
    "feature": "erasing {feature} from what it writes",
    "random directions": "erasing as many random directions",
}
"""Of what is taken out of a head at one place; the feature has a name of its own."""

STATES = {"drop": "a drop", "rise": "a rise", "none": "an effect below the minimum", "undecided": "undecided"}
"""Of the effect under one replacement."""


def position(name: str) -> str:
    """A position's name in a sentence."""
    return POSITIONS.get(name, name if name == "BOS" else f"the {name}")


def kind(name: str) -> str:
    """A replacement's name in a sentence."""
    return name.replace("_", " ")


def quoted(text: str) -> str:
    """A token in a sentence: without its leading space, and visible."""
    return f"“{visible(text)}”"


def component(name: str) -> str:
    """Who sends or receives: ``the embeddings``, ``MLP 2``, ``head 1.3``, ``the logits``."""
    if name in ("embed", "logits"):
        return {"embed": "the embeddings", "logits": "the logits"}[name]
    kind, _, rest = name.partition(".")
    return f"MLP {rest}" if kind == "mlp" else f"head {name}"


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


def how_to_read(card: Shown) -> tuple[tuple[str, str], ...]:
    """What the page's terms mean, as (term, explanation) pairs."""
    asked = card.provenance
    return (
        (
            "Verdict",
            "the dossier's, corrected for all that the dossier tests. All else on this page is about "
            "a head that was chosen before: it describes, and is no test.",
        ),
        ("Adjusted p", what_p_is(asked)),
        (
            "[low, high]",
            "the 95 % interval of the estimate before it: a bootstrap that draws whole clusters.",
        ),
        (
            "Ablation",
            "zero, mean, positional mean, template mean and resample: what is put in the head's place, on at most "
            "100 units. A head that writes the same in every item, but not at every position, matters under zero and "
            "mean, and not under positional mean and resample. An effect is a drop or a rise if “no more than the "
            f"minimum”, {asked.get('min_effect', 0.1):g} of what the whole model does, is rejected at "
            f"{asked.get('alpha', 0.05):g}, and below the minimum if “the minimum at least” is; both are corrected "
            "over all heads, one kind by itself.",
        ),
        (
            "Kendall's τ",
            "1 where two kinds of ablation order all heads of the model in the same way, -1 the other way round. The "
            "order of heads whose effects are all too small to count is noise, and keeps it from 1.",
        ),
        (
            "Share of the answer",
            "patching from the clean run into the corrupted one, on at most 100 units, direct paths on fewer: 0 leaves "
            "the answer as in the corrupted run, 1 brings that of the clean run back.",
        ),
        (
            "Direct path",
            "what one component writes is patched into what another one reads, and nowhere else: a single edge, as "
            "heads and MLPs between write what they write in the corrupted run. Paths are measured one by one, and "
            "need not add up.",
        ),
        (
            "Taken out",
            "at one place of the head, all else as it is, on at most 100 units. Its values at the related word "
            "become their mean over the reference sentences, whichever word reads them; how much it looks where stays. "
            "Where a probe reads the task's feature, LEACE erases from what the head writes all that a linear probe "
            "could read of it; as many random directions are the control, as any damage has some effect.",
        ),
        (
            "By its weights",
            "the head's QK and OV circuits on the task's own tokens: what the head would do with the bare embeddings, "
            "without what earlier layers write and without positions.",
        ),
    )
