"""The same sweep in interp: every cell in one call, with the engine's audit of itself."""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from workloads import Cell, Inputs

from interp import Example, HookedTransformer
from interp.interventions.audit import audit
from interp.interventions.engine import layers
from interp.interventions.engine.plan import Sizes
from interp.interventions.engine.run import Engine
from interp.interventions.intervention import Intervention
from interp.interventions.metrics import UNCHANGED, CellScores, Measured
from interp.interventions.replacement import Patch, Zero
from interp.interventions.rows import Row, batches
from interp.model import attention
from interp.model import layers as model_layers
from interp.model.devices import place_of
from interp.model.provenance import model_provenance
from interp.model.sites import Site
from interp.tasks.task import EncodedExample

METRIC = "logit_difference"


def run_sweep(model: HookedTransformer, inputs: Inputs, cells: Sequence[Cell]) -> Float[Tensor, "cell prompt"]:
    """The logit difference of each prompt under each cell's intervention, in the order of `cells`.

    Timed as a whole: the base run, the clean run, the audit and the hash of the weights are part of it.

    Args:
        model: Has the same weights as the peers' models.
        inputs: The prompts, and the two answers of each.
        cells: A whole sweep, or a sample of one; all of the same case.
    """
    (batch,) = batches(model, _rows(inputs))
    interventions = _interventions(model, cells)
    sizes = Sizes(model.config, place_of(model), METRIC, [change for (change,) in interventions], None)
    engine = Engine(model, METRIC, interventions, sizes)
    found = Measured(batch.rows, [1] * len(cells))
    base = engine.base(batch)
    found.put(CellScores(UNCHANGED, 0, base.row_scores()))
    for each in engine.measure(base):
        found.put(each)
    audit(model, METRIC, [batch], interventions, found, seed=0, budget=sizes.budget)
    model_provenance(model)
    return torch.from_numpy(found.value[: len(cells), 0].astype(np.float32))


def sweep_flops(model: HookedTransformer, inputs: Inputs, cells: Sequence[Cell]) -> float:
    """Floating-point operations (a multiplication and its addition are two) of the packed products of that sweep.

    Attention itself, the base run and the audit are not counted. A sample of the cells is run for it.
    """
    sample = random.Random(0).sample(list(cells), min(len(cells), 144))
    with _counted() as counts:
        run_sweep(model, inputs, sample)
    return sum(counts) * len(cells) / len(sample)


@contextmanager
def _counted() -> Iterator[list[float]]:
    """Collects the operations of every packed product."""
    counts: list[float] = []
    originals = [(module, name, getattr(module, name)) for module, name in PRODUCTS]

    def counting(product):
        def counted(x, weight, *rest):
            if x.ndim == 2:  # others are plain runs
                counts.append(2.0 * len(x) * weight.numel())
            return product(x, weight, *rest)

        return counted

    try:
        for module, name, product in originals:
            setattr(module, name, counting(product))
        yield counts
    finally:
        for module, name, product in originals:
            setattr(module, name, product)


PRODUCTS = ((layers, "linear"), (attention, "linear"), (model_layers, "linear"))


def _rows(inputs: Inputs) -> list[Row]:
    """One row a prompt: what is run, and what is patched in from."""
    answers = zip(inputs.right.tolist(), inputs.wrong.tolist(), strict=True)
    runs, sources = (
        [encoded(tokens, right, wrong) for tokens, (right, wrong) in zip(prompts.tolist(), each, strict=True)]
        for prompts, each in zip((inputs.tokens, inputs.clean_tokens), (list(answers),) * 2, strict=True)
    )
    return [Row(run, number, 0, source=source) for number, (run, source) in enumerate(zip(runs, sources, strict=True))]


def encoded(tokens: list[int], right: int, wrong: int) -> EncodedExample:
    """A prompt of token ids, with its two answers."""
    example = Example("random tokens", " right", " wrong", None, "random", "random")
    return EncodedExample(example, tuple(tokens), (right,), (wrong,), None, (), {})


def _interventions(model: HookedTransformer, cells: Sequence[Cell]) -> list[tuple[Intervention]]:
    name = "resid_pre" if cells[0].head is None else "z"
    sites = [Site(name, layer) for layer in range(model.cfg.n_layers)]
    replacement = Zero() if cells[0].pos is None else Patch(model, tuple(sites))
    return [
        (
            Intervention(
                sites[cell.layer],
                replacement,
                heads=None if cell.head is None else (cell.head,),
                positions=None if cell.pos is None else (cell.pos,),
            ),
        )
        for cell in cells
    ]
