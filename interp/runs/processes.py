"""Calls of a function with each of several arguments, whose results are taken as they come."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from interp.runs.executors import HERE, Executor


@dataclass(frozen=True)
class _Calls:
    call: Callable[..., Any]
    arguments: Sequence[tuple[Any, ...]]

    def run(self, job: int) -> Any:
        return self.call(*self.arguments[job])


def spread(
    call: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], executor: Executor = HERE
) -> Iterator[tuple[int, Any]]:
    """Call a function with each of several arguments.

    Args:
        call: A function of a module: other processes import it.
        arguments: Of every call.
        executor: Who calls, with as many threads as this process has; of one call, this process.

    Yields:
        The number of each call, from 0, and what it returned, in the order in which calls end.

    Raises:
        InputError: The arguments cannot be sent to another process, or a call ends every process that makes it.
        KeyboardInterrupt: Interrupted: calls that have begun are given up.
    """
    own = executor if len(arguments) > 1 else HERE
    yield from own.stream(_Calls(call, arguments), range(len(arguments)), threads=torch.get_num_threads())
