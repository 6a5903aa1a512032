"""One sweep on one model and task: its batches, its request, and the frame of what was measured."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool

from interp.errors import InputError
from interp.hashing import hash_of_rows
from interp.interventions.audit import audit
from interp.interventions.engine.plan import Sizes, rows_in_one_run
from interp.interventions.engine.run import Engine, engine_model
from interp.interventions.hooked_runs import Plain
from interp.interventions.intervention import ABSENT, Cell, Intervention, Statuses
from interp.interventions.metrics import (
    SOURCE,
    UNCHANGED,
    AnyMetric,
    CellScores,
    Measured,
    MetricFunction,
    name_of,
)
from interp.interventions.provenance import model_asked, origin_of, task_provenance
from interp.interventions.reference_set import require_made
from interp.interventions.replacement import Replacement, compute_now, sources_of
from interp.interventions.rows import BATCH_SIZE, Batch, Row, Source, batches, example_labels, task_rows
from interp.interventions.sweep_parts import SweepWork
from interp.model.devices import place_of
from interp.model.positions import looks_back_only, sight
from interp.model.provenance import model_provenance
from interp.model.sites import Site
from interp.tasks.task import Task

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Answer:
    """A finished sweep: the examples and the provenance of its ``SweepResult``."""

    frame: pd.DataFrame
    provenance: Mapping[str, Any]


class SweepRun:
    """The measurements of one sweep: ``work`` is what there is to measure, ``own`` the model's provenance."""

    def __init__(
        self,
        model: Any,
        task: Task,
        cells: Sequence[Cell],
        metric: AnyMetric,
        direction: Source | None,
        *,
        seed: int,
        memory_budget: int | None,
        plainly: bool,
        progress: Progress | None,
    ):
        self._model, self._task, self._cells, self._asked, self._seed = model, task, cells, metric, seed
        self._direction, self._patched, self._progress = direction, direction is not None, progress
        # Accuracy is whether the task's own metric is above 0.
        self._metric: AnyMetric = task.metric if metric == "accuracy" else metric
        self._interventions = [each for cell in cells for each in cell.interventions]
        self._sites: dict[int, tuple[Replacement, set[Site]]] = {}
        for each in self._interventions:
            self._sites.setdefault(id(each.replacement), (each.replacement, set()))[1].add(each.site)
        changes = [each.interventions for each in cells]
        rows = task_rows(name_of(self._metric), task.units, direction)
        sites = {each.site for each in self._interventions}
        ours, self._measured_on = engine_model(model, rows, sites, plainly=plainly)
        self._sight = sight(model if ours is None else ours)
        self._sizes: Sizes | None = None
        self._batch_size = BATCH_SIZE
        measurer: Engine | Plain
        if ours is not None:
            self._sizes = Sizes(ours.config, place_of(ours), self._metric, self._interventions, memory_budget)
            measurer = Engine(ours, self._metric, changes, self._sizes)
        else:
            kept = {site for each in self._interventions for site in each.replacement.keeps}
            self._batch_size = rows_in_one_run(model, rows, kept, memory_budget, logits=True)
            measurer = Plain(model, self._metric, changes, patched=self._patched)
        self._batches = self._batched(rows)
        self.rows = [row for batch in self._batches for row in batch.rows]
        self.work = SweepWork(measurer, model, self._batches, patched=self._patched)
        draws = [max(each.replacement.draws for each in cell.interventions) for cell in cells]
        self._found = Measured(self.rows, draws, patched=self._patched)
        self._n_steps, self._done = len(self._batches) * sum(draws), 0
        self.halvings = 0  # how often memory ran out and less was run at once, wherever it was measured
        self.processors: set[str] = set()  # the kinds of CPU or GPU that measured
        self.own = model_provenance(model)

    def _batched(self, rows: Sequence[Row]) -> list[Batch]:
        """Batches as large as the memory budget allows, shuffled: an interrupt leaves a mixture of lengths."""
        parts = batches(self._model, rows, size=self._batch_size)
        if self._sizes is not None:
            self._sizes.fit(rows)
            parts = [part for each in parts for part in each.split(self._sizes.rows_at_once(each.rows))]
        return [parts[number] for number in np.random.default_rng(0).permutation(len(parts))]

    def answer(self, measure: Callable[[], None]) -> Answer:
        """What `measure` brings to ``take``, audited; interrupted, what is complete, unaudited."""
        try:
            self._prepare()
            measure()
            audited, complete = self._audit(), True
        except KeyboardInterrupt:
            if not self._measured().any():
                raise
            audited, complete = None, False
            said = "interrupted: the result holds the examples that were complete, unaudited"
            warnings.warn(said, RuntimeWarning, stacklevel=3)
        how = {"audit": audited, "seed": self._seed, "complete": complete}
        return Answer(self._frame(), {**self.own, **task_provenance(self._task), **self._provenance(), **how})

    def measure_here(self) -> None:
        """Measure cell by cell, so that an interrupt loses one batch at most."""
        self.processors.add(self.work.processor)
        for part in self.work.parts():
            before = self.work.halvings
            try:
                for scores in self.work.measured(part):
                    self.take(scores)
            finally:
                self.halvings += self.work.halvings - before

    def _prepare(self) -> None:
        """Compute all replacements' activations. Raises InputError where one was made for other sites or rows."""
        advice = (
            "make it of all sites of the sweep, and of the task as this metric runs it: "
            f"interp.methods.ablation.as_measured(task, {self._asked!r})"
        )
        for replacement, sites in self._sites.values():
            compute_now(replacement)
            require_made(replacement, self.rows, sites, advice)

    def take(self, found: CellScores) -> None:
        """Put what was measured in its place."""
        self._found.put(found)
        self._done += found.cell >= 0
        n_cells = len(self._cells)
        if found.cell >= 0 and self._progress is not None and self._done * n_cells % self._n_steps < n_cells:
            self._progress(self._done * n_cells // self._n_steps, n_cells)

    def _measured(self) -> Bool[np.ndarray, " example"]:
        """Which examples are measured under every cell and draw, with the others of their units."""
        units = example_labels(self._task)["unit"]
        missing = {row.example for row, done in zip(self.rows, self._found.complete, strict=True) if not done}
        return ~np.isin(units, units[list(missing)])

    def _frame(self) -> pd.DataFrame:
        """One row per cell and example that is measured."""
        found, measured, n_cells = self._found.by_example(self._asked), self._measured(), len(self._cells)
        statuses = Statuses(self.rows, self._sight, causal=looks_back_only(self._model))
        # Labels as they are: numbers as numbers, but never 1 as "1" because another label is a text.
        labels = pd.DataFrame([dict(each.labels) for each in self._cells], dtype=object).infer_objects()
        columns: dict[str, Any] = {str(name): np.repeat(labels[name].to_numpy(), len(measured)) for name in labels}
        columns |= {name: np.tile(values, n_cells) for name, values in example_labels(self._task).items()}
        columns["base"] = np.tile(found["value"][UNCHANGED], n_cells)
        if self._patched:
            columns["source"] = np.tile(found["value"][SOURCE], n_cells)
        columns["value"] = found["value"][:n_cells].ravel()
        columns["effect"] = columns["value"] - columns["base"]
        columns["base_correct"] = np.tile(found["correct"][UNCHANGED], n_cells)
        names = {"value_correct": "correct", "fired": "fired", "change_norm": "change_norm"}
        columns |= {name: found[of][:n_cells].ravel() for name, of in names.items()}
        did = zip(self._cells, found["fired"], found["change_norm"], strict=False)  # the last two are no cells
        columns["status"] = np.concatenate([statuses.of(cell.interventions, *each) for cell, *each in did])
        there = np.tile(measured, n_cells) & (columns["status"] != ABSENT)
        frame = pd.DataFrame(columns)
        return frame if there.all() else frame[there].reset_index(drop=True)

    def _provenance(self) -> dict[str, Any]:
        """How the numbers were made."""
        how: dict[str, Any] = {
            "metric": name_of(self._asked),
            **({"metric_hash": self._asked.source_hash} if isinstance(self._asked, MetricFunction) else {}),
            "site": " + ".join(sorted({each.site.name for each in self._interventions})),
            "replacement": " + ".join(sorted({each.replacement.name for each in self._interventions})),
            "draws": int(self._found.draws.max()),
            "processors": sorted(self.processors),
            **self._plan(),
            **self._measured_on,
        }
        return how if self._sizes is None else how | {"halvings": self.halvings}

    def _plan(self) -> dict[str, Any]:
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

    def _audit(self) -> dict[str, Any] | None:
        """How far the plain way's numbers are off, on a sample; None where the plain way has measured."""
        if self._sizes is None:
            return None
        self.work.forget()
        cells = [each.interventions for each in self._cells]
        return audit(self._model, self._metric, self._batches, cells, self._found, self._seed, self._sizes.budget)

    def request(self) -> dict[str, Any]:
        """All that the numbers follow from, as values that JSON can hold."""
        _require_columns(self._cells)
        replacements = [each for each, _ in self._sites.values()]
        number = {name: at for at, name in enumerate(self._sites)}
        units = [[unit.cluster, len(unit.examples)] for unit in self._task.units]
        return {
            "kind": "sweep",
            **model_asked(self._model, self.own),
            **task_provenance(self._task),
            # A task of some of another's units has the other's hash.
            "rows_hash": hash_of_rows([*map(_as_asked, self.rows), units]),
            "labels": list(self._cells[0].labels),
            "n_cells": len(self._cells),
            "sites": sorted({each.site.name for each in self._interventions}),
            "replacements": [_named(each, self._model) for each in replacements],
            "cells_hash": hash_of_rows(
                [dict(cell.labels), [_change_asked(each, number[id(each.replacement)]) for each in cell.interventions]]
                for cell in self._cells
            ),
            "metric": self._asked.asked() if isinstance(self._asked, MetricFunction) else self._asked,
            "direction": self._direction,
            "seed": self._seed,
            **self._plan(),
        }


def _require_columns(cells: Sequence[Cell]) -> None:
    """Refuse labels that no table's column can hold, before anything is measured."""
    for name in cells[0].labels:
        labels = [cell.labels[name] for cell in cells]
        kinds = {type(each.item() if isinstance(each, np.generic) else each) for each in labels}
        if len(kinds) > 1 or not kinds <= {int, float, str, bool}:
            names = ", ".join(sorted(each.__name__ for each in kinds))
            raise InputError(
                f"run: label {name!r}: expected numbers alone, or texts alone, which a table can hold, got {names}; "
                "give others, or measure without run"
            )


def _named(replacement: Replacement, model: Any) -> str:
    """A replacement's identity, with the models that its values come from, if others."""
    name = replacement.identity
    if name is None:
        raise InputError(
            f"run: replacement {replacement.name!r} has no identity, which tells it from others; give it one, or "
            "measure without run"
        )
    others = [each for each in sources_of(replacement) if each is not model]
    origins = [each if isinstance(each, str) else origin_of(each) for each in others]
    return name + "".join(f" from {each}" for each in origins if each != origin_of(model))


def _as_asked(row: Row) -> list[Any]:
    scored = row.encoded
    # Of single answers as it was before there were sets.
    also = (scored.also_right, scored.also_wrong) if scored.also_right or scored.also_wrong else ()
    answers = (scored.right, scored.wrong, *also, scored.example.template, row.layout, row.run.critical)
    return [row.example, row.fold, row.sign, row.tokens, row.source_tokens, row.source_positions, *answers]


def _change_asked(each: Intervention, replacement: int) -> list[Any]:
    at = each.positions
    positions = sorted(at.items()) if isinstance(at, Mapping) else at
    return [each.site.name, each.site.layer, each.heads, positions, each.units, each.keys, replacement]
