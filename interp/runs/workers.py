"""Processes that each hold a copy of some work and do its jobs, one at a time.

All is sent as plain bytes: torch's own way to send a tensor to a process takes a file descriptor of each, and holds on
to the sender's memory. A worker that dies, killed or out of memory, is replaced, and its job is done again; where no
worker lives long enough to end any job, a job is at fault, and is named. A worker whose asker dies ends at once; the
shared memory is then removed by Python's own tracker. The script that asks is begun again in a worker only where the
work has parts of it, such as a class that it defines.
"""

import multiprocessing
import os
import pickle
import platform
import signal
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import spawn
from multiprocessing.connection import Connection, wait
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Any

import torch

from interp.errors import InputError, InterpError
from interp.model.devices import arithmetic, set_arithmetic
from interp.runs.key import program, require_program
from interp.runs.pickling import ALIGNED, Packed, pack, received


class JobQueue:
    """Jobs that wait, by place, each place in order.

    Jobs may say where they belong (``place``: for a part of a sweep, its batch, whose unchanged run a worker keeps). A
    free worker gets the next job of its place, or one of the place with the fewest workers. An iterator's jobs are
    taken one by one, as those before them are handed out: a corpus streams by.
    """

    def __init__(self, jobs: Iterable[Any]):
        self._waiting: dict[Any, deque[Any]] = {}
        self._workers: Counter[Any] = Counter()
        self._coming = iter(jobs)
        for job in () if isinstance(jobs, Iterator) else self._coming:
            self._put(job)

    def _put(self, job: Any) -> None:
        self._waiting.setdefault(_place(job), deque()).append(job)

    def __bool__(self) -> bool:
        """Whether a job waits; where none does, the next one is asked for."""
        if not self._waiting:
            for job in self._coming:
                self._put(job)
                break
        return bool(self._waiting)

    def next(self, last: Any = None) -> Any:
        """The next job for a worker whose last one was `last`; there is one."""
        here = _place(last)
        if last is not None:
            self._workers[here] -= 1
        place = here if last is not None and here in self._waiting else self._elsewhere()
        self._workers[place] += 1
        job = self._waiting[place].popleft()
        if not self._waiting[place]:
            del self._waiting[place]
        return job

    def _elsewhere(self) -> Any:
        return min(self._waiting, key=lambda place: (self._workers[place], -len(self._waiting[place])))

    def back(self, job: Any) -> None:
        """Put back a job whose worker is gone."""
        place = _place(job)
        self._workers[place] -= 1
        self._waiting.setdefault(place, deque()).appendleft(job)


def _place(job: Any) -> Any:
    return getattr(job, "place", None)


@dataclass(frozen=True)
class Calls:
    """Calls of a function of a module; a job is the number, or the name, of a call's arguments."""

    call: Callable[..., Any]
    arguments: Sequence[tuple[Any, ...]] | Mapping[str, tuple[Any, ...]]

    def run(self, job: Any) -> Any:
        """Make a call."""
        return self.call(*self.arguments[job])


Span = tuple[int, int]
MOST_DEATHS = 8
"""Of workers, one after the other, without a job that ended between."""
SHARED = Path("/dev/shm")  # noqa: S108
"""The file system of shared memory, where it is one."""
_CONTEXT = multiprocessing.get_context("spawn")  # a fork would inherit torch's threads


@dataclass(frozen=True)
class Terms:
    """Threads of every worker, and torch's settings and the program of the process that asks."""

    threads: int
    arithmetic: Mapping[str, Any]
    program: Mapping[str, str]

    @classmethod
    def of_this_process(cls, threads: int) -> "Terms":
        """The terms of work that this process asks for."""
        return cls(threads, arithmetic(), program())

    def accept(self) -> None:
        """Apply them to this process."""
        require_program(self.program)
        torch.set_num_threads(self.threads)
        set_arithmetic(self.arithmetic)


