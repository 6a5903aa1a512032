"""The MLP: ``act(x W_in + b_in) W_out + b_out``, with readable neurons."""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from interp.model.config import Activation, TransformerConfig
from interp.model.points import HookPoint
from interp.shapes import Residual

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "gelu_new": partial(F.gelu, approximate="tanh"),
    "gelu": F.gelu,
    "relu": F.relu,
}


class MLP(nn.Module):
    """Neurons before (``hook_pre``) and after (``hook_post``) the activation: ``[batch pos d_mlp]``."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.W_in = nn.Parameter(torch.empty(config.d_model, config.d_mlp))
        self.b_in = nn.Parameter(torch.zeros(config.d_mlp))
        self.W_out = nn.Parameter(torch.empty(config.d_mlp, config.d_model))
        self.b_out = nn.Parameter(torch.zeros(config.d_model))
        self.act = ACTIVATIONS[config.act_fn]
        self.hook_pre, self.hook_post = HookPoint(), HookPoint()

    def forward(self, x: Residual) -> Residual:
        post = self.hook_post(self.act(self.hook_pre(x @ self.W_in + self.b_in)))
        return post @ self.W_out + self.b_out
