"""The same questions to one model or several: evidence by model and task, sets of heads, and who replicates whom.

Gathering evidence and ablating heads together is most of the work, and no model or task waits for another one's: with
several processes these are done at the same time. Families of tests, which are over all tasks, come between.

**Sets.** All heads that could do a task's work are ablated together, under both replacements. Then the others' means
stand in their places, and the effect of the one that is left is measured, under both again: its **share**; with the
heads gone, too, that are missed by themselves, its worth as a **backup** of these. (Another example's output in the
others' places would be loud with a wrong answer; a mean says nothing.) ``claims/groups.py`` says which sets are
ablated, and judges the numbers.

**Replication.** Heads of two models have nothing to do with each other's numbers, so a verdict on a task replicates
where *some* head of the other model gets it on the same examples. What no head of either gets, or is undecided, says
nothing: of every model it is noted how many of its heads are, and a model that is not judged on a task is not held
against anyone.

McGrath et al. (2023), "The Hydra effect"; Wang et al. (2022), "Interpretability in the wild" (backup heads).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from interp.arguments import as_list
from interp.claims.declared import Chosen, Declared, choose
from interp.claims.groups import GROUP_COLUMNS, candidates, judged_groups, partners, remaining
from interp.claims.verdicts import decidable, specificities, states, verdicts
from interp.errors import InputError
from interp.interventions.intervention import Cell, Intervention
from interp.interventions.reference_set import make_replacement
from interp.interventions.replacement import Means, Replacement
from interp.interventions.sweep import Progress, Sweep, SweepResult
from interp.methods.ablation import Head, check_heads, head_name, set_name
from interp.methods.ablation_looks import KINDS, Begun, ablated, begin, joined, look_sizes
from interp.methods.evidence import Ablations, TaskEvidence, gather, gathered, in_one_look, tested
from interp.methods.progress import Steps, complete, named
from interp.methods.task_arguments import none_left, told
from interp.model.provenance import model_provenance
from interp.model.sites import Site
from interp.options import HeadsOptions
from interp.runs.run import Run
from interp.tasks.task import Task

BEGIN_COST, LOOK_COST, PROBE_COST, SET_COST, STILL_OPEN = 2.0, 10.0, 4.0, 1.0, 0.25
"""What a task's stages cost beside each other, about, and the share of the heads that later looks measure."""


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
    # What is asked of the first model on the scored items decides whether a task is left out.
    others = replace(asked, anyway=True)
    jobs = [
        (model, task, asked if model is models[0] and number < len(tasks) else others, number >= len(tasks))
        for model in models
        for number, task in enumerate(given)
    ]
    looks = [look_sizes(task, asked) for task in tasks]
    measured = sum(_cost_of_look(each, look) for each in looks for look in range(len(each)))
    rest = (BEGIN_COST + PROBE_COST + SET_COST) * len(tasks) + BEGIN_COST * len(choose_on)
    steps = Steps(run, progress, len(models) * (measured + rest))
    found = steps.made("attention", _begun, jobs, BEGIN_COST)
    failed = {job[1].name: each for job, each in zip(jobs, found, strict=True) if isinstance(each, InputError)}
    left = [task for task in tasks if task.name not in failed]
    if not left:
        raise none_left(failed)
    kept = [each for job, each in zip(jobs, found, strict=True) if job[1].name not in failed]
    size = len(kept) // len(models)
    by_model = [kept[start : start + size] for start in range(0, len(kept), size)]
    begun = [each[: len(left)] for each in by_model]
    chosen = [
        _chosen(model, left, every[len(left) :], asked, declared) for model, every in zip(models, by_model, strict=True)
    ]
    pieces, tests = _in_looks(models, begun, chosen, asked, steps)
    jobs = [
        (models[number], each, pieces[number][each.task.name], asked)
        for number, own in enumerate(begun)
        for each in own
    ]
    evidence = steps.made("exchanged words and probes", gathered, jobs, PROBE_COST)
    own = [evidence[start : start + len(left)] for start in range(0, len(evidence), len(left))]
    frames = [
        _tested(*each, asked, "declared" if declared is not None else "chosen" if choose_on else "")
        for each in zip(own, tests, chosen, strict=True)
    ]
    groups = _groups(models, begun, frames, asked, steps)
    steps.end()
    judged = []
    for evidence, frame, sets in zip(own, frames, groups, strict=True):
        whole = frame.join(partners(frame, sets, asked.alpha))
        judged.append(Judged(whole.join(verdicts(whole)), evidence, sets[list(GROUP_COLUMNS)]))
    return judged, told(failed)


