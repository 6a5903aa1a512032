"""In which arithmetic does torch compute? Its settings of this process that change bits, but for threads.

Precisions are asked for by operator: torch's older names for the same (``allow_tf32``) refuse to be read once the newer
ones were used. These say what the older have set, too.
Autocast is none of the settings: nothing is measured in it (``modes.py``).
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from operator import attrgetter
from typing import Any

import torch

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
ATTENTION = {
    "flash_sdp": "flash_sdp_enabled",
    "mem_efficient_sdp": "mem_efficient_sdp_enabled",
    "math_sdp": "math_sdp_enabled",
    "cudnn_sdp": "cudnn_sdp_enabled",
}
"""Which ways to compute attention may be taken: of ``torch.backends.cuda``, on a CPU as well, by what asks for each."""
_DETERMINISTIC = "deterministic"


def arithmetic() -> dict[str, Any]:
    """The settings of this process, as JSON has values."""
    found = {name: attrgetter(name)(torch.backends) for name in SETTINGS}
    attention = {name: getattr(torch.backends.cuda, asks)() for name, asks in ATTENTION.items()}
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
