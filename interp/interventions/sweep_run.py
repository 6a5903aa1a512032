"""One sweep on one model and task: batches, the engine or the plain way, and the frame that comes of it."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool

from interp.interventions.audit import audit
from interp.interventions.cell import Cell
from interp.interventions.engine.budget import Sizes, rows_in_one_run
from interp.interventions.engine.run import Engine
from interp.interventions.measured import Measured, Outcome
from interp.interventions.metrics import MetricName
from interp.interventions.own_copy import engine_model
from interp.interventions.preparing import require_made
from interp.interventions.reference import Plain, RowScores
from interp.interventions.replacement import Replacement, compute_now
from interp.interventions.rows import BATCH_SIZE, Batch, Row, Source, batches, example_labels, task_rows
from interp.interventions.status import ABSENT, Statuses
from interp.interventions.work import SOURCE, UNCHANGED, Scores, SweepWork
from interp.model.positions import looks_back_only
from interp.model.sites import Site
from interp.model.transformer import HookedTransformer
from interp.tasks.task import Task

Progress = Callable[[int, int], None]


class SweepRun:
    """The measurements of one sweep.

    Attributes:
        rows: What is run, in the order of the batches.
        work: What there is to measure.
        halvings: How often memory ran out and less was run at once, wherever it was measured.
        processors: The kinds of CPU or GPU that measured.
    """

    def __init__(
        self,
        model: Any,
        task: Task,
        cells: Sequence[Cell],
        metric: MetricName,
        direction: Source | None,
        memory_budget: int | None,
        plainly: bool,
        progress: Progress | None = None,
    ):
        self._progress = progress
        self._model, self._task, self._cells, self._asked = model, task, cells, metric
        # Accuracy is whether the task's own metric is above 0.
        self._metric: MetricName = task.metric if metric == "accuracy" else metric
        interventions = [each for cell in cells for each in cell.interventions]
        self._sites: dict[int, tuple[Replacement, set[Site]]] = {}
        for each in interventions:
            self._sites.setdefault(id(each.replacement), (each.replacement, set()))[1].add(each.site)
        self._patched = direction is not None
        rows = task_rows(self._metric, task.units, direction)
        sites = {each.site for each in interventions}
        ours, self._measured_on = engine_model(model, rows, sites, plainly=plainly)
        self._sizes: Sizes | None = None
        self._batch_size = BATCH_SIZE
        if ours is not None:
            self._sizes = Sizes(ours, self._metric, interventions, memory_budget)
        else:
            kept = {site for each in interventions for site in each.replacement.keeps}
            self._batch_size = rows_in_one_run(model, rows, kept, memory_budget, logits=True)
        self._batches = self._batched(rows)
        self.rows = [row for batch in self._batches for row in batch.rows]
        self.work = SweepWork(self._measurer(ours), model, self._batches, patched=self._patched)
        draws = [max(each.replacement.draws for each in cell.interventions) for cell in cells]
        self._base, self._source = Measured(self.rows, [1]), Measured(self.rows, [1])
        self._found = Measured(self.rows, draws)
        self._n_steps, self._done = len(self._batches) * sum(draws), 0
        self.halvings = 0
        self.processors: set[str] = set()

    def _measurer(self, ours: HookedTransformer | None) -> Engine | Plain:
        cells = [each.interventions for each in self._cells]
        if ours is None or self._sizes is None:
            return Plain(self._model, self._metric, cells, patched=self._patched)
        return Engine(ours, self._metric, cells, self._sizes)

    def _batched(self, rows: Sequence[Row]) -> list[Batch]:
        """Batches as large as the memory budget allows, in no order of length: an interrupt is to leave a mixture."""
        parts = batches(self._model, rows, size=self._batch_size)
        if self._sizes is not None:
            self._sizes.fit(rows)
            whole, parts = parts, []
            for batch in whole:
                size = self._sizes.rows_at_once(batch.rows)
                starts = range(0, len(batch.rows), size)
                parts += [batch.take(range(start, min(start + size, len(batch.rows)))) for start in starts]
        return [parts[number] for number in np.random.default_rng(0).permutation(len(parts))]

    def prepare(self) -> None:
        """Have all replacements' activations computed.

        Raises:
            InputError: One was made for other sites, or for the rows of another task or metric.
        """
        advice = (
            "make it of all sites of the sweep, and of the task as this metric runs it: "
            f"interp.methods.ablation.as_measured(task, {self._asked!r})"
        )
        for replacement, sites in self._sites.values():
            compute_now(replacement)
            require_made(replacement, self.rows, sites, advice)

    def take(self, found: Scores) -> None:
        """Put what was measured in its place."""
        rows = slice(found.first_row, found.first_row + len(found.rows.value))
        if found.cell in (UNCHANGED, SOURCE):
            _put(self._base if found.cell == UNCHANGED else self._source, 0, 0, rows, found.rows)
            return
        _put(self._found, found.cell, found.draw, rows, found.rows)
        self._done += 1
        n_cells = len(self._cells)
        if self._progress is not None and self._done * n_cells % self._n_steps < n_cells:
            self._progress(self._done * n_cells // self._n_steps, n_cells)

    @property
    def any_complete(self) -> bool:
        """Whether some unit is measured under every cell."""
        return bool(self._measured().any())

    def _measured(self) -> Bool[np.ndarray, " example"]:
        """Which examples are measured under every cell and draw, with the others of their units."""
        labels, rows = example_labels(self._task), self._found.complete
        of_row = np.array([row.example for row in self.rows])
        examples = np.ones(len(labels["unit"]), dtype=bool)
        examples[of_row[~rows]] = False
        missing = np.isin(labels["unit"], labels["unit"][~examples])
        return ~missing

    def frame(self) -> pd.DataFrame:
        """One row per cell and example that is measured."""
        base, source = self._base.outcome(0, self._asked), self._source.outcome(0, self._asked)
        outcomes = [self._found.outcome(number, self._asked) for number in range(len(self._cells))]
        measured = self._measured()
        statuses = Statuses(self.rows, self._model.cfg.n_layers, causal=looks_back_only(self._model))
        columns = example_labels(self._task)
        n_examples = len(measured)
        tall: dict[str, Any] = {
            name: np.repeat(_as_column([each.labels[name] for each in self._cells]), n_examples)
            for name in self._cells[0].labels
        }
        tall |= {name: np.tile(values, len(self._cells)) for name, values in columns.items()}
        tall["base"] = np.tile(base.value, len(self._cells))
        if self._patched:
            tall["source"] = np.tile(source.value, len(self._cells))
        tall["value"] = np.concatenate([each.value for each in outcomes])
        tall["effect"] = tall["value"] - tall["base"]
        tall["base_correct"] = np.tile(base.correct, len(self._cells))
        tall |= {name: _joined(outcomes, attribute) for name, attribute in _OUTCOME.items()}
        tall["status"] = np.concatenate(
            [statuses.of(cell.interventions, each) for cell, each in zip(self._cells, outcomes, strict=True)]
        )
        there = np.tile(measured, len(self._cells)) & (tall["status"] != ABSENT)
        frame = pd.DataFrame(tall)
        return frame if there.all() else frame[there].reset_index(drop=True)

    def provenance(self) -> dict[str, Any]:
        """How the numbers were made."""
        interventions = [each for cell in self._cells for each in cell.interventions]
        how: dict[str, Any] = {
            "metric": self._asked,
            "site": " + ".join(sorted({each.site.name for each in interventions})),
            "replacement": " + ".join(sorted({each.replacement.kind for each in interventions})),
            "draws": int(max(self._found.draws)),
            "processors": sorted(self.processors),
            **self.plan(),
            **self._measured_on,
        }
        return how if self._sizes is None else how | {"halvings": self.halvings}

    def plan(self) -> dict[str, Any]:
        """What the last bits of the numbers follow from, beside the machine and its threads."""
        if self._sizes is None:
            return {"engine": "plain", "batch_size": self._batch_size}
        return {
            "engine": "incremental",
            "memory_budget": self._sizes.budget,
            "tokens_at_once": self._sizes.tokens_at_once,
            "offloaded": self._sizes.offloaded,
            "batches": len(self._batches),
        }

    def audit(self, seed: int) -> dict[str, Any] | None:
        """How the plain way's numbers differ, on a sample; None where it is what has measured.

        Raises:
            AuditError: They differ by more than rounding.
        """
        if self._sizes is None:
            return None
        self.work.forget()
        cells = [each.interventions for each in self._cells]
        measured = (self._found, self._base, self._source if self._patched else None)
        return audit(self._model, self._metric, self._batches, cells, measured, seed, self._sizes.budget)


_OUTCOME = {"value_correct": "correct", "fired": "fired", "change_norm": "change_norm"}


def _put(into: Measured, cell: int, draw: int, rows: slice, scores: RowScores) -> None:
    into.value[cell, draw, rows], into.margin[cell, draw, rows] = scores.value, scores.margin
    into.squares[cell, draw, rows], into.fired[cell, draw, rows] = scores.squares, scores.fired


def _as_column(labels: list[Hashable]) -> np.ndarray:
    """Labels as they are: numbers as numbers, but never 1 as "1" because another label is a text."""
    return pd.Series(labels, dtype=object).infer_objects().to_numpy()


def _joined(outcomes: Sequence[Outcome], attribute: str) -> np.ndarray:
    return np.concatenate([getattr(each, attribute) for each in outcomes])
