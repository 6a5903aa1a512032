"""The parts of a sweep, each of which is measured by itself, here or elsewhere, in any order.

1. What the engine packs together is a *chunk*: some strands (cells with a draw) on a batch. Which ones is a function of
   the request, and so are the last bits of their numbers.
2. Chunks are put together to *parts* of about a second. How they are put together changes no number: a part begins
   every batch anew, from the same base run.
3. A batch's first chunk brings its unchanged run's scores with it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import torch
from jaxtyping import Num

from interp.interventions.engine.plan import TOKENS_AT_ONCE, NoRoomError, flops_of_token, kind_of
from interp.interventions.engine.run import Engine
from interp.interventions.hooked_runs import Plain
from interp.interventions.metrics import SOURCE, UNCHANGED, CellScores, RowScores
from interp.interventions.rows import Batch
from interp.model.devices import place_of, processor_of

PART_FLOPS = {"cpu": 10**11, "cuda": 2 * 10**14}
"""Operations of a part at most, about, by device type: a second's, on a GPU in 16 bits."""
PART_CHUNKS = 16
"""Of full size, in a part at most: what a second does of a small model, whose operations are not what takes time."""
MEASURED = ("value", "margin", "squares", "fired")
COLUMNS = {
    **dict.fromkeys(("cell", "draw", "row"), np.int32),
    **dict.fromkeys(("value", "margin", "squares"), np.float64),
    "fired": np.int64,
}
"""Of what is kept of a part, with their types."""


@dataclass(frozen=True)
class Part:
    """What is measured, sent and kept as one."""

    number: int
    pieces: tuple[tuple[int, tuple[range, ...]], ...]  # batches, each with chunks: ranges of strands

    @property
    def place(self) -> int:
        """The batch that it begins with: who has measured a part of it has its unchanged run."""
        return self.pieces[0][0]


@dataclass(frozen=True)
class PartScores:
    """Scores of one part, one below the other."""

    part: int  # its number
    # of ``COLUMNS``, each ``[entry]``: one entry for each row of the sweep under each cell and draw
    columns: dict[str, Num[np.ndarray, " entry"]]
    halvings: int  # how often memory ran out and less was run at once: other last bits than the plan's
    processor: str  # kind of CPU or GPU that measured it: last bits follow from it, too

    @classmethod
    def of(cls, part: int, scores: Iterable[CellScores], halvings: int, processor: str) -> "PartScores":
        """Joined."""
        found: dict[str, list[np.ndarray]] = {name: [] for name in COLUMNS}
        for each in scores:
            n = len(each.scores.value)
            found["cell"].append(np.full(n, each.cell))
            found["draw"].append(np.full(n, each.draw))
            found["row"].append(np.arange(each.first_row, each.first_row + n))
            for name in MEASURED:
                found[name].append(getattr(each.scores, name))
        columns = {name: np.concatenate(found[name]).astype(kind) for name, kind in COLUMNS.items()}
        return cls(part, columns, halvings, processor)

    def scores(self) -> Iterator[CellScores]:
        """Apart again: rows that follow each other under one cell and draw."""
        cell, draw, row = (self.columns[name].astype(np.int64) for name in ("cell", "draw", "row"))
        apart = (np.diff(cell) != 0) | (np.diff(draw) != 0) | (np.diff(row) != 1)
        for start, stop in pairwise([0, *(np.flatnonzero(apart) + 1).tolist(), len(row)]):
            span = slice(start, stop)
            measured = RowScores(*(self.columns[name][span] for name in MEASURED))
            yield CellScores(int(cell[start]), int(draw[start]), measured, int(row[start]))


