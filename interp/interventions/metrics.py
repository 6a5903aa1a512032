"""How well does the model do on an example? One number for each, read off the last logits.

- **Logit difference**: the right minus the wrong answer's logit at the prompt's last position.
- **Sentence log-probability difference**: log-probability in nats of the right minus the wrong
  continuation, each summed over its tokens. What the two sentences share before they differ
  cancels, so this is BLiMP's full-sentence comparison (Warstadt et al. 2020).
- **Probability**: of the right answer at the prompt's last position.
- **KL divergence**: ``sum p_base (log p_base - log p)`` in nats at the prompt's last position: 0 for
  the base run, and larger the more an intervention changes what the model predicts, whatever the answers.
- **Accuracy**: 1 where the task's own metric is above 0.

Every metric but the last also has a *margin*, above 0 where the example is answered right.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from interp.errors import InputError, suggest
from interp.interventions.rows import Batch

MetricName = Literal["logit_difference", "sentence_log_probability", "probability", "kl_divergence", "accuracy"]
AnswerLogits = Float[Tensor, "batch answer_pos d_vocab"]


@dataclass(frozen=True)
class Answers:
    """What is read of the logits of some rows of a batch.

    Attributes:
        positions: The token positions whose logits are read.
        right: The right answer's first token; -1 where an answer has several.
        wrong: Likewise the wrong answer's.
        targets: The tokens that `positions` predict, where a continuation is scored.
        scored: Which of them belong to the row's continuation.
    """

    positions: range
    right: Int[Tensor, " batch"]
    wrong: Int[Tensor, " batch"]
    targets: Int[Tensor, "batch answer_pos"]
    scored: Bool[Tensor, "batch answer_pos"]

    @classmethod
    def of(cls, metric: MetricName, batch: Batch) -> "Answers":
        """What `metric` reads of `batch`: the last position, or those that predict the longest continuation."""
        device, last = batch.tokens.device, batch.deciding
        single = [len(row.encoded.right) == len(row.encoded.wrong) == 1 for row in batch.rows]
        right = [row.encoded.right[0] if one else -1 for row, one in zip(batch.rows, single, strict=True)]
        wrong = [row.encoded.wrong[0] if one else -1 for row, one in zip(batch.rows, single, strict=True)]
        n_scored = torch.tensor([len(row.continuation) for row in batch.rows], device=device)
        longest = int(n_scored.max()) if metric == "sentence_log_probability" else 0
        positions = range(last - longest, last) if longest else range(last, last + 1)
        return cls(
            positions,
            torch.tensor(right, device=device),
            torch.tensor(wrong, device=device),
            batch.tokens[:, last + 1 - longest : last + 1],
            torch.arange(longest, 0, -1, device=device) <= n_scored[:, None],
        )

    def take(self, index: Int[Tensor, " row"]) -> "Answers":
        """Those of some rows, in this order and as often as they are named."""
        return Answers(self.positions, self.right[index], self.wrong[index], self.targets[index], self.scored[index])


@dataclass(frozen=True)
class Scores:
    """What each row adds to its example, before its sign: to the metric, and to the margin."""

    value: Float[Tensor, " batch"]
    margin: Float[Tensor, " batch"]


def check_metric(metric: str) -> None:
    """Refuse what is no metric.

    Raises:
        InputError: It says which are nearest.
    """
    if metric not in get_args(MetricName):
        raise InputError(f"no metric is called {metric!r}; {suggest(str(metric), get_args(MetricName))}")


def score(
    metric: MetricName,
    logits: AnswerLogits,
    answers: Answers,
    base: Float[Tensor, "batch d_vocab"] | None = None,
) -> Scores:
    """Score the logits at the answers' positions, in at least 32-bit floats, whatever the model's.

    Args:
        metric: What to measure.
        logits: At ``answers.positions``.
        answers: What to read.
        base: For a KL divergence, the base run's log-probabilities at the last position.
    """
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if metric == "sentence_log_probability":
        nats = logits.log_softmax(-1).gather(2, answers.targets[..., None]).squeeze(2)
        total = (nats * answers.scored).sum(1)
        return Scores(total, total)
    last = logits[:, -1]
    margin = _difference(last, answers)
    if metric == "logit_difference":
        return Scores(margin, margin)
    log_p = last.log_softmax(-1)
    if metric == "probability":
        return Scores(log_p.gather(1, answers.right[:, None]).squeeze(1).exp(), margin)
    if base is None:
        raise InputError("a KL divergence needs the base run's log-probabilities, got none")
    return Scores((base.exp() * (base - log_p)).sum(-1), margin)


def _difference(last: Float[Tensor, "batch d_vocab"], answers: Answers) -> Float[Tensor, " batch"]:
    """Right minus wrong logit; NaN where an answer has several tokens."""
    known = answers.right >= 0
    right, wrong = (last.gather(1, each.clamp(min=0)[:, None]).squeeze(1) for each in (answers.right, answers.wrong))
    return torch.where(known, right - wrong, torch.nan)
