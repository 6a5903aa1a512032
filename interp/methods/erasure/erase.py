"""What did erasing do? To the behaviour, place by place and task by task; and to what can be read there.

Does the model use what can be read there? Take a feature out of activations, and see what happens to a task.

A probe that reads a feature shows that it is there, not that anything depends on it. So:

1. **Fit** an eraser for each place (a head's ``z``, a layer's stream) to the task's reference sets: the activations at
   the positions where it is applied, labelled by ``Example.features``. No scored unit is ever fitted to.
2. **Erase** at one place at a time, on the task and on others, and measure each again: one sweep a task.
3. **Compare** with erasing random directions, as many: any damage has some effect. What LEACE does in excess of that is
   about the feature. And with other tasks: is the damage specific?
4. **Probe** before and after: a feature that could not be read before was not removed.

Methods: ``leace`` takes away what any linear probe could read, and as little else as can be; ``random`` is its
control (``erasing/leace.py``); ``inlp`` takes away what one probe after the other reads (``erasing/inlp.py``); ``mean``
puts the mean in place of everything; ``steer`` turns the feature into the other one (``erasing/steering.py``).

Belrose et al. (2023), "LEACE: perfect linear concept erasure in closed form"; Ravfogel et al. (2020), "Null it out";
Elazar et al. (2021), "Amnesic probing: behavioral explanation with amnesic counterfactuals".
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from interp.arguments import whole_number
from interp.claims.claim import Measured, claim
from interp.claims.units import UnitTable
from interp.errors import InputError, suggest
from interp.interventions.reference_set import make_replacement, reference_hash
from interp.interventions.replacement import Replacement
from interp.interventions.sweep import Cell, Progress, Sweep, SweepResult
from interp.methods.ablation import Head, as_measured
from interp.methods.erasure.readability import FITTED_METHODS, fit_erasers, readability
from interp.methods.erasure.readings import (
    At,
    choose_places,
    reference_clusters,
    reference_readings,
    scored_readings,
    steered,
    task_positions,
)
from interp.methods.progress import part_of
from interp.methods.task_arguments import several_predicted
from interp.model.devices import documented
from interp.runs.run import Run, as_run
from interp.tasks.task import Task


@dataclass(frozen=True)
class ErasureResult:
    """Effects of every method at every place on every task's examples.

    Attributes:
        frame: One row per task, method, place and example, as ``SweepResult.frame`` with ``task`` and ``method``.
        probes: How well logistic regressions read the feature. One row per method, place and ``data``: ``fitted``
            (to the reference sets, judged on these), ``held out`` (the same, judged on the scored units) and
            ``refitted`` (to scored units, judged on other lexical draws of them). ``before`` and ``after`` are shares
            of right answers (``_low``, ``_high``: 95 %, cluster bootstrap over balanced units; NaN where judged on
            what they were fitted to), ``majority`` the share of the commonest value, ``rank`` how many directions are
            erased, ``n`` the examples. Of random subspaces, the first is probed. Of ``mean``, which leaves one value,
            and ``steer``, which takes nothing away, there are no rows.
        provenance: How the numbers were made.
        labels: The columns that name a place.
    """

    frame: pd.DataFrame
    probes: pd.DataFrame
    provenance: Mapping[str, Any]
    labels: tuple[str, ...] = ("layer", "head")

    def __repr__(self) -> str:
        n_places = len(self.frame.drop_duplicates(list(self.labels)))
        tasks, methods = (", ".join(map(str, self.frame[name].unique())) for name in ("task", "method"))
        return f"ErasureResult({tasks}: {methods}; {n_places} of {', '.join(self.labels)}; a row for each: .summary())"

    def _repr_html_(self) -> str:
        """What a notebook shows: the findings in words, the strongest with their intervals, and a figure if small."""
        from interp.report.glance import as_html
        from interp.report.results.erasure import erasure_glance

        return as_html(erasure_glance(self))

    def summary(self) -> pd.DataFrame:
        """One row per method, place and task, over balanced units.

        Columns: ``method``, ``task``, the labels, ``effect``, ``low``, ``high`` (95 %, cluster bootstrap), ``p``
        (that it is 0, two-sided), ``p_adjusted`` (family-wise over all places and tasks of the method, max-T),
        ``base``, ``change_norm``, ``rank``; of ``leace`` where ``random`` was measured, too, ``excess`` (leace's effect
        minus random's, example by example) with ``excess_low``, ``excess_high``, ``excess_p``, ``excess_p_adjusted``,
        which are about the examples: the random subspaces are taken as they were drawn; ``n_units``, ``n_clusters``.
        NaN where there is no such number.
        """
        parts = [self._of_method(method) for method in self.frame["method"].unique()]
        found = pd.concat(parts, ignore_index=True).merge(self._ranks(), on=["method", *self.labels], how="left")
        excess = self._excess()
        if excess is None:
            found[list(_EXCESS)] = np.nan
        else:
            found = found.merge(excess, on=["method", "task", *self.labels], how="left")
        return found[["method", "task", *self.labels, *_SUMMARY]]

    def _tasks(self) -> list[str]:
        return list(self.frame["task"].unique())

    def _of_method(self, method: str) -> pd.DataFrame:
        frame = self.frame[self.frame["method"] == method]
        results = [SweepResult(frame[frame["task"] == name], self.provenance, self.labels) for name in self._tasks()]
        tables = [each.table("effect") for each in results]
        tests = claim([Measured(each) for each in tables], seed=self.provenance["seed"])
        parts = [
            each.estimates().assign(method=method, task=name, p=test.p, p_adjusted=test.p_adjusted)
            for each, name, test in zip(results, self._tasks(), tests, strict=True)
        ]
        return pd.concat(parts, ignore_index=True)

    def _ranks(self) -> pd.DataFrame:
        columns = ["method", *self.labels, "rank"]
        return self.probes[columns].drop_duplicates() if len(self.probes) else pd.DataFrame(columns=columns)

    def _excess(self) -> pd.DataFrame | None:
        """By how much LEACE changes the behaviour more than random subspaces of its rank do."""
        cell = ["task", *self.labels, "example"]
        effects = {name: each.set_index(cell)["effect"] for name, each in self.frame.groupby("method")}
        if not {"leace", "random"} <= set(effects):
            return None
        frame = self.frame[self.frame["method"] == "leace"].set_index(cell)
        frame = frame.assign(excess=frame["effect"] - effects["random"]).reset_index()
        tables = [self._table(frame[frame["task"] == name]) for name in self._tasks()]
        tests = claim([Measured(each) for each in tables], seed=self.provenance["seed"])
        parts = []
        for name, table, test in zip(self._tasks(), tables, tests, strict=True):
            numbers = (test.estimate, test.interval.low, test.interval.high, test.p, test.p_adjusted)
            columns = dict(zip(_EXCESS, numbers, strict=True))
            parts.append(pd.DataFrame(columns, index=table.cells).reset_index().assign(method="leace", task=name))
        return pd.concat(parts, ignore_index=True)

    def _table(self, frame: pd.DataFrame) -> UnitTable:
        return UnitTable.from_frame(frame, "excess", by=self.labels)


_EXCESS = ("excess", "excess_low", "excess_high", "excess_p", "excess_p_adjusted")
_SUMMARY = (
    *("effect", "low", "high", "p", "p_adjusted", "base", "change_norm", "rank"),
    *_EXCESS,
    *("n_units", "n_clusters"),
)


def joined(results: Sequence[SweepResult], tasks: Sequence[Task]) -> pd.DataFrame:
    """The frames of sweeps over several tasks as one, with ``task``; interrupted, there are fewer results."""
    parts = [each.examples.assign(task=task.name) for each, task in zip(results, tasks, strict=False)]
    found = pd.concat(parts, ignore_index=True)
    return found[["task", *(name for name in found.columns if name != "task")]]


Method = Literal["leace", "random", "inlp", "mean", "steer"]
SUBSPACES = 8
"""Random subspaces that the effects are averaged over: few directions differ much from each other."""


@documented
def erase(
    model: Any,
    task: Task | str,
    feature: str,
    *,
    site: str = "z",
    heads: Sequence[Head] | None = None,
    layers: Sequence[int] | None = None,
    at: At = "query",
    methods: Sequence[Method] = ("leace", "random", "mean"),
    others: Sequence[Task | str] = (),
    n: int | None = None,
    seed: int = 0,
    draws: int = SUBSPACES,
    strength: float = 1.0,
    probes: bool = True,
    memory_budget: int | None = None,
    progress: Progress | None = None,
    run: Run | str | PathLike[str] | None = None,
) -> ErasureResult:
    """Erase a feature at one place at a time, and measure what that does to behaviour.

    Args:
        model: Follows TransformerLens' protocol; our own runs several times faster, as does a bridge that we know.
        task: A task, or the name of one: erasers are fitted to its reference sets, and its units are scored.
        feature: A key of its examples' ``features``, such as ``number``.
        site: ``z``, head by head; or ``resid_pre``, ``resid_mid``, ``resid_post``, ``attn_out`` or ``mlp_out``, layer
            by layer.
        heads: ``(layer, head)`` pairs, at ``z``; None for all of the model's.
        layers: Layers; None for all.
        at: Where it is fitted and erased: ``query``, the prompt's position that looks back (the last one, where no word
            of the prompt is tagged for that); ``related``, the tokens of the related word; ``all`` of the prompt.
        methods: What is done, each by itself.
        others: Tasks, or names of them, on which the same is done, with the same erasers (those of `task`'s first
            reference set) at the same kind of position.
        n: Units to draw where a task is a name; None for the task's own default.
        seed: Of the tasks' draw, the random subspaces, INLP's split and the statistics.
        draws: How many random subspaces to average the effects of.
        strength: How many differences of the classes' means ``steer`` adds.
        probes: Whether it is measured, too, how well the feature can be read before and after.
        memory_budget: Bytes that the sweeps hold beside the model's weights, the activations that erasers are fitted
            to, and the results; None for the device's default.
        progress: Called with (cells done, cells in all), over all tasks.
        run: Where the sweeps are kept, as for ``ablate``; None for nowhere.

    Returns:
        Effects and probes. Interrupted (Ctrl-C), it holds the examples that are complete, and
        ``provenance["complete"]`` is False.

    Raises:
        InputError: A feature that the reference examples do not have, or with one value or a value of one example; a
            site, head, layer, method or position that is not known; activations that are no numbers; a task that the
            model cannot carry; or nothing to steer to.
        AuditError: The engine's numbers are not those of the plain way.
    """
    _check_methods(methods)
    draws = whole_number("draws", draws, expected="a whole number of at least 1")
    places = choose_places(model, site, heads, layers)
    tasks = _tasks(model, task, others, n, seed)
    positions = [task_positions(at, each) for each in tasks]
    prompts, sites = as_measured(tasks[0], "kl_divergence"), tuple(dict.fromkeys(place.site for place in places))
    references = reference_readings(model, prompts, feature, at, sites, memory_budget)
    wanted = [each for each in FITTED_METHODS if each in methods]
    fitted = fit_erasers(references, reference_clusters(prompts), wanted, places, draws=draws, seed=seed)
    replacements: dict[str, Replacement] = {method: each.replacement(model) for method, each in fitted.items()}
    if "mean" in methods:
        replacements["mean"] = make_replacement("mean", model, tasks[0], sites=sites, memory_budget=memory_budget)
    by_task = [replacements] * len(tasks)
    if "steer" in methods:
        by_task = [replacements | {"steer": each} for each in steered(tasks, feature, references, strength)]
    cells = [
        [place.cell(method, made[method], where) for method in methods for place in places]
        for made, where in zip(by_task, positions, strict=True)
    ]
    options: Any = {"seed": seed, "memory_budget": memory_budget, "run": as_run(run)}
    results = _sweeps(model, tasks, cells, options, progress)
    read = pd.DataFrame()
    if probes:
        held_out = scored_readings(model, prompts, feature, at, sites, memory_budget)
        read = readability(references, held_out, tasks[0], fitted, places, seed)
    how = {
        **{"feature": feature, "at": at, "methods": list(methods), "subspaces": draws, "strength": strength},
        "reference_hash": reference_hash(prompts),
        "complete": len(results) == len(tasks) and all(each.provenance["complete"] for each in results),
        "others": [dict(each.provenance) for each in results[1:]],
    }
    return ErasureResult(
        joined(results, tasks),
        read,
        {**results[0].provenance, **how},
        results[0].labels[1:],
    )


def _check_methods(methods: Sequence[str]) -> None:
    for method in methods:
        if method not in get_args(Method):
            raise InputError(f"methods: no way to erase is called {method!r}; {suggest(str(method), get_args(Method))}")
    if not methods or len(set(methods)) < len(methods):
        raise InputError(f"methods: expected different ones, at least one, got {list(methods)}")


def _tasks(model: Any, task: Task | str, others: Sequence[Task | str], n: int | None, seed: int) -> list[Task]:
    """The task, and the others, whose units its first reference set serves, too."""
    first, *rest = several_predicted([task, *others], model, n=n, seed=seed)
    fold = min(unit.fold for unit in first.units)
    served = [replace(each, units=tuple(replace(unit, fold=fold) for unit in each.units)) for each in rest]
    names = [each.name for each in (first, *served)]
    if len(set(names)) < len(names):
        raise InputError(f"others: expected tasks of different names, and other ones than the first, got {names}")
    return [first, *served]


def _sweeps(
    model: Any,
    tasks: Sequence[Task],
    cells: Sequence[Sequence[Cell]],
    options: Mapping[str, Any],
    progress: Progress | None,
) -> list[SweepResult]:
    """One sweep a task; interrupted, those that have any complete example."""
    results: list[SweepResult] = []
    for number, (task, its) in enumerate(zip(tasks, cells, strict=True)):
        step = part_of(progress, number, len(tasks))
        try:
            results.append(Sweep(its).run(model, task, progress=step, **options))
        except KeyboardInterrupt:
            if not results:
                raise
            warnings.warn(f"interrupted: nothing of task {task.name!r} was complete", RuntimeWarning, stacklevel=3)
            break
        if not results[-1].provenance["complete"]:
            break
    return results
