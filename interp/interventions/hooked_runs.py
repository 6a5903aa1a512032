"""Runs of a batch with hooks: measured under interventions, or differentiated.

The plain way to measure is one hooked forward pass per cell:

1. Run a batch with a hook at each intervention's point.
2. The hook puts the replacement in place and notes that it fired and how far it moved the activation,
   ``||a' - a||`` over positions and components.
3. Score the logits, row by row.

It works on any model that follows TransformerLens' protocol. It is slow, and every faster way is audited by it.

Gradients of the metric are taken at every site at once, by one forward and one backward pass: the first kept activation
begins the graph, so that weights need no gradients; rows do not see each other, so each has its own. Nothing on the
model is changed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from interp.errors import InputError
from interp.interventions.engine.plan import budget_of
from interp.interventions.intervention import Intervention, squared_change
from interp.interventions.metrics import (
    AnswerLogits,
    Answers,
    Fired,
    Measured,
    Outcome,
    RowScores,
    Squares,
    score,
)
from interp.interventions.rows import Batch, Row, batches
from interp.model.transformer import HookedTransformer
from interp.options import MetricName
from interp.residual.activations import require_points, require_run
from interp.shapes import Residual, Tokens


@dataclass(frozen=True)
class CellScores:
    """Scores of one cell and draw on the rows of a batch; within a sweep, on its rows from `first_row` on."""

    cell: int
    draw: int
    scores: RowScores
    first_row: int = 0


class PlainRun:
    """A batch that a metric is measured on, with and without interventions."""

    def __init__(self, model: Any, batch: Batch, metric: MetricName, *, patched: bool = False):
        """Run the batch and, if `patched`, its sources, which are scored by the rows' own answers."""
        self._model, self._batch, self._metric = model, batch, metric
        self._answers = Answers.of(metric, batch)
        base, source = self._unchanged(patched)
        self._base_log_p = base[:, -1].log_softmax(-1) if metric == "kl_divergence" else None
        self._base = self._scores(base)
        self._source = None if source is None else self._scores(source)

    def row_scores(self) -> RowScores:
        """The scores without interventions."""
        return self._base

    def source_scores(self) -> RowScores:
        """The scores where the rows' sources are run."""
        assert self._source is not None, "only what is patched has sources"
        return self._source

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

        def changed(old: Tensor, *, hook: Any, by: Intervention) -> Tensor:
            nonlocal fired, squares
            new = by.apply(old, self._batch, draw)
            fired, squares = fired + 1, squares + squared_change(old, new).double().cpu().numpy()
            return new

        for each in interventions:
            each.values(self._batch, draw)  # what has to run the model does so before hooks are on it
        hooks = [(each.site.hook_name, partial(changed, by=each)) for each in interventions]
        return self._scores(self._logits(self._batch.tokens, hooks), squares, fired)

    def _logits(self, tokens: Tokens, hooks: Sequence[tuple[str, Callable[..., Tensor]]] = ()) -> AnswerLogits:
        # A source may be longer or shorter than the run; both end alike.
        positions, longer = self._answers.positions, tokens.shape[1] - self._batch.length
        with torch.inference_mode():
            logits = self._model.run_with_hooks(tokens, fwd_hooks=list(hooks))
            logits = logits[:, positions.start + longer : positions.stop + longer]
            return logits.to(torch.promote_types(logits.dtype, torch.float32))

    def _scores(self, logits: Tensor, squares: Squares | None = None, fired: Fired | None = None) -> RowScores:
        return RowScores.of(score(self._metric, logits, self._answers, self._base_log_p), squares, fired)


class Plain:
    """Measures cells on batches, one hooked forward for each cell and draw."""

    halvings = 0

    def __init__(self, model: Any, metric: MetricName, cells: Sequence[Sequence[Intervention]], *, patched: bool):
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

    def measure(self, run: PlainRun, chunks: Iterable[range]) -> Iterator[CellScores]:
        """Measure cells, in order."""
        for number in chain.from_iterable(chunks):
            cell, draw = self._strands[number]
            yield CellScores(cell, draw, run.scores(self._cells[cell], draw))


def run_plainly(model: Any, batches: Sequence[Batch], metric: MetricName) -> Outcome:
    """Measure `metric` on every example of `batches`, without interventions."""
    measured = Measured([row for batch in batches for row in batch.rows], [1])
    done = 0
    for batch in batches:
        measured.put(0, 0, done, PlainRun(model, batch, metric).row_scores())
        done += len(batch.rows)
    return measured.outcome(0, metric)


EMBEDDED = "blocks.0.hook_resid_pre"
"""The point where all of the model's input comes in: token and position embedding."""

Activations = Mapping[str, Tensor]
Hooks = list[tuple[str, Callable[..., Tensor]]]


