"""The same work on a Ray cluster: actors that hold it, each on what Ray gives it of the cluster's CPUs and GPUs.

1. An address is tried before Ray is asked, which would try to connect for ever.
2. The work is put into Ray's object store once. Actors of one node look at the same memory: weights lie there once a
   node, and a GPU's actor copies them to it.
3. A free actor gets the next job. Actors that wait for a place, because the cluster is smaller or still growing, hold
   nothing up. An actor that dies, with its node or alone, is replaced, and its job is done again.

Ray: Moritz et al. (2018), "Ray: a distributed framework for emerging AI applications".
"""

import logging
import pickle
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from interp.arguments import whole_number
from interp.errors import InputError
from interp.runs.executors import Work, nobody
from interp.runs.pickling import Packed, pack, received
from interp.runs.workers import MOST_DEATHS, Held, JobQueue, Terms, done

SECONDS = 60
"""How long somebody may take to answer as a cluster."""
_LISTEN_SECONDS = 10
_HOST_AND_PORT = re.compile(r"(ray://)?(?P<host>\[[0-9a-fA-F:.]+\]|[^\[\]/:]+):(?P<port>[0-9]{1,9})")
# Ray, and nothing of that name that lies in the present folder.
_CONNECT = (
    "import sys; sys.path[:] = filter(None, sys.path); import ray; ray.init(address=sys.argv[1], log_to_driver=False)"
)


def require_cluster(address: str) -> None:
    """Refuse an address where nobody listens, or whoever listens is no cluster that this program can use.

    Raises:
        InputError: It is one; what Ray said of it is told.
    """
    _require_listener(address)
    _require_ray(address)


def _require_listener(address: str) -> None:
    found = _HOST_AND_PORT.fullmatch(address)
    if found is None:
        return
    try:
        socket.create_connection((found["host"].strip("[]"), int(found["port"])), timeout=_LISTEN_SECONDS).close()
    except (OSError, OverflowError, UnicodeError) as error:
        raise _no_cluster(address, f"nobody who listens ({error})") from error