def _cost_of_look(sizes: Sequence[int], look: int) -> float:
    """Of one task; a look that it does not have costs nothing."""
    if look >= len(sizes):
        return 0.0
    added = sizes[look] - (sizes[look - 1] if look else 0)
    return LOOK_COST * added / sizes[0] * (STILL_OPEN if look else 1)


def _in_looks(
    models: Sequence[Any],
    begun: Sequence[Sequence[Begun]],
    chosen: Sequence[Chosen | None],
    asked: HeadsOptions,
    steps: Steps,
) -> tuple[list[dict[str, dict[str, list[SweepResult]]]], list[Ablations]]:
    """By model: by task and kind of ablation what was measured at each look, and the tests as of the last one.

    After each look, heads whose effect is settled leave (``interp.claims.looks``).
    """
    n_looks = max(len(each.sizes) for own in begun for each in own)
    tests = [Ablations.of(n_looks, asked) for _ in models]
    pieces: list[dict[str, dict[str, list[SweepResult]]]] = [
        {each.task.name: {kind: [] for kind in KINDS} for each in own} for own in begun
    ]
    for look in range(n_looks):
        jobs, whose = [], []
        for model, own, measured, test in zip(models, begun, pieces, tests, strict=True):
            every = dict.fromkeys(KINDS, check_heads(model, None))
            for each in own:
                stay = test.stay(each.task.name) if look else every
                if any(stay.values()) and len(each.units(look, n_looks)):
                    jobs.append((model, each, look, n_looks, stay, asked))
                    whose.append(measured[each.task.name])
        cost = max(_cost_of_look(each.sizes, look) for own in begun for each in own)
        for kinds, found in zip(whose, steps.made("ablation", ablated, jobs, cost), strict=True):
            for kind, sweep in found.items():
                kinds[kind].append(sweep)
        for number, measured in enumerate(pieces):
            by_kind = {kind: {task: joined(each[kind]) for task, each in measured.items()} for kind in KINDS}
            predicted = {each.task.name: each.predicted for each in begun[number]}
            tests[number] = tests[number].look(by_kind, predicted, chosen[number], asked)
    return pieces, tests


def _groups(
    models: Sequence[Any],
    begun: Sequence[Sequence[Begun]],
    frames: Sequence[pd.DataFrame],
    asked: HeadsOptions,
    steps: Steps,
) -> list[pd.DataFrame]:
    """Every model's groups: sets are ablated together, and again without those that are no members."""
    found: list[list[pd.DataFrame]] = [[] for _ in models]
    every = {(number, each.task.name): each for number, own in enumerate(begun) for each in own}
    rows = [decidable(frame) for frame in frames]
    sets = {
        (number, task): candidates(rows[number][rows[number]["task"] == task], asked.max_group)
        for number, task in every
    }
    while sets:
        jobs = [(models[at[0]], every[at].part(), every[at].means, *heads, asked) for at, heads in sets.items()]
        measured = dict(zip(sets, steps.made("heads together", ablated_together, jobs, SET_COST), strict=True))
        last, sets = sets, {}
        for number, own in enumerate(found):
            of_tasks = {task: frame for (each, task), frame in measured.items() if each == number}
            testing: Any = {"min_effect": asked.min_effect, "alpha": asked.alpha, "seed": asked.seed}
            own.append(judged_groups(of_tasks, **testing, step=len(own) + 1))
            left = {task: remaining(own[-1], task) for task in of_tasks}
            sets |= {(number, task): (heads, last[number, task][1]) for task, heads in left.items() if heads}
    return [
        pd.concat(each, ignore_index=True).drop_duplicates(["task", "head"], keep="last", ignore_index=True)
        for each in found
    ]


def _begun(
    model: Any, task: Task, asked: HeadsOptions, choosing: bool, run: Run | None, progress: Progress | None
) -> Begun | TaskEvidence | InputError:
    """What is known of a task before heads are ablated, or for choosing all evidence; or why there is none."""
    try:
        return (gather if choosing else begin)(model, task, asked, run=run, progress=progress)
    except InputError as error:
        return error


