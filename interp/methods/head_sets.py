"""Do heads stand in for each other? Heads ablated two by two, against one by one.

1. In one sweep, every head alone and every pair together.
2. The **interaction** of a pair, example by example: ``effect(both) - effect(first) - effect(second)``.
3. It is judged like an effect (``claims/effects.py``), one family over all pairs:
   below 0, the two together cost more than one by one: each hides what the other does, they are **redundant**;
   above 0, they cost less: each alone breaks what both are needed for, as where one reads what the other wrote, they
   are **in series**; shown to be smaller than the minimum, they are **additive**; else *undecided*.

An interaction is one of the metric: a logit difference adds up where heads write to it side by side, a probability near
0 or 1 does not. And a task can be lost once only: heads that cost most of it each, in series or not, cost less together
than one by one.
``methods/greedy.py`` follows larger sets.

McGrath et al. (2023), "The Hydra effect"; Wang et al. (2022), "Interpretability in the wild" (backup heads).

Which set of heads does a task rest on? Ablate one more head at each step, the one that costs most.

1. The clusters are split in two at random. On the **choosing** half, every head that is left is ablated together with
   those chosen before; the one that costs most is chosen, cost being the mean effect over balanced units.
2. Its effect is measured anew on the **scored** half, with all chosen before it, and only that is reported: the
   largest of many noisy means is too large, and would grow with the number of heads even if none did anything.
3. The **gain** of a step is its effect minus that of the step before, example by example.

Greedy choice finds one head of a redundant pair only if that head costs something by itself, however little;
``methods/redundancy.py`` looks at all pairs. As in forward selection; Michel, Levy & Neubig (2019), "Are sixteen heads
really better than one?", prune greedily by importance.
"""

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from interp.arguments import whole_number
from interp.claims.bootstrap import cluster_bootstrap
from interp.claims.effects import check_judged, conclusions, means_of
from interp.claims.units import estimates
from interp.errors import InputError
from interp.interventions.metrics import MetricName
from interp.interventions.replacement import DRAWS, Kind, Means
from interp.interventions.sweep import Progress, SweepResult
from interp.methods.ablation import Head, ablate, check_heads, head_name, set_name
from interp.methods.in_one_line import InOneLine
from interp.methods.task_arguments import as_predicted
from interp.model.devices import documented
from interp.runs.run import Run
from interp.tasks.task import Task

PAIR = ("first", "second")
RELATION = {"drop": "redundant", "rise": "in series", "none": "additive", "undecided": "undecided"}


@dataclass(frozen=True, repr=False)
class PairwiseResult(InOneLine):
    """What pairs of heads cost together.

    Attributes:
        frame: One row per pair and example: ``first``, ``second`` (such as ``2.1``), ``unit``, ``example``,
            ``cluster``, ``template``, ``layout``, ``base``, ``base_correct``, ``effect_first``, ``effect_second``,
            ``effect`` (of both together), ``interaction``.
        provenance: How the numbers were made.
    """

    frame: pd.DataFrame
    provenance: Mapping[str, Any]

    def _repr_html_(self) -> str:
        """What a notebook shows: the findings in words, the strongest with their intervals, and a figure if small."""
        from interp.report.glance import as_html
        from interp.report.results.pairs import pairs_glance

        return as_html(pairs_glance(self))

    def summary(self) -> pd.DataFrame:
        """One row per pair, over balanced units.

        Columns: ``first``, ``second``, ``interaction``, ``low``, ``high`` (95 %, cluster bootstrap), ``p``,
        ``p_adjusted`` (family-wise over the pairs), ``relation``, ``effect_first``, ``effect_second``, ``effect``,
        ``base``, ``minimum``, ``n_units``, ``n_clusters``.
        """
        asked = {name: self.provenance[name] for name in ("metric", "minimum_effect", "alpha", "seed")}
        judged = conclusions(self.frame, "interaction", PAIR, **asked)
        means = means_of(self.frame, ("effect_first", "effect_second", "effect"), PAIR)
        found = judged.merge(means, on=list(PAIR)).assign(relation=judged["state"].map(RELATION))
        columns = ["interaction", "low", "high", "p", "p_adjusted", "relation", *means.columns[2:]]
        return found[[*PAIR, *columns, "base", "minimum", "n_units", "n_clusters"]]


