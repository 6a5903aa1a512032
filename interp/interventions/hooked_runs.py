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
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor, nn

from interp.errors import InputError
from interp.interventions.engine.plan import budget_of
from interp.interventions.intervention import Intervention, squared_change
from interp.interventions.metrics import (
    UNCHANGED,
    Answers,
    AnyMetric,
    CellScores,
    Measured,
    MetricFunction,
    ReadLogits,
    RowScores,
    Scores,
    score,
)
from interp.interventions.rows import Batch, Row, batches
from interp.model.devices import sent
from interp.model.sites import Site
from interp.model.transformer import HookedTransformer
from interp.residual.collecting import listen, require_points, require_run
from interp.shapes import Residual, Tokens

EMBEDDED = "blocks.0.hook_resid_pre"
"""The point where all of the model's input comes in: token and position embedding."""

Activations = Mapping[str, Tensor]
Hook = tuple[str, Callable[..., Tensor]]
Hooks = list[Hook]


class _Run:
    """A batch that a metric is read on."""

    def __init__(self, model: Any, batch: Batch, metric: AnyMetric):
        self._model, self._batch, self._metric = model, batch, metric
        self._answers = Answers.of(metric, batch)
        self._base_log_p: Float[Tensor, "batch d_vocab"] | None = None  # what a KL divergence compares with

    def _logits(self, tokens: Tokens, hooks: Hooks | None = None) -> ReadLogits:
        """The logits at the answers' positions, in at least 32-bit floats; of our own model no others are computed."""
        # A source may be longer or shorter than the run; both end alike.
        positions, longer = self._answers.positions, tokens.shape[1] - self._batch.length
        at = slice(positions.start + longer, positions.stop + longer)
        if type(self._model) is HookedTransformer:  # a subclass may make its logits otherwise
            if hooks:
                last = self._model.config.n_layers
                stream = self._model.run_with_hooks(tokens, fwd_hooks=hooks, stop_at_layer=last)
            else:
                stream = listen(self._model, tokens, {})
            logits = self._model.unembed(self._model.ln_final(stream[:, at]))
        else:
            logits = self._model.run_with_hooks(tokens, fwd_hooks=hooks or [])[:, at]
        return logits.to(torch.promote_types(logits.dtype, torch.float32))

    def _score(self, logits: ReadLogits) -> Scores:
        return score(self._metric, logits, self._answers, self._base_log_p)


class PlainRun(_Run):
    """A batch that a metric is measured on, with and without interventions."""

    @torch.inference_mode()
    def __init__(self, model: Any, batch: Batch, metric: AnyMetric, *, patched: bool = False):
        """Run the batch and, if `patched`, its sources, which are scored by the rows' own answers."""
        super().__init__(model, batch, metric)
        base = self._logits(batch.tokens)
        if metric == "kl_divergence":
            self._base_log_p = base[:, -1].log_softmax(-1)
        self._base = RowScores.of(self._score(base))
        self._source = RowScores.of(self._score(self._logits(batch.source_tokens))) if patched else None

    def row_scores(self) -> RowScores:
        """The scores without interventions."""
        return self._base

    def source_scores(self) -> RowScores:
        """The scores where the rows' sources are run."""
        assert self._source is not None, "only what is patched has sources"
        return self._source

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
        hooks: Hooks = [(each.site.hook_name, partial(changed, by=each)) for each in interventions]
        with torch.inference_mode():
            return RowScores.of(self._score(self._logits(self._batch.tokens, hooks)), squares, fired)


Cell = tuple[Sequence[Intervention], int]
"""Interventions, and the number of their draw."""


class MixedRun(_Run):
    """Rows of a batch, each under a cell of its own, in one forward pass; rows may be named several times.

    `base` has, for each row, the number of one that is the same without interventions.
    """

    def __init__(self, model: Any, batch: Batch, metric: AnyMetric, cells: Sequence[Cell], base: Sequence[int]):
        super().__init__(model, batch, metric)
        self._base = sent(np.array(base), batch.tokens.device)
        # What has to be run for their values is run before hooks are on the model; for cells of one replacement, once.
        values: dict[tuple[int, Site, int], Tensor] = {}
        rows: dict[tuple[int, int], list[int]] = {}
        for row, (interventions, draw) in enumerate(cells):
            rows.setdefault((id(interventions), draw), []).append(row)
        known = {id(interventions): interventions for interventions, _ in cells}
        self._hooks: Hooks = []
        for (cell, draw), its_rows in rows.items():
            part, index = batch.take(its_rows), sent(np.array(its_rows), batch.tokens.device)
            for each in known[cell]:
                key = id(each.replacement), each.site, draw
                if key not in values:
                    values[key] = each.values(batch, draw).to(batch.tokens.device)
                own = values[key][index] if len(values[key]) == len(batch.rows) else values[key]
                hook = partial(_changed_rows, by=each, batch=part, index=index, values=own)
                self._hooks.append((each.site.hook_name, hook))

    @torch.inference_mode()
    def scores(self, before: Sequence[Hook] = ()) -> RowScores:
        """Each row's scores; hooks that come `before` move what the interventions find."""
        logits = self._logits(self._batch.tokens, [*before, *self._hooks])
        if self._metric == "kl_divergence":
            self._base_log_p = logits[self._base, -1].log_softmax(-1)
        return RowScores.of(self._score(logits))

    @torch.inference_mode()
    def source_scores(self, n: int, before: Sequence[Hook] = ()) -> RowScores:
        """The scores of the first `n` rows where their sources are run; after ``scores``."""
        logits = self._logits(self._batch.source_tokens[:n], list(before))
        base = None if self._base_log_p is None else self._base_log_p[:n]
        answers = self._answers.take(torch.arange(n, device=logits.device))
        return RowScores.of(score(self._metric, logits, answers, base))


