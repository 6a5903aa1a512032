"""How well does the model do on an example? One number, above 0 where it is right.

- **Logit difference**: the right minus the wrong answer's logit at the prompt's last position.
- **Sentence log-probability difference**: log-probability in nats of the right minus the wrong
  continuation, each summed over its tokens. What the two sentences share before they differ
  cancels, so this is BLiMP's full-sentence comparison (Warstadt et al. 2020).
- **Accuracy**: the share of examples where the metric is above 0.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from interp.interventions.rows import Batch
from interp.shapes import Logits
from interp.tasks.task import Metric


def row_scores(metric: Metric, logits: Logits, batch: Batch) -> Float[Tensor, " batch"]:
    """What each row adds to its example's metric, before its sign.

    Computed in at least 32-bit floats, whatever the model's.
    """
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    score = _logit_differences if metric == "logit_difference" else _log_probabilities
    return score(logits, batch)


def _logit_differences(logits: Logits, batch: Batch) -> Float[Tensor, " batch"]:
    rows = torch.arange(len(batch.rows), device=logits.device)
    last = logits[:, -1]
    right = torch.tensor([row.encoded.right[0] for row in batch.rows], device=logits.device)
    wrong = torch.tensor([row.encoded.wrong[0] for row in batch.rows], device=logits.device)
    return last[rows, right] - last[rows, wrong]


def _log_probabilities(logits: Logits, batch: Batch) -> Float[Tensor, " batch"]:
    n_scored = torch.tensor([len(row.continuation) for row in batch.rows], device=logits.device)
    longest = int(n_scored.max())
    # Position p predicts token p + 1; only the positions that some row's continuation needs.
    nats = logits[:, -longest - 1 : -1].log_softmax(dim=-1)
    targets = batch.tokens[:, -longest:, None]
    scored = torch.arange(longest, 0, -1, device=logits.device) <= n_scored[:, None]
    return (nats.gather(2, targets).squeeze(2) * scored).sum(dim=1)
