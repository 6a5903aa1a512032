"""One progress of several stages, which says what is being done (``ioi: ablation, 60 of 144 heads``); is it complete?

What is called with (steps done, steps in all) may have a method ``about`` that takes such a text; it is called first.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from interp.interventions.sweep import Progress
from interp.result import Result
from interp.runs.executors import HERE, Local, spread
from interp.runs.run import Run

STEPS = 1000
"""Of what costs one unit."""


def about(progress: Progress | None, text: str) -> None:
    """Tell what is being done to whoever can be told."""
    told = getattr(progress, "about", None)
    if told is not None:
        told(text)


@dataclass(frozen=True)
class _Part:
    progress: Progress
    start: float
    size: float
    whole: float
    steps: int | None

    def __call__(self, done: int, total: int) -> None:
        each = total if self.steps is None else self.steps
        far = self.start + self.size * done / max(1, total)
        self.progress(round(far * each), round(self.whole * each))

    def about(self, text: str) -> None:
        about(self.progress, text)


def part_of(progress: Progress | None, number: int, n_parts: int, steps: int | None = None) -> Progress | None:
    """What part `number` of `n_parts` calls, so that the whole goes on evenly.

    Every part counts `steps`, however many it has of its own; None where all have as many.
    """
    return None if progress is None else _Part(progress, number, 1, n_parts, steps)


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
    """Has jobs done, here or by the workers of a run, stage by stage: one progress, whose time left is even.

    A job counts as much as it costs, about, in any unit; `whole` is what all of them cost. ``seconds`` has the time of
    every stage; whoever is told the progress is told it at last, if it has a method ``took``.
    """

    def __init__(self, run: Run | None, progress: Progress | None, whole: float):
        self._run, self._progress, self._whole, self._done = run, progress, whole, 0.0
        self.seconds: dict[str, float] = {}

    def made(self, stage: str, call: Callable[..., Any], jobs: Sequence[tuple[Any, ...]], cost: float = 1) -> list[Any]:
        """Results in the order of the jobs, each of which costs so much."""
        if not jobs:
            return []
        began, before = time.perf_counter(), min(self._done, self._whole - cost * len(jobs))
        self._done = before + cost * len(jobs)
        try:
            return self._made(stage, call, jobs, before, cost)
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - began

    def _made(
        self, stage: str, call: Callable[..., Any], jobs: Sequence[tuple[Any, ...]], before: float, cost: float
    ) -> list[Any]:
        inner = None if self._run is None else self._run.inner
        executor = HERE if self._run is None else self._run.executor
        if isinstance(executor, Local):
            return [call(*job, inner, self._share(before + number * cost, cost)) for number, job in enumerate(jobs)]
        all_of_them = self._share(before, cost * len(jobs))
        jobs = [(*job, inner, None) for job in jobs]
        about(all_of_them, f"{stage}, 0 of {len(jobs)} tasks")
        return spread(call, jobs, executor, named(all_of_them, stage, "tasks"))

    def _share(self, start: float, size: float) -> Progress | None:
        return None if self._progress is None else _Part(self._progress, start, size, self._whole, STEPS)

    def end(self) -> None:
        """Tell that all is done; sets of heads may have been fewer."""
        if self._progress is not None:
            self._progress(round(STEPS * self._whole), round(STEPS * self._whole))
            took = getattr(self._progress, "took", None)
            if took is not None:
                took(self.seconds)
