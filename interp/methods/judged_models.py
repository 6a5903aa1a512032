"""The same questions to one model or several: evidence by model and task, then what each model's heads come to.

Gathering evidence and ablating pairs is most of the work, and no model or task waits for another one's: with several
processes these are done at the same time. Families of tests, which are over all tasks, come between.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from interp.claims.choosing import Chosen, choose
from interp.claims.corrections import Correction
from interp.claims.partners import PAIR_COLUMNS, candidates, partners, standing_in
from interp.claims.specificity import specificities
from interp.claims.verdicts import decidable, states, verdicts
from interp.interventions.replacement import Means
from interp.interventions.sweep import Progress
from interp.methods.components import Head
from interp.methods.evidence import CELL, TaskEvidence, gather, tested
from interp.methods.progress import part_of
from interp.methods.standing_in import paired
from interp.runs.executors import HERE, Executor, Local
from interp.runs.processes import spread
from interp.runs.run import Run
from interp.tasks.task import Task

_STEPS = 1000


@dataclass(frozen=True)
class Asked:
    """The options of ``heads``."""

    seed: int
    draws: int
    alpha: float
    minimum_attention: float
    minimum_effect: float
    probes: bool
    minimum_probe: float
    most_paired: int
    correction: Correction
    declared: tuple[tuple[int, int, str], ...] = ()
    """Layer, head and task of the claims that are all that is tested; empty to test all."""


@dataclass(frozen=True)
class Judged:
    """What was found of one model.

    Attributes:
        frame: One row per layer, head and task: evidence, states and verdict.
        evidence: Of every task.
        pairs: As of ``standing_in``.
    """

    frame: pd.DataFrame
    evidence: Sequence[TaskEvidence]
    pairs: pd.DataFrame


def judge_models(
    models: Sequence[Any],
    tasks: Sequence[Task],
    choose_on: Sequence[Task],
    asked: Asked,
    *,
    run: Run | None = None,
    progress: Progress | None = None,
) -> list[Judged]:
    """Gather the evidence on every model, test and judge it.

    Args:
        models: Follow TransformerLens' protocol.
        tasks: What is measured.
        choose_on: The same tasks, of other items, on which heads are chosen; empty to test all.
        asked: The options.
        run: Who measures models and tasks, and where their sweeps are kept; None for this process, and nowhere.
        progress: Called with (steps done, steps in all); from several workers, of whole tasks only.

    Raises:
        InputError: A model cannot be sent to another process.
        OutputError: A sweep cannot be kept.
        KeyboardInterrupt: It was interrupted.
    """
    given = [*tasks, *choose_on]
    n_first, n_second = len(models) * len(given), len(models) * len(tasks)
    calls = _Calls(n_first + n_second, HERE if run is None else run.executor, progress)
    inner = None if run is None else run.inner
    jobs = [(model, task, asked, inner) for model in models for task in given]
    found = calls.make(_gathered, jobs)
    by_model = [found[start : start + len(given)] for start in range(0, n_first, len(given))]
    frames = [_tested(each, len(tasks), asked) for each in by_model]
    chosen = [_candidates(frame, tasks, asked.most_paired) for frame in frames]
    both = [
        (model, each.task, heads[each.task.name], each.means, asked, inner)
        for model, heads, evidence in zip(models, chosen, by_model, strict=True)
        for each in evidence[: len(tasks)]
    ]
    pairs = calls.make(_paired, both, done=n_first)
    judged = []
    for number, (evidence, frame, heads) in enumerate(zip(by_model, frames, chosen, strict=True)):
        of_tasks = pairs[number * len(tasks) : (number + 1) * len(tasks)]
        own = standing_in(
            dict(zip([task.name for task in tasks], of_tasks, strict=True)),
            minimum_effect=asked.minimum_effect,
            alpha=asked.alpha,
            seed=asked.seed,
        )
        whole = frame.join(partners(frame, own, heads))
        judged.append(Judged(whole.join(verdicts(whole)), evidence[: len(tasks)], own[list(PAIR_COLUMNS)]))
    return judged


@dataclass(frozen=True)
class _Calls:
    """Calls that are parts of one progress."""

    n: int
    executor: Executor
    progress: Progress | None

    def make(self, call: Callable[..., Any], jobs: Sequence[tuple[Any, ...]], done: int = 0) -> list[Any]:
        """Results in the order of the jobs; `done` calls were made before these."""
        if isinstance(self.executor, Local):
            steps = [part_of(self.progress, done + number, self.n, _STEPS) for number in range(len(jobs))]
            return [call(*job, step) for job, step in zip(jobs, steps, strict=True)]
        found: dict[int, Any] = {}
        for number, each in spread(call, [(*job, None) for job in jobs], self.executor):
            found[number] = each
            if self.progress is not None:
                self.progress(done + len(found), self.n)
        return [found[number] for number in range(len(jobs))]


def _gathered(model: Any, task: Task, asked: Asked, run: Run | None, progress: Progress | None) -> TaskEvidence:
    return gather(
        model,
        task,
        draws=asked.draws,
        seed=asked.seed,
        minimum_attention=asked.minimum_attention,
        minimum_effect=asked.minimum_effect,
        probes=asked.probes,
        minimum_probe=asked.minimum_probe,
        alpha=asked.alpha,
        run=run,
        progress=progress,
    )


def _tested(found: Sequence[TaskEvidence], n_tasks: int, asked: Asked) -> pd.DataFrame:
    """One model's evidence with p, states and specificity; what follows the tasks is of those to choose on."""
    evidence, choosing = found[:n_tasks], found[n_tasks:]
    testing: Any = {
        **{"minimum_attention": asked.minimum_attention, "minimum_effect": asked.minimum_effect},
        **{"correction": asked.correction, "alpha": asked.alpha, "seed": asked.seed},
    }
    chosen = choose(tested(choosing, None, **testing), asked.alpha) if choosing else None
    if asked.declared:
        chosen = _declared(evidence, asked.declared)
    frame = tested(evidence, chosen, **testing)
    frame = frame.join(states(frame, asked.alpha))
    return frame.assign(specificity=specificities(frame))


def _declared(evidence: Sequence[TaskEvidence], claims: Sequence[tuple[int, int, str]]) -> Chosen:
    """The rows that are declared; of their heads, absence on any task, which says whether they are specific."""
    cells = evidence[0].resampled.frame[CELL].drop_duplicates().sort_values(CELL)
    rows = [(int(layer), int(head), each.task.name) for each in evidence for layer, head in cells.to_numpy()]
    declared = np.array([row in claims for row in rows], dtype=bool)
    heads = {(layer, head) for layer, head, _ in claims}
    of_heads = np.array([(layer, head) in heads for layer, head, _ in rows], dtype=bool)
    return {"effect": declared, "excess": declared, "probe": declared, "exchange": declared, "absent": of_heads}


def _candidates(frame: pd.DataFrame, tasks: Sequence[Task], most: int) -> dict[str, list[Head]]:
    """The heads whose pairs are ablated, by task; none where nothing can be decided."""
    rows = decidable(frame)
    return {task.name: candidates(rows[rows["task"] == task.name], most) for task in tasks}


def _paired(
    model: Any,
    task: Task,
    heads: Sequence[Head],
    means: Means,
    asked: Asked,
    run: Run | None,
    progress: Progress | None,
) -> pd.DataFrame:
    return paired(model, task, heads, kind=means, draws=asked.draws, seed=asked.seed, run=run, progress=progress)
