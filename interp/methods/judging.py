"""The same questions to one model or several: evidence by model and task, sets of heads, and who replicates whom.

Gathering evidence and ablating heads together is most of the work, and no model or task waits for another one's: with
several processes these are done at the same time. Families of tests, which are over all tasks, come between.

**Sets.** What does a task lose when all heads that could do its work are gone, and what is each of them worth then?

1. All heads of a set are ablated together, under both replacements.
2. The others' means stand in their places, and of the one that is left the effect is measured, under both again: its
   **share**. (Another example's output in the others' places would be loud with a wrong answer; a mean says nothing.)
3. The same with the heads gone, too, that are missed by themselves: what a head is worth as a **backup** of these.

``claims/groups.py`` says which sets are ablated, and judges the numbers.

**Replication.** Heads of two models have nothing to do with each other's numbers, so a verdict on a task replicates
where *some* head of the other model gets it on the same examples. What no head of either gets, or is undecided, says
nothing: of every model it is noted how many of its heads are, and a model that is not judged on a task is not held
against anyone.

McGrath et al. (2023), "The Hydra effect"; Wang et al. (2022), "Interpretability in the wild" (backup heads).
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
from interp.interventions.intervention import Cell, Intervention
from interp.interventions.reference_set import make_replacement
from interp.interventions.replacement import Means, Replacement
from interp.interventions.sweep import Progress, Sweep
from interp.methods.ablation import Head, head_name, set_name
from interp.methods.evidence import CELL, TaskEvidence, gather, tested
from interp.methods.grid import complete, part_of
from interp.methods.task_arguments import none_left, told
from interp.model.provenance import model_provenance
from interp.model.sites import Site
from interp.options import HeadsOptions
from interp.runs.executors import HERE, Executor, Local, spread
from interp.runs.run import Run
from interp.tasks.task import Task

_STEPS = 1000
_Candidates = Mapping[str, tuple[Sequence[Head], Sequence[Head]]]
"""By task, the heads that could do its work and are not missed by themselves, and those that look and are missed."""


@dataclass(frozen=True)
class Judged:
    """What was found of one model: one row per layer, head and task; the tasks' evidence; and ``judged_groups``."""

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

    A task that cannot be measured on one of the models is left out of all, with a warning: returned is what was found
    of every model, and by its name why each of these tasks is left out. `choose_on` are the same tasks, of other items,
    on which heads are chosen; only `declared` claims can be shown, if there are any. From several workers, `progress`
    tells of whole tasks only.
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
        measured = dict(zip(sets, calls.make(ablated_together, jobs, done=calls.n - len(jobs)), strict=True))
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


def ablated_together(
    model: Any,
    task: Task,
    means: Means,
    heads: Sequence[Head],
    missed: Sequence[Head],
    asked: HeadsOptions,
    run: Run | None = None,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Ablate heads that could stand in for each other together, and each with the others gone.

    `means` take the place of those that are gone. One row per head and example: ``heads`` (the set), ``missed``,
    ``head``, what is known of the example, ``together`` (the effect of resampling all of `heads`) and ``mean_together``
    (of their means), ``share`` and ``mean_share``, ``backup`` and ``mean_backup``; NaN where it was not asked for.
    Empty where there is no set: fewer than two heads, and one where none is `missed` by itself.
    """
    if len(heads) < 2 and not (heads and missed):
        if progress is not None:
            progress(1, 1)
        return pd.DataFrame()
    sites = [Site("z", layer) for layer in sorted({layer for layer, _ in (*heads, *missed)})]
    resample = make_replacement("resample", model, task, sites=sites, draws=asked.draws, seed=asked.seed)
    changes: dict[str, dict[Head, Replacement]] = {}
    if len(heads) > 1:
        changes |= {"resampled": dict.fromkeys(heads, resample), **_one_by_one(heads, [], means, resample)}
    if missed:
        changes |= {f"missed, {name}": each for name, each in _one_by_one(heads, missed, means, resample).items()}
    cells = [Cell({"cell": name}, _interventions(each)) for name, each in changes.items()]
    result = complete(Sweep(cells).run(model, task, seed=asked.seed, progress=progress, run=run))
    by_cell = {str(name): rows for name, rows in result.examples.groupby("cell", sort=False)}
    return pd.concat([_worth(by_cell, head, heads, missed) for head in heads], ignore_index=True)


def _one_by_one(
    heads: Sequence[Head], missed: Sequence[Head], means: Means, resample: Replacement
) -> dict[str, dict[Head, Replacement]]:
    """All gone; all but one; and that one resampled, with the others gone."""
    gone: dict[Head, Replacement] = dict.fromkeys((*heads, *missed), means)
    found: dict[str, dict[Head, Replacement]] = {"gone": gone}
    for head in heads:
        others = {each: made for each, made in gone.items() if each != head}
        found[f"all but {head_name(head)}"] = others
        found[f"all but {head_name(head)}, resampled"] = {**others, head: resample}
    return found


def _interventions(change: Mapping[Head, Replacement]) -> tuple[Intervention, ...]:
    """By layer and replacement."""
    found: dict[tuple[int, int], list[Head]] = {}
    for head, made in sorted(change.items(), key=lambda each: each[0]):
        found.setdefault((head[0], id(made)), []).append(head)
    return tuple(
        Intervention(Site("z", layer), change[own[0]], heads=tuple(head for _, head in own))
        for (layer, _), own in found.items()
    )


def _worth(
    by_cell: Mapping[str, pd.DataFrame], head: Head, heads: Sequence[Head], missed: Sequence[Head]
) -> pd.DataFrame:
    """One head's rows; a sweep has its examples in the same order in every cell."""
    first = next(iter(by_cell.values()))
    found = first[["unit", "example", "cluster", "template", "layout", "base", "base_correct"]].reset_index(drop=True)
    n = len(found)

    def effect(name: str) -> np.ndarray:
        return by_cell[name]["effect"].to_numpy() if name in by_cell else np.full(n, np.nan)

    def worth(among: str) -> tuple[np.ndarray, np.ndarray]:
        """What ablating the head costs where the others are gone."""
        left = effect(f"{among}all but {head_name(head)}")
        return effect(f"{among}all but {head_name(head)}, resampled") - left, effect(f"{among}gone") - left

    share, mean_share = worth("")
    backup, mean_backup = worth("missed, ")
    found = found.assign(heads=set_name(heads), missed=set_name(missed), head=head_name(head))
    found = found.assign(together=effect("resampled"), mean_together=effect("gone"))
    return found.assign(share=share, mean_share=mean_share, backup=backup, mean_backup=mean_backup)


COLUMNS = ("task", "verdict", "model", "heads", "n_heads", "n_undecided", "judged")
SILENT = ("none", "undecided")
"""Verdicts that are no finding."""


def replication(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Which heads of which model get each verdict; `frames` are ``HeadsReport.summary()`` by the model's name.

    One row per task, verdict that some head of some model gets, and model: ``heads``, such as ``2.1 2.2`` (empty where
    none does), and ``n_heads``; ``n_undecided``: the heads of which nothing is known on the task; and ``judged``:
    whether the model can be judged on it at all.
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
    """Refuse siblings that read other tokens than the model, or are no other models."""
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
