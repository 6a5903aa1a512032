"""What does a head write to the logit difference by itself? Its direct effect, with nothing after it run anew.

``d = (z' - z) W_O``, at the position that predicts, is added to the last residual stream ``x``. The last LayerNorm
either keeps its scale ``s(x)``, and is then linear: ``(d - mean(d)) / s(x) * w @ (W_U[right] - W_U[wrong])``, the
change of the head's direct logit attribution; or it takes the scale of ``x + d``, as along the direct path of path
patching.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from interp.interventions.engine.budget import rows_in_one_run
from interp.interventions.measured import as_numbers
from interp.interventions.metrics import Answers
from interp.interventions.replacement import Replacement
from interp.interventions.rows import Batch, batches, task_rows
from interp.methods.components import Component, sites_of
from interp.model.sites import Site
from interp.model.transformer import HookedTransformer
from interp.residual.activations import read
from interp.tasks.task import Task


def direct_effects(
    model: HookedTransformer,
    task: Task,
    heads: Sequence[Component],
    replacement: Replacement,
    memory_budget: int | None = None,
) -> pd.DataFrame:
    """The direct effect of every head on every example, averaged over the replacement's draws.

    Args:
        model: One of ours.
        task: Whose prompts are run; its answers are single tokens.
        heads: Components of one head each.
        replacement: What takes the place of their ``z``.
        memory_budget: Bytes that are held while the prompts are run; None for the device's default.

    Returns:
        One row per head and example: ``layer``, ``head``, ``example``, ``direct`` (the scale frozen) and
        ``direct_renormalised`` (the scale taken anew), in logits.
    """
    last = Site("resid_post", model.config.n_layers - 1)
    sites, rows = [*sites_of(heads), last], task_rows("logit_difference", task.units)
    names = [site.hook_name for site in sites]
    blocks, parts = list(model.blocks), []
    for batch in batches(model, rows, size=rows_in_one_run(model, rows, sites, memory_budget)):
        kept = read(model, batch.tokens, names)
        ends = Ends.of(model, batch, kept[last.hook_name][:, batch.deciding])
        for each in heads:
            (part,) = each.parts
            layer, (head,) = part.site.layer or 0, part.heads or ()
            writes = blocks[layer].attn.W_O[head]
            old = kept[part.site.hook_name][:, batch.deciding, head]
            frozen, anew = ends.averaged((new - old) @ writes for new in _values(replacement, part.site, head, batch))
            labels = {"layer": layer, "head": head, "example": batch.examples}
            parts.append(pd.DataFrame({**labels, "direct": frozen, "direct_renormalised": anew}))
    return pd.concat(parts, ignore_index=True)


def _values(replacement: Replacement, site: Site, head: int, batch: Batch) -> Iterator[Float[Tensor, "#batch d_head"]]:
    """What takes the place of a head's ``z`` at the deciding position, draw by draw."""
    for draw in range(replacement.draws):
        values = replacement.values(site, batch, draw)
        at = batch.deciding if values.shape[1] > 1 else 0
        yield values[:, at, head if values.shape[2] > 1 else 0]


@dataclass(frozen=True)
class Ends:
    """From the last residual stream to the logit difference, on some prompts.

    Attributes:
        model: Whose last LayerNorm and unembedding these are.
        stream: What the prompts' last position holds.
        direction: The unembedding's right minus wrong column, prompt by prompt.
    """

    model: HookedTransformer
    stream: Float[Tensor, "batch d_model"]
    direction: Float[Tensor, "batch d_model"]

    @classmethod
    def of(cls, model: HookedTransformer, batch: Batch, stream: Float[Tensor, "batch d_model"]) -> "Ends":
        """Those of a batch of prompts."""
        answers = Answers.of("logit_difference", batch)
        columns = model.W_U.detach().T
        return cls(model, _wide(stream), _wide(columns[answers.right]) - _wide(columns[answers.wrong]))

    @torch.inference_mode()
    def averaged(
        self, added: Iterator[Float[Tensor, "batch d_model"]]
    ) -> tuple[Float[np.ndarray, " batch"], Float[np.ndarray, " batch"]]:
        """The change of the logit difference by each of `added`, averaged: with the scale frozen, and taken anew."""
        scale = self.model.ln_final.scale(self.stream)
        base = self._read(self.stream, scale)
        frozen, anew = [], []
        for each in added:
            moved = self.stream + _wide(each)
            frozen.append(self._read(moved, scale) - base)
            anew.append(self._read(moved, self.model.ln_final.scale(moved)) - base)
        return as_numbers(torch.stack(frozen).mean(0)), as_numbers(torch.stack(anew).mean(0))

    def _read(self, x: Float[Tensor, "batch d_model"], scale: Float[Tensor, "batch 1"]) -> Float[Tensor, " batch"]:
        """The logit difference but for what does not depend on the stream."""
        return (self.model.ln_final.share(x, scale) * self.direction).sum(-1)


def _wide(tensor: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """In 64-bit floats: the effects are small differences of large sums."""
    return tensor.double()
