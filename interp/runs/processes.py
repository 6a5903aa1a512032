"""Calls in several processes of one thread each, whose results are taken as they come."""

import multiprocessing
import pickle
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

import torch

from interp.errors import InputError


def spread(
    call: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], processes: int = 1
) -> Iterator[tuple[int, Any]]:
    """Call a function with each of several arguments.

    Args:
        call: A function of a module: other processes import it.
        arguments: Of every call.
        processes: That call at the same time, each with one thread; with 1, or one call, all is done here, in order.

    Yields:
        The number of each call, from 0, and what it returned, in the order in which calls end.

    Raises:
        InputError: The arguments cannot be sent to another process.
        KeyboardInterrupt: Interrupted: calls that have begun are finished, no other is begun.
    """
    if processes == 1 or len(arguments) < 2:
        for number, each in enumerate(arguments):
            yield number, call(*each)
        return
    _check(arguments)
    context = multiprocessing.get_context("spawn")  # a fork would inherit torch's threads
    with ProcessPoolExecutor(min(processes, len(arguments)), mp_context=context, initializer=_begin) as pool:
        futures = {pool.submit(call, *each): number for number, each in enumerate(arguments)}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who asked
    torch.set_num_threads(1)


def _check(arguments: Sequence[tuple[Any, ...]]) -> None:
    try:
        for each in {id(part): part for given in arguments for part in given}.values():
            pickle.dumps(each)
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise InputError(
            f"processes: expected what can be sent to another process, got something that cannot ({error}); give 1"
        ) from error