class SweepWork:
    """A sweep's measuring, which other processes can do as well; `patched`: the rows' sources are measured, too."""

    def __init__(self, measurer: Engine | Plain, model: Any, batches: Sequence[Batch], *, patched: bool):
        self._measurer, self._batches, self._patched = measurer, batches, patched
        self._device, _ = place_of(model)
        self._part_tokens = tokens_of_part(model.cfg, self._device)
        self._starts = [0, *accumulate(len(batch.rows) for batch in batches)]
        self._last: tuple[Batch, Any] | None = None
        self._halved = 0

    @property
    def processor(self) -> str:
        """The kind of CPU or GPU that measures here."""
        return processor_of(self._device)

    @property
    def halvings(self) -> int:
        """How often memory ran out here."""
        return self._measurer.halvings + self._halved

    def parts(self) -> Iterator[Part]:
        """All that there is to measure; the same for the same request."""
        chunks = ((at, *each) for at, batch in enumerate(self._batches) for each in self._measurer.chunks(batch))
        return parts_of(chunks, self._part_tokens)

    def measured(self, part: Part) -> Iterator[CellScores]:
        """Measure a part, cell by cell."""
        for at, chunks in part.pieces:
            yield from self._scores(chunks, self._batches[at], self._starts[at], anew=chunks[0].start == 0)

    def _scores(self, chunks: Sequence[range], batch: Batch, first_row: int, *, anew: bool) -> Iterator[CellScores]:
        """Measure some chunks on a batch; where memory does not hold one cell on it, on each half of its rows.

        Nothing here holds the batch's unchanged run, which is gone before the next one is made.
        """
        n = 0
        try:
            if anew:
                yield CellScores(UNCHANGED, 0, self._begun(batch).row_scores(), first_row)
                if self._patched:
                    yield CellScores(SOURCE, 0, self._begun(batch).source_scores(), first_row)
            anew = False
            for each in self._measurer.measure(self._begun(batch), chunks):
                yield replace(each, first_row=first_row)
                n += 1
            return
        except NoRoomError:
            if len(batch.rows) == 1:
                raise
        self.forget()
        self._halved += 1
        half, left = len(batch.rows) // 2, _after(chunks, n)
        for rows in (range(half), range(half, len(batch.rows))):
            yield from self._scores(left, batch.take(rows), first_row + rows.start, anew=anew)

    def run(self, part: Part) -> PartScores:
        """Measure a part as a whole."""
        before = self.halvings
        scores = list(self.measured(part))
        return PartScores.of(part.number, scores, self.halvings - before, self.processor)

    def forget(self) -> None:
        """Let go of the last batch's run."""
        self._last = None

    def _begun(self, batch: Batch) -> Any:
        """A batch's unchanged run; the last one is kept, for the next part often goes on with it."""
        if self._last is None or self._last[0] is not batch:
            self.forget()
            self._last = batch, self._measurer.base(batch)
        return self._last[1]

    def __getstate__(self) -> dict[str, Any]:
        """Without a run that another process makes for itself."""
        return vars(self) | {"_last": None}


def _after(chunks: Sequence[range], n: int) -> list[range]:
    """The chunks that are left when so many strands are measured; a chunk is measured whole, or not at all."""
    left = list(chunks)
    while n:
        n -= len(left.pop(0))
    return left


def tokens_of_part(config: Any, device: torch.device) -> int:
    """How many tokens a part computes at most, of a model of this shape; a chunk is never divided."""
    kind = kind_of(device)
    return int(min(PART_FLOPS[kind] // flops_of_token(config), PART_CHUNKS * TOKENS_AT_ONCE[kind]))


def parts_of(chunks: Iterable[tuple[int, range, int]], at_most: int) -> Iterator[Part]:
    """Chunks, each a batch, strands and how many tokens these compute, put together in their order."""
    held: dict[int, list[range]] = {}
    number = taken = 0
    for batch, chunk, n_tokens in chunks:
        if held and taken + n_tokens > at_most:
            yield _part(number, held)
            held, number, taken = {}, number + 1, 0
        held.setdefault(batch, []).append(chunk)
        taken += n_tokens
    yield _part(number, held)


def _part(number: int, held: Mapping[int, Sequence[range]]) -> Part:
    return Part(number, tuple((batch, tuple(chunks)) for batch, chunks in held.items()))
