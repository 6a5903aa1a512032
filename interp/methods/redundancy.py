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
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from os import PathLike
from typing import Any

import pandas as pd

from interp.claims.effects import check_judged, conclusions, means_of
from interp.errors import InputError
from interp.interventions.metrics import MetricName
from interp.interventions.replacement import DRAWS, Kind, Means
from interp.interventions.sweep import Progress
from interp.methods.ablation import ablate
from interp.methods.components import Head, check_heads, head_name, set_name
from interp.methods.given_task import as_predicted
from interp.methods.in_one_line import InOneLine
from interp.model.modes import documented
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
    by_set = dict(iter(result.frame.groupby("heads", sort=False)))
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
