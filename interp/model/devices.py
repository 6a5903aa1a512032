"""Devices, dtypes, and the process-wide settings and modes of torch that change what is computed.

1. Devices and dtypes, by the names that can be asked for.
2. Arithmetic: torch's settings that change bits, except threads. Precisions are read by operator: torch's older names
   (``allow_tf32``) refuse to be read once the newer ones were used, which also show what the older have set.
3. Modes: inference mode makes tensors without gradients, autocast computes in another type, a default device takes
   tensors away from the model. What is measured, trained or loaded runs in those of a new process. A caller's own
   ``model(tokens)`` runs in the modes that the caller asked for.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from operator import attrgetter
from typing import Any

import numpy as np
import torch

from interp.arguments import P, R, named_arguments
from interp.errors import ConfigError

# cuDNN's attention, which PyTorch prefers on an H100, plans each shape anew; hardly two chunks of a sweep share one.
os.environ.setdefault("TORCH_CUDNN_SDPA_DEPRIORITIZED", "1")

DTYPES = {"float64": torch.float64, "float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def resolve_device(device: str | torch.device | None) -> torch.device:
    """The torch device that `device` names; ``None`` is the CPU, ``"auto"`` CUDA where there is one."""
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
    """The torch dtype that `dtype` names; ``None`` is float32."""
    if dtype is None:
        return torch.float32
    if isinstance(dtype, str) and dtype in DTYPES:
        return DTYPES[dtype]
    if isinstance(dtype, torch.dtype) and dtype in DTYPES.values():
        return dtype
    raise ConfigError(f"dtype: expected one of {', '.join(DTYPES)}, got {dtype!r}")


def place_of(model: Any) -> tuple[torch.device, torch.dtype]:
    """Device and dtype of a model: its first parameter's, or its config's where it shows no parameters."""
    parameters = getattr(model, "parameters", None)
    first = None if parameters is None else next(iter(parameters()), None)
    if first is not None:
        return first.device, first.dtype
    device, dtype = getattr(model.cfg, "device", None), getattr(model.cfg, "dtype", None)
    return torch.device(device or "cpu"), dtype or torch.float32


def sent(array: np.ndarray, device: torch.device) -> torch.Tensor:
    """An array on a device, which nobody waits for: to a GPU it is copied from memory that stays in its place."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


def fetched(tensor: torch.Tensor) -> Callable[[], torch.Tensor]:
    """Begin to copy a tensor to the host; the function that is returned waits for it, and for nothing behind it."""
    if tensor.device.type != "cuda":
        return tensor.cpu
    copy = tensor.to("cpu", non_blocking=True)
    done = torch.cuda.current_stream(tensor.device).record_event()

    def waited() -> torch.Tensor:
        done.synchronize()
        return copy

    return waited


SETTINGS = (
    "cuda.matmul.fp32_precision",
    "cudnn.conv.fp32_precision",
    "cudnn.rnn.fp32_precision",
    "mkldnn.matmul.fp32_precision",
    "mkldnn.conv.fp32_precision",
    "mkldnn.rnn.fp32_precision",
    "mkldnn.enabled",
    "cuda.matmul.allow_fp16_accumulation",
    "cuda.matmul.allow_fp16_reduced_precision_reduction",
    "cuda.matmul.allow_bf16_reduced_precision_reduction",
)
"""Of ``torch.backends``."""
ATTENTION = ("flash_sdp", "mem_efficient_sdp", "math_sdp", "cudnn_sdp")
"""Which ways to compute attention may be taken: of ``torch.backends.cuda``, on a CPU as well."""
_DETERMINISTIC = "deterministic"


def arithmetic() -> dict[str, Any]:
    """The settings of this process, as JSON has values."""
    found = {name: attrgetter(name)(torch.backends) for name in SETTINGS}
    attention = {name: getattr(torch.backends.cuda, f"{name}_enabled")() for name in ATTENTION}
    return {**found, **attention, _DETERMINISTIC: torch.get_deterministic_debug_mode()}


def set_arithmetic(settings: Mapping[str, Any]) -> None:
    """Compute as another process does, whose settings these are."""
    own = arithmetic()
    for name in SETTINGS:
        if settings[name] != own[name]:
            owner, _, attribute = name.rpartition(".")
            setattr(attrgetter(owner)(torch.backends), attribute, settings[name])
    for name in ATTENTION:
        getattr(torch.backends.cuda, f"enable_{name}")(settings[name])
    torch.set_deterministic_debug_mode(settings[_DETERMINISTIC])


@contextmanager
def whole_precision() -> Iterator[None]:
    """32-bit products in 32 bits, where TF32 or bfloat16 was asked for."""
    before = arithmetic()
    whole = {name: "ieee" if value in ("tf32", "bf16") else value for name, value in before.items()}
    if whole == before:
        yield
        return
    set_arithmetic(whole)
    try:
        yield
    finally:
        set_arithmetic(before)


AUTOCAST = ("cpu", "cuda")
"""Kinds of device whose operations may be computed in another type than their numbers have."""


@contextmanager
def ordinary_modes() -> Iterator[None]:
    """Gradients can be taken, numbers keep their type, and tensors are made on the CPU unless they are told where.

    A context, and a decorator of a function that is no generator.
    """
    with ExitStack() as modes:
        modes.enter_context(torch.inference_mode(False))
        modes.enter_context(torch.enable_grad())
        for kind in filter(torch.is_autocast_enabled, AUTOCAST):
            modes.enter_context(torch.autocast(kind, enabled=False))
            modes.callback(torch.clear_autocast_cache)  # weights may have been trained meanwhile
        if torch.get_default_device().type != "cpu":  # the mode slows every operation
            modes.enter_context(torch.device("cpu"))
        yield


def documented(function: Callable[P, R]) -> Callable[P, R]:
    """Run a function in ordinary modes, and say which of its arguments is of another kind than it takes."""
    return named_arguments(ordinary_modes()(function))
