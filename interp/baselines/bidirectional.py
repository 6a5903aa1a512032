"""How well is a word predicted from both of its sides? A forward and a backward LSTM (Schuster & Paliwal 1997).

The logits at position ``t`` predict token ``t + 1``, as every model's do, but from more:

1. the forward state at ``t``, which has read the tokens up to ``t``;
2. the backward state at ``t + 2``, which has read the tokens from the last one down to ``t + 2``; 0 where there are
   none, as at the last two positions.
3. ``x = tanh(W [forward; backward] + b)``, and ``logits = x @ W_U + b_U``.

Token ``t + 1`` is in neither state. For that, the two directions must not meet below the top: a second layer that reads
both, as ``torch.nn.LSTM(bidirectional=True)`` has, would carry each token to where it is predicted (so ELMo keeps them
apart; Peters et al. 2018).

**It sees the right context.** So it is no language model in the sense of the chain rule: its summed log-probabilities
are a pseudo-log-likelihood (Salazar et al. 2020), and cannot be compared with another model's perplexity. At the last
position of a prompt nothing stands on the right, so there it answers from the same tokens as every other model.
"""

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Int
from torch import Tensor, nn

from interp.baselines.neural import NeuralForerunner
from interp.baselines.recurrent import RecurrentConfig, RecurrentLayer
from interp.model.hooks import HookPoint
from interp.shapes import PaddingMask, Residual


class Bidirectional(NeuralForerunner):
    """Predicts each token from those on its left and those on its right, never from itself.

    Points: ``hook_embed``, ``forwards.{l}.hook_state``, ``backwards.{l}.hook_state`` (in reading order: the last token
    first) and ``hook_right``, the backward state that each position reads.
    """

    config: RecurrentConfig

    def make_layers(self) -> None:
        """Make the layers of both directions, and what joins them."""
        config = self.config
        self.forwards, self.backwards = (
            nn.Sequential(*(RecurrentLayer(config.cell, config.d_model) for _ in range(config.n_layers)))
            for _ in range(2)
        )
        self.hook_right = HookPoint()
        self.join = nn.Linear(2 * config.d_model, config.d_model)

    def states(self, x: Residual, mask: PaddingMask) -> Residual:
        """What each position knows of the next token: all tokens but that one."""
        right = self.hook_right(self._right(x, mask))
        return self.join(torch.cat([self.forwards(x), right], dim=-1)).tanh()

    def _right(self, x: Residual, mask: PaddingMask) -> Residual:
        """At each position, the backward state two positions further on."""
        order = reading_backwards(mask)[..., None].expand_as(x)
        backward = self.backwards(x.gather(1, order)).gather(1, order)
        return F.pad(backward.masked_fill(~mask[..., None], 0.0), (0, 0, 0, 2))[:, 2:]


def reading_backwards(mask: PaddingMask) -> Int[Tensor, "batch pos"]:
    """The order that reads each row's real tokens from the last to the first, and then its padding.

    Taken twice, it gives the row back.
    """
    n, positions = mask.sum(-1, keepdim=True), torch.arange(mask.shape[1], device=mask.device)
    return torch.where(positions < n, n - 1 - positions, positions)
