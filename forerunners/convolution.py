"""What can be told from a window of words? A causal convolutional language model, the third kind of sequence model.

1. Layer ``l`` looks at ``kernel_size`` positions, ``2^l`` apart, none of them later: its rows are padded on the left.
2. It adds a gated linear unit of what it sees, ``x + a * sigmoid(g)`` where ``[a, g] = conv(x)`` (Dauphin et al. 2017);
   the dilation makes the window grow exponentially with depth (Bai et al. 2018).

The top sees ``1 + (kernel_size - 1) (2^n_layers - 1)`` tokens, and nothing before them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch.nn.functional as F  # noqa: N812
from torch import nn

from forerunners.language_model import NeuralConfig, NeuralForerunner
from interp.errors import ConfigError, shown
from interp.model.config import require_count
from interp.model.hooks import HookPoint
from interp.shapes import PaddingMask, Residual

WIDEST = 2**24
"""Tokens that a prediction may depend on: each row is padded to as many."""


@dataclass(frozen=True)
class ConvolutionConfig(NeuralConfig):
    """What a convolutional network is made of; see ``NeuralConfig`` for the rest.

    Attributes:
        kernel_size: Positions that one layer looks at.

    Raises:
        ConfigError: A value describes no model.
    """

    kernel_size: int = 3

    @classmethod
    def check(cls, fields: Mapping[str, Any]) -> None:
        """Refuse values that describe no model.

        Raises:
            ConfigError: It says which.
        """
        super().check(fields)
        size, layers = fields.get("kernel_size", 3), fields["n_layers"]
        require_count("kernel_size", size)
        if (size - 1) * 2 ** min(layers, 64) > WIDEST:
            raise ConfigError(
                f"n_layers: each layer looks twice as far as the one below, expected at most {WIDEST:,} tokens in "
                f"sight, got {shown(layers)} layers with kernel_size={shown(size)}; take fewer"
            )

    @property
    def window(self) -> int:
        """How many tokens a prediction can depend on."""
        return 1 + (self.kernel_size - 1) * (2**self.n_layers - 1)


class GatedConvolution(nn.Module):
    """``x + a * sigmoid(g)``, ``[a, g] = conv(x)``; ``hook_state`` is the sum ``[batch pos d_model]``."""

    def __init__(self, d_model: int, kernel_size: int, dilation: int):
        super().__init__()
        self.convolution = nn.Conv1d(d_model, 2 * d_model, kernel_size, dilation=dilation)
        self.hook_state = HookPoint()
        self._before = (kernel_size - 1) * dilation

    def forward(self, x: Residual) -> Residual:
        """The states of all positions, each from those up to it."""
        seen = F.pad(x.transpose(1, 2), (self._before, 0))
        return self.hook_state(x + F.glu(self.convolution(seen), dim=1).transpose(1, 2))


class Convolution(NeuralForerunner):
    """``embed -> layers -> unembed``, where the layers are gated causal convolutions.

    Points: ``hook_embed`` and ``layers.{l}.hook_state``.
    """

    config: ConvolutionConfig

    def make_layers(self) -> None:
        """Make the layers, each with twice the dilation of the one below."""
        config = self.config
        layers = (GatedConvolution(config.d_model, config.kernel_size, 2**layer) for layer in range(config.n_layers))
        self.layers = nn.Sequential(*layers)

    def states(self, x: Residual, mask: PaddingMask) -> Residual:
        """The states of the last layer; padding on the right cannot change those before it."""
        return self.layers(x)
