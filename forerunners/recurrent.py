"""What can a memory of fixed size carry from word to word? Elman's network and LSTMs: shallow, deep, bidirectional.

1. Elman (1990): ``h[t] = tanh(W_x x[t] + W_h h[t-1] + b)``, ``h`` before the first token is 0.
2. LSTM (Hochreiter & Schmidhuber 1997; with Gers et al.'s forget gate of 2000): three gates decide what a cell keeps,
   takes up and shows. Its forget gate begins open, with a bias of 1 (Jozefowicz et al. 2015).
3. LSTM with peepholes (Gers & Schmidhuber 2000; Graves et al. 2013): the gates read the cell, too (``PeepholeLSTM``).
4. A deep network reads the states of the layer below as if they were its tokens (Graves 2013).
5. ``Bidirectional`` (Schuster & Paliwal 1997) reads both sides of the word that it predicts.

In 1 to 4 the state at a position depends on this token and those before it, never on later ones. A row of ``pos``
tokens costs ``O(pos d_model^2)``. The layers of 1 and 2 are ``torch.nn``'s, which has none with peepholes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Int
from torch import Tensor, nn

from forerunners.language_model import NeuralConfig, NeuralForerunner, require_choice
from interp.model.hooks import HookPoint
from interp.shapes import PaddingMask, Residual

Cell = Literal["elman", "lstm", "peephole"]


@dataclass(frozen=True)
class RecurrentConfig(NeuralConfig):
    """What a recurrent network is made of; see ``NeuralConfig`` for the rest.

    Attributes:
        cell: ``elman``, ``lstm``, or ``peephole`` for an LSTM whose gates read the cell.

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


class PeepholeLSTM(nn.Module):
    """An LSTM whose gates read the cell through diagonal weights ``w``, as Graves et al. (2013) write it.

    1. ``i[t] = sigmoid(W_x[i] x[t] + W_h[i] h[t-1] + w[i] * c[t-1] + b[i])``
    2. ``f[t] = sigmoid(W_x[f] x[t] + W_h[f] h[t-1] + w[f] * c[t-1] + b[f])``
    3. ``c[t] = f[t] * c[t-1] + i[t] * tanh(W_x[c] x[t] + W_h[c] h[t-1] + b[c])``
    4. ``o[t] = sigmoid(W_x[o] x[t] + W_h[o] h[t-1] + w[o] * c[t] + b[o])``: it reads the new cell.
    5. ``h[t] = o[t] * tanh(c[t])``

    ``W_x``, ``W_h`` and ``b`` hold i, f, c and o in torch's order (``[4 * d_model ...]``), ``w`` holds i, f and o.
    With ``w = 0`` it is ``torch.nn.LSTM``.

    Points: ``hook_cell`` and ``hook_output_gate`` ``[batch pos d_model]``. A hook there changes what step 5 reads, not
    what the layer remembers.
    """

    def __init__(self, d_model: int):
        super().__init__()
        self.W_x, self.W_h = (nn.Parameter(_uniform(d_model, 4 * d_model, d_model)) for _ in range(2))
        self.b, self.w = nn.Parameter(_uniform(d_model, 4 * d_model)), nn.Parameter(_uniform(d_model, 3, d_model))
        with torch.no_grad():
            self.b[d_model : 2 * d_model] = 1.0
        self.hook_cell, self.hook_output_gate = HookPoint(), HookPoint()

    def forward(self, x: Residual) -> tuple[Residual, tuple[Tensor, Tensor]]:
        """The states of all positions, and the last state and cell."""
        state = cell = x.new_zeros(len(x), x.shape[-1])
        w_i, w_f, w_o = self.w
        cells, gates = [], []
        for read in (x @ self.W_x.T + self.b).unbind(1):
            i, f, new, o = (read + state @ self.W_h.T).chunk(4, dim=-1)
            i, f = (i + w_i * cell).sigmoid(), (f + w_f * cell).sigmoid()
            cell = f * cell + i * new.tanh()
            o = (o + w_o * cell).sigmoid()
            state = o * cell.tanh()
            cells.append(cell)
            gates.append(o)
        shown = self.hook_output_gate(torch.stack(gates, 1)) * self.hook_cell(torch.stack(cells, 1)).tanh()
        return shown, (state, cell)


def _uniform(d_model: int, *shape: int) -> Tensor:
    """Drawn as ``torch.nn.LSTM`` draws its weights."""
    return torch.empty(shape).uniform_(-(d_model**-0.5), d_model**-0.5)


class RecurrentLayer(nn.Module):
    """One recurrent layer; ``hook_state`` is its state ``[batch pos d_model]``.

    A hook there changes what is read of the state, by the next layer or the unembedding, not what the layer remembers.
    """

    def __init__(self, cell: Cell, d_model: int):
        super().__init__()
        if cell == "peephole":
            self.memory: nn.Module = PeepholeLSTM(d_model)
        else:
            self.memory = (nn.LSTM if cell == "lstm" else nn.RNN)(d_model, d_model, batch_first=True)
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

    Points: ``hook_embed`` and ``layers.{l}.hook_state``; with peepholes also those of ``layers.{l}.memory``.
    """

    config: RecurrentConfig

    def make_layers(self) -> None:
        """Make the layers."""
        config = self.config
        self.layers = nn.Sequential(*(RecurrentLayer(config.cell, config.d_model) for _ in range(config.n_layers)))

    def states(self, x: Residual, mask: PaddingMask) -> Residual:
        """The states of the last layer; padding on the right cannot change those before it."""
        return self.layers(x)


class Bidirectional(NeuralForerunner):
    """Predicts each token from those on its left and those on its right, never from itself: two LSTMs.

    The logits at position ``t`` predict token ``t + 1``, as every model's do, but from more:

    1. the forward state at ``t``, which has read the tokens up to ``t``;
    2. the backward state at ``t + 2``, which has read the tokens from the last one down to ``t + 2``; 0 where there
       are none, as at the last two positions.
    3. ``x = tanh(W [forward; backward] + b)``, and ``logits = x @ W_U + b_U``.

    Token ``t + 1`` is in neither state. For that, the two directions must not meet below the top: a second layer that
    reads both, as ``torch.nn.LSTM(bidirectional=True)`` has, would carry each token to where it is predicted (so ELMo
    keeps them apart; Peters et al. 2018).

    It sees the right context, so it is no language model in the sense of the chain rule: its summed log-probabilities
    are a pseudo-log-likelihood (Salazar et al. 2020), and cannot be compared with another model's perplexity. At the
    last position of a prompt nothing stands on the right: there it answers from the same tokens as any other model.

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