class DifferentiableRun:
    """A batch whose metric is read, and differentiated, at the points called `names`."""

    def __init__(self, model: Any, batch: Batch, metric: MetricName, hook_names: Iterable[str]):
        """Prepare, and for a KL divergence run the batch once: that is what it compares with."""
        if metric == "accuracy":
            raise InputError(
                "accuracy is a step and has no gradient to estimate effects with",
                "give the metric whose sign it is (logit_difference or sentence_log_probability)",
                "measure the cells exactly",
            )
        self._model, self._batch, self._metric = model, batch, metric
        self.names = tuple(dict.fromkeys(hook_names))
        require_points(model, self.names)
        self._answers = Answers.of(metric, batch)
        with torch.no_grad():
            compared = metric == "kl_divergence"
            self._base_log_p = self._logits(batch.tokens, [])[:, -1].log_softmax(-1) if compared else None

    def scores(self, tokens: Tokens) -> Float[Tensor, " batch"]:
        """What `tokens`, as long as the batch's, add to each example's metric, before its sign; without gradients."""
        with torch.no_grad():
            return self._scores(tokens, [])

    def gradients(self, embedding: Residual | None = None) -> tuple[Activations, Activations]:
        """The activations of the batch's run, and the gradients of each row's score with respect to them."""
        with torch.inference_mode(False), torch.enable_grad():
            scores, kept = self._graph(embedding)
            found = torch.autograd.grad(scores.sum(), list(kept.values()), allow_unused=True, materialize_grads=True)
        return {name: x.detach() for name, x in kept.items()}, dict(zip(kept, found, strict=True))

    def graph_bytes(self) -> int:
        """Bytes that one forward and backward pass keeps beside the weights."""
        shown = self._model.parameters() if isinstance(self._model, nn.Module) else ()
        weights = {parameter.untyped_storage().data_ptr() for parameter in shown}
        saved: dict[int, int] = {}

        def note(x: Tensor) -> Tensor:
            saved[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
            return x

        with (
            torch.inference_mode(False),
            torch.enable_grad(),
            torch.autograd.graph.saved_tensors_hooks(note, lambda x: x),
        ):
            _, kept = self._graph(None)
        # Beside the graph: the activations of the run and of its source, the gradients, and their running mean.
        beside = 4 * sum(x.numel() * x.element_size() for x in kept.values())
        return beside + sum(size for start, size in saved.items() if start not in weights)

    def _graph(self, embedding: Residual | None) -> tuple[Float[Tensor, " batch"], dict[str, Tensor]]:
        """Each row's score, and the activations that it can be differentiated by."""
        kept: dict[str, Tensor] = {}

        def keep(name: str, x: Tensor, *, hook: Any) -> Tensor:
            kept[name] = x if kept else x.detach().requires_grad_()
            return kept[name]

        hooks: Hooks = [] if embedding is None else [(EMBEDDED, lambda x, *, hook: embedding)]
        scores = self._scores(self._batch.tokens, hooks + [(name, partial(keep, name)) for name in self.names])
        require_run(self.names, kept)
        return scores, kept

    def _scores(self, tokens: Tokens, hooks: Hooks) -> Float[Tensor, " batch"]:
        return score(self._metric, self._logits(tokens, hooks), self._answers, self._base_log_p).value

    def _logits(self, tokens: Tokens, hooks: Hooks) -> AnswerLogits:
        """The logits at the answers' positions, in at least 32-bit floats; of our own model no others are computed."""
        at = slice(self._answers.positions.start, self._answers.positions.stop)
        if isinstance(self._model, HookedTransformer):
            stream = self._model.run_with_hooks(tokens, fwd_hooks=hooks, stop_at_layer=self._model.config.n_layers)
            logits = self._model.unembed(self._model.ln_final(stream[:, at]))
        else:
            logits = self._model.run_with_hooks(tokens, fwd_hooks=hooks)[:, at]
        return logits.to(torch.promote_types(logits.dtype, torch.float32))


def differentiable_runs(
    model: Any, rows: Sequence[Row], metric: MetricName, hook_names: Sequence[str], memory_budget: int | None = None
) -> Iterable[tuple[Batch, DifferentiableRun]]:
    """All rows in batches that the budget holds."""
    for whole in batches(model, rows):
        budget = budget_of(whole.tokens.device, memory_budget)
        needed = DifferentiableRun(model, whole.take([0]), metric, hook_names).graph_bytes()
        if needed > budget:
            raise InputError(
                f"memory budget: the gradients of one row of {whole.length} tokens take {needed:,} bytes, got a budget "
                f"of {budget:,}; give at least the former"
            )
        for batch in whole.split(budget // needed):
            yield batch, DifferentiableRun(model, batch, metric, hook_names)