@cache
def _require_ray(address: str) -> None:
    try:
        # Ray's client cannot be given a limit, nor be interrupted; a process can.
        found = subprocess.run(  # noqa: S603
            [sys.executable, "-c", _CONNECT, address], capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise _no_cluster(address, f"nobody who answers as one within {SECONDS} s") from error
    if found.returncode:
        lines = found.stderr.strip().splitlines() or [f"exit code {found.returncode}"]
        raise _no_cluster(address, lines[-1])


def _no_cluster(address: str, got: str) -> InputError:
    return InputError(
        f"ray: expected a cluster at {address}, got {got}; start one with `ray start --head`, and give the address "
        "that it prints; if it asks for a token, `export RAY_AUTH_MODE=token` here, too; or leave the address out"
    )


_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ray:
    """Workers on a Ray cluster.

    Attributes:
        n: How many.
        address: Of the cluster, such as ``"auto"``; None for a new one on this machine, unless this process has
            called ``ray.init``.
        gpus: Of every worker; a share lets several use one. None for none.

    Raises:
        InputError: `n` is no whole number of at least 1.

    Examples:
        >>> from interp.cluster.ray import Ray
        >>> run = interp.Run("runs", executor=Ray(8, gpus=0.5))
        >>> result = interp.heads(interp.load_model(), run=run)  # doctest: +SKIP
    """

    n: int
    address: str | None = None
    gpus: float | None = None

    def __post_init__(self) -> None:
        whole_number("workers", self.n, expected="a whole number of at least 1")

    def stream(
        self, work: Work, jobs: Iterable[Any], *, threads: int, begun: Callable[[Any], None] = nobody
    ) -> Iterator[tuple[Any, Any]]:
        """Do jobs, as many at a time as there are actors.

        Raises:
            InputError: Ray is not installed, there is no cluster at this address, it was lost, the work cannot be
                sent, a worker runs another program or lacks what the work is made of, a job ends every actor that does
                it, or this machine has less than one worker needs.
        """
        packed = pack(work)
        with _cluster(self.address, self.n * threads) as (ray, own):
            _look_for_room(ray, {"CPU": threads, "GPU": self.gpus or 0}, grows=not own or self.address is not None)
            # Its tensors as arrays, which Ray does not copy out of its store.
            held = ray.put((packed.data, [np.frombuffer(each, dtype=np.uint8) for each in packed.buffers]))
            actors = _Actors(ray, held, self, threads)
            del packed  # Ray holds its own copy
            try:
                yield from actors.stream(jobs, begun)
            finally:
                actors.end()


@contextmanager
def _cluster(address: str | None, n_cpus: int) -> Iterator[tuple[Any, bool]]:
    """Ray, connected, and whether that was done here; a cluster that was begun here is ended.

    Raises:
        InputError: It cannot be.
    """
    try:
        import ray
    except ImportError as error:
        raise InputError("ray: it is not installed; pip install 'interp[ray]', or take processes") from error
    own = not ray.is_initialized()
    if own:
        if address is not None:
            require_cluster(address)
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
        yield ray, own
    except ray.exceptions.RayError as error:
        raise InputError(
            f"ray: the cluster was lost ({type(error).__name__}); what is complete is kept: start it, and ask again"
        ) from error
    finally:
        if own:
            ray.shutdown()


def _look_for_room(ray: Any, needed: dict[str, float], *, grows: bool) -> None:
    """Say that no node has what a worker needs, which Ray would silently wait for; one may still come if it `grows`.

    Raises:
        InputError: None will come.
    """
    nodes = [each["Resources"] for each in ray.nodes() if each["Alive"]]
    if any(all(node.get(kind, 0) >= amount for kind, amount in needed.items()) for node in nodes):
        return
    asked = ", ".join(f"{amount:g} {kind}" for kind, amount in needed.items())
    most = ", ".join(f"{max((node.get(kind, 0) for node in nodes), default=0):g} {kind}" for kind in needed)
    told = f"ray: expected a node with {asked} for one worker, got nodes with at most {most}"
    if not grows:
        raise InputError(f"{told}; ask for fewer threads or gpus, or compute on the CPU")
    _LOG.warning("%s; this waits for the cluster to grow", told)


class _Actors:
    """A pool that hands out jobs."""

    def __init__(self, ray: Any, held: Any, asked: Ray, threads: int):
        self._ray, self._n, self._held = ray, asked.n, held
        options = {"num_cpus": threads, "num_gpus": asked.gpus or 0, "max_restarts": 0}
        self._kind, self._terms = ray.remote(**options)(_Holder), Terms.of_this_process(threads)
        self._all: list[Any] = []
        self._busy: dict[Any, tuple[Any, Any]] = {}
        self._deaths = 0
        errors = ray.exceptions
        self._deadly = (errors.RayActorError, errors.WorkerCrashedError, errors.NodeDiedError, errors.OutOfMemoryError)

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
            except self._deadly as error:
                self._bury(actor, job, waiting, error)
                continue
            except self._ray.exceptions.RayTaskError as error:
                raise _refused(error) from error
            free.append((actor, None if job is _READY else job))
            if job is _READY:
                continue
            self._deaths = 0
            if not well:
                raise value
            yield job, value

    def _hire(self) -> None:
        actor = self._kind.remote(self._held, self._terms)
        self._all.append(actor)
        self._busy[actor.ready.remote()] = (actor, _READY)

    def _bury(self, actor: Any, job: Any, waiting: JobQueue, error: Exception) -> None:
        if getattr(error, "actor_init_failed", False):
            raise _refused(error) from error
        self._ray.kill(actor)
        self._all.remove(actor)
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
        for actor in self._all:
            self._ray.kill(actor)


_READY = object()


def _refused(error: Exception) -> InputError:
    """What kept a worker from beginning, in the last of its own words, which Python writes below where it happened."""
    said = str(error).strip().splitlines()[-1]
    return InputError(
        f"ray: expected a worker that can begin, got {said}; install this program, and what the work is made of, on "
        "every node, the same as here"
    )


class _Holder:
    """What an actor is."""

    def __init__(self, held: Any, terms: Terms):
        data, buffers = held
        self._work = Held(Packed(data, [memoryview(each) for each in buffers]), terms)

    def ready(self) -> bytes:
        """It is there."""
        return pickle.dumps((True, None))

    def run(self, job: bytes) -> bytes:
        """Do a job."""
        return done(self._work, received(job))
