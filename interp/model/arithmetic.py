"""In which arithmetic does torch compute? Its settings of this process that change bits, but for threads.

Precisions are asked for by operator: torch's older names for the same (``allow_tf32``) refuse to be read once the newer
ones were used. These say what the older have set, too.
"""

from collections.abc import Mapping
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
)
"""Of ``torch.backends``."""
_DETERMINISTIC = "deterministic"


def arithmetic() -> dict[str, Any]:
    """The settings of this process, as JSON has values."""
    found = {name: attrgetter(name)(torch.backends) for name in SETTINGS}
    return {**found, _DETERMINISTIC: torch.get_deterministic_debug_mode()}


def set_arithmetic(settings: Mapping[str, Any]) -> None:
    """Compute as another process does, whose settings these are."""
    own = arithmetic()
    for name in SETTINGS:
        if settings[name] != own[name]:
            owner, _, attribute = name.rpartition(".")
            setattr(attrgetter(owner)(torch.backends), attribute, settings[name])
    torch.set_deterministic_debug_mode(settings[_DETERMINISTIC])
