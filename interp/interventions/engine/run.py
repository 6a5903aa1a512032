"""Incremental exact execution: the numbers of one hooked forward per cell, several times faster.

1. A base run keeps the residual stream, queries, keys and values of every layer.
2. A cell starts at its first replacement; only positions that can differ from the base run are computed.
3. Many cells are packed into one matrix; the layers go by once for all of them.
4. The last layer computes the answers' positions, the unembedding the columns that the metric reads.

How much is packed follows from the memory budget; where memory runs out all the same, it is halved. A
``TransformerBridge`` is measured on our own copy of its weights, made once for the weights' hash. Before every sweep a
few rows are run on both: logits and activations must agree, and the logits again where something is written, for what
is written at TransformerLens' ``hook_resid_mid`` reaches the MLP alone. Otherwise the plain way measures.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from interp.errors import LoadError
from interp.interventions.engine.base_run import BaseRun
from interp.interventions.engine.chunk import Chunk, Strand
from interp.interventions.engine.layers import Wavefront
from interp.interventions.engine.plan import (
    Classifier,
    Interventions,
    NoRoomError,
    Sizes,
    entry_sites,
    kind_of,
    out_of_memory,
)
from interp.interventions.metrics import AnyMetric, CellScores, RowScores, Scores
from interp.interventions.rows import Batch, Row, batches
from interp.model.config import TransformerConfig
from interp.model.devices import fetched
from interp.model.loading.bridge import has_hooks, is_bridge, module_behind
from interp.model.loading.copy_check import TOLERANCE, differences, written_difference
from interp.model.loading.load import module_checkpoint
from interp.model.loading.tensors import build
from interp.model.sites import Site
from interp.model.transformer import HookedTransformer
from interp.model.weights import weights_hash
from interp.residual.collecting import read
from interp.shapes import Tokens

COMPARED_ROWS = 2

_copies: WeakKeyDictionary[Any, tuple[str, HookedTransformer]] = WeakKeyDictionary()


class _NoEngineError(Exception):
    """The engine cannot measure on a model; the message says why."""


def engine_model(
    model: Any, rows: Sequence[Row], sites: Iterable[Site], *, plainly: bool = False
) -> tuple[HookedTransformer | None, dict[str, Any]]:
    """The model that the engine measures on in place of `model`, and what the provenance says of it.

    None where the plain way has to measure, because it was asked for (`plainly`) or for the reason in the provenance.
    Raises InputError for a bridge that lacks a site, or does not run it.
    """
    if is_bridge(model):
        return _for_bridge(model, rows, sorted(sites, key=lambda each: each.hook_name), plainly)
    if plainly:
        return None, {"why_plain": "it was asked for"}
    if type(model) is not HookedTransformer:
        kind = type(model).__name__
        return None, {"why_plain": f"{kind} is neither a model of ours nor a TransformerBridge, whose weights we know"}
    if has_hooks(model):
        return None, {"why_plain": "somebody's hooks are on the model, and the engine would not run them"}
    return model, {}


def shape_of(model: Any) -> TransformerConfig | None:
    """The config of our model with the weights of `model`; None where its architecture is not known here."""
    if isinstance(model, HookedTransformer):
        return model.config
    if not is_bridge(model):
        return None
    try:
        return _copy_of(model).config
    except _NoEngineError:
        return None


def _for_bridge(
    bridge: Any, rows: Sequence[Row], sites: Sequence[Site], plainly: bool
) -> tuple[HookedTransformer | None, dict[str, Any]]:
    first = [row for row in rows if len(row.tokens) == len(rows[0].tokens)][:COMPARED_ROWS]
    tokens = batches(bridge, first)[0].tokens
    read(bridge, tokens, [each.hook_name for each in sites])
    try:
        if plainly:
            raise _NoEngineError("it was asked for")
        if has_hooks(bridge):
            raise _NoEngineError("somebody's hooks are on the bridge, and the engine would not run them")
        copy = _copy_of(bridge)
        _require_context(copy, rows)
        _require_agreement(bridge, copy, tokens, sites)
    except _NoEngineError as reason:
        return None, {"why_plain": str(reason)}
    n_bytes = sum(each.numel() * each.element_size() for each in copy.parameters())
    return copy, {"engine_model": f"own copy of {_kind(bridge)}", "engine_model_bytes": n_bytes}


def _copy_of(bridge: Any) -> HookedTransformer:
    """Our copy of a bridge's weights: the one that is kept, unless they have changed.

    The hash of their values tells: counters of changes miss what is written through ``.data``.
    """
    kinds = {(each.device, each.dtype) for each in bridge.parameters()}
    if len(kinds) > 1:
        raise _NoEngineError(f"the bridge's weights are in several places or dtypes: {sorted(map(str, kinds))}")
    ((device, dtype),) = kinds
    state = f"{weights_hash(bridge)} {device} {dtype}"
    if bridge in _copies and _copies[bridge][0] == state:
        return _copies[bridge][1]
    _copies.pop(bridge, None)  # before the new one takes its memory
    try:
        copy = build(module_checkpoint(module_behind(bridge), None), device, dtype)
    except LoadError as error:
        reason, _, _ = str(error).partition("; ")  # what follows is advice to who loads a model
        raise _NoEngineError(reason) from error
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
        raise _NoEngineError("there is no memory for a copy of the bridge's weights") from error
    _copies[bridge] = (state, copy)
    return copy


def _require_context(copy: HookedTransformer, rows: Sequence[Row]) -> None:
    longest = max(max(len(row.tokens), len(row.source_tokens)) for row in rows)
    if longest > copy.config.n_ctx:
        raise _NoEngineError(f"a prompt has {longest} tokens, and the context of our copy is {copy.config.n_ctx}")


def _require_agreement(bridge: Any, copy: HookedTransformer, tokens: Tokens, sites: Sequence[Site]) -> None:
    """Refuse a copy that gives other numbers than the bridge; warn where writing at a point does another thing."""
    allowed, of = TOLERANCE[copy.W_E.dtype], f"a model of ours with the weights of {_kind(bridge)}"
    points = [each.hook_name for each in sites]
    found = differences(bridge, copy, tokens, points)
    worst = max(found, key=found.__getitem__)
    if found[worst] > allowed:
        raise _NoEngineError(
            f"{of} differs from the bridge at {worst} by {found[worst]:.1e} of the largest value, expected at most "
            f"{allowed:.0e}"
        )
    for point in {each.name: each.hook_name for each in reversed(sites)}.values():  # of each kind the first
        gap = written_difference(bridge, copy, tokens, point)
        if gap > allowed:
            reason = f"what is written at {point} does not do on the bridge what it does in {of}"
            warnings.warn(
                f"{reason}: the logits differ by {gap:.1e} of the largest; these are the bridge's own numbers, and "
                "interp.load_model(bridge) gives the model whose point is what its name says",
                RuntimeWarning,
                stacklevel=6,
            )
            raise _NoEngineError(reason)


def _kind(bridge: Any) -> str:
    return type(module_behind(bridge)).__name__


AHEAD = {"cpu": 0, "cuda": 1}
"""How many chunks are run, by device type, before what they found is waited for: the host prepares the next one."""


@dataclass(frozen=True)
class Begun:
    """A chunk that a device has been told to run."""

    chunk: Chunk
    fired: Int[np.ndarray, " trajectory"]  # how often an intervention acts on each trajectory
    found: Callable[[], Tensor]  # waits for values, margins and squares


class Engine:
    """Measures many cells on batches; ``halvings`` counts how often memory ran out and less was run at once."""

    def __init__(self, model: HookedTransformer, metric: AnyMetric, cells: Sequence[Interventions], sizes: Sizes):
        self._model, self._metric, self._sizes = model, metric, sizes
        draws = [max((each.replacement.draws for each in cell), default=1) for cell in cells]
        strands = [Strand(number, draw, cell) for number, cell in enumerate(cells) for draw in range(draws[number])]
        self._strands = sorted(strands, key=lambda each: each.first_layer)
        self._first_layer = min(each.first_layer for each in strands)
        self._extra = entry_sites(model.config, (each for cell in cells for each in cell))
        self.halvings = 0

    def base(self, batch: Batch) -> BaseRun:
        """Run a batch without interventions, and keep what cells start from."""
        try:
            with torch.inference_mode():
                options = {"offloaded": self._sizes.offloaded}
                return BaseRun(self._model, batch, self._metric, self._first_layer, self._extra, **options)
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            # The traceback would hold on to what the failed run held.
            raise self._no_room("the unchanged run of", batch) from error.with_traceback(None)

    def measure(self, base: BaseRun, chunks: Iterable[range] | None = None) -> Iterator[CellScores]:
        """Measure some chunks of a batch, or every cell, in the order of the layers that they begin in."""
        classifier = Classifier(base.batch, causal=self._model.config.causal)
        asked = (chunk for chunk, _ in self._planned(base.batch, classifier)) if chunks is None else chunks
        begun, ahead = list[Begun](), AHEAD[kind_of(base.final.device)]
        try:
            for chunk in asked:
                begun += self._begun(self._strands[chunk.start : chunk.stop], base, classifier)
                while len(begun) > ahead:
                    yield from self._scores(begun.pop(0), base)
        except NoRoomError:
            for each in begun:
                yield from self._scores(each, base)
            raise
        for each in begun:
            yield from self._scores(each, base)

    def chunks(self, batch: Batch) -> Iterator[tuple[range, int]]:
        """What is run together, of the strands by their numbers, and how many tokens are computed for it."""
        return self._planned(batch, Classifier(batch, causal=self._model.config.causal))

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

    def _begun(self, strands: Sequence[Strand], base: BaseRun, classifier: Classifier) -> list[Begun]:
        """What is being run; where memory does not suffice, each half of the strands."""
        failed = None
        try:
            with torch.inference_mode():
                return [self._begin(Chunk(strands, classifier, base.batch.length), base)]
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            failed = error.with_traceback(None)
        if len(strands) == 1:
            raise self._no_room("one cell on", base.batch) from failed
        self.halvings += 1  # what the failed run held is gone by now
        torch.cuda.empty_cache()  # so that CUDA's libraries, too, find it
        half = len(strands) // 2
        return [*self._begun(strands[:half], base, classifier), *self._begun(strands[half:], base, classifier)]

    def _begin(self, chunk: Chunk, base: BaseRun) -> Begun:
        wavefront = Wavefront(base, chunk)
        scores = base.scores(wavefront.run(), wavefront.rows)
        together = torch.cat([scores.value.double(), scores.margin.double(), wavefront.editor.squares])
        return Begun(chunk, wavefront.fired(), fetched(together))

    def _scores(self, begun: Begun, base: BaseRun) -> list[CellScores]:
        """What was run, once the device is through."""
        chunk, n = begun.chunk, begun.chunk.n
        value, margin, squares = begun.found().split([n, n, n * base.batch.length])
        found = RowScores.of(Scores(value, margin), chunk.squares(squares.numpy()), begun.fired)
        unchanged = base.row_scores()
        return [
            _of_strand(strand, unchanged, chunk.rows[span], found.take(span))
            for strand, span in zip(chunk.strands, chunk.spans, strict=True)
        ]

    def _no_room(self, what: str, batch: Batch) -> NoRoomError:
        rows = f"{len(batch.rows)} row{'s' * (len(batch.rows) > 1)}"
        less = f"give a memory budget below {self._sizes.budget:,} bytes (memory_budget=...)"
        return NoRoomError(
            f"out of memory with {what} {rows} of {batch.length} tokens",
            f"{less}, so that fewer rows are run at once",
            "take a device with more memory",
        )


def _of_strand(strand: Strand, unchanged: RowScores, rows: Int[np.ndarray, " changed"], found: RowScores) -> CellScores:
    """The scores of a strand on all rows of the batch; where nothing has changed, to the bit the base run's."""
    values, margins = unchanged.value.copy(), unchanged.margin.copy()
    squares, fired = np.zeros(len(values)), np.full(len(values), len(strand.interventions))
    squares[rows], fired[rows] = found.squares, found.fired
    changed = found.squares > 0
    values[rows[changed]], margins[rows[changed]] = found.value[changed], found.margin[changed]
    return CellScores(strand.cell, strand.draw, RowScores(values, margins, squares, fired))