class Held:
    """Work as a worker has it: unpacked for its first job, so that what is wrong here comes out as that job's error."""

    def __init__(self, packed: Packed, terms: Terms, script: Mapping[str, str] | None = None):
        """Hold packed work; `script` tells ``multiprocessing`` where its parts of the asker's script come from."""
        self._packed, self._terms, self._script = packed, terms, script or {}
        self._work: Any = None

    def run(self, job: Any) -> Any:
        """Do one job."""
        if self._work is None:
            self._terms.accept()
            _begin_anew(self._script)
            self._unpack()
        return self._work.run(job)

    def _unpack(self) -> None:
        try:
            self._work = self._packed.unpacked()
        except InterpError:
            raise
        except Exception as error:  # it may miss a module, a device, or memory
            raise InputError(
                f"worker on {platform.node()}: expected all that the work is made of, got {type(error).__name__}: "
                f"{error}; give it what it lacks: the same modules where it finds them, and such a device with room"
            ) from error


@dataclass
class _Worker:
    process: Any
    connection: Connection
    slot: int
    job: Any = None
    busy: bool = False


class Workers:
    """A context of workers; they are gone afterwards, whatever they were doing.

    The work lies in shared memory: a model's weights are there once, whatever the number of workers.
    """

    def __init__(self, work: Any, n: int, threads: int):
        """Prepare `n` workers with `threads` each."""
        self._n, self._terms = n, Terms.of_this_process(threads)
        packed = pack(work)
        told = spawn.get_preparation_data("") if b"__main__" in packed.data else {}
        self._script = {name: each for name, each in told.items() if name.startswith("init_main")}
        self._memory, self._spans = _shared(packed)
        self._gpu = packed.gpu
        self._workers: list[_Worker] = []
        self._deaths = 0

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_error: object) -> None:
        for each in self._workers:
            each.process.kill()
        for each in self._workers:
            each.process.join()
            each.connection.close()
        self._memory.close()
        self._memory.unlink()

    def stream(self, jobs: Iterable[Any], begun: Callable[[Any], None]) -> Iterator[tuple[Any, Any]]:
        """Do jobs, as many at a time as there are workers; yield each with what it came to."""
        waiting = JobQueue(jobs)
        while True:
            self._hand_out(waiting, begun)
            busy = [each for each in self._workers if each.busy]
            if not busy:
                return
            for connection in wait([each.connection for each in busy]):
                worker = next(each for each in busy if each.connection is connection)
                try:
                    well, value = received(worker.connection.recv_bytes())
                except (EOFError, OSError):
                    self._bury(worker, waiting)
                    continue
                worker.busy, self._deaths = False, 0
                if not well:
                    raise value
                yield worker.job, value

    def _hand_out(self, waiting: JobQueue, begun: Callable[[Any], None]) -> None:
        while waiting:
            free = next((each for each in self._workers if not each.busy), None)
            if free is None and len(self._workers) == self._n:
                return
            free = free or self._hired()
            job = waiting.next(free.job)
            begun(job)
            free.job, free.busy = job, True
            try:
                free.connection.send_bytes(pickle.dumps(job))
            except OSError:
                self._bury(free, waiting)

    def _hired(self) -> _Worker:
        here, there = _CONTEXT.Pipe()
        slot = min({*range(self._n)} - {each.slot for each in self._workers})
        of_work = (self._memory.name, self._spans)
        known = (there, of_work, self._terms, self._script, _gpu(self._gpu + slot))
        process = _CONTEXT.Process(target=_work, args=known, daemon=True)
        with _without_script():
            process.start()
        there.close()
        worker = _Worker(process, here, slot)
        self._workers.append(worker)
        return worker

    def _bury(self, dead: _Worker, waiting: JobQueue) -> None:
        self._workers.remove(dead)
        dead.process.kill()
        dead.process.join()
        dead.connection.close()
        waiting.back(dead.job)
        self._deaths += 1
        if self._deaths == MOST_DEATHS:
            raise InputError(
                f"processes: {MOST_DEATHS} of them ended one after the other (exit code {dead.process.exitcode}) and "
                f"none did its job, the last of which was {str(dead.job)[:100]}; give fewer processes, or less memory "
                "to each"
            )


