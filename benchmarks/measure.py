"""Times a sweep side by side with the peers, after checking that all of them compute the same numbers.

1. Every peer and interp run a few cells, which also warms them up; TransformerLens' numbers are the reference.
2. nnsight is given the number of cells a trace at which it is fastest here.
3. In each repeat every peer runs a few cells, then interp runs its whole sweep.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import ours
import torch
from jaxtyping import Float
from peers import CleanRun, NNsight, Peer, clean_run
from torch import Tensor
from transformers import PreTrainedModel
from workloads import Cell, Inputs, Workload, cells_of, random_inputs, spread

import interp

CHECKED = 4
"""Cells that are compared before anything is timed."""
TIMED = 4
"""Cells that a peer runs in a repeat, other ones each time; as many as share a forward pass, if those are more."""
TOLERANCE = 0.01
"""Largest difference from the reference, as a share of the largest effect of a checked cell."""
CELLS_A_TRACE = (1, 4, 16)
"""What nnsight is offered, as far as the rows stay at most the last of them."""


@dataclass(frozen=True)
class Row:
    """One workload against one peer; milliseconds a cell, one for each repeat."""

    workload: Workload
    peer: Peer
    cells_at_once: int
    peer_ms: list[float]
    interp_ms: list[float]
    interp_flops: float
    """Of one cell."""

    @property
    def ratio(self) -> float:
        return statistics.median(self.peer_ms) / statistics.median(self.interp_ms)


@dataclass(frozen=True)
class Bench:
    """The models, all with the same weights."""

    module: PreTrainedModel
    peers: Sequence[Peer]
    model: interp.HookedTransformer


def measure(bench: Bench, workload: Workload, repeats: int) -> list[Row]:
    """One row a peer.

    Raises:
        RuntimeError: A peer, or interp, computes something else than TransformerLens.
    """
    inputs = random_inputs(workload, bench.module.config.vocab_size).to(bench.module.device)
    clean = clean_run(bench.module, inputs.clean_tokens)
    cells = cells_of(workload, bench.module.config)
    require_agreement(bench, inputs, clean, spread(cells, CHECKED))
    for peer in bench.peers:
        if isinstance(peer, NNsight):
            peer.cells_at_once = _fastest_trace(peer, inputs, clean, cells)

    peer_ms: dict[str, list[float]] = {peer.name: [] for peer in bench.peers}
    interp_ms: list[float] = []
    for repeat in range(repeats):
        for peer in bench.peers:
            sample = spread(cells, max(TIMED, peer.cells_at_once), seed=repeat)
            peer_ms[peer.name].append(_ms_per_cell(lambda cells, p=peer: p.run_cells(inputs, clean, cells), sample))
        interp_ms.append(_ms_per_cell(lambda cells: ours.run_sweep(bench.model, inputs, cells), cells))
    per_cell = ours.sweep_flops(bench.model, inputs, cells) / len(cells)
    return [Row(workload, p, p.cells_at_once, peer_ms[p.name], interp_ms, per_cell) for p in bench.peers]


@torch.no_grad()
def require_agreement(bench: Bench, inputs: Inputs, clean: CleanRun, cells: Sequence[Cell]) -> None:
    """Refuse to time a library that computes something else than the first peer, or cells that change nothing."""
    unchanged = inputs.logit_difference(bench.module(inputs.tokens, logits_to_keep=1).logits)
    reference = bench.peers[0].run_cells(inputs, clean, cells)
    effect = (reference - unchanged).abs().max().cpu()
    for name, values in _others(bench, inputs, clean, cells):
        off = (values.cpu() - reference.cpu()).abs().max()
        if not off < TOLERANCE * effect:  # nor where the effect is 0 or NaN
            raise RuntimeError(
                f"{name} and {bench.peers[0].name} differ by {off:.1e} where the largest effect is {effect:.1e}; "
                f"expected less than {TOLERANCE:.0%} of it, or their times do not compare; cells: {list(cells)}"
            )


def _others(
    bench: Bench, inputs: Inputs, clean: CleanRun, cells: Sequence[Cell]
) -> Iterator[tuple[str, Float[Tensor, "cell prompt"]]]:
    for peer in bench.peers[1:]:
        yield peer.name, peer.run_cells(inputs, clean, cells)
    yield "interp", ours.run_sweep(bench.model, inputs, cells)


def _fastest_trace(peer: Peer, inputs: Inputs, clean: CleanRun, cells: list[Cell]) -> int:
    """How many cells a trace cost least, each, in one try."""
    ms = {}
    for n in CELLS_A_TRACE:
        if n == 1 or n * len(inputs.tokens) <= CELLS_A_TRACE[-1]:
            peer.cells_at_once = n
            ms[n] = _ms_per_cell(lambda sample: peer.run_cells(inputs, clean, sample), spread(cells, n))
    return min(ms, key=ms.__getitem__)


def _ms_per_cell(run: Callable[[list[Cell]], Tensor], cells: list[Cell]) -> float:
    start = time.perf_counter()
    run(cells).cpu()  # which waits for a GPU
    return 1e3 * (time.perf_counter() - start) / len(cells)
