"""The same questions to one model or several: evidence by model and task, then what each model's heads come to.

Gathering evidence and ablating heads together is most of the work, and no model or task waits for another one's: with
several processes these are done at the same time. Families of tests, which are over all tasks, come between.

Do other seeds of the same training come to the same verdicts? Which heads have them there.

Heads of two models have nothing to do with each other's numbers, so a verdict on a task replicates where *some* head of
the other model gets it on the same examples. What no head of either gets, or is undecided, says nothing: so it is
noted of every model how many of its heads are, and a model that is not judged on a task is not held against anyone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from interp.arguments import as_list
from interp.claims.corrections import Chosen, choose
from interp.claims.declared import Declared
from interp.claims.groups import GROUP_COLUMNS, candidates, judged_groups, partners, remaining
from interp.claims.verdicts import decidable, specificities, states, verdicts
from interp.errors import InputError
from interp.interventions.engine.plan import NoRoomError
from interp.interventions.provenance import model_provenance
from interp.interventions.replacement import Means
from interp.interventions.sweep import Progress
from interp.methods.ablation import Head, head_name, part_of
from interp.methods.evidence import TaskEvidence, gather, tested
from interp.methods.groups import ablated_together
from interp.methods.representation import CELL
from interp.methods.task_arguments import none_left, told
from interp.options import HeadsOptions
from interp.runs.executors import HERE, Executor, Local, spread
from interp.runs.run import Run
from interp.tasks.task import Task

_STEPS = 1000
_Candidates = Mapping[str, tuple[Sequence[Head], Sequence[Head]]]
"""By task, the heads that could do its work and are not missed by themselves, and those that look and are missed."""


@dataclass(frozen=True)
class Judged:
    """What was found of one model.

    Attributes:
        frame: One row per layer, head and task: evidence, states and verdict.
        evidence: Of every task.
        groups: As of ``judged_groups``.
    """

    frame: pd.DataFrame
    evidence: Sequence[TaskEvidence]
    groups: pd.DataFrame


def judge_models(
    models: Sequence[Any],
    tasks: Sequence[Task],
    choose_on: Sequence[Task],
    asked: HeadsOptions,
    declared: Declared | None = None,
    *,
    run: Run | None = None,
    progress: Progress | None = None,
) -> tuple[list[Judged], dict[str, str]]:
    """Gather the evidence on every model, test and judge it.

    A task that cannot be measured on one of the models is left out of all, with a warning.

    `choose_on` are the same tasks, of other items, on which heads are chosen; only `declared` claims can be shown, if
    there are any. From several workers, `progress` tells of whole tasks only.

    Returns:
        What was found of every model; and by its name, why each task that is not in there is left out.

    Raises:
        InputError: A model cannot be sent to another process, or no task can be measured.
        OutputError: A sweep cannot be kept.
        KeyboardInterrupt: It was interrupted.
    """
    given = [*tasks, *choose_on]
    n_first, n_second = len(models) * len(given), len(models) * len(tasks)
    calls = _Calls(n_first + n_second, HERE if run is None else run.executor, progress)
    inner = None if run is None else run.inner
    jobs = [(model, task, asked, inner) for model in models for task in given]
    found = calls.make(_gathered, jobs)
    failed = {task.name: each for (_, task, *_), each in zip(jobs, found, strict=True) if isinstance(each, InputError)}
    left = [task for task in tasks if task.name not in failed]
    if not left:
        raise none_left(failed)
    evidence = [each for (_, task, *_), each in zip(jobs, found, strict=True) if task.name not in failed]
    size = len(evidence) // len(models)
    by_model = [evidence[start : start + size] for start in range(0, len(evidence), size)]
    frames = [_tested(each, len(left), asked, declared) for each in by_model]
    chosen = [_candidates(frame, left, asked.max_group) for frame in frames]
    groups = _groups(models, by_model, left, chosen, asked, inner, calls)
    judged = []
    for evidence, frame, heads, own in zip(by_model, frames, chosen, groups, strict=True):
        taken = {task: unmissed for task, (unmissed, _) in heads.items()}
        whole = frame.join(partners(frame, own, taken, asked.alpha))
        judged.append(Judged(whole.join(verdicts(whole)), evidence[: len(left)], own[list(GROUP_COLUMNS)]))
    return judged, told(failed)


def _groups(
    models: Sequence[Any],
    by_model: Sequence[Sequence[TaskEvidence]],
    tasks: Sequence[Task],
    chosen: Sequence[_Candidates],
    asked: HeadsOptions,
    run: Run | None,
    calls: "_Calls",
) -> list[pd.DataFrame]:
    """Every model's groups: sets are ablated together, and again without those that are no members."""
    sets = {(number, task.name): heads[task.name] for number, heads in enumerate(chosen) for task in tasks}
    places = {task.name: place for place, task in enumerate(tasks)}
    found: list[list[pd.DataFrame]] = [[] for _ in models]
    testing: Any = {"min_effect": asked.min_effect, "alpha": asked.alpha, "seed": asked.seed}
    while sets:
        jobs = []
        for (number, name), (heads, missed) in sets.items():
            evidence = by_model[number][places[name]]
            jobs.append((models[number], evidence.task, evidence.means, heads, missed, asked, run))
        measured = dict(zip(sets, calls.make(_ablated, jobs, done=calls.n - len(jobs)), strict=True))
        last, sets = sets, {}
        for number in range(len(models)):
            own = {name: frame for (each, name), frame in measured.items() if each == number}
            groups = judged_groups(own, **testing, step=len(found[number]) + 1)
            found[number].append(groups)
            left = {name: remaining(groups, name) for name in own}
            sets |= {(number, name): (heads, last[number, name][1]) for name, heads in left.items() if heads}
    return [
        pd.concat(each, ignore_index=True).drop_duplicates(["task", "head"], keep="last", ignore_index=True)
        for each in found
    ]


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
    model: Any, task: Task, asked: HeadsOptions, run: Run | None, progress: Progress | None
) -> TaskEvidence | InputError:
    """The evidence on a task, or why there is none."""
    try:
        return gather(model, task, asked, run=run, progress=progress)
    except NoRoomError:  # which may pass
        raise
    except InputError as error:
        return error


