"""The same numbers as one hooked forward per cell, several times faster: incremental exact execution.

1. A base run keeps the residual stream, queries, keys and values of every layer.
2. A cell starts at its first replacement; only positions that can differ from the base run are computed.
3. Many cells are packed into one matrix; the layers go by once for all of them.
4. The last layer computes the answers' positions, the unembedding the columns that the metric reads.

How much is packed follows from the memory budget; where memory runs out all the same, it is halved. Where a device's
budget does not hold the base run of one row, the run's layers wait in the host's memory.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Int

from interp.interventions.engine.base import BaseRun
from interp.interventions.engine.budget import NoRoomError, Sizes, entry_sites, out_of_memory
from interp.interventions.engine.bundles import Classifier, Interventions
from interp.interventions.engine.chunk import Chunk, Strand
from interp.interventions.engine.layers import Wavefront
from interp.interventions.measured import as_numbers
from interp.interventions.metrics import MetricName
from interp.interventions.reference import RowScores, StrandScores
from interp.interventions.rows import Batch
from interp.model.transformer import HookedTransformer


class Engine:
    """Measures many cells on batches.

    Attributes:
        halvings: How often memory ran out and less was run at once.
    """

    def __init__(self, model: HookedTransformer, metric: MetricName, cells: Sequence[Interventions], sizes: Sizes):
        """Plan the sweep.

        Args:
            model: What is run.
            metric: What is measured.
            cells: The interventions of every cell.
            sizes: What is run at once.
        """
        self._model, self._metric, self._sizes = model, metric, sizes
        draws = [max((each.replacement.draws for each in cell), default=1) for cell in cells]
        strands = [Strand(number, draw, cell) for number, cell in enumerate(cells) for draw in range(draws[number])]
        self._strands = sorted(strands, key=lambda each: each.first_layer)
        self._first_layer = min(each.first_layer for each in strands)
        self._extra = entry_sites(model, (each for cell in cells for each in cell))
        self.halvings = 0

    def base(self, batch: Batch) -> BaseRun:
        """Run a batch without interventions, and keep what cells start from.

        Raises:
            NoRoomError: There is no memory for it.
        """
        try:
            with torch.inference_mode():
                options = {"offloaded": self._sizes.offloaded}
                return BaseRun(self._model, batch, self._metric, self._first_layer, self._extra, **options)
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            raise NoRoomError(
                f"out of memory with the unchanged run of {_rows(batch)} of {batch.length} tokens",
                f"give a memory budget below {self._sizes.budget:,} bytes (memory_budget=...), so that fewer rows are "
                "run at once",
                "take a device with more memory",
            ) from error.with_traceback(None)  # which would hold on to what the failed run held

    def unchanged(self, base: BaseRun) -> RowScores:
        """The scores without interventions."""
        return base.row_scores()

    def source(self, base: BaseRun) -> RowScores:
        """The scores where the sources of a batch are run."""
        with torch.inference_mode():
            return base.source_scores()

    def measure(self, base: BaseRun, chunks: Iterable[range] | None = None) -> Iterator[StrandScores]:
        """Measure some chunks of a batch, or every cell, in the order of the layers that they begin in."""
        classifier = self._classifier(base.batch)
        asked = (chunk for chunk, _ in self._planned(base.batch, classifier)) if chunks is None else chunks
        for each in asked:
            yield from self._run(self._strands[each.start : each.stop], base, classifier)

    def chunks(self, batch: Batch) -> Iterator[tuple[range, int]]:
        """What is run together, of the strands by their numbers, and how many tokens are computed for it."""
        return self._planned(batch, self._classifier(batch))

    def _classifier(self, batch: Batch) -> Classifier:
        return Classifier(batch, causal=self._model.config.causal)

    def _planned(self, batch: Batch, classifier: Classifier) -> Iterator[tuple[range, int]]:
        row = self._sizes.largest(batch.rows)
        room = self._sizes.budget - len(batch.rows) * self._sizes.base(row)
        start, taken, packed = 0, 0, 0
        for number, strand in enumerate(self._strands):
            classes = classifier.classes(strand.interventions, strand.draw)
            n_tokens = classes.n_tokens(batch.length)
            bytes_needed = classes.n_rows * self._sizes.trajectory(row, -(-n_tokens // max(classes.n_rows, 1)))
            full = taken + bytes_needed > room or packed + n_tokens > self._sizes.tokens_at_once
            if number > start and full:
                yield range(start, number), packed
                start, taken, packed = number, 0, 0
            taken, packed = taken + bytes_needed, packed + n_tokens
        yield range(start, len(self._strands)), packed

    def _run(self, strands: Sequence[Strand], base: BaseRun, classifier: Classifier) -> Iterator[StrandScores]:
        found, error = self._tried(strands, base, classifier)
        if found is None and len(strands) == 1:
            raise NoRoomError(
                f"out of memory with one cell on {_rows(base.batch)} of {base.batch.length} tokens",
                f"give a memory budget below {self._sizes.budget:,} bytes (memory_budget=...), so that fewer rows are "
                "run at once",
                "take a device with more memory",
            ) from error
        if found is None:  # what the failed run held is gone by now
            self.halvings += 1
            half = len(strands) // 2
            found = [*self._run(strands[:half], base, classifier), *self._run(strands[half:], base, classifier)]
        yield from found

    def _tried(
        self, strands: Sequence[Strand], base: BaseRun, classifier: Classifier
    ) -> tuple[list[StrandScores] | None, Exception | None]:
        """The scores; or None, and why, where memory does not suffice."""
        try:
            with torch.inference_mode():
                return self._scores(Chunk(strands, classifier, base.batch.length, base.final.device), base), None
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            return None, error.with_traceback(None)

    def _scores(self, chunk: Chunk, base: BaseRun) -> list[StrandScores]:
        wavefront = Wavefront(base, chunk)
        rows = torch.from_numpy(chunk.rows).to(base.final.device)
        scores = base.readout.scores(wavefront.run(), base.answers.take(rows), rows)
        value, margin = as_numbers(scores.value), scores.margin.double().cpu().numpy()
        squares, fired, unchanged = wavefront.squares(), wavefront.fired(), base.row_scores()
        return [
            self._of_strand(
                strand, unchanged, chunk.rows[span], RowScores(value[span], margin[span], squares[span], fired[span])
            )
            for strand, span in zip(chunk.strands, chunk.spans, strict=True)
        ]

    @staticmethod
    def _of_strand(
        strand: Strand, unchanged: RowScores, rows: Int[np.ndarray, " changed"], found: RowScores
    ) -> StrandScores:
        """The scores of a strand on all rows of the batch; where nothing has changed, to the bit the base run's."""
        values, margins = unchanged.value.copy(), unchanged.margin.copy()
        squares, fired = np.zeros(len(values)), np.full(len(values), len(strand.interventions))
        squares[rows], fired[rows] = found.squares, found.fired
        changed = found.squares > 0
        values[rows[changed]], margins[rows[changed]] = found.value[changed], found.margin[changed]
        return StrandScores(strand.cell, strand.draw, RowScores(values, margins, squares, fired))


def _rows(batch: Batch) -> str:
    return f"{len(batch.rows)} row{'s' * (len(batch.rows) > 1)}"
