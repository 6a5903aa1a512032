"""Biases that a model has, and those that it has not: zeros that no optimiser, file or count of parameters knows."""

import torch
from torch import nn


def add_bias(module: nn.Module, name: str, shape: tuple[int, ...], *, present: bool) -> None:
    """Give `module` a bias called `name`, which is 0 at first: a parameter, or a constant where the model has none.

    So whoever reads a bias need not ask whether there is one.
    """
    if present:
        module.register_parameter(name, nn.Parameter(torch.zeros(shape)))
    else:
        module.register_buffer(name, torch.zeros(shape), persistent=False)