def _tested(
    found: Sequence[TaskEvidence], n_tasks: int, asked: HeadsOptions, declared: Declared | None
) -> pd.DataFrame:
    """One model's evidence with p, states and specificity; what follows the tasks is of those to choose on."""
    evidence, choosing = found[:n_tasks], found[n_tasks:]
    chosen = choose(tested(choosing, None, asked), asked.alpha) if choosing else None
    if declared is not None:
        chosen = _declared(evidence, [(*each.head, each.task) for each in declared.claims])
    frame = tested(evidence, chosen, asked)
    frame = frame.join(states(frame, asked.alpha))
    heads = "declared" if declared is not None else "chosen" if choosing else ""
    return frame.assign(specificity=specificities(frame), probed=asked.probes, tested=heads)


def _declared(evidence: Sequence[TaskEvidence], claims: Sequence[tuple[int, int, str]]) -> Chosen:
    """The rows that are declared; of their heads, absence on any task, which says whether they are specific."""
    cells = evidence[0].resampled.examples[CELL].drop_duplicates().sort_values(CELL)
    rows = [(int(layer), int(head), each.task.name) for each in evidence for layer, head in cells.to_numpy()]
    declared = np.array([row in claims for row in rows], dtype=bool)
    heads = {(layer, head) for layer, head, _ in claims}
    of_heads = np.array([(layer, head) in heads for layer, head, _ in rows], dtype=bool)
    return {"effect": declared, "excess": declared, "probe": declared, "exchange": declared, "absent": of_heads}


def _candidates(frame: pd.DataFrame, tasks: Sequence[Task], most: int) -> _Candidates:
    """The heads that are ablated together, by task; none where nothing can be decided."""
    rows = decidable(frame)
    return {task.name: candidates(rows[rows["task"] == task.name], most) for task in tasks}


def _ablated(
    model: Any,
    task: Task,
    means: Means,
    heads: Sequence[Head],
    missed: Sequence[Head],
    asked: HeadsOptions,
    run: Run | None,
    progress: Progress | None,
) -> pd.DataFrame:
    how: Any = {"draws": asked.draws, "seed": asked.seed, "run": run, "progress": progress}
    return ablated_together(model, task, heads, missed, means=means, **how)


COLUMNS = ("task", "verdict", "model", "heads", "n_heads", "n_undecided", "judged")
SILENT = ("none", "undecided")
"""Verdicts that are no finding."""


def replication(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Which heads of which model get each verdict.

    Args:
        frames: ``HeadsReport.summary()`` by the name of its model, the model in question first.

    Returns:
        One row per task, verdict that some head of some model gets, and model: ``heads``, such as ``2.1 2.2`` (empty
        where none does), and ``n_heads``; ``n_undecided``: the heads of which nothing is known on the task; and
        ``judged``: whether the model can be judged on it at all.
    """
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    for name, frame in frames.items():
        for row in frame[~frame["verdict"].isin(SILENT)].to_dict("records"):
            by_model = found.setdefault((row["task"], row["verdict"]), {})
            by_model.setdefault(name, []).append(head_name((int(row["layer"]), int(row["head"]))))
    states = {(name, task): _state(rows) for name, frame in frames.items() for task, rows in frame.groupby("task")}
    rows = []
    for (task, verdict), by_model in found.items():
        for name in frames:
            heads, state = by_model.get(name, []), states.get((name, task), (0, False))
            rows.append((task, verdict, name, " ".join(heads), len(heads), *state))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _state(rows: pd.DataFrame) -> tuple[int, bool]:
    """Of a model's heads on one task."""
    return int((rows["verdict"] == "undecided").sum()), bool((rows["undecidable"] == "").any())


def check_siblings(model: Any, siblings: Sequence[Any]) -> None:
    """Refuse siblings that read other tokens than the model, or are no other models.

    Raises:
        InputError: They are no list, some is no model, a tokenizer is another one, or the weights of two models are
            the same.
    """
    if as_list(siblings) is None:
        raise InputError(f"siblings: expected a list of models, got {type(siblings).__name__}; give [model]")
    for each in siblings:
        if not hasattr(each, "cfg"):
            raise InputError(f"siblings: expected models, got {each!r:.60}; load them with interp.load_model")
    first, *others = (model_provenance(each) for each in (model, *siblings))
    known = {first["model_hash"]}
    for name, sibling in zip(names(siblings), others, strict=True):
        own = sibling["model_hash"]
        if own is not None and own in known:
            raise InputError(
                f"siblings: expected models that differ, got {name} with the weights of one before it ({own[:12]}); "
                "give models of other seeds, each once"
            )
        known.add(own)
        if sibling["tokenizer_hash"] != first["tokenizer_hash"]:
            raise InputError(
                f"siblings: expected models with the first one's tokenizer ({str(first['tokenizer_hash'])[:12]}), "
                f"reading the same tokens, got {name} with another ({str(sibling['tokenizer_hash'])[:12]}); give "
                "models of the same training"
            )


def names(models: Sequence[Any]) -> list[str]:
    """A different name for each model: its own, with a number where that is taken."""
    found: list[str] = []
    for model in models:
        own = str(model_provenance(model)["model"])
        found.append(next(name for name in (own, *(f"{own} ({n})" for n in range(2, 99))) if name not in found))
    return found
