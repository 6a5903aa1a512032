"""Norms, the MLP, and biases that a model has or has not.

LayerNorm (Ba et al. 2016) and RMSNorm (Zhang & Sennrich 2019), each with a readable scale. The MLP has readable
neurons: ``act(x W_in + b_in) W_out + b_out``, or gated by a second product (Shazeer 2020).
"""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float
from torch import Tensor, nn

from interp.model.config import Activation, Normalization, TransformerConfig
from interp.model.hooks import HookPoint

Rows = Float[Tensor, "*rows d_model"]
NeuronRows = Float[Tensor, "*rows d_mlp"]
Linear = Callable[[Tensor, Tensor, Tensor], Tensor]


def add_bias(module: nn.Module, name: str, shape: tuple[int, ...], *, present: bool) -> None:
    """Give `module` a bias called `name`, which is 0 at first: a parameter, or a constant where the model has none.

    So whoever reads a bias need not ask whether there is one.
    """
    if present:
        module.register_parameter(name, nn.Parameter(torch.zeros(shape)))
    else:
        module.register_buffer(name, torch.zeros(shape), persistent=False)


Scales = Float[Tensor, "*rows 1"]


class LayerNorm(nn.Module):
    """``(x - mean(x)) / scale * w + b`` with ``scale = sqrt(var(x) + eps)``.

    ``hook_scale`` ``[batch pos 1]`` and ``hook_normalized`` ``[batch pos d_model]`` are TransformerLens' points: the
    latter holds ``(x - mean(x)) / scale``, before ``w`` and ``b``. Half-precision inputs are normalised in float32,
    which both points hold, and rounded once, at the end.
    """

    w: Tensor
    b: Tensor

    def __init__(self, d_model: int, eps: float, *, bias: bool = True):
        super().__init__()
        self.eps = eps
        self.w = nn.Parameter(torch.ones(d_model))
        add_bias(self, "b", (d_model,), present=bias)
        self.hook_scale = HookPoint()
        self.hook_normalized = HookPoint()

    def forward(self, x: Rows) -> Rows:
        listened = self.hook_scale.listened or self.hook_normalized.listened
        return self._explicit(x) if listened else self._fused(x)

    def _fused(self, x: Rows) -> Rows:
        return F.layer_norm(x, x.shape[-1:], self.w, self.b, self.eps)

    def _explicit(self, x: Rows) -> Rows:
        wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
        normalized = self.hook_normalized(self.centred(wide) / self.hook_scale(self.scale(wide)))
        return (normalized * self.w.to(wide.dtype) + self.b).to(x.dtype)

    def centred(self, x: Rows) -> Rows:
        """What of `x` is normalised: all but its mean."""
        return x - x.mean(-1, keepdim=True)

    def scale(self, x: Rows) -> Scales:
        """What `x` is divided by."""
        return (self.centred(x).square().mean(-1, keepdim=True) + self.eps).sqrt()

    def share(self, part: Rows, scale: Float[Tensor, "*#rows 1"]) -> Rows:
        """What `part` of a whole with this scale becomes; the shares of all parts and ``b`` are the output."""
        return self.centred(part) / scale * self.w.to(part.dtype)


class RMSNorm(LayerNorm):
    """``x / scale * w`` with ``scale = sqrt(mean(x^2) + eps)``: the mean stays."""

    def __init__(self, d_model: int, eps: float):
        super().__init__(d_model, eps, bias=False)

    def _fused(self, x: Rows) -> Rows:
        return F.rms_norm(x, x.shape[-1:], self.w, self.eps)

    def centred(self, x: Rows) -> Rows:
        """What of `x` is normalised: all of it."""
        return x


class NoNorm(nn.Module):
    """``x``: for models without norms; it scales by 1 and has no points."""

    w: Tensor
    b: Tensor

    def __init__(self, d_model: int):
        super().__init__()
        self.register_buffer("w", torch.ones(d_model), persistent=False)
        self.register_buffer("b", torch.zeros(d_model), persistent=False)

    def forward(self, x: Rows) -> Rows:
        return x

    def scale(self, x: Rows) -> Scales:
        """1."""
        return torch.ones_like(x[..., :1])

    def share(self, part: Rows, scale: Float[Tensor, "*#rows 1"]) -> Rows:
        """The part itself."""
        return part


Norm = LayerNorm | RMSNorm | NoNorm


def make_norm(config: TransformerConfig) -> Norm:
    """The norm of a config."""
    kind: Normalization = config.normalization
    if kind == "none":
        return NoNorm(config.d_model)
    if kind == "RMS":
        return RMSNorm(config.d_model, config.eps)
    return LayerNorm(config.d_model, config.eps, bias="norm" in config.biases)


ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "gelu_new": partial(F.gelu, approximate="tanh"),
    "gelu": F.gelu,
    "relu": F.relu,
    "silu": F.silu,
}


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