@contextmanager
def _without_script() -> Iterator[None]:
    """Processes that are begun here do not begin this one's script, all of which would be done once more."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


def _begin_anew(script: Mapping[str, str]) -> None:
    """Run the asker's script, for what it defines."""
    try:
        spawn.prepare(dict(script))
    except (Exception, SystemExit) as error:
        raise InputError(
            f"processes: the work has parts of the script that asks for it, which each process runs for them; expected "
            f"that to end well, got {type(error).__name__}: {error}; put what the script does below "
            "if __name__ == '__main__':, or leave the processes out"
        ) from error


def _shared(packed: Packed) -> tuple[SharedMemory, list[Span]]:
    """Work in shared memory, and where its bytes and each tensor's are."""
    spans, start = list[Span](), 0
    parts = [memoryview(packed.data), *packed.buffers]
    for part in parts:
        spans.append((start, start + part.nbytes))
        start = -(-(start + part.nbytes) // ALIGNED) * ALIGNED
    memory = SharedMemory(create=True, size=start)
    _make_room(memory)
    for part, (begin, end) in zip(parts, spans, strict=True):
        _bytes_of(memory)[begin:end] = part
    return memory, spans


def _make_room(memory: SharedMemory) -> None:
    """Take the bytes that were only promised: to write where there is no room ends a process (SIGBUS)."""
    file = SHARED / memory.name
    if not file.exists():
        return
    with file.open("r+b") as opened:
        try:
            os.posix_fallocate(opened.fileno(), 0, memory.size)
        except OSError as error:
            memory.close()
            memory.unlink()
            there = os.statvfs(SHARED)
            raise InputError(
                f"processes: expected {memory.size:,} bytes of shared memory for the work, got "
                f"{there.f_bavail * there.f_frsize:,} in {SHARED} ({error.strerror}); take --executor local (in Python "
                "Local()), or make it larger (mount -o remount,size=, or docker run --shm-size)"
            ) from error


def _bytes_of(memory: SharedMemory) -> memoryview:
    assert memory.buf is not None, "it is open"
    return memory.buf


def _gpu(number: int) -> str | None:
    """The GPU that a worker is to see: where there are several, each has one in turn, from the one of the work on."""
    if not torch.cuda.is_available():
        return None
    seen = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    names = seen.split(",") if seen else [str(number) for number in range(torch.cuda.device_count())]
    return names[number % len(names)]


def _work(
    connection: Connection, of_work: tuple[str, list[Span]], terms: Terms, script: Mapping[str, str], gpu: str | None
) -> None:
    """What a worker does, until nobody is there to ask."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who asked
    Thread(target=_end_with_asker, daemon=True).start()
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu
    name, spans = of_work
    memory = SharedMemory(name=name)
    data, *buffers = (_bytes_of(memory)[begin:end] for begin, end in spans)
    work = Held(Packed(bytes(data), buffers), terms, script)
    with suppress(EOFError, OSError):
        while True:
            connection.send_bytes(done(work, received(connection.recv_bytes())))
    os._exit(0)  # without taking apart what looks at shared memory


def _end_with_asker() -> None:
    """End this process when nobody is there to ask any more, whatever it is doing."""
    asker = multiprocessing.parent_process()
    assert asker is not None, "a worker was begun by somebody"
    wait([asker.sentinel])
    os._exit(1)


def done(work: Any, job: Any) -> bytes:
    """A job's outcome as bytes: (True, result) or (False, error)."""
    try:
        return pickle.dumps((True, work.run(job)))
    except Exception as error:
        try:
            told = pickle.dumps((False, error))
            received(told)
        except Exception:  # what an exception is made of cannot be foreseen
            return pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))
        return told
