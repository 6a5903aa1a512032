"""Heads ablated together: pairs against one by one, and a set that grows by the head that costs most.

**Pairs.** The interaction of a pair, example by example, is ``effect(both) - effect(first) - effect(second)``, judged
like an effect, one family over all pairs. Below 0 the heads are **redundant**: each hides what the other does. Above 0
they are **in series**: each alone breaks what both are needed for. Shown to be smaller than the minimum, they are
**additive**. A task can be lost once only, so heads that cost most of it each cost less together than one by one.

**Greedy.** The clusters are split in two at random. On the **choosing** half, every head that is left is ablated
together with those chosen before, and the one with the largest mean cost is chosen. Its effect is measured again on the
**scored** half, and only that is reported: the largest of many noisy means is too large. The **gain** of a step is its
effect minus that of the step before. Greedy choice finds one head of a redundant pair only if that head costs something
by itself.

McGrath et al. (2023), "The Hydra effect"; Wang et al. (2022), "Interpretability in the wild" (backup heads); Michel,
Levy & Neubig (2019), "Are sixteen heads really better than one?" (greedy pruning by importance).
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from os import PathLike
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from interp.arguments import whole_number
from interp.claims.bootstrap import cluster_bootstrap
from interp.claims.effects import check_judged, conclusions
from interp.claims.units import UnitTable, estimates
from interp.errors import InputError
from interp.interventions.sweep import Progress, SweepResult
from interp.methods.ablation import ablate, check_heads, head_name, set_name
from interp.methods.progress import complete
from interp.methods.task_arguments import as_predicted
from interp.model.devices import documented
from interp.options import AblateOptions, GreedyOptions, Head, PairwiseOptions
from interp.result import Result
from interp.runs.run import Run
from interp.tasks.task import Task

PAIR, STEP = ("first", "second"), ("step", "layer", "head")
RELATION = {"drop": "redundant", "rise": "in series", "none": "additive", "undecided": "undecided"}


@dataclass(frozen=True, eq=False, repr=False)
class PairwiseResult(Result):
    """What pairs of heads cost together.

    Attributes:
        examples: One row per pair and example: ``first``, ``second`` (such as ``2.1``), ``unit``, ``example``,
            ``cluster``, ``template``, ``layout``, ``base``, ``base_correct``, ``effect_first``, ``effect_second``,
            ``effect`` (of both together), ``interaction``.
        provenance: How the numbers were made.
    """

    shown_by: ClassVar[str] = "results.effects"

    def summary(self) -> pd.DataFrame:
        """One row per pair, over balanced units.

        Columns: ``first``, ``second``, ``interaction``, ``low``, ``high`` (95 %, cluster bootstrap), ``p``,
        ``p_adjusted`` (family-wise over the pairs), ``relation``, ``effect_first``, ``effect_second``, ``effect``,
        ``base``, ``minimum``, ``n_units``, ``n_clusters``.
        """
        asked = {name: self.provenance[name] for name in ("metric", "min_effect", "alpha", "seed")}
        judged = conclusions(self.examples, "interaction", PAIR, **asked)
        effects = ("effect_first", "effect_second", "effect")
        means = {name: estimates(UnitTable.from_frame(self.examples, name, by=PAIR)) for name in effects}
        found = judged.assign(**means, relation=judged["state"].map(RELATION))
        columns = ["interaction", "low", "high", "p", "p_adjusted", "relation", *effects]
        return found[[*PAIR, *columns, "base", "minimum", "n_units", "n_clusters"]]


@documented
def pairwise(
    model: Any,
    task: Task | str,
    options: PairwiseOptions | None = None,
    *,
    progress: Progress | None = None,
    run: Run | str | PathLike[str] | None = None,
    **fields: Any,
) -> PairwiseResult:
    """Ablate every pair of heads, and compare with the two alone.

    Of H heads there are ``H (H - 1) / 2`` pairs, so choose some where the model is large.

    Args:
        model: Follows TransformerLens' protocol; our own runs several times faster.
        task: A task, or the name of one.
        options: What is asked; or its fields by name: see ``PairwiseOptions``.
        progress: Called with (cells done, cells in all).
        run: Where the sweep is kept, as for ``ablate``; None for nowhere.
        fields: Those of `options` that are given by name.

    Returns:
        Interactions by pair and example. Interrupted (Ctrl-C), they are those of the examples that are complete, and
        ``provenance["complete"]`` is False.

    Raises:
        InputError: As ``ablate``; fewer than two heads; a KL divergence; shares out of range.
        AuditError: The engine's numbers are not those of the plain way.

    Examples:
        >>> from interp.methods.head_sets import pairwise
        >>> pairs = pairwise(interp.load_model(), "agreement", heads=[(2, 1), (2, 2)], n=24).summary()
        >>> list(pairs.columns[:3])
        ['first', 'second', 'interaction']
    """
    asked = PairwiseOptions.of(options, fields)
    chosen = check_heads(model, asked.heads)
    if len(chosen) < 2:
        raise InputError(f"heads: a pair needs two, got {', '.join(map(head_name, chosen))}; give more, or ablate")
    given = as_predicted(task, model, n=asked.n, seed=asked.seed, metric=asked.metric)
    check_judged(asked.metric or given.metric)
    pairs = list(combinations(chosen, 2))
    both = AblateOptions(sets=[*((head,) for head in chosen), *pairs], **_shared(asked))
    result = ablate(model, given, both, progress=progress, run=run)
    by_set = dict(iter(result.examples.groupby("heads", sort=False)))
    frame = _labelled(PAIR, {tuple(map(head_name, pair)): _interaction(pair, by_set) for pair in pairs})
    return PairwiseResult(frame, {**result.provenance, "min_effect": asked.min_effect, "alpha": asked.alpha})


def _labelled(names: Sequence[str], frames: Mapping[Any, pd.DataFrame]) -> pd.DataFrame:
    """The frames one below the other, behind columns of these names with each frame's labels."""
    return pd.concat(frames, names=names).reset_index(list(names)).reset_index(drop=True)


