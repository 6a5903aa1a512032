"""Matrix products of packed tokens, by whichever of PyTorch's libraries is the faster here.

On a CPU, 32-bit products run through oneDNN, which uses the widest vector instructions that the processor has; MKL,
PyTorch's own choice, does so on Intel's only. The sums are the same up to their order.
"""

import torch
from jaxtyping import Float
from torch import Tensor

ONEDNN = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def linear(
    x: Float[Tensor, "token inner"], weight: Float[Tensor, "inner outer"], bias: Float[Tensor, " outer"]
) -> Float[Tensor, "token outer"]:
    """``x weight + bias``."""
    if ONEDNN and x.device.type == "cpu" and x.dtype == torch.float32 and len(x):
        product: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight.t(), bias, "none", [], "")
        return product
    return torch.addmm(bias, x, weight)
