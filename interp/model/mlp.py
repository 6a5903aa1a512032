"""The MLP, with readable neurons: ``act(x W_in + b_in) W_out + b_out``, or gated by a second product."""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float
from torch import Tensor, nn

from interp.model.biases import add_bias
from interp.model.config import Activation, TransformerConfig
from interp.model.points import HookPoint

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "gelu_new": partial(F.gelu, approximate="tanh"),
    "gelu": F.gelu,
    "relu": F.relu,
    "silu": F.silu,
}
Rows = Float[Tensor, "*rows d_model"]
NeuronRows = Float[Tensor, "*rows d_mlp"]
Linear = Callable[[Tensor, Tensor, Tensor], Tensor]


def affine(x: Rows, weight: Float[Tensor, "d_model d_mlp"], bias: Float[Tensor, " d_mlp"]) -> NeuronRows:
    """``x weight + bias``."""
    return x @ weight + bias


class MLP(nn.Module):
    """Neurons before (``hook_pre``) and after (``hook_post``) the activation: ``[batch pos d_mlp]``."""

    b_in: Tensor
    b_out: Tensor

    def __init__(self, config: TransformerConfig):
        super().__init__()
        biased = "mlp" in config.biases
        self.W_in = nn.Parameter(torch.empty(config.d_model, config.d_mlp))
        add_bias(self, "b_in", (config.d_mlp,), present=biased)
        self.W_out = nn.Parameter(torch.empty(config.d_mlp, config.d_model))
        add_bias(self, "b_out", (config.d_model,), present=biased)
        self.act = ACTIVATIONS[config.act_fn]
        self.hook_pre, self.hook_post = HookPoint(), HookPoint()

    def forward(self, x: Rows) -> Rows:
        post = self.hook_post(self.neurons(self.hook_pre(self.pre(x)), x))
        return post @ self.W_out + self.b_out

    def pre(self, x: Rows, linear: Linear = affine) -> NeuronRows:
        """What the activation is applied to."""
        return linear(x, self.W_in, self.b_in)

    def neurons(self, pre: NeuronRows, x: Rows, linear: Linear = affine) -> NeuronRows:
        """The neurons, from what the activation is applied to and from the input."""
        return self.act(pre)


class GatedMLP(MLP):
    """``(act(x W_gate + b_gate) * (x W_in + b_in)) W_out + b_out`` (Shazeer 2020).

    ``hook_pre`` is the gate's product before the activation, ``hook_pre_linear`` the other factor.
    """

    b_gate: Tensor

    def __init__(self, config: TransformerConfig):
        super().__init__(config)
        self.W_gate = nn.Parameter(torch.empty(config.d_model, config.d_mlp))
        add_bias(self, "b_gate", (config.d_mlp,), present="mlp" in config.biases)
        self.hook_pre_linear = HookPoint()

    def pre(self, x: Rows, linear: Linear = affine) -> NeuronRows:
        """What the activation is applied to."""
        return linear(x, self.W_gate, self.b_gate)

    def neurons(self, pre: NeuronRows, x: Rows, linear: Linear = affine) -> NeuronRows:
        """The neurons, from what the activation is applied to and from the input."""
        return self.act(pre) * self.hook_pre_linear(linear(x, self.W_in, self.b_in))


def make_mlp(config: TransformerConfig) -> MLP:
    """The MLP of a config."""
    return GatedMLP(config) if config.gated else MLP(config)