def _chosen(
    model: Any, tasks: Sequence[Task], choosing: Sequence[TaskEvidence], asked: HeadsOptions, declared: Declared | None
) -> Chosen | None:
    """The heads and tasks that may be shown; None for all."""
    if choosing:
        return choose(tested(choosing, in_one_look(choosing, asked), None, asked), asked.alpha)
    if declared is None:
        return None
    cells = [(task.name, *head) for task in tasks for head in check_heads(model, None)]
    return declared.hypotheses(pd.DataFrame(cells, columns=["task", "layer", "head"]))


def _tested(
    evidence: Sequence[TaskEvidence], ablations: Ablations, chosen: Chosen | None, asked: HeadsOptions, heads: str
) -> pd.DataFrame:
    """One model's evidence with p, states and specificity; `heads` is how those were found that can be shown."""
    frame = tested(evidence, ablations, chosen, asked)
    frame = frame.join(states(frame, asked.alpha))
    return frame.assign(specificity=specificities(frame), probed=asked.probes, tested=heads)


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
    how: Any = {"seed": asked.seed, "memory_budget": asked.memory_budget}
    step = named(progress, f"{task.name}: heads together", "cells")
    resample = make_replacement("resample", model, task, sites=sites, draws=asked.draws, **how)
    changes: dict[str, dict[Head, Replacement]] = {}
    if len(heads) > 1:
        changes |= {"resampled": dict.fromkeys(heads, resample), **_one_by_one(heads, [], means, resample)}
    if missed:
        changes |= {f"missed, {name}": each for name, each in _one_by_one(heads, missed, means, resample).items()}
    cells = [Cell({"cell": name}, _interventions(each)) for name, each in changes.items()]
    rows = complete(Sweep(cells).run(model, task, **how, progress=step, run=run)).examples
    effects = rows.pivot(index="example", columns="cell", values="effect")
    examples = rows.drop_duplicates("example").set_index("example", drop=False)
    examples = examples[["unit", "example", "cluster", "template", "layout", "base", "base_correct"]]
    found = []
    for head in map(head_name, heads):
        own = examples.assign(heads=set_name(heads), missed=set_name(missed), head=head)
        own = own.assign(together=effects.get("resampled", np.nan), mean_together=effects.get("gone", np.nan))
        for kind, among in (("share", ""), ("backup", "missed, ")):  # what ablating it costs where the others are gone
            left = effects.get(f"{among}all but {head}", np.nan)
            own[kind] = effects.get(f"{among}all but {head}, resampled", np.nan) - left
            own[f"mean_{kind}"] = effects.get(f"{among}gone", np.nan) - left
        found.append(own)
    return pd.concat(found, ignore_index=True)


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


COLUMNS = ("task", "verdict", "model", "heads", "n_heads", "n_undecided", "judged")
SILENT = ("none", "undecided")
"""Verdicts that are no finding."""


def replication(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Which heads of which model get each verdict; `frames` are ``HeadsReport.summary()`` by the model's name.

    One row per task, verdict that some head of some model gets, and model: ``heads``, such as ``2.1 2.2`` (empty where
    none does), and ``n_heads``; ``n_undecided``: the heads of which nothing is known on the task; and ``judged``:
    whether the model can be judged on it at all.
    """
    rows = pd.concat([frame.assign(model=name) for name, frame in frames.items()], ignore_index=True)
    rows["name"] = rows["layer"].astype(int).astype(str) + "." + rows["head"].astype(int).astype(str)
    said = rows[~rows["verdict"].isin(SILENT)]
    heads = said.groupby(["task", "verdict", "model"])["name"].agg(heads=" ".join, n_heads="size")
    open_ = rows.assign(n_undecided=rows["verdict"] == "undecided", judged=rows["undecidable"] == "")
    states = open_.groupby(["task", "model"]).agg({"n_undecided": "sum", "judged": "any"})
    found = said[["task", "verdict"]].drop_duplicates().merge(pd.DataFrame({"model": list(frames)}), how="cross")
    found = found.join(heads, on=["task", "verdict", "model"]).join(states, on=["task", "model"])
    missing = {"heads": "", "n_heads": 0, "n_undecided": 0, "judged": False}
    kinds = {"n_heads": int, "n_undecided": int, "judged": bool}
    return found.fillna(missing).astype(kinds)[list(COLUMNS)]


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
