"""Which job does a free worker get? The next one where it is already; or else one where the fewest others are.

Jobs may say where they belong (``place``: for a part of a sweep, its batch, whose unchanged run a worker keeps). So
what belongs to a place is made as seldom as can be.

Jobs of an iterator are asked for one by one, as those before them are handed out: a corpus streams by.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from typing import Any


class JobQueue:
    """Jobs that wait, by place, each place in order."""

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
