"""What is shown of a sweep: its cells by their names, what is claimed of each, and why one may have no number.

1. Of an ablation the effect is shown; of patching the effect as a share of the difference between the runs.
2. Colours and sizes count from the run that is changed: 0 is no effect. Patching the corrupted run brings back up to 1
   of the difference; patching the clean run takes away up to all of it, -1.
3. A cell is a finding where its effect is significant after correction (``p_adjusted`` at most ``ALPHA``); a large one
   from a tenth of the difference between clean and corrupted, or of the model's own metric on.
4. Where no example changed, what is left of the effect is rounding: no number, and no finding.
5. As a table, the position attended to goes across, else the position, the neuron, the head or the last label; the
   other labels go down. Of very many rows the strongest are kept; a table that is too wide is none.
"""

import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from interp.errors import InputError
from interp.report.cells import and_p, descending
from interp.report.drawing import require
from interp.report.heads_frames import Verdict
from interp.report.heatmap import Grid, Reason, missing, reach
from interp.report.words import UNITS, estimate, visible

ALPHA = 0.05
MINIMUM = 0.1
"""From what share on an effect is large; as ``interp.heads`` has it."""
LARGE, SMALL = "large", "small"
FOUND = {
    LARGE: Verdict("significant after correction", "●", "o", True, ""),
    SMALL: Verdict("significant after correction, but small", "○", "o", False, ""),
}
CHANGED, UNMEASURED = "changed", "not measured"
STATES = missing(UNMEASURED) | {
    "identical input": Reason("=", "....", "both runs have the same activation there, so nothing can change"),
    "unreachable": Reason("⊘", "xxxx", "what is changed there cannot reach the answer"),
    "no-op": Reason("∅", "++++", "the intervention changed nothing"),
    "nothing to recover": Reason("?", "\\\\\\\\", "the clean and the corrupted run are not shown to differ"),
}
"""Why a cell has no number, by its status; the words of ``SweepResult``."""
PATH = ("sender", "via", "receiver")
"""What names a path that was patched along."""
GROWING = ("step", "layer", "head")
"""What names a set of heads that grows by one at each step."""
Tokens = Mapping[Hashable, tuple[str, float]]
"""By position: the commonest token there, and the share of the prompts that have it."""


@dataclass(frozen=True, eq=False)
class Swept:
    """A sweep with its cells, summarised once, as its page, its figures and the terminal take it.

    Attributes:
        result: Of ``interp.ablate``, ``interp.patch``, ``interp.path_patch`` or ``greedy``.
        tokens: Where positions mean the same in all prompts; empty where they have names of their own.
    """

    result: Any
    tokens: Tokens = field(default_factory=dict)

    @cached_property
    def summary(self) -> pd.DataFrame:
        """The result's ``summary``."""
        with warnings.catch_warnings():
            # That there is nothing to recover is hatched, and said in the legend.
            warnings.simplefilter("ignore", RuntimeWarning)
            return self.result.summary()

    @cached_property
    def runs(self) -> pd.DataFrame:
        """The runs that cells are held against."""
        return self.result.runs()

    @cached_property
    def cells(self) -> pd.DataFrame:
        """The cells in the order of the sweep, with what is shown of them.

        The summary's columns and ``name``, ``status``, ``state`` (see ``statuses``), ``shown``, ``shown_low``,
        ``shown_high`` (NaN where there is a state), ``size`` (of the effect, in the metric's units; NaN likewise) and
        ``found`` (``large``, ``small`` or empty). After a screen also the cells that were not measured, and
        ``estimate`` and ``chosen`` of each. What is rounding alone is NaN.
        """
        labels = list(self.labels)
        cells = statuses(self.result.examples, labels).merge(self.summary, on=labels, how="left", validate="one_to_one")
        if self.estimates is not None:
            cells = self.estimates.merge(cells, on=labels, how="left", validate="one_to_one")
            cells = cells.fillna({"status": UNMEASURED, "state": UNMEASURED})
        cells["name"] = cell_names(cells, labels, self.tokens)
        shown = ("normalised", "normalised_low", "normalised_high") if self.patched else ("effect", "low", "high")
        if self.patched:
            lost = (cells["state"] == "") & cells["normalised"].isna()
            cells["state"] = cells["state"].mask(lost, "nothing to recover")
        moved = cells["state"] == ""
        for name, column in zip(("shown", "shown_low", "shown_high"), shown, strict=True):
            cells[name] = cells[column].where(moved) - self.origin
        numbers = [name for name in cells if name in (*shown, "effect", "low", "high", "p", "p_adjusted")]
        cells[numbers] = cells[numbers].where(moved | (cells["state"] == "nothing to recover"))
        cells["size"] = cells["effect"].abs().where(moved)
        beyond = moved & (cells["p_adjusted"] <= ALPHA)
        cells["found"] = np.select([beyond & is_large(self, cells), beyond], [LARGE, SMALL], "")
        return cells

    @property
    def provenance(self) -> Mapping[str, Any]:
        """How the numbers were made."""
        return self.result.provenance

    @property
    def labels(self) -> tuple[str, ...]:
        """The columns that name a cell."""
        return tuple(self.result.labels)

    @property
    def estimates(self) -> pd.DataFrame | None:
        """After a screen one row per cell, measured or not: the labels, ``estimate`` and what it was ``chosen`` for."""
        screen = getattr(self.result, "screen", None)
        return None if screen is None else screen.summary()[[*self.labels, "estimate", "chosen"]]

    @property
    def patched(self) -> bool:
        """Whether activations were patched; else components were ablated."""
        return "direction" in self.provenance

    @property
    def metric(self) -> str:
        """What was measured."""
        return str(self.provenance["metric"])

    @property
    def unit(self) -> str:
        """The unit of the metric."""
        return UNITS.get(self.metric, self.metric)

    @property
    def tested(self) -> bool:
        """Whether cells have a p: those of a screen were chosen on the same units, and a divergence has no sign."""
        return self.estimates is None and self.metric != "kl_divergence"

    @property
    def complete(self) -> bool:
        """Whether every example that was asked for is there."""
        return bool(self.provenance.get("complete", True))

    @property
    def n_measured(self) -> int:
        """How many examples there are."""
        return int(self.result.examples["example"].nunique())

    @property
    def origin(self) -> float:
        """The normalised metric of the run that is changed: 1 where that is the clean run, else 0."""
        return 1.0 if self.provenance.get("direction") == "noise" else 0.0

    @property
    def minimum(self) -> float:
        """From what size on a cell is large, in what is shown; a KL divergence has nothing to be a share of."""
        if self.patched:
            return MINIMUM
        return 0.0 if self.metric == "kl_divergence" else MINIMUM * abs(float(self.runs["mean"].iloc[0]))


