"""What a simulated device was asked to do, and the memory that its tensors hold."""

import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WATCHED = tuple(f"{ROOT / each}/" for each in ("interp", "forerunners", "recipes", "benchmarks"))
"""Folders whose lines are named as the place of a call."""


@dataclass
class Log:
    """What a GPU would have been asked to do.

    Attributes:
        launches: Kernels, by operation: every dispatched operation that computes, whatever it does inside.
        waits: Times the host waits for all that was launched before, by reason and place.
        copies: Bytes between host and device, by direction.
        lines: Launches, by place.
        flops: Operations of products; all else is small beside them.
    """

    launches: Counter = field(default_factory=Counter)
    waits: Counter = field(default_factory=Counter)
    copies: Counter = field(default_factory=Counter)
    lines: Counter = field(default_factory=Counter)
    flops: int = 0
    paused: int = 0

    def clear(self):
        for each in (self.launches, self.waits, self.copies, self.lines):
            each.clear()
        self.flops = 0

    @property
    def n_launches(self):
        return self.launches.total()

    @property
    def n_waits(self):
        return self.waits.total()

    def launch(self, name):
        if not self.paused:
            self.launches[name] += 1
            self.lines[_place()] += 1

    def wait(self, reason):
        if not self.paused:
            self.waits[reason, _place()] += 1


def _place():
    """The innermost line of the watched folders that is being run."""
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename.startswith(WATCHED):
            return f"{Path(frame.f_code.co_filename).relative_to(ROOT)}:{frame.f_lineno}"
        frame = frame.f_back
    return "elsewhere"


class Memory:
    """Bytes of the storages that a device's living tensors hold."""

    def __init__(self):
        self.now = self.peak = 0
        self._users = {}

    def hold(self, values):
        storage = values.untyped_storage()
        key = storage.data_ptr()
        entry = self._users.setdefault(key, [0, storage.nbytes()])
        if not entry[0]:
            self.now += entry[1]
            self.peak = max(self.peak, self.now)
        entry[0] += 1
        return _Held(self, key)

    def release(self, key):
        entry = self._users[key]
        entry[0] -= 1
        if not entry[0]:
            self.now -= entry[1]
            del self._users[key]


class _Held:
    """Lives as long as the tensor that has it; a weak reference to the tensor itself would forbid swapping it."""

    __slots__ = ("_key", "_memory")

    def __init__(self, memory, key):
        self._memory, self._key = memory, key

    def __del__(self):
        self._memory.release(self._key)


LOG = Log()
MEMORY = [Memory() for _ in range(8)]
"""By device: as many as can be simulated."""
