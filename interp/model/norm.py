"""LayerNorm with a readable scale (Ba et al. 2016)."""

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float
from torch import Tensor, nn

from interp.model.points import HookPoint


class LayerNorm(nn.Module):
    """``(x - mean(x)) / scale * w + b`` with ``scale = sqrt(var(x) + eps)``.

    ``hook_scale`` ``[batch pos 1]`` and ``hook_normalized`` ``[batch pos d_model]`` are TransformerLens' points.
    Half-precision inputs are normalised in float32 and rounded once, at the end.
    """

    def __init__(self, d_model: int, eps: float):
        super().__init__()
        self.eps = eps
        self.w = nn.Parameter(torch.ones(d_model))
        self.b = nn.Parameter(torch.zeros(d_model))
        self.hook_scale = HookPoint()
        self.hook_normalized = HookPoint()

    def forward(self, x: Float[Tensor, "*rows d_model"]) -> Float[Tensor, "*rows d_model"]:
        if self.hook_scale.listened:
            return self.hook_normalized(self._explicit(x))
        return self.hook_normalized(F.layer_norm(x, x.shape[-1:], self.w, self.b, self.eps))

    def _explicit(self, x: Float[Tensor, "*rows d_model"]) -> Float[Tensor, "*rows d_model"]:
        wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
        centred = wide - wide.mean(-1, keepdim=True)
        scale = self.hook_scale((centred.square().mean(-1, keepdim=True) + self.eps).sqrt())
        return (centred / scale * self.w + self.b).to(x.dtype)
