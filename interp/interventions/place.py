"""Where, and in which dtype, does a model compute?"""

from typing import Any

import torch


def place_of(model: Any) -> tuple[torch.device, torch.dtype]:
    """Device and dtype of a model: its first parameter's, or its config's where it shows no parameters.

    Args:
        model: Follows TransformerLens' protocol, which promises a ``cfg`` and no parameters.
    """
    parameters = getattr(model, "parameters", None)
    first = None if parameters is None else next(iter(parameters()), None)
    if first is not None:
        return first.device, first.dtype
    device, dtype = getattr(model.cfg, "device", None), getattr(model.cfg, "dtype", None)
    return torch.device(device or "cpu"), dtype or torch.float32