def swept(result: Any, tokens: Sequence[str] | None = None) -> Swept:
    """A sweep, with the text at each position; None for what its provenance has, or numbers.

    Raises:
        InputError: It is no sweep, has no row, or there are fewer texts than positions.
    """
    if isinstance(result, Swept):
        return result
    require(result, ("examples", "provenance", "labels", "summary", "runs"), "sweep", "interp.ablate or interp.patch")
    frame = result.examples
    if frame.empty:
        raise InputError("sweep: expected a row at least, got an empty frame; there is nothing to draw")
    if tokens is None:
        return Swept(result, dict(enumerate(map(tuple, result.provenance.get("positions", [])))))
    places = [each for axis in ("pos", "key") if axis in frame for each in frame[axis].unique()]
    named = [each for each in places if isinstance(each, str)]
    if named or not places:
        got = f"cells called {named[0]!r}" if named else "a sweep without positions"
        raise InputError(f"tokens: expected a sweep by position, whose positions have numbers, got {got}; leave it out")
    if len(tokens) <= max(places):
        raise InputError(
            f"tokens: expected a text for each position up to {max(places)}, got {len(tokens)}; give those of one "
            "prompt, special tokens included, as model.to_str_tokens has them"
        )
    return Swept(result, {pos: (token, 1.0) for pos, token in enumerate(tokens)})


def statuses(examples: pd.DataFrame, labels: Sequence[str]) -> pd.DataFrame:
    """What happened in each cell: the labels, ``status`` (such as ``changed in 12 of 48``) and ``state``.

    The state is one of ``STATES``; empty where something changed. Cells stand in the order of `examples`.
    """
    by_cell = [examples[label] for label in labels]
    counts = pd.get_dummies(examples["status"], dtype=int).groupby(by_cell, sort=False).sum()
    counts = counts.reindex(columns=[CHANGED, *STATES], fill_value=0)
    commonest = counts[list(STATES)].idxmax(axis=1)
    status = [
        CHANGED if some == n else f"changed in {some} of {n}" if some else state
        for some, n, state in zip(counts[CHANGED], counts.sum(axis=1), commonest, strict=True)
    ]
    state = commonest.where(counts[CHANGED] == 0, "")
    return pd.DataFrame({"status": status, "state": state}).reset_index()


def is_large(sweep: Swept, cells: pd.DataFrame) -> pd.Series:
    """Whether each effect reaches the minimum, tested or not."""
    return cells["shown"].abs() >= sweep.minimum


