"""One progress of several stages, which says what is being done (``ioi: ablation, 60 of 144 heads``); is it complete?

What is called with (steps done, steps in all) may have a method ``about`` that takes such a text; it is called first.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from interp.interventions.sweep import Progress
from interp.result import Result
from interp.runs.executors import HERE, Local, spread
from interp.runs.run import Run

STEPS = 1000
"""Of each job of ``Steps``."""


def about(progress: Progress | None, text: str) -> None:
    """Tell what is being done to whoever can be told."""
    told = getattr(progress, "about", None)
    if told is not None:
        told(text)


@dataclass(frozen=True)
class _Part:
    progress: Progress
    number: int
    n_parts: int
    steps: int | None

    def __call__(self, done: int, total: int) -> None:
        each = total if self.steps is None else self.steps
        self.progress(self.number * each + done * each // max(1, total), self.n_parts * each)

    def about(self, text: str) -> None:
        about(self.progress, text)


def part_of(progress: Progress | None, number: int, n_parts: int, steps: int | None = None) -> Progress | None:
    """What part `number` of `n_parts` calls, so that the whole goes on evenly.

    Every part counts `steps`, however many it has of its own; None where all have as many.
    """
    return None if progress is None else _Part(progress, number, n_parts, steps)


@dataclass(frozen=True)
class _Named:
    progress: Progress
    what: str
    unit: str

    def __call__(self, done: int, total: int) -> None:
        about(self.progress, f"{self.what}, {done} of {total} {self.unit}")
        self.progress(done, total)


def named(progress: Progress | None, what: str, unit: str) -> Progress | None:
    """What says, at each step, `what` is being done, and how many of which `unit` are done."""
    return None if progress is None else _Named(progress, what, unit)


AnyResult = TypeVar("AnyResult", bound=Result)


def complete(result: AnyResult) -> AnyResult:
    """The result; a sweep that was interrupted is not evidence on a task, and raises KeyboardInterrupt."""
    if not result.provenance["complete"]:
        raise KeyboardInterrupt
    return result


class Steps:
    """Has jobs done, here or by the workers of a run: about `n` in all, which are one progress."""

    def __init__(self, run: Run | None, progress: Progress | None, n: int):
        self._run, self._progress, self._n, self._done = run, progress, n, 0

    def made(self, call: Callable[..., Any], jobs: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Results in the order of the jobs."""
        inner = None if self._run is None else self._run.inner
        executor = HERE if self._run is None else self._run.executor
        if not jobs:
            return []
        n, progress = self._n, self._progress
        before = min(self._done, n - len(jobs))
        self._done = before + len(jobs)
        if isinstance(executor, Local):
            steps = [part_of(progress, before + number, n, STEPS) for number in range(len(jobs))]
            return [call(*job, inner, step) for job, step in zip(jobs, steps, strict=True)]

        def told(ended: int, _: int) -> None:
            if progress is not None:
                about(progress, f"{ended} of {len(jobs)} tasks")
                progress(before + ended, n)

        return spread(call, [(*job, inner, None) for job in jobs], executor, told)

    def end(self) -> None:
        """Tell that all is done; sets of heads may have been fewer."""
        if self._progress is not None:
            self._progress(self._n * STEPS, self._n * STEPS)
