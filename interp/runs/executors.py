"""Who computes the parts of some work: this process, or several; on a cluster, ``interp/cluster/``.

A part's result does not depend on who computes it: every worker has the same work, and as many threads as asked.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from interp.arguments import whole_number
from interp.runs.workers import Calls, Workers


class Work(Protocol):
    """Something that comes apart into jobs; other processes get a copy of it once."""

    def run(self, job: Any) -> Any:
        """Do one job; twice the same comes to the same."""
        ...


class Executor(Protocol):
    """Does jobs, each once, in any order."""

    def stream(
        self, work: Work, jobs: Iterable[Any], *, threads: int, begun: Callable[[Any], None] = ...
    ) -> Iterator[tuple[Any, Any]]:
        """Do jobs.

        Args:
            work: What they are part of.
            jobs: Taken one by one, as workers are free.
            threads: Of every worker.
            begun: Called with each job before it is begun.

        Yields:
            Each job and what it came to, as they end.
        """
        ...


def nobody(_told: Any) -> None:
    """Who does not want to know what is begun, or done."""


@dataclass(frozen=True)
class Local:
    """This process, one job after the other, with the threads that it has."""

    def stream(
        self, work: Work, jobs: Iterable[Any], *, threads: int, begun: Callable[[Any], None] = nobody
    ) -> Iterator[tuple[Any, Any]]:
        """Do jobs in order."""
        for job in jobs:
            begun(job)
            yield job, work.run(job)


@dataclass(frozen=True)
class Processes:
    """Several processes of this machine. One that dies is replaced, and what it did is done again.

    Attributes:
        n: How many. Where the work is on a GPU and there are several, each process has one of them in turn,
            from the work's own on.

    Raises:
        InputError: `n` is no whole number of at least 1.

    Examples:
        >>> from interp.runs.executors import Processes
        >>> interp.Run("runs", executor=Processes(2)).executor
        Processes(n=2)
    """

    n: int

    def __post_init__(self) -> None:
        whole_number("processes", self.n, expected="a whole number of at least 1")

    def stream(
        self, work: Work, jobs: Iterable[Any], *, threads: int, begun: Callable[[Any], None] = nobody
    ) -> Iterator[tuple[Any, Any]]:
        """Do jobs, as many at a time as there are processes.

        Raises:
            InputError: The work cannot be sent to another process, or a job ends every process that does it.
            KeyboardInterrupt: Interrupted: what has begun is given up.
        """
        with Workers(work, self.n, threads) as workers:
            yield from workers.stream(jobs, begun)


HERE = Local()


def spread(
    call: Callable[..., Any],
    arguments: Sequence[tuple[Any, ...]],
    executor: Executor = HERE,
    progress: Callable[[int, int], None] | None = None,
) -> list[Any]:
    """The results, in order, of calling a function of a module with each of several arguments.

    As calls end, `progress` is told (calls done, calls in all).

    Raises:
        InputError: The arguments cannot be sent to another process, or a call ends every process that makes it.
        KeyboardInterrupt: Interrupted: calls that have begun are given up.
    """
    own = executor if len(arguments) > 1 else HERE
    found: dict[int, Any] = {}
    for number, result in own.stream(Calls(call, arguments), range(len(arguments)), threads=torch.get_num_threads()):
        found[number] = result
        if progress is not None:
            progress(len(found), len(arguments))
    return [found[number] for number in range(len(arguments))]
