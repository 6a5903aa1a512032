"""Does the model use what can be read there? Take a feature out of activations, and see what happens to a task.

1. **Fit** an eraser for each place (a head's ``z``, a layer's stream) to the task's reference sets: the activations at
   the positions where it is applied, labelled by ``Example.features``. No scored unit is ever fitted to.
2. **Erase** at one place at a time, on the task and on others, and measure each again: one sweep a task. ``leace``
   takes away what any linear probe could read, and as little else as can be; ``random`` directions, as many, are its
   control, as any damage has some effect; ``inlp`` takes away what one probe after the other reads; ``mean`` puts the
   mean in place of everything; ``steer`` turns the feature into the other one.
3. **Probe** before and after: a feature that could not be read before was not removed.

Belrose et al. (2023), "LEACE: perfect linear concept erasure in closed form"; Ravfogel et al. (2020), "Null it out";
Elazar et al. (2021), "Amnesic probing: behavioral explanation with amnesic counterfactuals".
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, ClassVar

import pandas as pd

from interp.arguments import as_names, require_different, whole_number
from interp.claims.claim import Measured, claim
from interp.errors import InputError
from interp.interventions.intervention import heads_at
from interp.interventions.reference_set import make_replacement, reference_hash
from interp.interventions.replacement import Erase, Eraser, Replacement
from interp.interventions.sweep import Cell, Progress, Sweep, SweepResult
from interp.methods.ablation import Part, as_measured
from interp.methods.erasure import readings
from interp.methods.erasure.erasers import FITTED_METHODS, Fitted, fit_erasers, readability
from interp.methods.progress import part_of
from interp.methods.task_arguments import several_predicted
from interp.model.devices import documented
from interp.options import EraseOptions
from interp.result import Result
from interp.runs.run import Run, as_run
from interp.tasks.task import Task


@dataclass(frozen=True, eq=False, repr=False)
class ErasureResult(Result):
    """Effects of every method at every place on every task's examples.

    Attributes:
        examples: One row per task, method, place and example, as ``SweepResult.examples`` with ``task`` and ``method``.
        provenance: How the numbers were made.
        probes: How well logistic regressions read the feature. One row per method, place and ``data``: ``fitted``
            (to the reference sets, judged on these), ``held out`` (the same, judged on the scored units) and
            ``refitted`` (to scored units, judged on other lexical draws of them). ``before`` and ``after`` are shares
            of right answers (``_low``, ``_high``: 95 %, cluster bootstrap over balanced units; NaN where judged on
            what they were fitted to), ``majority`` the share of the commonest value, ``rank`` how many directions are
            erased, ``n`` the examples. Of random subspaces, the first is probed. Of ``mean``, which leaves one value,
            and ``steer``, which takes nothing away, there are no rows.
        labels: The columns that name a place.
    """

    probes: pd.DataFrame
    labels: tuple[str, ...] = ("layer", "head")

    shown_by: ClassVar[str] = "erasure"

    def summary(self) -> pd.DataFrame:
        """One row per method, place and task, over balanced units.

        Columns: ``method``, ``task``, the labels, ``effect``, ``low``, ``high`` (95 %, cluster bootstrap), ``p``
        (that it is 0, two-sided), ``p_adjusted`` (family-wise over all places and tasks of the method, max-T),
        ``base``, ``change_norm``, ``rank``; of ``leace`` where ``random`` was measured, too, ``excess`` (leace's effect
        minus random's, example by example) with ``excess_low``, ``excess_high``, ``excess_p``, ``excess_p_adjusted``,
        which are about the examples: the random subspaces are taken as they were drawn; ``n_units``, ``n_clusters``.
        NaN where there is no such number.
        """
        names, by_method = self.examples["task"].unique(), self.examples.groupby("method", sort=False)
        found = pd.concat([self._tested(rows, "effect", names) for _, rows in by_method], ignore_index=True)
        if len(self.probes):
            found = found.merge(self.probes[["method", *self.labels, "rank"]].drop_duplicates(), how="left")
        excess = self._excess()
        if excess is not None:
            tested = self._tested(excess, "excess", names).rename(columns=_AS_EXCESS)
            found = found.merge(tested[["method", "task", *self.labels, *_AS_EXCESS.values()]], how="left")
        return found.reindex(columns=["method", "task", *self.labels, *_SUMMARY])

    def _tested(self, rows: pd.DataFrame, column: str, names: Sequence[str]) -> pd.DataFrame:
        """Estimates of a method's rows, tested over all places and tasks together."""
        rows = rows.assign(effect=rows[column])
        results = [SweepResult(rows[rows["task"] == name], self.provenance, self.labels) for name in names]
        tests = claim([Measured(each.table("effect")) for each in results], seed=self.provenance["seed"])
        method = rows["method"].iloc[0]
        parts = [
            each.estimates().assign(method=method, task=name, p=test.p, p_adjusted=test.p_adjusted)
            for each, name, test in zip(results, names, tests, strict=True)
        ]
        return pd.concat(parts, ignore_index=True)

    def _excess(self) -> pd.DataFrame | None:
        """By how much LEACE changes the behaviour more than random subspaces of its rank do, example by example."""
        cell = ["task", *self.labels, "example"]
        rows = {name: each.set_index(cell) for name, each in self.examples.groupby("method")}
        if not {"leace", "random"} <= set(rows):
            return None
        return rows["leace"].assign(excess=rows["leace"]["effect"] - rows["random"]["effect"]).reset_index()


_AS_EXCESS = {
    **{"effect": "excess", "low": "excess_low", "high": "excess_high"},
    **{"p": "excess_p", "p_adjusted": "excess_p_adjusted"},
}
_SUMMARY = (
    *("effect", "low", "high", "p", "p_adjusted", "base", "change_norm", "rank"),
    *_AS_EXCESS.values(),
    *("n_units", "n_clusters"),
)


def joined(results: Sequence[SweepResult], tasks: Sequence[Task]) -> pd.DataFrame:
    """The frames of sweeps over several tasks as one, with ``task``; interrupted, there are fewer results."""
    parts = [each.examples.assign(task=task.name) for each, task in zip(results, tasks, strict=False)]
    found = pd.concat(parts, ignore_index=True)
    return found[["task", *(name for name in found.columns if name != "task")]]


@documented
def erase(
    model: Any,
    task: Task | str,
    feature: str,
    options: EraseOptions | None = None,
    *,
    others: Sequence[Task | str] = (),
    progress: Progress | None = None,
    run: Run | str | PathLike[str] | None = None,
    **fields: Any,
) -> ErasureResult:
    """Erase a feature at one place at a time, and measure what that does to behaviour.

    Args:
        model: Follows TransformerLens' protocol; our own runs several times faster, as does a bridge that we know.
        task: A task, or the name of one: erasers are fitted to its reference sets, and its units are scored.
        feature: A key of its examples' ``features``, such as ``number``.
        options: What is asked; or its fields by name: see ``EraseOptions``.
        others: Tasks, or names of them, on which the same is done, with the same erasers (those of `task`'s first
            reference set) at the same kind of position.
        progress: Called with (cells done, cells in all), over all tasks.
        run: Where the sweeps are kept, as for ``ablate``; None for nowhere.
        **fields: Fields of `options`.

    Returns:
        Effects and probes. Interrupted (Ctrl-C), it holds the examples that are complete, and
        ``provenance["complete"]`` is False.

    Raises:
        InputError: A feature that the reference examples do not have, or with one value or a value of one example; a
            site, head, layer, method or position that is not known; activations that are not numbers; a task that the
            model cannot carry; or nothing to steer to.
        AuditError: The engine's numbers are not those of the plain way.

    Examples:
        >>> import interp
        >>> from interp.methods.erasure.erase import erase
        >>> found = erase(interp.load_model(), "agreement", "number", heads=[(2, 2)], methods=["leace"], n=24)
        >>> found.summary()[["method", "layer", "head", "rank"]].values.tolist()
        [['leace', 2, 2, 1]]
    """
    asked = EraseOptions.of(options, fields)
    methods = as_names("methods", asked.methods)
    require_different("methods", methods)
    draws = whole_number("draws", asked.draws, expected="a whole number of at least 1")
    at, seed, budget = asked.at, asked.seed, asked.memory_budget
    places = readings.choose_places(model, asked.site, asked.heads, asked.layers)
    tasks = _tasks(model, task, others, asked)
    positions = [readings.task_positions(at, each) for each in tasks]
    prompts, sites = as_measured(tasks[0], "kl_divergence"), tuple(dict.fromkeys(place.site for place in places))
    references = readings.reference_readings(model, prompts, feature, at, sites, budget)
    wanted = [each for each in FITTED_METHODS if each in methods]
    fitted = fit_erasers(references, wanted, places, draws=draws, seed=seed)
    replacements: dict[str, Replacement] = {method: _erasing(model, each) for method, each in fitted.items()}
    if "mean" in methods:
        replacements["mean"] = make_replacement("mean", model, tasks[0], sites=sites, memory_budget=budget)
    by_task = [replacements] * len(tasks)
    if "steer" in methods:
        by_task = [
            replacements | {"steer": each} for each in readings.steered(tasks, feature, references, asked.strength)
        ]
    cells = [
        [readings.cell_of(method, place, made[method], where) for method in methods for place in places]
        for made, where in zip(by_task, positions, strict=True)
    ]
    measured: Any = {"metric": asked.metric, "seed": seed, "memory_budget": budget, "run": as_run(run)}
    results = _sweeps(model, tasks, cells, measured, progress)
    read = pd.DataFrame()
    if asked.probes:
        held_out = readings.scored_readings(model, prompts, feature, at, sites, budget)
        read = readability(references, held_out, tasks[0], fitted, places, seed)
    how = {
        **{"feature": feature, "at": at, "methods": list(methods), "subspaces": draws, "strength": asked.strength},
        "reference_hash": reference_hash(prompts),
        "complete": len(results) == len(tasks) and all(each.provenance["complete"] for each in results),
        "others": [dict(each.provenance) for each in results[1:]],
    }
    return ErasureResult(joined(results, tasks), {**results[0].provenance, **how}, read, results[0].labels[1:])


def _erasing(model: Any, fitted: Fitted) -> Erase:
    """What makes the changes in sweeps; heads that no eraser is fitted to stay as they are."""
    maps = {}
    for (fold, place), draws in fitted.items():
        nothing = (Eraser.nothing(len(draws[0].mu)),) * len(draws)
        heads = range(heads_at(place.site.name, model)) if "head" in place.site.axes else ()
        by_head = [fitted.get((fold, Part(place.site, (head,))), nothing) for head in heads]
        maps[fold, place.site] = list(zip(*(by_head or [draws]), strict=True))
    return Erase.of(model, maps)


def _tasks(model: Any, task: Task | str, others: Sequence[Task | str], asked: EraseOptions) -> list[Task]:
    """The task, and the others, whose units its first reference set serves, too."""
    first, *rest = several_predicted([task, *others], model, n=asked.n, seed=asked.seed)
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