@documented
def pairwise(
    model: Any,
    task: Task | str,
    *,
    heads: Sequence[Head] | None = None,
    kind: Kind | Means = "mean",
    metric: MetricName | None = None,
    n: int | None = None,
    seed: int = 0,
    draws: int = DRAWS,
    minimum_effect: float = 0.1,
    alpha: float = 0.05,
    memory_budget: int | None = None,
    progress: Progress | None = None,
    run: Run | str | PathLike[str] | None = None,
) -> PairwiseResult:
    """Ablate every pair of heads, and compare with the two alone.

    Args:
        model: Follows TransformerLens' protocol; our own runs several times faster.
        task: A task, or the name of one.
        heads: ``(layer, head)`` pairs whose pairs are taken, at least two; None for all of the model's. Of H heads
            there are ``H (H - 1) / 2`` pairs, so choose some where the model is large.
        kind: What takes their place, as for ``ablate``.
        metric: What is measured; None for the task's own.
        n: Units to draw where `task` is a name; None for the task's own default.
        seed: Of the task's draw, the resamples and the statistics.
        draws: How many resamples to average the effects of.
        minimum_effect: The smallest interaction that counts, as a share of the base run's mean metric.
        alpha: Chance of any false claim of redundancy or series, over all pairs.
        memory_budget: Bytes beside the model's weights; None for the device's default.
        progress: Called with (cells done, cells in all).
        run: Where the sweep is kept, as for ``ablate``; None for nowhere.

    Returns:
        Interactions by pair and example. Interrupted (Ctrl-C), they are those of the examples that are complete, and
        ``provenance["complete"]`` is False.

    Raises:
        InputError: As ``ablate``; fewer than two heads; a KL divergence; shares out of range.
        AuditError: The engine's numbers are not those of the plain way.
    """
    chosen = check_heads(model, heads)
    if len(chosen) < 2:
        raise InputError(f"heads: a pair needs two, got {', '.join(map(head_name, chosen))}; give more, or ablate")
    given = as_predicted(task, model, n=n, seed=seed, metric=metric)
    asked: MetricName = given.metric if metric is None else metric
    check_judged(asked, minimum_effect, alpha)
    pairs = list(combinations(chosen, 2))
    result = ablate(
        model,
        given,
        sets=[*((head,) for head in chosen), *pairs],
        kind=kind,
        metric=metric,
        seed=seed,
        draws=draws,
        memory_budget=memory_budget,
        progress=progress,
        run=run,
    )
    by_set = dict(iter(result.examples.groupby("heads", sort=False)))
    frame = pd.concat([_interaction(pair, by_set) for pair in pairs], ignore_index=True)
    how = {"minimum_effect": minimum_effect, "alpha": alpha}
    return PairwiseResult(frame, {**result.provenance, **how})


def _interaction(pair: tuple[Head, Head], by_set: Mapping[Any, pd.DataFrame]) -> pd.DataFrame:
    """A pair's rows; a sweep has its examples in the same order in every cell."""
    both, first, second = (by_set[set_name(each)] for each in (pair, pair[:1], pair[1:]))
    one, other = first["effect"].to_numpy(), second["effect"].to_numpy()
    found = both[["unit", "example", "cluster", "template", "layout", "base", "base_correct", "effect"]].assign(
        effect_first=one, effect_second=other, interaction=both["effect"].to_numpy() - (one + other)
    )
    for number, (name, head) in enumerate(zip(PAIR, pair, strict=True)):
        found.insert(number, name, head_name(head))
    return found


@dataclass(frozen=True, repr=False)
class GreedyResult(SweepResult):
    """The curve of a growing set of heads, on the scored half.

    ``frame`` has one row per step and example, labelled ``step`` (from 1), ``layer`` and ``head`` (the one that is
    added), with ``gain`` (``effect`` minus the step before's). ``provenance["effects_where_chosen"]`` are the steps'
    mean effects on the choosing half, which flatter.
    """

    @property
    def chosen(self) -> list[Head]:
        """The heads, in the order in which they were added."""
        steps = self.examples.drop_duplicates("step").sort_values("step")
        return [(int(layer), int(head)) for layer, head in zip(steps["layer"], steps["head"], strict=True)]

    def summary(self) -> pd.DataFrame:
        """One row per step: the columns of ``SweepResult.summary``, and ``gain``, ``gain_low``, ``gain_high``."""
        gains = cluster_bootstrap(self.table("gain"), seed=self.provenance["seed"])
        columns = {"gain": gains.estimate, "gain_low": gains.low, "gain_high": gains.high}
        return super().summary().assign(**columns)


