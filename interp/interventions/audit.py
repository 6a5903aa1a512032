"""Does the engine find what the plain way finds? A sample of a sweep is measured again.

1. Cells are told apart by the layer that they begin in and by their sites, rows by what the engine makes of them: where
   their first change is, and whether they compute their own beginning. Of each kind some are drawn, and each row is
   compared without a change, too, and in the run that it is patched from.
2. The rows of a batch are run in one hooked forward pass, each under a cell of its own.
3. Where they differ by more than a few units of rounding, they are run again with each block's input moved by such a
   unit, up or down: that is how far rounding moves these scores. In 32 and 64 bits products round as well, so more of
   such differences are allowed there.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from interp.errors import AuditError
from interp.interventions.engine.plan import Classifier, RowClass
from interp.interventions.hooked_runs import Cell, Hooks, MixedRun
from interp.interventions.intervention import Intervention
from interp.interventions.metrics import SOURCE, UNCHANGED, AnyMetric, Measured, RowScores
from interp.interventions.rows import Batch
from interp.model.devices import place_of
from interp.model.loading.copy_check import ALLOWED, TOLERANCE
from interp.model.positions import looks_back_only
from interp.model.sites import Site
from interp.model.transformer import HookedTransformer

ONE_IN, FEWEST, MOST, MOST_OF_EACH, MOST_BATCHES = 96, 4, 32, 4, 4
"""How many rows under a cell are measured again: of the whole sweep, at least, and at most of a sweep or, where it has
many kinds of cells, of each kind; and from how many batches."""
ROUNDINGS = {torch.float64: 16.0, torch.float32: 16.0, torch.float16: 4.0, torch.bfloat16: 4.0}
"""How many times what a unit of rounding does is rounding, by dtype.

``python tests/interventions/engine/planted_faults.py`` prints how much of it is seen.
"""
OF_COPIES = {dtype: min(most, ALLOWED[dtype]) for dtype, most in TOLERANCE.items()}
"""Of the largest score, what is rounding where the engine measures on a copy: another's code rounds elsewhere."""

UNIT_OF = {"tf32": 2.0**-10, "bf16": 2.0**-7}
"""Of 32-bit products, where less precise ones were asked for."""

