"""The same questions to one model or several: evidence by model and task, then what each model's heads come to.

Gathering evidence and ablating pairs is most of the work, and no model or task waits for another one's: with several
processes these are done at the same time. Families of tests, which are over all tasks, come between.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, comb
from typing import Any

import pandas as pd

from interp.interventions.replacement import Kind, Means
from interp.interventions.sweep import Progress
from interp.methods.choosing import choose
from interp.methods.components import Head
from interp.methods.evidence import TaskEvidence, gather
from interp.methods.family import tested
from interp.methods.judging import decidable, states, verdicts
from interp.methods.partners import partners
from interp.methods.progress import part_of
from interp.methods.specificity import specificities
from interp.methods.standing_in import candidates, paired, standing_in
from interp.runs.executors import HERE, Executor, Local
from interp.runs.processes import spread
from interp.runs.run import Run
from interp.stats.multiplicity import Correction
from interp.stats.permutation import FLIPS
from interp.tasks.task import Task

_STEPS = 1000


@dataclass(frozen=True)
class Asked:
    """The options of ``heads``."""

    seed: int
    ablation: Kind
    draws: int
    alpha: float
    minimum_attention: float
    minimum_effect: float
    probes: bool
    minimum_probe: float
    most_paired: int
    correction: Correction

    def flips(self, n_tests: int) -> int:
        """Signs of a test: Holm multiplies the smallest p by the number of tests, and it must fall below alpha."""
        return max(FLIPS, ceil(2 * n_tests / self.alpha))


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
    n_cells = [model.cfg.n_layers * model.cfg.n_heads * len(tasks) for model in models]
    flips = [asked.flips(n) for n in n_cells]
    jobs = [(model, task, asked, n, inner) for model, n in zip(models, flips, strict=True) for task in given]
    found = calls.make(_gathered, jobs)
    by_model = [found[start : start + len(given)] for start in range(0, n_first, len(given))]
    frames = [_tested(each, len(tasks), asked, n) for each, n in zip(by_model, flips, strict=True)]
    chosen = [_candidates(frame, tasks, asked.most_paired) for frame in frames]
    both = [
        (model, each.task, heads[each.task.name], each.replacement, asked, asked.flips(_n_pairs(heads)), inner)
        for model, heads, evidence in zip(models, chosen, by_model, strict=True)
        for each in evidence[: len(tasks)]
    ]
    pairs = calls.make(_paired, both, done=n_first)
    judged = []
    for number, (evidence, frame, heads) in enumerate(zip(by_model, frames, chosen, strict=True)):
        own = standing_in(pairs[number * len(tasks) : (number + 1) * len(tasks)], asked.alpha)
        whole = frame.join(partners(frame, own, heads))
        whole = whole.join(verdicts(whole, asked.alpha, _per_test(frame, own, asked.alpha)))
        judged.append(Judged(whole, evidence[: len(tasks)], own))
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


def _gathered(
    model: Any, task: Task, asked: Asked, flips: int, run: Run | None, progress: Progress | None
) -> TaskEvidence:
    return gather(
        model,
        task,
        kind=asked.ablation,
        draws=asked.draws,
        seed=asked.seed,
        minimum_attention=asked.minimum_attention,
        minimum_effect=asked.minimum_effect,
        probes=asked.probes,
        minimum_probe=asked.minimum_probe,
        alpha=asked.alpha,
        flips=flips,
        run=run,
        progress=progress,
    )


def _tested(found: Sequence[TaskEvidence], n_tasks: int, asked: Asked, flips: int) -> pd.DataFrame:
    """One model's evidence with p, states and specificity; what follows the tasks is of those to choose on."""
    evidence, choosing = found[:n_tasks], found[n_tasks:]
    testing: Any = {
        "minima": (asked.minimum_attention, asked.minimum_effect, asked.minimum_probe),
        **{"flips": flips, "correction": asked.correction, "seed": asked.seed},
    }
    chosen = choose(tested(choosing, None, **testing), asked.alpha) if choosing else None
    frame = tested(evidence, chosen, **testing)
    frame = frame.join(states(frame, asked.alpha))
    return frame.assign(specificity=specificities(frame))


def _candidates(frame: pd.DataFrame, tasks: Sequence[Task], most: int) -> dict[str, list[Head]]:
    """The heads whose pairs are ablated, by task; none where nothing can be decided."""
    rows = decidable(frame)
    return {task.name: candidates(rows[rows["task"] == task.name], most) for task in tasks}


def _n_pairs(heads: Mapping[str, Sequence[Head]]) -> int:
    return sum(comb(len(each), 2) for each in heads.values())


def _paired(
    model: Any,
    task: Task,
    heads: Sequence[Head],
    replacement: Kind | Means,
    asked: Asked,
    flips: int,
    run: Run | None,
    progress: Progress | None,
) -> pd.DataFrame:
    how: Any = {"kind": replacement, "draws": asked.draws, "seed": asked.seed, "run": run}
    return paired(model, task, heads, **how, minimum_effect=asked.minimum_effect, flips=flips, progress=progress)


def _per_test(frame: pd.DataFrame, pairs: pd.DataFrame, alpha: float) -> dict[str, float]:
    """What one test of each kind's family has to reach, by Bonferroni; effects are tested on both sides."""
    n_tests = {kind: max(1, frame[f"{kind}_q"].notna().sum()) for kind in ("effect", "attention", "probe")}
    n_tests |= {"pair": max(1, len(pairs)), "related": max(1, frame["joint_q"].notna().sum()), "erasure": 1}
    return {kind: (1 if kind in ("effect", "related", "erasure") else 2) * alpha / n for kind, n in n_tests.items()}
