"""What does the metric say of a final residual stream? Only the columns that it needs are computed."""

import torch
from jaxtyping import Float
from torch import Tensor

from interp.interventions.metrics import Answers, MetricName, Scores, score
from interp.model.transformer import HookedTransformer

FinalStream = Float[Tensor, "row answer_pos d_model"]


class Readout:
    """A metric on the residual stream that leaves the last block, at the answers' positions."""

    def __init__(self, model: HookedTransformer, metric: MetricName):
        self._model, self._metric = model, metric
        self._base_log_p: Float[Tensor, "row d_vocab"] | None = None

    def keep_base(self, stream: FinalStream, answers: Answers) -> Scores:
        """The scores of the base run; for a KL divergence its predictions are kept."""
        if self._metric == "kl_divergence":
            logits = self._model.unembed(self._model.ln_final(stream[:, -1:]))[:, 0]
            self._base_log_p = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-1)
        return self.scores(stream, answers, torch.arange(len(stream), device=stream.device))

    def scores(self, stream: FinalStream, answers: Answers, rows: Tensor) -> Scores:
        """Scores of streams that belong to `rows` of the batch; `answers` are the rows' own."""
        normalised = self._model.ln_final(stream)
        if self._metric == "logit_difference":
            return self._two_columns(normalised[:, -1], answers)
        base = None if self._base_log_p is None else self._base_log_p[rows]
        return score(self._metric, self._model.unembed(normalised), answers, base)

    def _two_columns(self, last: Float[Tensor, "row d_model"], answers: Answers) -> Scores:
        """The logit difference from the two columns of the unembedding."""
        wide = torch.promote_types(last.dtype, torch.float32)
        ids = torch.stack([answers.right, answers.wrong], dim=1)
        columns = self._model.W_U.T[ids]
        logits = torch.einsum("nad,nd->na", columns, last) + self._model.b_U[ids]
        difference = logits[:, 0].to(wide) - logits[:, 1].to(wide)
        return Scores(difference, difference)
