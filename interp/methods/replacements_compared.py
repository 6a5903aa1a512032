"""Does it matter what replaces an ablated component? The same sweep under several replacements, and where they part.

1. One sweep over components x kinds of replacement: the same examples, the same base run.
2. For each kind by itself, the conclusion about each component as a report with that kind would draw it
   (``claims/effects.py``; one family of tests per kind).
3. A conclusion **flips** where two kinds reach different decided conclusions: one says drop, rise or none, another
   says another of these. Where kinds differ only in that one of them is undecided, nothing flips: it stays **open**.
4. Rank agreement between two kinds is Kendall's tau-b over the components' mean effects, signs included.

Zhang & Nanda (2024), "Towards best practices of activation patching"; Chan et al. (2022), "Causal scrubbing".
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, cast, get_args

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.stats import kendalltau, spearmanr

from interp.arguments import as_names
from interp.claims.effects import check_judged, conclusions
from interp.claims.units import UnitTable, cluster_sums, estimates, stratum_means
from interp.errors import InputError, suggest
from interp.interventions.metrics import MetricName
from interp.interventions.reference_set import make_replacement, reference_hash
from interp.interventions.replacement import DRAWS, Kind
from interp.interventions.sweep import Cell, Progress, Sweep
from interp.methods.ablation import Component, Components, Head, as_measured, choose_components, sites_of
from interp.methods.in_one_line import InOneLine
from interp.methods.task_arguments import as_predicted
from interp.model.devices import documented
from interp.tasks.task import Task

KINDS: tuple[Kind, ...] = get_args(Kind)
RESAMPLES = 500


@dataclass(frozen=True, repr=False)
class ReplacementComparison(InOneLine):
    """Effects of every component under every kind of replacement.

    Attributes:
        frame: One row per kind, component and example, as ``SweepResult.frame``, with ``kind``.
        provenance: How the numbers were made.
        kinds: The replacements, in the order given.
        labels: The columns that name a component.
    """

    frame: pd.DataFrame
    provenance: Mapping[str, Any]
    kinds: tuple[Kind, ...]
    labels: tuple[str, ...]

    def _repr_html_(self) -> str:
        """What a notebook shows: the findings in words, the strongest with their intervals, and a figure if small."""
        from interp.report.glance import as_html
        from interp.report.results.replacements import replacements_glance

        return as_html(replacements_glance(self))

    def effects(self) -> pd.DataFrame:
        """One row per kind and component, as ``conclusions`` gives them: ``effect``, ``low``, ``high``, ``state``."""
        asked = {name: self.provenance[name] for name in ("metric", "minimum_effect", "alpha", "seed")}
        parts = [
            conclusions(self.frame[self.frame["kind"] == kind], "effect", self.labels, **asked).assign(kind=kind)
            for kind in self.kinds
        ]
        found = pd.concat(parts, ignore_index=True)
        return found[["kind", *(name for name in found.columns if name != "kind")]]

    def conclusions(self) -> pd.DataFrame:
        """One row per component: its labels, its state under each kind, and ``agreement``.

        That is ``agrees`` where all kinds reach the same decided conclusion, ``flips`` where two of them reach
        different decided ones, and ``open`` where one is undecided and the others do not contradict each other.
        """
        effects = self.effects()
        wide = effects.pivot(index=list(self.labels), columns="kind", values="state")[list(self.kinds)]
        decided = [set(states) - {"undecided"} for states in wide.to_numpy()]
        settled = (wide != "undecided").all(axis=1)
        wide["agreement"] = [
            "flips" if len(each) > 1 else "agrees" if sure else "open"
            for each, sure in zip(decided, settled, strict=True)
        ]
        wide.columns.name = None
        return wide.reset_index()

    def flips(self) -> pd.DataFrame:
        """The components whose conclusion flips, as rows of ``conclusions``."""
        found = self.conclusions()
        return found[found["agreement"] == "flips"].reset_index(drop=True)

    def agreement(self) -> pd.DataFrame:
        """How alike two kinds order the components, one row per pair of kinds.

        Columns: ``first``, ``second``, ``kendall`` (tau-b) with the percentile interval ``low``, ``high`` (95 %,
        cluster bootstrap), ``spearman``, ``n_cells``. The order of components that do nothing is noise: many such keep
        the agreement from 1, and resampling moves them most, so that the estimate can lie near an end of its interval.
        NaN where a kind gives all components the same effect.
        """
        table = UnitTable.from_frame(self.frame, "effect", by=("kind", *self.labels))
        kind_of = table.cells.get_level_values("kind")
        means, resampled = estimates(table), _resampled_means(table, self.provenance["seed"])
        columns = {kind: np.flatnonzero(kind_of == kind) for kind in self.kinds}
        rows = []
        for first, second in combinations(self.kinds, 2):
            one, other = columns[first], columns[second]
            kendall, spearman = (_ranks_alike(by, means[one], means[other]) for by in (kendalltau, spearmanr))
            drawn = [_ranks_alike(kendalltau, each[one], each[other]) for each in resampled]
            low, high = np.nanquantile(drawn, [0.025, 0.975]) if np.isfinite(drawn).any() else (np.nan, np.nan)
            labels = {"first": first, "second": second}
            rows.append({**labels, "kendall": kendall, "low": low, "high": high, "spearman": spearman})
        return pd.DataFrame(rows).assign(n_cells=len(means) // len(self.kinds))


@documented
def compare_replacements(
    model: Any,
    task: Task | str,
    *,
    kinds: Sequence[Kind] = KINDS,
    components: Components = "heads",
    heads: Sequence[Head] | None = None,
    sets: Sequence[Sequence[Head]] | None = None,
    layers: Sequence[int] | None = None,
    metric: MetricName | None = None,
    n: int | None = None,
    seed: int = 0,
    draws: int = DRAWS,
    minimum_effect: float = 0.1,
    alpha: float = 0.05,
    memory_budget: int | None = None,
    progress: Progress | None = None,
) -> ReplacementComparison:
    """Ablate components under several replacements and compare what each would have one conclude.

    Args:
        model: Follows TransformerLens' protocol; our own runs several times faster.
        task: A task, or the name of one.
        kinds: The replacements, at least two.
        components: What is ablated; this and the next three as in ``ablate``.
        heads: Heads, one by one.
        sets: Sets of heads, each together.
        layers: Layers.
        metric: What is measured; None for the task's own.
        n: Units to draw where `task` is a name; None for the task's own default.
        seed: Of the task's draw, the resamples and the statistics.
        draws: How many resamples to average the effects of.
        minimum_effect: The smallest effect that counts, as a share of the base run's mean metric.
        alpha: Chance of any false drop or rise, for each kind by itself.
        memory_budget: Bytes beside the model's weights; None for the device's default.
        progress: Called with (cells done, cells in all).

    Returns:
        Effects, conclusions and their agreement. Interrupted (Ctrl-C), they are those of the examples that are
        complete under every kind, and ``provenance["complete"]`` is False.

    Raises:
        InputError: As ``ablate``; fewer than two kinds or one twice; a KL divergence; shares out of range.
        AuditError: The engine's numbers are not those of the plain way.
    """
    kinds = cast("list[Kind]", as_names("kinds", kinds))
    _check_kinds(kinds)
    chosen = choose_components(model, components, heads=heads, sets=sets, layers=layers)
    given = as_predicted(task, model, n=n, seed=seed, metric=metric)
    asked: MetricName = given.metric if metric is None else metric
    check_judged(asked, minimum_effect, alpha)
    measured, sites = as_measured(given, metric), sites_of(chosen)
    cells: list[Cell] = []
    for kind in kinds:
        replacement = make_replacement(
            kind, model, measured, sites=sites, draws=draws, seed=seed, memory_budget=memory_budget
        )
        cells += [_of_kind(kind, each).cell(replacement) for each in chosen]
    result = Sweep(cells).run(model, given, metric=metric, seed=seed, memory_budget=memory_budget, progress=progress)
    how: dict[str, Any] = {"components": components, "minimum_effect": minimum_effect, "alpha": alpha}
    how["reference_hash"] = reference_hash(measured)
    return ReplacementComparison(result.examples, {**result.provenance, **how}, tuple(kinds), tuple(chosen[0].labels))


def _of_kind(kind: Kind, component: Component) -> Component:
    return replace(component, labels={"kind": kind, **component.labels})


def _check_kinds(kinds: Sequence[str]) -> None:
    for kind in kinds:
        if kind not in KINDS:
            raise InputError(f"ablation {kind!r} is unknown; {suggest(str(kind), KINDS)}")
    if len(kinds) < 2 or len(set(kinds)) < len(kinds):
        raise InputError(f"kinds: expected different replacements, at least two, got {list(kinds)}; with one, ablate")


def _ranks_alike(by: Callable[..., Any], one: Float[np.ndarray, " cell"], other: Float[np.ndarray, " cell"]) -> float:
    """Kendall's tau-b or Spearman's rho; NaN where there is nothing to order."""
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # two cells have a perfect correlation and no p
        return float(by(one, other).statistic)


def _resampled_means(table: UnitTable, seed: int) -> Float[np.ndarray, "resample cell"]:
    """The stratified means where the clusters are drawn anew, whole, with all cells on the same draw."""
    sums, counts = cluster_sums(table)
    n_clusters = sums.shape[1]
    weights = np.random.default_rng(seed).multinomial(n_clusters, np.full(n_clusters, 1 / n_clusters), size=RESAMPLES)
    return stratum_means(weights @ sums, weights @ counts)
