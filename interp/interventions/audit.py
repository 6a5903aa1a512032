"""Does the engine find what the plain way finds? A sample of a sweep is measured again.

1. Cells are told apart by the layer that they begin in and by their sites, rows by what the engine makes of them: where
   their first change is, and whether they compute their own beginning. Of each kind some are drawn, and each row is
   compared without a change, too, and in the run that it is patched from.
2. The rows of a batch are run in one hooked forward pass, each under a cell of its own.
3. They are run again with each block's input moved by a unit of rounding, up or down: that is how far rounding moves
   these scores. In 32 and 64 bits products round as well, so more of such differences are allowed there.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from interp.errors import AuditError
from interp.interventions.engine.plan import Classifier
from interp.interventions.hooked_runs import Cell, Hooks, MixedRun
from interp.interventions.intervention import Intervention
from interp.interventions.metrics import SOURCE, UNCHANGED, AnyMetric, Measured
from interp.interventions.rows import Batch
from interp.model.devices import place_of
from interp.model.positions import looks_back_only
from interp.model.sites import Site
from interp.model.transformer import HookedTransformer

FEWEST, OF_EACH, MOST_BATCHES = 16, 2, 4
"""Rows under a cell that are measured again: of a sweep, of each kind of cell, and from how many batches at most."""
ROUNDINGS = {torch.float64: 16.0, torch.float32: 16.0, torch.float16: 4.0, torch.bfloat16: 4.0}
"""How many times what a unit of rounding does is rounding, by dtype. ``benchmarks/rounding.py`` prints what is seen."""
OF_COPIES = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 0.01, torch.bfloat16: 0.05}
"""Of the largest score, what is rounding where the engine measures on a copy: another's code rounds elsewhere."""

UNIT_OF = {"tf32": 2.0**-10, "bf16": 2.0**-7}
"""Of 32-bit products, where less precise ones were asked for."""

Cells = Sequence[Sequence[Intervention]]
Compared = Float[np.ndarray, "3 2 entry"]
"""Of the engine, of the plain way, and of the plain way moved by rounding: values and margins."""


@dataclass(frozen=True)
class Drawn:
    """A row that is measured again under a cell, or without one."""

    batch: int
    row: int  # in the batch
    cell: int
    draw: int


