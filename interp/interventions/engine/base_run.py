"""The batch without interventions: run once, and every cell starts from it."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from interp.interventions.metrics import COLUMNS_ALONE, Answers, AnyMetric, RowScores, Scores, score
from interp.interventions.rows import Batch
from interp.model.positions import Places
from interp.model.sites import Site
from interp.model.transformer import HookedTransformer
from interp.residual.collecting import read

FinalStream = Float[Tensor, "row answer_pos d_model"]
ALWAYS = ("resid_pre", "q", "k", "v")
OFFLOADED_TO = {"cuda": torch.device("cpu")}
"""Where activations wait that a device has no room for, by its type."""


class BaseRun:
    """Activations of a batch from some layer on, and its scores.

    ``final`` is the stream that leaves the last block, at the positions of ``answers``, which the metric reads.
    """

    def __init__(
        self,
        model: HookedTransformer,
        batch: Batch,
        metric: AnyMetric,
        first_layer: int,
        extra: Iterable[Site],
        *,
        offloaded: bool = False,
    ):
        """Keep what ``ALWAYS`` names from `first_layer` on, and `extra`; offloaded, one layer is on the device."""
        self.model, self.batch, self._metric = model, batch, metric
        n_layers, self._last = model.config.n_layers, list(model.blocks)[-1]
        sites = {Site(name, layer) for name in ALWAYS for layer in range(first_layer, n_layers)}
        last = Site("resid_post", n_layers - 1)
        self._device = batch.tokens.device
        stand = torch.arange(batch.length, device=self._device)[None]
        every = Places(stand, stand, None, model.config.causal)
        self.places = replace(every, mask=every.allowed(), causal=False) if every.causal else every  # of each row
        away = OFFLOADED_TO[self._device.type] if offloaded else None
        self._kept = read(model, batch.tokens, [each.hook_name for each in {*sites, *extra, last}], away)
        self._layer, self._here = 0, dict[str, Tensor]()
        self.answers = Answers.of(metric, batch)
        positions = self.answers.positions
        self.final: Float[Tensor, "batch answer_pos d_model"] = self._last.after_mlp_norm(
            self.at("resid_post", n_layers - 1)[:, positions.start : positions.stop]
        )
        self._base_log_p: Float[Tensor, "row d_vocab"] | None = None
        if metric == "kl_divergence":
            logits = model.unembed(model.ln_final(self.final[:, -1:]))[:, 0]
            self._base_log_p = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-1)
        self._scores = self.scores(self.final)

    def at(self, name: str, layer: int) -> Float[Tensor, "batch pos ..."]:
        """The activation at a site."""
        if layer != self._layer:
            self._layer, self._here = layer, {}
        if name not in self._here:
            self._here[name] = self._kept[Site(name, layer).hook_name].to(self._device, non_blocking=True)
        return self._here[name]

    def row_scores(self) -> RowScores:
        """The scores without interventions."""
        return self._row_scores

    @cached_property
    def _row_scores(self) -> RowScores:
        return RowScores.of(self._scores)

    @torch.inference_mode()
    def source_scores(self) -> RowScores:
        """The scores where the rows' sources are run, with the rows' own answers."""
        name = Site("resid_post", self.model.config.n_layers - 1).hook_name
        stream = read(self.model, self.batch.source_tokens, [name])[name]
        # Both end alike, whatever their lengths.
        positions, longer = self.answers.positions, stream.shape[1] - self.batch.length
        at_end = self._last.after_mlp_norm(stream[:, positions.start + longer : positions.stop + longer])
        return RowScores.of(self.scores(at_end))

    def scores(self, stream: FinalStream, rows: Int[Tensor, " row"] | None = None) -> Scores:
        """Scores of streams that leave the last block, of `rows` of the batch, or of all.

        Only the columns of the unembedding that the metric needs are computed.
        """
        answers = self.answers if rows is None else self.answers.take(rows)
        normalised = self.model.ln_final(stream)
        if self._metric in COLUMNS_ALONE:
            return self._from_columns(normalised[:, -1], answers)
        base = self._base_log_p if rows is None or self._base_log_p is None else self._base_log_p[rows]
        return score(self._metric, self.model.unembed(normalised), answers, base)

    def _from_columns(self, last: Float[Tensor, "row d_model"], answers: Answers) -> Scores:
        """The score from the answers' columns of the unembedding: each row's two, or those of all rows' sets."""
        ids = torch.cat([answers.right, answers.wrong], dim=1)
        if ids.shape[1] == 2:
            columns = self.model.W_U.T[ids]
            logits = torch.einsum("nad,nd->na", columns, last) + self.model.b_U[ids]
            at = torch.arange(2, device=ids.device).expand_as(ids)
        else:
            logits = last @ self.model.W_U[:, answers.ids] + self.model.b_U[answers.ids]
            at = torch.searchsorted(answers.ids, ids).where(ids >= 0, -1)
        logits = self.model.unembed.capped(logits)
        n_right = answers.right.shape[1]
        found = replace(answers, right=at[:, :n_right], wrong=at[:, n_right:])
        return score(self._metric, logits[:, None], found)
