"""The same work on a Ray cluster: actors that hold it, each on what Ray gives it of the cluster's CPUs and GPUs.

1. The work is put into Ray's object store once. Actors of one node look at the same memory: weights lie there once a
   node, and a GPU's actor copies them to it.
2. An actor that is there gets a job, and the next one when it has ended it. Actors that wait for a place, because the
   cluster is smaller or still growing, hold nothing up.
3. An actor that dies, with its node or alone, is replaced, and its job is done again.

Ray: Moritz et al. (2018), "Ray: a distributed framework for emerging AI applications".
"""

import logging
import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from interp.errors import InputError
from interp.interventions.given_numbers import whole_number
from interp.runs.executors import Work, nobody
from interp.runs.packing import Packed, pack, received
from interp.runs.queue import JobQueue
from interp.runs.workers import MOST_DEATHS, done


@dataclass(frozen=True)
class Ray:
    """Workers on a Ray cluster.

    Attributes:
        n: How many.
        address: Of the cluster, such as ``"auto"``; None for a new one on this machine, unless this process has
            called ``ray.init``.
        gpus: Of every worker; a share lets several use one. None for none.
    """

    n: int
    address: str | None = None
    gpus: float | None = None

    def __post_init__(self):
        whole_number("workers", self.n, expected="a whole number of at least 1")

    def stream(
        self, work: Work, jobs: Iterable[Any], *, threads: int, begun: Callable[[Any], None] = nobody
    ) -> Iterator[tuple[Any, Any]]:
        """Do jobs, as many at a time as there are actors.

        Raises:
            InputError: Ray is not installed, there is no cluster at this address, it was lost, the work cannot be
                sent, or a job ends every actor that does it.
        """
        packed = pack(work)
        with _cluster(self.address, self.n * threads) as ray:
            actors = _Actors(ray, packed.data, packed.buffers, self, threads)
            try:
                yield from actors.stream(jobs, begun)
            finally:
                actors.end()


@contextmanager
def _cluster(address: str | None, n_cpus: int) -> Iterator[Any]:
    """Ray, connected; a cluster that was begun here is ended.

    Raises:
        InputError: It cannot be.
    """
    try:
        import ray
    except ImportError as error:
        raise InputError("ray: it is not installed; pip install 'interp[ray]', or take processes") from error
    own = not ray.is_initialized()
    if own:
        new: dict[str, Any] = {"num_cpus": n_cpus, "include_dashboard": False} if address is None else {}
        try:
            ray.init(address=address or "local", log_to_driver=False, logging_level=logging.ERROR, **new)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise InputError(
                f"ray: expected a cluster at {address or 'this machine'}, got none ({error}); start one with "
                "`ray start --head`; if it asks for a token, `export RAY_AUTH_MODE=token` here, too; or leave the "
                "address out"
            ) from error
    try:
        yield ray
    except ray.exceptions.RayError as error:
        raise InputError(
            f"ray: the cluster was lost ({type(error).__name__}); what is complete is kept: start it, and ask again"
        ) from error
    finally:
        if own:
            ray.shutdown()


class _Actors:
    """A pool that hands out jobs."""

    def __init__(self, ray: Any, data: bytes, buffers: Any, asked: Ray, threads: int):
        self._ray, self._n = ray, asked.n
        self._held = ray.put((data, [_array(each) for each in buffers]))
        options = {"num_cpus": threads, "num_gpus": asked.gpus or 0, "max_restarts": 0}
        self._kind, self._threads = ray.remote(**options)(_Holder), threads
        self._busy: dict[Any, tuple[Any, Any]] = {}
        self._deaths = 0

    def stream(self, jobs: Iterable[Any], begun: Callable[[Any], None]) -> Iterator[tuple[Any, Any]]:
        """Do jobs; yield each with what it came to."""
        waiting = JobQueue(jobs)
        free: list[tuple[Any, Any]] = []
        for _ in range(self._n):
            self._hire()
        while True:
            while free and waiting:
                actor, last = free.pop()
                job = waiting.next(last)
                begun(job)
                self._busy[actor.run.remote(pickle.dumps(job))] = (actor, job)
            if not waiting and all(job is _READY for _, job in self._busy.values()):
                return
            (ended, *_), _ = self._ray.wait(list(self._busy), num_returns=1)
            actor, job = self._busy.pop(ended)
            try:
                well, value = received(self._ray.get(ended))
            except self._ray.exceptions.RayActorError as error:
                self._bury(actor, job, waiting, error)
                continue
            free.append((actor, None if job is _READY else job))
            if job is _READY:
                continue
            self._deaths = 0
            if not well:
                raise value
            yield job, value

    def _hire(self) -> None:
        actor = self._kind.remote(self._held, self._threads)
        self._busy[actor.ready.remote()] = (actor, _READY)

    def _bury(self, actor: Any, job: Any, waiting: JobQueue, error: Exception) -> None:
        self._ray.kill(actor)
        if job is not _READY:
            waiting.back(job)
        self._deaths += 1
        if self._deaths == MOST_DEATHS:
            raise InputError(
                f"ray: {MOST_DEATHS} workers ended one after the other and none did its job, the last of which was "
                f"{str(job)[:100]} ({str(error)[:200]}); give fewer workers, or less memory to each"
            )
        self._hire()

    def end(self) -> None:
        """Give all actors back to the cluster."""
        for actor, _ in self._busy.values():
            self._ray.kill(actor)


_READY = object()


def _array(buffer: memoryview) -> Any:
    import numpy as np

    return np.frombuffer(buffer, dtype=np.uint8)


class _Holder:
    """What an actor is."""

    def __init__(self, held: Any, threads: int):
        import torch

        torch.set_num_threads(threads)
        data, buffers = held
        self._held = held  # the memory that tensors look at
        self._work = Packed(data, [memoryview(each) for each in buffers]).unpacked()

    def ready(self) -> bytes:
        """It is there."""
        return pickle.dumps((True, None))

    def run(self, job: bytes) -> bytes:
        """Do a job."""
        return done(self._work, received(job))
