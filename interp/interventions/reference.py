"""What does the model do under an intervention? The plain way: one hooked forward per cell.

1. Run a batch with a hook at each intervention's point.
2. The hook puts the replacement in place and notes that it fired and how far it moved the
   activation, ``||a' - a||`` over positions and components.
3. Score the logits, row by row.

Works on any model that follows TransformerLens' protocol. It is slow, and the measure of every
faster way.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from interp.interventions.intervention import Intervention, squared_change
from interp.interventions.measured import Measured, Outcome, as_numbers
from interp.interventions.metrics import AnswerLogits, Answers, MetricName, score
from interp.interventions.rows import Batch
from interp.shapes import Tokens


@dataclass(frozen=True)
class RowScores:
    """What was measured on each row of a batch; see ``Measured``."""

    value: Float[np.ndarray, " row"]
    margin: Float[np.ndarray, " row"]
    squares: Float[np.ndarray, " row"]
    fired: Int[np.ndarray, " row"]


@dataclass(frozen=True)
class StrandScores:
    """What was measured of one cell with one draw, on the rows of a batch."""

    cell: int
    draw: int
    scores: RowScores


class PlainRun:
    """A batch that a metric is measured on, with and without interventions.

    Attributes:
        base: Without.
        source: Where the rows' sources are run; None unless asked for.
    """

    def __init__(self, model: Any, batch: Batch, metric: MetricName, *, patched: bool = False):
        """Run the batch without interventions.

        Args:
            model: Follows TransformerLens' protocol.
            batch: Rows of equal length.
            metric: What to measure.
            patched: Whether to run the rows' sources, too, and measure them with the rows' own answers.

        Raises:
            InputError: The metric is NaN or infinite on some row.
        """
        self._model, self._batch, self._metric = model, batch, metric
        self._answers = Answers.of(metric, batch)
        base, source = self._unchanged(patched)
        self._base_log_p = base[:, -1].log_softmax(-1) if metric == "kl_divergence" else None
        nothing = np.zeros(len(batch.rows))
        self.base = self._scores(base, nothing, nothing.astype(np.int64))
        self.source = None if source is None else self._scores(source, nothing, nothing.astype(np.int64))

    def _unchanged(self, patched: bool) -> tuple[AnswerLogits, AnswerLogits | None]:
        """The logits of the rows and, where asked for, of their sources: in one run where they are equally long."""
        tokens = self._batch.tokens
        if not patched:
            return self._logits(tokens), None
        source = self._batch.source_tokens
        if source.shape != tokens.shape:
            return self._logits(tokens), self._logits(source)
        both = self._logits(torch.cat([tokens, source]))
        return both[: len(tokens)], both[len(tokens) :]

    def scores(self, interventions: Sequence[Intervention], draw: int = 0) -> RowScores:
        """Measure under `interventions`, with their `draw`-th values."""
        fired, squares = np.zeros(len(self._batch.rows), dtype=np.int64), np.zeros(len(self._batch.rows))

        def note(squared_norms: Tensor) -> None:
            nonlocal fired, squares
            fired, squares = fired + 1, squares + squared_norms.double().cpu().numpy()

        for each in interventions:
            each.values(self._batch, draw)  # what has to run the model does so before hooks are on it
        hooks = [(each.site.hook_name, _hook(each, self._batch, draw, note)) for each in interventions]
        return self._scores(self._logits(self._batch.tokens, hooks), squares, fired)

    def _logits(self, tokens: Tokens, hooks: Sequence[tuple[str, Callable[..., Tensor]]] = ()) -> AnswerLogits:
        # A source may be longer or shorter than the run; both end alike.
        positions, longer = self._answers.positions, tokens.shape[1] - self._batch.length
        with torch.inference_mode():
            logits = self._model.run_with_hooks(tokens, fwd_hooks=list(hooks))
            logits = logits[:, positions.start + longer : positions.stop + longer]
            return logits.to(torch.promote_types(logits.dtype, torch.float32))

    def _scores(self, logits: Tensor, squares: np.ndarray, fired: np.ndarray) -> RowScores:
        found = score(self._metric, logits, self._answers, self._base_log_p)
        return RowScores(as_numbers(found.value), found.margin.double().cpu().numpy(), squares, fired)


class Plain:
    """Measures cells on batches, one hooked forward for each and its draws.

    Attributes:
        halvings: None are made.
    """

    halvings = 0

    def __init__(self, model: Any, metric: MetricName, cells: Sequence[Sequence[Intervention]], *, patched: bool):
        """Measure `cells` on `model`; `patched`: the rows' sources, too."""
        self._model, self._metric, self._cells, self._patched = model, metric, cells, patched
        draws = [max(each.replacement.draws for each in cell) for cell in cells]
        self._strands = [(cell, draw) for cell, n in enumerate(draws) for draw in range(n)]

    def chunks(self, batch: Batch) -> Iterator[tuple[range, int]]:
        """Each cell and draw by itself, and how many tokens are run."""
        for number in range(len(self._strands)):
            yield range(number, number + 1), len(batch.rows) * batch.length

    def base(self, batch: Batch) -> PlainRun:
        """The batch, run without interventions."""
        return PlainRun(self._model, batch, self._metric, patched=self._patched)

    def unchanged(self, run: PlainRun) -> RowScores:
        """The scores without interventions."""
        return run.base

    def source(self, run: PlainRun) -> RowScores:
        """The scores where the sources are run."""
        assert run.source is not None, "only what is patched has sources"
        return run.source

    def measure(self, run: PlainRun, chunks: Iterable[range]) -> Iterator[StrandScores]:
        """Measure cells, in order."""
        for number in chain.from_iterable(chunks):
            cell, draw = self._strands[number]
            yield StrandScores(cell, draw, run.scores(self._cells[cell], draw))


def run_plainly(model: Any, batches: Sequence[Batch], metric: MetricName) -> Outcome:
    """Measure `metric` on every example of `batches`, without interventions.

    Raises:
        InputError: The metric is NaN or infinite on some example.
    """
    measured = Measured([row for batch in batches for row in batch.rows], [1])
    done = 0
    for batch in batches:
        found, rows = PlainRun(model, batch, metric).base, slice(done, done + len(batch.rows))
        measured.value[0, 0, rows], measured.margin[0, 0, rows] = found.value, found.margin
        done = rows.stop
    return measured.outcome(0, metric)


def _hook(intervention: Intervention, batch: Batch, draw: int, note: Callable[[Tensor], None]) -> Callable[..., Tensor]:
    def replace(old: Tensor, *, hook: Any) -> Tensor:
        new = intervention.apply(old, batch, draw)
        note(squared_change(old, new))
        return new

    return replace
