"""The parts of a head's card on one task, each with the reason where it cannot be had; and which dossier they are of.

1. Of the dossier, nothing is run again: the effect as a share of what the whole model does, and the estimates in two
   random halves of the clusters.
2. All heads are ablated under every replacement (``replacements_compared.py``). All heads under one are one family of
   tests, and their order under two is compared by Kendall's tau-b. A positional mean needs positions that mean the
   same, a resample reference examples of the same length: one that the task cannot provide is left out with its reason.
3. Patching, what is taken out, and circuits (``card_patching.py``).
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from interp.arguments import require_different
from interp.claims.bootstrap import cluster_bootstrap
from interp.claims.units import UnitTable, estimates
from interp.errors import InputError
from interp.interventions.intervention import written_sites
from interp.interventions.reference_set import make_means, make_replacement
from interp.interventions.replacement import ALIKE, Replacement
from interp.interventions.sweep import Progress
from interp.methods import card_patching
from interp.methods.ablation import choose_components
from interp.methods.dossier import HeadsReport
from interp.methods.progress import STEPS, complete, named, part_of
from interp.methods.replacements_compared import REPLACEMENTS as COMPARED
from interp.methods.replacements_compared import ReplacementComparison, measured_by
from interp.model.provenance import model_provenance
from interp.model.sites import Site
from interp.model.weights import hash_of_values
from interp.options import CompareOptions, Head, HeadsOptions, ReplacementName
from interp.runs.run import Run
from interp.tasks.task import Task

CELL = ("layer", "head")
SHARES = (
    *("metric", "base", "effect", "effect_low", "effect_high", "share", "share_low", "share_high"),
    *("minimum", "n_units", "n_clusters"),
)
HALVES = ("evidence", "half", "estimate", "low", "high", "minimum", "passes", "n_units", "n_clusters")
REPLACEMENTS = (
    *("replacement", "effect", "low", "high", "p_adjusted", "minimum", "state", "share", "share_low", "share_high"),
    *("rank", "n_heads", "n_units", "n_clusters", "reason"),
)
AGREEMENT = ("first", "second", "kendall", "low", "high", "spearman", "n_cells")
FRAMES: Mapping[str, tuple[str, ...]] = {
    **{"halves": HALVES, "replacements": REPLACEMENTS, "agreement": AGREEMENT},
    **card_patching.FRAMES,
}
"""The measured tables of a card, with their columns after ``task``."""
Parts = Mapping[str, pd.DataFrame]
NO_VALUES = (
    "values at the related word: heads of this model share theirs, or no related word stands before the query; "
    "and no feature is read there that could be erased"
)
NOT_ABLE = "the unablated model is not shown to be above chance, so there is no answer to carry"
Found = TypeVar("Found")


def of_head(frame: pd.DataFrame, head: Head) -> pd.DataFrame:
    """The rows of one head."""
    return frame[(frame["layer"] == head[0]) & (frame["head"] == head[1])]


def asked_of(report: HeadsReport) -> HeadsOptions:
    """What a dossier was asked, as far as a card follows it."""
    return HeadsOptions(**{name: report.provenance[name] for name in ("seed", "draws", "alpha", "min_effect")})


def gather_parts(
    model: Any,
    task: Task,
    heads: Sequence[Head],
    report: HeadsReport,
    max_units: int,
    memory_budget: int | None = None,
    run: Run | None = None,
    progress: Progress | None = None,
) -> dict[Head, Parts]:
    """Of each head every table of ``FRAMES``, and ``left_out``: which of them is empty, and why.

    Raises:
        KeyboardInterrupt: A sweep was interrupted.
    """
    asked = replace(asked_of(report), memory_budget=memory_budget)
    seed, some = asked.seed, card_patching.some_units(task, max_units, asked.seed)
    verdicts = report.summary().query("task == @task.name").set_index("task", drop=False)
    rows = {head: of_head(verdicts, head).loc[task.name] for head in heads}
    reads = [head for head in heads if rows[head]["representation"] == "carried"]
    steps = [
        named(part_of(progress, number, 3, STEPS), f"{task.name}: cards, {what}", "cells")
        for number, what in enumerate(("ablation", "words", "paths"))
    ]
    made, refused = _replacements(model, some, heads, asked, run)
    how: Any = {"seed": seed, "memory_budget": memory_budget, "run": run}
    measured: dict[str, Mapping[Head, pd.DataFrame] | str] = {
        "replacements": _or_reason(
            partial(every_replacement, model, some, heads, report, asked, made, refused, run, steps[0])
        ),
        "positions": _or_reason(partial(card_patching.positions, model, heads, some, **how, progress=steps[1])),
        "feature": _or_reason(
            partial(card_patching.feature_there, model, heads, some, made.get("mean"), reads=reads, **how)
        ),
    }
    able = not report.tasks.set_index("task").loc[task.name, "base_low"] <= 0  # an unknown interval says nothing
    few: Any = {**how, "max_units": max_units, "progress": steps[2]}
    paths = _or_reason(partial(card_patching.direct_paths, model, heads, task, **few)) if able else NOT_ABLE
    alike = _or_reason(partial(agreement, task, report))
    parts = {}
    for head in heads:
        examples = of_head(report.examples[report.examples["task"] == task.name], head)
        found: dict[str, pd.DataFrame | str] = {"halves": halves(examples, rows[head], seed=seed), "agreement": alike}
        found |= {name: each if isinstance(each, str) else each.get(head, NO_VALUES) for name, each in measured.items()}
        found |= {"feeds": paths, "readers": paths} if isinstance(paths, str) else paths[head]
        found["circuits"] = _or_reason(partial(card_patching.circuits, model, head, task))
        parts[head] = _tables(found, task.name)
    return parts


def _replacements(
    model: Any, task: Task, heads: Sequence[Head], asked: HeadsOptions, run: Run | None
) -> tuple[dict[ReplacementName, Replacement], dict[ReplacementName, str]]:
    """Of what heads write and of their values, so that the references are run once; and why others are refused."""
    made: dict[ReplacementName, Replacement] = {}
    refused: dict[ReplacementName, str] = {}
    layers = sorted({layer for layer, _ in heads})
    sites = [Site("z", layer) for layer in layers]
    how: Any = {"draws": asked.draws, "seed": asked.seed, "memory_budget": asked.memory_budget}
    for name in COMPARED:
        try:
            made[name] = make_replacement(name, model, task, sites=sites, **how)
        except InputError as error:
            refused[name] = str(error)
    how = {"memory_budget": asked.memory_budget, "kept": None if run is None else run.means}
    alike = [name for name in made if name in ALIKE]
    return made | make_means(alike, model, task, sites=written_sites(model, layers), **how), refused


def _or_reason(measure: Callable[[], Found]) -> Found | str:
    """What is measured, or why it is refused."""
    try:
        return measure()
    except InputError as error:
        return str(error)


def _tables(found: Mapping[str, pd.DataFrame | str], task: str) -> Parts:
    """Every table of ``FRAMES`` with the task, empty where there is a reason, and ``left_out``."""
    tables = {name: found[name] for name in FRAMES}
    reasons = [(task, name, each) for name, each in tables.items() if isinstance(each, str)]
    frames = {
        name: of_task(pd.DataFrame(columns=list(FRAMES[name])) if isinstance(each, str) else each, task)
        for name, each in tables.items()
    }
    return {**frames, "left_out": pd.DataFrame(reasons, columns=["task", "part", "reason"])}


def of_task(frame: pd.DataFrame, task: str) -> pd.DataFrame:
    """The frame with the task as its first column."""
    frame = frame.copy()
    frame.insert(0, "task", task)
    return frame


def share_of_base(examples: pd.DataFrame, by: Sequence[str], seed: int) -> pd.DataFrame:
    """Effects as a ``share`` of the base run's mean: a ratio of means with its 95 % cluster bootstrap, by cell.

    NaN where the base run is not shown to be above 0: a share of nothing says nothing.
    """
    effects, base = (UnitTable.from_frame(examples, name, by=by) for name in ("effect", "base"))
    ratio = cluster_bootstrap(effects, per=base, seed=seed)
    nothing = cluster_bootstrap(base, seed=seed).low <= 0  # an interval that is not known says nothing about it
    shares = {"share": ratio.estimate, "share_low": ratio.low, "share_high": ratio.high}
    columns = {name: np.where(nothing, np.nan, each) for name, each in shares.items()}
    columns |= {"base": estimates(base), "n_units": effects.n_units, "n_clusters": effects.n_clusters}
    return pd.DataFrame(columns, index=effects.cells)


def shares(examples: pd.DataFrame, row: pd.Series, *, minimum: float, seed: int) -> pd.DataFrame:
    """A head's effect on one task as a ``share`` of the ``base`` run's mean (-1 is all of it): one row, ``SHARES``.

    `examples` and `row` are the dossier's of this head and task; `minimum` is the smallest share that counts.
    """
    known = {name: row[name] for name in ("metric", "effect", "effect_low", "effect_high")}
    found = share_of_base(examples, CELL, seed).assign(minimum=minimum, **known)
    return found.reset_index()[list(SHARES)]


def halves(examples: pd.DataFrame, row: pd.Series, *, seed: int) -> pd.DataFrame:
    """Excess attention and effect of ablation in two random halves of a task's clusters, columns ``HALVES``.

    An estimate ``passes`` where it reaches the ``minimum`` of the whole, an effect in the direction that it has on the
    whole. Evidence on fewer than two clusters has no row. Halves describe and test nothing: the whole has been seen.
    """
    rows = []
    for evidence, column in (("attention", "excess"), ("effect", "effect")):
        measured = examples[examples[column].notna()]
        clusters = sorted(measured["cluster"].unique())
        if len(clusters) < 2:
            continue
        first = measured["cluster"].isin(np.random.default_rng(seed).permutation(clusters)[: len(clusters) // 2])
        sign, minimum = np.sign(row["effect"]) if evidence == "effect" else 1.0, row[f"min_{evidence}"]
        for half, rows_of in ((1, first), (2, ~first)):
            table = UnitTable.from_frame(measured[rows_of], column, by=CELL)
            found = cluster_bootstrap(table, seed=seed)
            (estimate,), (low,), (high,) = (each.tolist() for each in (found.estimate, found.low, found.high))
            counts = (int(table.n_units[0]), int(table.n_clusters[0]))
            rows.append((evidence, half, estimate, low, high, minimum, bool(sign * estimate >= minimum), *counts))
    return pd.DataFrame(rows, columns=list(HALVES))


def every_replacement(
    model: Any,
    task: Task,
    heads: Sequence[Head],
    report: HeadsReport,
    asked: HeadsOptions,
    made: Mapping[ReplacementName, Replacement],
    refused: Mapping[ReplacementName, str],
    run: Run | None = None,
    progress: Progress | None = None,
) -> dict[Head, pd.DataFrame]:
    """Of each head one row a replacement, columns ``REPLACEMENTS``: those that are `made`, and why others are not.

    ``p_adjusted`` is family-wise over these heads, ``rank`` 1 the largest drop of the model's ``n_heads``, under the
    replacements that the dossier has ablated all of them by. One that the task cannot provide has NaN and its
    ``reason``.

    Raises:
        InputError: Fewer than two replacements are possible.
        KeyboardInterrupt: The sweep was interrupted: some of the examples are not evidence on the task.
    """
    if len(made) < 2:
        raise InputError(*list(refused.values())[:1])
    how: Any = {name: getattr(asked, name) for name in ("min_effect", "alpha", "seed", "draws", "memory_budget")}
    chosen = choose_components(model, "heads", heads=heads)
    compared = complete(measured_by(model, task, chosen, made, CompareOptions(**how), run, progress))
    effects, every = compared.summary(), report.summary().query("task == @task.name").set_index(list(CELL))
    ranks = pd.DataFrame({name: every[kind].rank(method="min") for name, kind in _ablated_by(report, task).items()})
    found: dict[Head, pd.DataFrame] = {}
    for head in heads:
        ratios = share_of_base(of_head(compared.examples, head), ("replacement",), asked.seed)
        own = of_head(effects, head).set_index("replacement").join(ratios[["share", "share_low", "share_high"]])
        frame = own.reindex(list(COMPARED)).assign(rank=ranks.loc[head], n_heads=len(every))
        frame = frame.rename_axis("replacement").reset_index()
        frame["reason"] = [refused.get(name, "") for name in COMPARED]
        found[head] = frame[list(REPLACEMENTS)]
    return found


def agreement(task: Task, report: HeadsReport) -> pd.DataFrame:
    """How alike the two replacements of the dossier order all heads, on the examples on which it has ablated all."""
    names = _ablated_by(report, task)
    rows = report.examples[
        (report.examples["task"] == task.name) & report.examples[list(names.values())].notna().all(axis=1)
    ]
    n_heads = rows.groupby("example")["example"].transform("size")
    rows = rows[n_heads == len(report.summary()[list(CELL)].drop_duplicates())]
    if rows.empty:
        raise InputError(
            "all heads: the dossier has no examples on which it has ablated all of them; measure them again"
        )
    both = [rows.assign(replacement=name, effect=rows[kind]) for name, kind in names.items()]
    compared = ReplacementComparison(pd.concat(both), {"seed": asked_of(report).seed}, tuple(names))
    return compared.agreement()[list(AGREEMENT)]


def _ablated_by(report: HeadsReport, task: Task) -> dict[ReplacementName, str]:
    """By what the dossier has ablated all heads, with the column of its effects."""
    mean = report.tasks.set_index("task").loc[task.name, "mean_replacement"]
    return {"resample": "effect", mean: "mean_effect"}


def check_report(report: HeadsReport, model: Any, tasks: Sequence[Task]) -> None:
    """Refuse no task or one twice, and a dossier of another model, without one of the tasks, or of other items."""
    require_different("tasks", [task.name for task in tasks], "tasks")
    made = {each["task"]: each for each in report.provenance["tasks"]}
    ours = model_provenance(model)["model_hash"]
    for task in tasks:
        if task.name not in made:
            raise InputError(
                f"report: expected a dossier of the task {task.name!r}, got one of {', '.join(made)}; make one of all "
                "these tasks with interp.heads, or leave the report out"
            )
        for what, expected in (("model_hash", ours), ("data_hash", task.hash)):
            if made[task.name][what] != expected:
                raise InputError(
                    f"report: expected a dossier of this model and of these items of {task.name!r}, got one with "
                    f"another {what}; make it again with interp.heads, or leave the report out"
                )


def report_hash(report: HeadsReport) -> str:
    """SHA-256 of all tables of a dossier, and of the options that it was made with."""
    names = {each.name for each in fields(HeadsOptions)}
    options = {name: value for name, value in report.provenance.items() if name in names}
    digest = hashlib.sha256(hash_of_values(options).encode())
    for each in fields(report):
        table = getattr(report, each.name)
        if isinstance(table, pd.DataFrame):
            digest.update(f"{each.name}\n{table.to_csv(index=False)}".encode())
    return digest.hexdigest()
