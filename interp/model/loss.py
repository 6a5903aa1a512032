"""How badly was each next token predicted? Cross-entropy in nats, over the real tokens only."""

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Bool, Float
from torch import Tensor

from interp.errors import InputError
from interp.shapes import Logits, PaddingMask, Tokens

IGNORED = -100


def next_token_loss(logits: Logits, tokens: Tokens, mask: PaddingMask) -> Float[Tensor, ""]:
    """Mean cross-entropy in nats of each real token given those before it.

    Half-precision logits are taken to float32 first.

    Raises:
        InputError: No real token follows another one, so that there is nothing to predict.
    """
    real = _predicted(mask)
    targets = F.pad(tokens[:, 1:].masked_fill(~real, IGNORED), (0, 1), value=IGNORED)
    return F.cross_entropy(_wide(logits).flatten(0, 1), targets.flatten(), ignore_index=IGNORED)


def next_token_losses(logits: Logits, tokens: Tokens, mask: PaddingMask) -> Float[Tensor, "batch _"]:
    """Cross-entropy in nats of each token but the first, ``[batch pos - 1]``; NaN where there is padding.

    Raises:
        InputError: No real token follows another one, so that there is nothing to predict.
    """
    real = _predicted(mask)
    losses = F.cross_entropy(_wide(logits)[:, :-1].transpose(1, 2), tokens[:, 1:], reduction="none")
    return losses.masked_fill(~real, torch.nan)


def _predicted(mask: PaddingMask) -> Bool[Tensor, "batch _"]:
    """Which tokens but the first are real and follow a real one."""
    real = mask[:, 1:] & mask[:, :-1]
    if not real.any():
        raise InputError("loss: expected a prompt of at least two tokens, got none; there is no next token to predict")
    return real


def _wide(logits: Logits) -> Logits:
    return logits.to(torch.promote_types(logits.dtype, torch.float32))
