"""Where and in which precision does a model live? The devices and dtypes that can be asked for, by name."""

from typing import Any

import torch

from interp.errors import ConfigError

DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


def resolve_device(device: str | torch.device | None) -> torch.device:
    """The torch device that `device` names; ``None`` is the CPU, ``"auto"`` CUDA where there is one.

    Raises:
        ConfigError: No such device on this machine.
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device("cpu" if device is None else device)
    except (RuntimeError, TypeError) as error:
        raise ConfigError(f"device: expected cpu, cuda, cuda:N or auto, got {device!r}") from error
    if resolved.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(f"device: {device!r} was asked for, but PyTorch sees no CUDA device here; use cpu")
    if resolved.type == "cuda" and (resolved.index or 0) >= torch.cuda.device_count():
        raise ConfigError(
            f"device: {device!r} was asked for, but there are {torch.cuda.device_count()} CUDA devices, from 0"
        )
    if resolved.type not in ("cpu", "cuda"):
        raise ConfigError(f"device: expected cpu, cuda, cuda:N or auto, got {device!r}")
    return resolved


def processor_of(device: torch.device) -> str:
    """The kind of CPU or GPU that computes there, from which the last bits of numbers follow."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else torch.backends.cpu.get_cpu_capability()


def resolve_dtype(dtype: str | torch.dtype | None) -> torch.dtype:
    """The torch dtype that `dtype` names; ``None`` is float32.

    Raises:
        ConfigError: Not one of float64, float32, bfloat16, float16.
    """
    if dtype is None:
        return torch.float32
    if isinstance(dtype, str) and dtype in DTYPES:
        return DTYPES[dtype]
    if isinstance(dtype, torch.dtype) and dtype in DTYPES.values():
        return dtype
    raise ConfigError(f"dtype: expected one of {', '.join(DTYPES)}, got {dtype!r}")


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