@documented
def greedy(
    model: Any,
    task: Task | str,
    *,
    k: int = 5,
    heads: Sequence[Head] | None = None,
    kind: Kind = "mean",
    metric: MetricName | None = None,
    n: int | None = None,
    seed: int = 0,
    draws: int = DRAWS,
    memory_budget: int | None = None,
    progress: Progress | None = None,
) -> GreedyResult:
    """Grow a set of ablated heads, and measure each step where it was not chosen.

    Args:
        model: Follows TransformerLens' protocol; our own runs several times faster, as does a bridge that we know.
        task: A task, or the name of one.
        k: Steps: how many heads the largest set has.
        heads: ``(layer, head)`` pairs to choose among; None for all of the model's.
        kind: What takes their place.
        metric: What is measured; None for the task's own. A KL divergence is a cost where it rises.
        n: Units to draw where `task` is a name; None for the task's own default.
        seed: Of the task's draw, the split, the resamples and the statistics.
        draws: How many resamples to average the effects of.
        memory_budget: Bytes beside the model's weights; None for the device's default.
        progress: Called with (steps done, steps in all).

    Returns:
        The steps that are complete: interrupted (Ctrl-C), those so far, with a warning, and
        ``provenance["complete"]`` is False.

    Raises:
        InputError: As ``ablate``; more steps than heads, or a task of a single cluster.
        AuditError: The engine's numbers are not those of the plain way.
        KeyboardInterrupt: Interrupted before the first step was complete.
    """
    candidates = check_heads(model, heads)
    n_heads = len(candidates)
    k = whole_number("k", k, expected=f"1 to {n_heads} steps, as many as there are heads", most=n_heads)
    given = as_predicted(task, model, n=n, seed=seed, metric=metric)
    choosing, scored = halves(given, seed)
    run = partial(ablate, model, kind=kind, metric=metric, seed=seed, draws=draws, memory_budget=memory_budget)
    sign = -1.0 if metric == "kl_divergence" else 1.0
    sets: list[list[Head]] = []
    results: list[SweepResult] = []
    flattering: list[float] = []
    try:
        while len(sets) < k:
            before = sets[-1] if sets else []
            tried = [[*before, head] for head in candidates if head not in before]
            effects = _mean_effects(_whole(run(choosing, sets=tried)), tried)
            best = int(np.argmin(sign * effects))
            results.append(_whole(run(scored, sets=[tried[best]])))
            sets.append(tried[best])
            flattering.append(float(effects[best]))
            if progress is not None:
                progress(len(sets), k)
    except KeyboardInterrupt:
        if not sets:
            raise
        warnings.warn("interrupted: the result holds the steps that were complete", RuntimeWarning, stacklevel=2)
    complete = len(sets) == k
    split = {"effects_where_chosen": flattering, "n_units_where_chosen": len(choosing.units), "complete": complete}
    frames = [each.examples for each in results[: len(sets)]]
    return GreedyResult(_curve(sets, frames), {**results[0].provenance, **split}, ("step", "layer", "head"))


def halves(task: Task, seed: int) -> tuple[Task, Task]:
    """Split a task's clusters at random; each half has the units of its own.

    Raises:
        InputError: There is one cluster only.
    """
    clusters = sorted({unit.cluster for unit in task.units})
    if len(clusters) < 2:
        raise InputError(
            f"task {task.name!r} has {len(clusters)} clusters: a choice on one half and its score on the other need "
            "at least 2, and 40 to decide anything; give more units"
        )
    drawn = np.random.default_rng(seed).permutation(clusters)[: len(clusters) // 2]
    first = set(drawn.tolist())
    parts = [tuple(unit for unit in task.units if (unit.cluster in first) == mine) for mine in (True, False)]
    return dataclasses.replace(task, units=parts[0]), dataclasses.replace(task, units=parts[1])


def _whole(result: SweepResult) -> SweepResult:
    """A step of some of the examples is none."""
    if not result.provenance["complete"]:
        raise KeyboardInterrupt
    return result


def _mean_effects(result: SweepResult, tried: Sequence[Sequence[Head]]) -> np.ndarray:
    """The sets' mean effects, in their order."""
    table = result.table("effect")
    by_set = pd.Series(estimates(table), index=table.cells)
    return by_set[[set_name(each) for each in tried]].to_numpy()


def _curve(sets: Sequence[Sequence[Head]], frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The steps' rows one below the other, with what each adds to the one before."""
    rows, before = [], 0.0
    for step, (heads, frame) in enumerate(zip(sets, frames, strict=True), start=1):
        (layer, head), effect = heads[-1], frame["effect"].to_numpy()
        labelled = frame.drop(columns="heads").assign(gain=effect - before)
        for number, (name, value) in enumerate((("step", step), ("layer", layer), ("head", head))):
            labelled.insert(number, name, value)
        rows.append(labelled)
        before = effect
    return pd.concat(rows, ignore_index=True)
