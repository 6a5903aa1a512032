"""What can a memory of fixed size carry from word to word? Elman's network and the LSTM, shallow or deep.

1. Elman (1990): ``h[t] = tanh(W_x x[t] + W_h h[t-1] + b)``, ``h`` before the first token is 0.
2. LSTM (Hochreiter & Schmidhuber 1997; with Gers et al.'s forget gate of 2000): three gates decide what a cell keeps,
   takes up and shows. Its forget gate begins open, with a bias of 1 (Jozefowicz et al. 2015).
3. A deep network reads the states of the layer below as if they were its tokens (Graves 2013).

The state at a position depends on this token and those before it, never on later ones. The layers are ``torch.nn``'s.
A row of ``pos`` tokens costs ``O(pos d_model^2)``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import nn

from interp.baselines.configs import require_choice
from interp.baselines.neural import NeuralConfig, NeuralForerunner
from interp.model.hooks import HookPoint
from interp.shapes import PaddingMask, Residual

Cell = Literal["elman", "lstm"]
MEMORIES: dict[str, type[nn.RNN] | type[nn.LSTM]] = {"elman": nn.RNN, "lstm": nn.LSTM}


@dataclass(frozen=True)
class RecurrentConfig(NeuralConfig):
    """What a recurrent network is made of; see ``NeuralConfig`` for the rest.

    Attributes:
        cell: ``elman`` or ``lstm``.

    Raises:
        ConfigError: A value describes no model.
    """

    cell: Cell = "lstm"

    @classmethod
    def check(cls, fields: Mapping[str, Any]) -> None:
        """Refuse values that describe no model.

        Raises:
            ConfigError: It says which.
        """
        super().check(fields)
        require_choice("cell", fields.get("cell", "lstm"), get_args(Cell))


class RecurrentLayer(nn.Module):
    """One recurrent layer; ``hook_state`` is its state ``[batch pos d_model]``.

    A hook there changes what is read of the state, by the next layer or the unembedding, not what the layer remembers.
    """

    def __init__(self, cell: Cell, d_model: int):
        super().__init__()
        self.memory = MEMORIES[cell](d_model, d_model, batch_first=True)
        self.hook_state = HookPoint()
        if cell == "lstm":
            with torch.no_grad():  # in torch's order: input, forget, cell, output
                self.memory.get_parameter("bias_ih_l0")[d_model : 2 * d_model] = 1.0
                self.memory.get_parameter("bias_hh_l0")[d_model : 2 * d_model] = 0.0

    def forward(self, x: Residual) -> Residual:
        """The states of all positions."""
        return self.hook_state(self.memory(x)[0])


class Recurrent(NeuralForerunner):
    """``embed -> layers -> unembed``: an Elman network or an LSTM, deep where it has several layers.

    Points: ``hook_embed`` and ``layers.{l}.hook_state``.
    """

    config: RecurrentConfig

    def make_layers(self) -> None:
        """Make the layers."""
        config = self.config
        self.layers = nn.Sequential(*(RecurrentLayer(config.cell, config.d_model) for _ in range(config.n_layers)))

    def states(self, x: Residual, mask: PaddingMask) -> Residual:
        """The states of the last layer; padding on the right cannot change those before it."""
        return self.layers(x)
