"""What does the batch do without interventions? Run once; every cell starts from it."""

from collections.abc import Iterable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from interp.interventions.engine.readout import Readout
from interp.interventions.measured import as_numbers
from interp.interventions.metrics import Answers, MetricName, Scores
from interp.interventions.reference import RowScores
from interp.interventions.rows import Batch
from interp.model.sites import Site
from interp.model.transformer import HookedTransformer
from interp.residual.activations import read

ALWAYS = ("resid_pre", "q", "k", "v")
OFFLOADED_TO = {"cuda": torch.device("cpu")}
"""Where activations wait that a device has no room for, by its type."""


class BaseRun:
    """Activations of a batch from some layer on, and its scores.

    Attributes:
        model: What is run.
        batch: On what.
        answers: What the metric reads.
        scores: Without interventions.
    """

    def __init__(
        self,
        model: HookedTransformer,
        batch: Batch,
        metric: MetricName,
        first_layer: int,
        extra: Iterable[Site],
        *,
        offloaded: bool = False,
    ):
        """Run the batch and keep what cells start from.

        Args:
            model: What is run.
            batch: On what.
            metric: What is measured.
            first_layer: The first layer that a cell changes.
            extra: Activations to keep besides those in ``ALWAYS``.
            offloaded: Whether they wait elsewhere, but those of the layer that is being computed.
        """
        self.model, self.batch = model, batch
        n_layers, self._last = model.config.n_layers, list(model.blocks)[-1]
        sites = {Site(name, layer) for name in ALWAYS for layer in range(first_layer, n_layers)}
        last = Site("resid_post", n_layers - 1)
        device = batch.tokens.device
        self._device, away = device, OFFLOADED_TO[device.type] if offloaded else None
        self._kept = read(model, batch.tokens, [each.hook_name for each in {*sites, *extra, last}], away)
        self._layer, self._here = 0, dict[str, Tensor]()
        self.answers = Answers.of(metric, batch)
        positions = self.answers.positions
        self.final: Float[Tensor, "batch answer_pos d_model"] = self._last.left(
            self.at("resid_post", n_layers - 1)[:, positions.start : positions.stop]
        )
        self.readout = Readout(model, metric)
        self.scores: Scores = self.readout.keep_base(self.final, self.answers)

    def at(self, name: str, layer: int) -> Float[Tensor, "batch pos ..."]:
        """The activation at a site."""
        if layer != self._layer:
            self._layer, self._here = layer, {}
        if name not in self._here:
            self._here[name] = self._kept[Site(name, layer).hook_name].to(self._device)
        return self._here[name]

    def tokens_of(self, name: str, layer: int, rows: Tensor, positions: Tensor) -> Float[Tensor, "_ ..."]:
        """The activation at a site, token by token."""
        return self.at(name, layer)[rows, positions]

    def row_scores(self) -> RowScores:
        """The scores without interventions."""
        return _unchanged(self.scores)

    def source_scores(self) -> RowScores:
        """The scores where the rows' sources are run, with the rows' own answers."""
        layer = self.model.config.n_layers - 1
        name = Site("resid_post", layer).hook_name
        stream = read(self.model, self.batch.source_tokens, [name])[name]
        # Both end alike, whatever their lengths.
        positions, longer = self.answers.positions, stream.shape[1] - self.batch.length
        at_end = self._last.left(stream[:, positions.start + longer : positions.stop + longer])
        return _unchanged(self.readout.scores(at_end, self.answers, torch.arange(len(stream), device=stream.device)))


def _unchanged(scores: Scores) -> RowScores:
    nothing = np.zeros(len(scores.value))
    margin = scores.margin.double().cpu().numpy()
    return RowScores(as_numbers(scores.value), margin, nothing, nothing.astype(np.int64))
