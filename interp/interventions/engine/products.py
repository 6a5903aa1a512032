"""Matrix products of packed tokens, by whichever of PyTorch's libraries is the faster here.

On a CPU, 32-bit products run through oneDNN, which uses the widest vector instructions that the processor has; MKL,
PyTorch's own choice, does so on Intel's only. The sums are the same up to their order.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from interp.model.config import Activation
from interp.model.layers import ACTIVATIONS

POST_OPS: dict[Activation, tuple[str, str]] = {
    "gelu_new": ("gelu", "tanh"),
    "gelu": ("gelu", "none"),
    "relu": ("relu", ""),
    "silu": ("swish", ""),
}
"""How oneDNN calls what it can do to a product before it is written to memory."""

ONEDNN = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def linear(
    x: Float[Tensor, "token inner"], weight: Float[Tensor, "inner outer"], bias: Float[Tensor, " outer"]
) -> Float[Tensor, "token outer"]:
    """``x weight + bias``."""
    return _onednn(x, weight, bias, "none", "") if _through_onednn(x) else torch.addmm(bias, x, weight)


def activated(
    x: Float[Tensor, "token inner"],
    weight: Float[Tensor, "inner outer"],
    bias: Float[Tensor, " outer"],
    activation: Activation,
) -> Float[Tensor, "token outer"]:
    """``act(x weight + bias)``."""
    if _through_onednn(x):
        return _onednn(x, weight, bias, *POST_OPS[activation])
    return ACTIVATIONS[activation](torch.addmm(bias, x, weight))


def _through_onednn(x: Tensor) -> bool:
    return ONEDNN and x.device.type == "cpu" and x.dtype == torch.float32 and len(x) > 0


def _onednn(x: Tensor, weight: Tensor, bias: Tensor, post_op: str, algorithm: str) -> Tensor:
    product: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight.t(), bias, post_op, [], algorithm)
    return product