def strongest_first(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells by the size of their effects; then, by their estimates, those that have none."""
    return descending(cells, "size", *([cells["estimate"].abs()] if "estimate" in cells else []))


def cell_names(frame: pd.DataFrame, labels: Iterable[str], tokens: Tokens | None = None) -> list[str]:
    """What each row's cell is called, by the columns that name it."""
    columns = list(labels)
    rows = frame[columns].itertuples(index=False)
    return [cell_name(dict(zip(columns, row, strict=True)), tokens) for row in rows]


def cell_name(labels: Mapping[str, Hashable], tokens: Tokens | None = None) -> str:
    """A cell's name, such as ``head 2.1``, ``layer 2, related``, ``neuron 0.17`` or ``0.1 → 2.3.k``."""
    if tuple(labels) == PATH:
        return " → ".join(str(node) for node in labels.values() if node)
    if tuple(labels) == GROWING:
        return "the set up to head {layer}.{head} (step {step})".format(**labels)
    rest, parts = dict(labels), []
    for unit in ("head", "neuron"):
        if {"layer", unit} <= rest.keys():
            parts.append(f"{unit} {rest.pop('layer')}.{rest.pop(unit)}")
    return ", ".join([*parts, *(_part(axis, value, tokens or {}) for axis, value in rest.items())])


def _part(axis: str, value: Hashable, tokens: Tokens) -> str:
    if axis == "heads" or (axis in _SPOKEN and isinstance(value, str)):
        return str(value)
    if axis not in _SPOKEN:
        return f"{axis} {value}"
    token, share = tokens.get(value, ("", 0.0))
    what = "position" if axis == "pos" else "attention to position"
    return f"{what} {value} ({visible(token)})" if share == 1 else f"{what} {value}"


def headings(axis: str, values: Iterable[Hashable], tokens: Tokens) -> list[str]:
    """Short headings of one axis: a position is called by its token, or its number with the commonest one there."""
    if axis not in _SPOKEN:
        return [str(value) for value in values]
    found = []
    for value in values:
        token, share = tokens.get(value, ("", 0.0))
        found.append((visible(token) if share == 1 else f"{value}: {visible(token)}…") if share else str(value))
    return found


_ACROSS = ("key", "pos", "neuron", "head")
_DOWN = ("layer", "head", "neuron", "pos")
_MOST, _KEPT = 48, 24
_SPOKEN = {"pos": "position", "key": "attention to"}


def panel(sweep: Swept) -> tuple[Grid, int] | None:
    """The table of the cells, each axis by its numbers, or names in the order of the sweep, and how many rows it has.

    Of very many rows those with the strongest cells are kept. None of a single cell, and where it would be too wide.
    """
    cells, labels = sweep.cells, sweep.labels
    across = next((axis for axis in _ACROSS if axis in labels), labels[-1])
    down = sorted(set(labels) - {across}, key=[*_DOWN, *sorted(labels)].index)
    codes = {axis: pd.factorize(cells[axis], sort=pd.api.types.is_integer_dtype(cells[axis])) for axis in labels}
    places = pd.DataFrame({axis: numbers for axis, (numbers, _) in codes.items()}, cells.index)
    columns = pd.Series(codes[across][1])
    if len(cells) == 1 or len(columns) > _MOST:
        return None
    row = places.groupby(down).ngroup() if down else 0 * places[across]
    n_rows = int(row.max()) + 1
    numbers = np.full((n_rows, len(columns)), -1)
    numbers[row, places[across]] = np.arange(len(cells))
    strongest = row[strongest_first(cells).index].drop_duplicates()
    kept = strongest.head(_KEPT if n_rows > _MOST else n_rows).sort_values()
    numbers = numbers[kept]

    def placed(column: pd.Series, nothing: Any) -> np.ndarray:
        return np.where(numbers >= 0, column.to_numpy()[numbers], nothing)

    named = [headings(axis, cells.loc[kept.index, axis], sweep.tokens) for axis in down]
    called = [_SPOKEN.get(axis, axis) for axis in down]
    if down[:2] == ["layer", "head"]:
        called, named = called[1:], [[".".join(pair) for pair in zip(*named[:2], strict=True)], *named[2:]]
    rows = [", ".join(names) for names in zip(*named, strict=True)] or [""]
    values = pd.DataFrame(placed(cells["shown"], np.nan), rows, headings(across, columns, sweep.tokens))
    titles, marks = placed(cells.apply(_said, axis=1), UNMEASURED), placed(cells["found"], "")
    absent = placed(cells["state"], UNMEASURED)
    what = (", ".join(called), _SPOKEN.get(across, across))
    return Grid(*what, values, titles, marks, FOUND, "effect", reach(values), reasons=STATES, absent=absent), n_rows


def _said(cell: pd.Series) -> str:
    number = estimate(cell["shown"], cell["shown_low"], cell["shown_high"])
    return f"{cell['name']}: {cell['state'] or number + and_p(cell['p_adjusted'])}"