Cells = Sequence[Sequence[Intervention]]
Scored = Float[np.ndarray, "2 entry"]
"""Values, and margins."""


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
    n_batches = min(MOST_BATCHES, len(batches))
    chosen = generator.choice(len(batches), size=n_batches, replace=False, p=sizes / sizes.sum()).tolist()
    classifiers = {each: Classifier(batches[each], causal=causal) for each in chosen}
    by_kind: dict[Hashable, list[int]] = {}
    for number, changes in enumerate(cells):
        first = min(each.site.layer or 0 for each in changes)
        by_kind.setdefault((first, *(each.site.name for each in changes)), []).append(number)
    kinds = [list(by_kind.values())[each] for each in generator.permutation(len(by_kind))]
    n_rows = int(draws[: len(cells)].sum() * sizes.sum())
    n_drawn = int(np.clip(n_rows // ONE_IN, FEWEST, max(MOST, MOST_OF_EACH * len(kinds))))
    found, seen = list[Drawn](), Counter[Hashable]()
    for turn in range(n_drawn):
        kind = turn % len(kinds)
        cell, batch = int(generator.choice(kinds[kind])), chosen[turn // len(kinds) % n_batches]
        draw = int(generator.integers(draws[cell]))
        classes = classifiers[batch].classes(cells[cell], draw).classes
        begins = {row: _begin(each) for each in classes for row in each.rows.tolist()}
        # Of the rows that are changed, if any, one of those whose kind was drawn least.
        rows = generator.permutation(list(begins) or sizes[batch]).tolist()
        row = min(rows, key=lambda each: [seen[kind, of] for of in begins.get(each, ())])
        seen.update((kind, of) for of in begins.get(row, ()))
        found.append(Drawn(batch, row, cell, draw))
    return found


def _begin(rows: RowClass) -> tuple[bool, tuple[bool, int]]:
    """Whether others compute some of what changes of these rows, alone and with where they begin to compute."""
    first = min(min(each) for each in rows.positions if each)
    return rows.own > first, (rows.own > first, max(rows.own, first))


@dataclass(frozen=True)
class Again:
    """What was measured again: values and margins, of the engine and the plain way, and how to move the latter."""

    engine: Scored
    plain: Scored
    moved: Callable[[], RowScores]


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
    starts = np.cumsum([0, *(len(batch.rows) for batch in batches)]).tolist()
    again = list[Again]()
    for number in sorted({each.batch for each in sample}):
        batch, mine = batches[number], [each for each in sample if each.batch == number]
        at_once = max(1, budget // (32 * batch.length * model.cfg.d_vocab))
        for start in range(0, len(mine), at_once):
            again += _again(model, metric, batch, cells, found, mine[start : start + at_once], starts[number])
    relative, tolerance = _worst(again, model, moved=False)
    if not relative <= tolerance:
        relative, tolerance = _worst(again, model, moved=True)
    n_cells = len({each.cell for each in sample})
    if not relative <= tolerance:
        raise AuditError(
            f"the sweep's own audit failed: {len(sample)} prompts measured again by hooked forward passes differ by "
            f"{relative:.1e} of the largest score, expected at most {tolerance:.0e}; please report this, and measure "
            "without the engine meanwhile: Sweep(cells).run(model, task, plainly=True)"
        )
    return {"cells": n_cells, "rows": len(sample), "largest_difference": relative, "tolerance": tolerance}


def _again(
    model: Any, metric: AnyMetric, batch: Batch, cells: Cells, found: Measured, mine: Sequence[Drawn], start: int
) -> Iterator[Again]:
    """Rows of a batch that begins at the row `start` of the sweep, measured the plain way."""
    rows = sorted({each.row for each in mine})
    changes: list[Cell] = [((), 0)] * len(rows) + [(cells[each.cell], each.draw) for each in mine]
    base = [*range(len(rows)), *(rows.index(each.row) for each in mine)]
    run = MixedRun(model, batch.take([*rows, *(each.row for each in mine)]), metric, changes, base)
    places = [(UNCHANGED, 0, row) for row in rows] + [(each.cell, each.draw, each.row) for each in mine]
    measured = [(places, run.scores)]
    if found.patched:
        measured.append(([(SOURCE, 0, row) for row in rows], partial(run.source_scores, len(rows))))
    for its_places, scores in measured:
        cell, draw, row = np.array(its_places).T
        at = cell, draw, start + row
        engine = np.stack([found.value[at], found.margin[at]])
        yield Again(engine, _scored(scores()), partial(scores, _moving(model)))


def _scored(scores: RowScores) -> Scored:
    return np.stack([scores.value, scores.margin])


def _moving(model: Any) -> Hooks:
    """Hooks that move each number that goes into a block by a unit of rounding, up or down."""
    device, dtype = place_of(model)
    products = (torch.backends.cuda if device.type == "cuda" else torch.backends.mkldnn).matmul
    unit = UNIT_OF.get(products.fp32_precision, 0.0) if dtype == torch.float32 else 0.0
    unit = max(unit, torch.finfo(dtype).eps)

    def move(x: Tensor, *, hook: Any, layer: int) -> Tensor:
        number = torch.arange(x.numel(), device=x.device).view(x.shape)
        signs = (number * 2_654_435_761 + layer * 40_503) // 65_536 % 2 * 2 - 1  # as good as random
        return x * (1 + unit * signs.to(x.dtype))

    return [(Site("resid_pre", layer).hook_name, partial(move, layer=layer)) for layer in range(model.cfg.n_layers)]


def _worst(again: Sequence[Again], model: Any, *, moved: bool) -> tuple[float, float]:
    """Of values and margins, the largest difference and what of it is rounding, relative to the largest score."""
    dtype, found = place_of(model)[1], list[tuple[float, float]]()
    least = 0.0 if type(model) is HookedTransformer else OF_COPIES[dtype]
    both = (np.concatenate([getattr(each, name) for each in again], axis=1) for name in ("engine", "plain"))
    others = np.concatenate([_scored(each.moved()) if moved else each.plain for each in again], axis=1)
    for engine, plain, other in zip(*both, others, strict=True):
        known = np.isfinite(plain)
        scale = float(np.abs(plain[known]).max(initial=0.0)) or 1.0
        moves = float(np.abs(other - plain)[known].max(initial=0.0)) / scale
        allowed = max(ROUNDINGS[dtype] * max(moves, torch.finfo(dtype).eps), least)
        same = (engine == plain) | (np.isnan(engine) & np.isnan(plain))
        found.append((float(np.abs(engine - plain)[~same].max(initial=0.0)) / scale, allowed))
    return max(found, key=lambda each: np.nan_to_num(each[0] / each[1], nan=np.inf))