def draw_sample(
    batches: Sequence[Batch], cells: Cells, draws: Int[np.ndarray, " _"], *, causal: bool, seed: int
) -> list[Drawn]:
    """Some rows under some cells, of each kind."""
    generator = np.random.default_rng(seed)
    sizes = np.array([len(batch.rows) for batch in batches])
    n = min(MOST_BATCHES, len(batches))
    chosen = generator.choice(len(batches), size=n, replace=False, p=sizes / sizes.sum())
    classifiers = {int(each): Classifier(batches[each], causal=causal) for each in chosen}
    kinds: dict[Hashable, list[int]] = {}
    for number, changes in enumerate(cells):
        first = min(each.site.layer or 0 for each in changes)
        kinds.setdefault((first, *(each.site.name for each in changes)), []).append(number)
    found = list[Drawn]()
    for alike in kinds.values():
        seen = Counter[Hashable]()
        for turn in range(max(OF_EACH, -(-FEWEST // len(kinds)))):
            cell, batch = int(generator.choice(alike)), list(classifiers)[turn % n]
            draw = int(generator.integers(draws[cell]))
            classes = classifiers[batch].classes(cells[cell], draw).classes
            if not classes:  # nothing is changed there
                found.append(Drawn(batch, int(generator.integers(sizes[batch])), cell, draw))
                continue
            begins = [min(min(each) for each in one.positions if each) for one in classes]
            kind = [(one.own > 0, max(begin, one.own)) for one, begin in zip(classes, begins, strict=True)]
            at = min(generator.permutation(len(classes)).tolist(), key=lambda each: seen[kind[each]])
            seen[kind[at]] += 1
            found.append(Drawn(batch, int(generator.choice(classes[at].rows)), cell, draw))
    return found


def audit(
    model: Any,
    metric: AnyMetric,
    batches: Sequence[Batch],
    cells: Cells,
    found: Measured,
    seed: int,
    budget: int,
) -> dict[str, Any]:
    """Measure a sample, drawn by `seed`, again by the plain way; raises AuditError beyond the tolerance.

    The `batches` hold all rows in the order of what the engine has `found`. Logits of the rows that are run together
    take a quarter of the `budget` (bytes) at most. Returns how many ``cells`` and ``rows`` were compared, the
    ``largest_difference`` and the ``tolerance``, relative to the largest score.
    """
    sample = draw_sample(batches, cells, found.draws, causal=looks_back_only(model), seed=seed)
    starts = np.cumsum([0, *(len(batch.rows) for batch in batches)])
    parts = list[np.ndarray]()
    for number in sorted({each.batch for each in sample}):
        batch, mine = batches[number], [each for each in sample if each.batch == number]
        at_once = max(1, budget // (32 * batch.length * model.cfg.d_vocab))
        for start in range(0, len(mine), at_once):
            parts += _compared(model, metric, batch, cells, found, mine[start : start + at_once], int(starts[number]))
    relative, tolerance = _worst(np.concatenate(parts, axis=2), model)
    n_cells = len({each.cell for each in sample})
    if not relative <= tolerance:
        raise AuditError(
            f"the sweep's own audit failed: {len(sample)} prompts measured again by hooked forward passes differ by "
            f"{relative:.1e} of the largest score, expected at most {tolerance:.0e}; please report this, and measure "
            "without the engine meanwhile: Sweep(cells).run(model, task, plainly=True)"
        )
    return {"cells": n_cells, "rows": len(sample), "largest_difference": relative, "tolerance": tolerance}


def _compared(
    model: Any, metric: AnyMetric, batch: Batch, cells: Cells, found: Measured, mine: Sequence[Drawn], start: int
) -> Iterator[Compared]:
    """What the engine found, what the plain way finds, and what it finds where it is moved by a unit of rounding."""
    rows = sorted({each.row for each in mine})
    changes: list[Cell] = [((), 0)] * len(rows) + [(cells[each.cell], each.draw) for each in mine]
    base = [*range(len(rows)), *(rows.index(each.row) for each in mine)]
    run = MixedRun(model, batch.take([*rows, *(each.row for each in mine)]), metric, changes, base)
    moving = _moving(model, batch)
    where = [(UNCHANGED, 0, row) for row in rows] + [(each.cell, each.draw, each.row) for each in mine]
    runs = [(where, run.scores(), run.scores(moving))]
    if found.patched:
        once = [(SOURCE, 0, row) for row in rows]
        runs.append((once, run.source_scores(len(rows)), run.source_scores(len(rows), moving)))
    for places, plain, moved in runs:
        cell, draw, row = np.array(places).T
        at = cell, draw, start + row
        engine = found.value[at], found.margin[at]
        yield np.array([engine, (plain.value, plain.margin), (moved.value, moved.margin)])


def _moving(model: Any, batch: Batch) -> Hooks:
    """Hooks that move each number that goes into a block by a unit of rounding, up or down."""
    device, dtype = place_of(model)
    precision = torch.backends.cuda.matmul.fp32_precision if device.type == "cuda" else "none"
    unit = UNIT_OF.get(precision, 0.0) if dtype == torch.float32 else 0.0
    unit = max(unit, torch.finfo(dtype).eps)

    def move(x: Tensor, *, hook: Any, layer: int) -> Tensor:
        number = torch.arange(x.numel(), device=x.device).view(x.shape)
        signs = (number * 2_654_435_761 + layer * 40_503) // 65_536 % 2 * 2 - 1  # as good as random
        return x * (1 + unit * signs.to(x.dtype))

    return [(Site("resid_pre", layer).hook_name, partial(move, layer=layer)) for layer in range(model.cfg.n_layers)]


def _worst(scores: Compared, model: Any) -> tuple[float, float]:
    """Of values and margins, the largest difference and what of it is rounding, relative to the largest score."""
    dtype, found = place_of(model)[1], list[tuple[float, float]]()
    least = 0.0 if type(model) is HookedTransformer else OF_COPIES[dtype]
    for engine, plain, moved in scores.transpose(1, 0, 2):
        known = np.isfinite(plain)
        scale = float(np.abs(plain[known]).max(initial=0.0)) or 1.0
        moves = float(np.abs(moved - plain)[known].max(initial=0.0)) / scale
        allowed = max(ROUNDINGS[dtype] * max(moves, torch.finfo(dtype).eps), least)
        same = (engine == plain) | (np.isnan(engine) & np.isnan(plain))
        found.append((float(np.abs(engine - plain)[~same].max(initial=0.0)) / scale, allowed))
    return max(found, key=lambda each: np.nan_to_num(each[0] / each[1], nan=np.inf))
