"""LayerNorm (Ba et al. 2016) and RMSNorm (Zhang & Sennrich 2019), each with a readable scale; and none."""

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float
from torch import Tensor, nn

from interp.model.biases import add_bias
from interp.model.config import Normalization, TransformerConfig
from interp.model.points import HookPoint

Rows = Float[Tensor, "*rows d_model"]
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