def _shared(asked: PairwiseOptions | GreedyOptions) -> dict[str, Any]:
    """What an ablation of sets is asked, too."""
    return {name: getattr(asked, name) for name in ("replacement", "metric", "seed", "draws", "memory_budget")}


def _interaction(pair: tuple[Head, Head], by_set: Mapping[Any, pd.DataFrame]) -> pd.DataFrame:
    """A pair's rows; a sweep has its examples in the same order in every cell."""
    both, first, second = (by_set[set_name(each)] for each in (pair, pair[:1], pair[1:]))
    one, other = first["effect"].to_numpy(), second["effect"].to_numpy()
    return both[["unit", "example", "cluster", "template", "layout", "base", "base_correct", "effect"]].assign(
        effect_first=one, effect_second=other, interaction=both["effect"].to_numpy() - (one + other)
    )


@dataclass(frozen=True, eq=False, repr=False)
class GreedyResult(SweepResult):
    """The curve of a growing set of heads, on the scored half.

    Attributes:
        examples: One row per step and example, labelled ``step`` (from 1), ``layer`` and ``head`` (the one that is
            added), with ``gain`` (``effect`` minus the step before's).
        provenance: How it was made; ``effects_where_chosen`` are the steps' mean effects on the choosing half, which
            flatter.
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
    options: GreedyOptions | None = None,
    *,
    progress: Progress | None = None,
    **fields: Any,
) -> GreedyResult:
    """Grow a set of ablated heads, and measure each step where it was not chosen.

    Args:
        model: Follows TransformerLens' protocol; our own runs several times faster, as does a bridge that we know.
        task: A task, or the name of one. A KL divergence is a cost where it rises.
        options: What is asked; or its fields by name: see ``GreedyOptions``.
        progress: Called with (steps done, steps in all).
        fields: Those of `options` that are given by name.

    Returns:
        The steps that are complete: interrupted (Ctrl-C), those so far, with a warning, and
        ``provenance["complete"]`` is False.

    Raises:
        InputError: As ``ablate``; more steps than heads, or a task of a single cluster.
        AuditError: The engine's numbers are not those of the plain way.
        KeyboardInterrupt: Interrupted before the first step was complete.

    Examples:
        >>> from interp.methods.head_sets import greedy
        >>> len(greedy(interp.load_model(), "agreement", heads=[(2, 1), (2, 2)], n_heads=1, n=24).chosen)
        1
    """
    asked = GreedyOptions.of(options, fields)
    candidates = check_heads(model, asked.heads)
    most = len(candidates)
    n_heads = whole_number(
        "n_heads", asked.n_heads, expected=f"1 to {most} steps, as many as there are heads", most=most
    )
    given = as_predicted(task, model, n=asked.n, seed=asked.seed, metric=asked.metric)
    choosing, scored = halves(given, asked.seed)
    run = partial(ablate, model, **_shared(asked))
    sign = -1.0 if asked.metric == "kl_divergence" else 1.0
    sets: list[list[Head]] = []
    results: list[SweepResult] = []
    flattering: list[float] = []
    try:
        while len(sets) < n_heads:
            before = sets[-1] if sets else []
            tried = [[*before, head] for head in candidates if head not in before]
            table = complete(run(choosing, sets=tried)).table("effect")
            effects = pd.Series(estimates(table), index=table.cells)[[set_name(each) for each in tried]].to_numpy()
            best = int(np.argmin(sign * effects))
            results.append(complete(run(scored, sets=[tried[best]])))
            sets.append(tried[best])
            flattering.append(float(effects[best]))
            if progress is not None:
                progress(len(sets), n_heads)
    except KeyboardInterrupt:
        if not sets:
            raise
        warnings.warn("interrupted: the result holds the steps that were complete", RuntimeWarning, stacklevel=2)
    done = len(sets) == n_heads
    split = {"effects_where_chosen": flattering, "n_units_where_chosen": len(choosing.units), "complete": done}
    by_step = enumerate(zip(sets, results, strict=False), start=1)  # the last of an interrupted one may have no set
    frames = {(step, *heads[-1]): each.examples.drop(columns="heads") for step, (heads, each) in by_step}
    rows = _labelled(STEP, frames)
    rows = rows.assign(gain=rows["effect"] - rows.groupby("example")["effect"].shift(fill_value=0.0))
    return GreedyResult(rows, {**results[0].provenance, **split}, STEP)


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
    first = set(np.random.default_rng(seed).permutation(clusters)[: len(clusters) // 2].tolist())
    one, other = (tuple(unit for unit in task.units if (unit.cluster in first) == mine) for mine in (True, False))
    return replace(task, units=one), replace(task, units=other)
