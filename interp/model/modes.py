"""Which of torch's modes does a measurement run in? Those of a new process, whatever the caller has set around it.

A mode changes what an operation does where nobody sees it: inference mode makes tensors that can never have gradients,
autocast computes in another type than the numbers have, a default device takes tensors away from the model. A forward
of somebody's own (``model(tokens)``) stays in the modes that they asked for; what is measured, trained or loaded does
not depend on them.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import torch

from interp.arguments import P, R, named_arguments

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
