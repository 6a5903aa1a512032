"""Who measures a sweep, and where is what was measured kept? Here, at once and nowhere, unless somebody is given."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import pandas as pd

from interp.interventions.sweep_run import SweepRun

Asking = Callable[[], Mapping[str, Any]]
"""Says what is asked for: all that numbers follow from, as values that JSON can hold. It may take hashing a model."""


@dataclass(frozen=True)
class Answer:
    """What became of a sweep.

    Attributes:
        frame: As of ``SweepResult``.
        provenance: The same.
    """

    frame: pd.DataFrame
    provenance: Mapping[str, Any]


class Kept(Protocol):
    """One sweep's place."""

    def answer(self) -> Answer | None:
        """The finished sweep's; None where it is to be measured, or to go on."""
        ...

    def measure(self, run: SweepRun) -> None:
        """Bring every part of the sweep to `run`: what is known already, and what is measured now."""
        ...

    def finish(self, answer: Answer) -> Answer:
        """Keep what became of it; as it will be given from here on."""
        ...


class Keeper(Protocol):
    """Has a place for every sweep (``interp/runs/``)."""

    def open(self, asked: Asking, about: Mapping[str, Any]) -> AbstractContextManager[Kept]:
        """The place of what is asked for, held alone while the context lasts.

        Args:
            asked: Says all that the numbers follow from; not called where nothing is kept.
            about: What whoever looks at it later wants to know besides.
        """
        ...


class Here:
    """Measures in this process, and keeps nothing."""

    def open(self, asked: Asking, about: Mapping[str, Any]) -> AbstractContextManager["Here"]:
        """Nothing to be held."""
        return nullcontext(self)

    def answer(self) -> None:
        """Nothing is known."""

    def measure(self, run: SweepRun) -> None:
        """Measure cell by cell, so that an interrupt loses one batch at most."""
        run.processors.add(run.work.processor)
        for part in run.work.parts():
            before = run.work.halvings
            try:
                for scores in run.work.measured(part):
                    run.take(scores)
            finally:
                run.halvings += run.work.halvings - before

    def finish(self, answer: Answer) -> Answer:
        """It stays as it is."""
        return answer
