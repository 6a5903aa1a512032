"""How does the metric move with an activation? Its gradient at every site at once: one forward and one backward pass.

1. A hook at each point keeps the activation that goes by. The first one begins the graph, so that neither the
   weights nor what stands before it need gradients.
2. The metric's sum over the rows is differentiated by all kept activations; rows do not see each other, so each has
   its own gradient.
3. Batches follow a byte budget: what one row's graph keeps is counted in a run of that row.

The gradients are handed back, never added to a parameter's ``grad``; nothing on the model is changed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from interp.errors import InputError
from interp.interventions.engine.budget import budget_of
from interp.interventions.metrics import AnswerLogits, Answers, MetricName, score
from interp.interventions.rows import Batch, Row, batches
from interp.model.transformer import HookedTransformer
from interp.residual.activations import require_points, require_run
from interp.shapes import Residual, Tokens

EMBEDDED = "blocks.0.hook_resid_pre"
"""The point where all of the model's input comes in: token and position embedding."""

Activations = Mapping[str, Tensor]
Hooks = list[tuple[str, Callable[..., Tensor]]]


class DifferentiableRun:
    """A batch whose metric is read, and differentiated, at some points.

    Attributes:
        names: Of these points.
    """

    def __init__(self, model: Any, batch: Batch, metric: MetricName, hook_names: Iterable[str]):
        """Prepare, and for a KL divergence run the batch once: that is what it compares with.

        Args:
            model: Follows TransformerLens' protocol.
            batch: Rows of equal length.
            metric: What is differentiated.
            hook_names: Points within the blocks.

        Raises:
            InputError: The model does not have one of the points, or an accuracy, which has no gradient.
        """
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
        self._base_log_p: Float[Tensor, "batch d_vocab"] | None = None
        if metric == "kl_divergence":
            with torch.no_grad():
                self._base_log_p = self._logits(batch.tokens, [])[:, -1].log_softmax(-1)

    def scores(self, tokens: Tokens) -> Float[Tensor, " batch"]:
        """What `tokens`, as long as the batch's, add to each example's metric, before its sign; without gradients."""
        with torch.no_grad():
            return self._scores(tokens, [])

    def gradients(self, embedding: Residual | None = None) -> tuple[Activations, Activations]:
        """The activations of the batch's run, and the gradients of each row's score with respect to them.

        Args:
            embedding: Put in the place of what enters the first block; None for the tokens' own.
        """
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

        with torch.inference_mode(False), torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(note, _same):
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

        hooks: Hooks = [] if embedding is None else [(EMBEDDED, partial(_put, embedding))]
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
    """All rows in batches that the budget holds.

    Args:
        model: Follows TransformerLens' protocol.
        rows: Of any lengths.
        metric: What is differentiated.
        hook_names: Points within the blocks.
        memory_budget: Bytes beside the model's weights; None for the device's default (``engine/budget.py``).

    Raises:
        InputError: The budget does not hold one row.
    """
    for whole in batches(model, rows):
        budget = budget_of(whole.tokens.device, memory_budget)
        needed = DifferentiableRun(model, whole.take([0]), metric, hook_names).graph_bytes()
        if needed > budget:
            raise InputError(
                f"memory budget: the gradients of one row of {whole.length} tokens take {needed:,} bytes, got a budget "
                f"of {budget:,}; give at least the former"
            )
        size = budget // needed
        for start in range(0, len(whole.rows), size):
            batch = whole.take(range(start, min(start + size, len(whole.rows))))
            yield batch, DifferentiableRun(model, batch, metric, hook_names)


def _put(value: Tensor, x: Tensor, *, hook: Any) -> Tensor:
    return value


def _same(x: Tensor) -> Tensor:
    return x