def _changed_rows(
    old: Tensor, *, hook: Any, by: Intervention, batch: Batch, index: Tensor, values: Tensor
) -> Float[Tensor, "batch ..."]:
    new = old.clone()
    new[index] = by.put(old[index], batch, values)
    return new


class Plain:
    """Measures cells on batches, one hooked forward for each cell and draw."""

    halvings = 0

    def __init__(self, model: Any, metric: AnyMetric, cells: Sequence[Sequence[Intervention]], *, patched: bool):
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


def run_plainly(model: Any, batches: Sequence[Batch], metric: AnyMetric) -> pd.DataFrame:
    """What ``Measured.by_example`` says of the examples of `batches` without interventions: one row an example."""
    measured = Measured([row for batch in batches for row in batch.rows], [])
    first_row = 0
    for batch in batches:
        measured.put(CellScores(UNCHANGED, 0, PlainRun(model, batch, metric).row_scores(), first_row))
        first_row += len(batch.rows)
    return pd.DataFrame({name: each[UNCHANGED] for name, each in measured.by_example(metric).items()})


class DifferentiableRun(_Run):
    """A batch whose metric is read, and differentiated, at the points called `names`."""

    def __init__(self, model: Any, batch: Batch, metric: AnyMetric, hook_names: Iterable[str]):
        """Prepare, and for a KL divergence run the batch once: that is what it compares with."""
        if metric == "accuracy":
            raise InputError(
                "accuracy is a step and has no gradient to estimate effects with",
                "give the metric whose sign it is (logit_difference or sentence_log_probability)",
                "measure the cells exactly",
            )
        if isinstance(metric, MetricFunction):
            raise InputError(
                f"metric {metric.name}: expected a named one, whose gradients are known, got a function of your own",
                "measure the cells exactly",
            )
        super().__init__(model, batch, metric)
        self.names = tuple(dict.fromkeys(hook_names))
        require_points(model, self.names)
        if metric == "kl_divergence":
            with torch.no_grad():
                self._base_log_p = self._logits(batch.tokens)[:, -1].log_softmax(-1)

    @torch.no_grad()
    def scores(self, tokens: Tokens) -> Float[Tensor, " batch"]:
        """What `tokens`, as long as the batch's, add to each example's metric, before its sign; without gradients."""
        return self._score(self._logits(tokens)).value

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
        saved: dict[int, Tensor] = {}  # by where they begin, which is theirs alone as long as all are held

        def note(x: Tensor) -> None:  # a graph that is given its own tensors holds itself for ever
            saved[x.untyped_storage().data_ptr()] = x.detach()

        with (
            torch.inference_mode(False),
            torch.enable_grad(),
            torch.autograd.graph.saved_tensors_hooks(note, lambda x: x),
        ):
            _, kept = self._graph(None)
        # Beside the graph: the activations of the run and of its source, the gradients, and their running mean.
        beside = 4 * sum(x.numel() * x.element_size() for x in kept.values())
        return beside + sum(x.untyped_storage().nbytes() for start, x in saved.items() if start not in weights)

    def _graph(self, embedding: Residual | None) -> tuple[Float[Tensor, " batch"], dict[str, Tensor]]:
        """Each row's score, and the activations that it can be differentiated by."""
        kept: dict[str, Tensor] = {}

        def keep(name: str, x: Tensor, *, hook: Any) -> Tensor:
            kept[name] = x if kept else x.detach().requires_grad_()
            return kept[name]

        hooks: Hooks = [] if embedding is None else [(EMBEDDED, lambda x, *, hook: embedding)]
        hooks += [(name, partial(keep, name)) for name in self.names]
        scores = self._score(self._logits(self._batch.tokens, hooks)).value
        require_run(self.names, kept)
        return scores, kept


def differentiable_runs(
    model: Any, rows: Sequence[Row], metric: AnyMetric, hook_names: Sequence[str], memory_budget: int | None = None
) -> Iterable[tuple[Batch, DifferentiableRun]]:
    """All rows in batches that the budget holds.

    Refuses sets of sentences: the metric of an example is then no sum over its rows, each with a gradient of its own.
    """
    if sets := [each for each in rows if each.continuation and (each.encoded.also_right or each.encoded.also_wrong)]:
        raise InputError(
            f"gradients: expected one right and one wrong sentence, got sets of {len(sets[0].encoded.rights)} and "
            f"{len(sets[0].encoded.wrongs)} behind {sets[0].encoded.example.prompt!r:.80}, whose probabilities are "
            "summed before the logarithm is taken",
            "give a metric of answers of one token, if they are",
            "measure the cells exactly",
        )
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
