"""Whether it matters what replaces an ablated component: the same sweep under several replacements.

1. One sweep over components x replacements: the same examples, the same base run.
2. For each replacement by itself, the conclusion about each component as a report with that one would draw it
   (``claims/effects.py``; one family of tests per replacement).
3. A conclusion **flips** where two replacements lead to different decided conclusions (drop, rise or none). Where they
   differ only in that one of them leaves it undecided, nothing flips: it stays **open**.
4. Rank agreement between two replacements is Kendall's tau-b over the components' mean effects, signs included.

Zhang & Nanda (2024), "Towards best practices of activation patching"; Chan et al. (2022), "Causal scrubbing".
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, ClassVar, get_args

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.stats import kendalltau, spearmanr

from interp.arguments import as_names
from interp.claims.effects import check_judged, conclusions
from interp.claims.units import UnitTable, cluster_sums, estimates, stratum_means
from interp.errors import InputError
from interp.interventions.reference_set import make_means, reference_hash
from interp.interventions.replacement import ALIKE, Replacement
from interp.interventions.sweep import Progress
from interp.methods.ablation import Component, as_measured, as_replacement, choose_components, measure, sites_of
from interp.methods.task_arguments import as_predicted
from interp.model.devices import documented
from interp.options import CompareOptions, ReplacementName
from interp.result import Result
from interp.runs.run import Run
from interp.tasks.task import Task

REPLACEMENTS: tuple[ReplacementName, ...] = get_args(ReplacementName)
RESAMPLES = 500
FEW = 64  # cells, of which all pairs of all draws fit into 16 MB


@dataclass(frozen=True, eq=False, repr=False)
class ReplacementComparison(Result):
    """Effects of every component under every replacement.

    Attributes:
        examples: One row per replacement, component and example, as ``SweepResult.examples``, with ``replacement``.
        provenance: How the numbers were made.
        replacements: In the order given.
        labels: The columns that name a component.
    """

    replacements: tuple[ReplacementName, ...] = REPLACEMENTS
    labels: tuple[str, ...] = ("layer", "head")

    shown_by: ClassVar[str] = "results.effects"

    def summary(self) -> pd.DataFrame:
        """One row per replacement and component, as ``conclusions`` gives them: ``effect``, ``low``, ``state`` ..."""
        asked = {name: self.provenance[name] for name in ("metric", "min_effect", "alpha", "seed")}
        found = {
            name: conclusions(self.examples[self.examples["replacement"] == name], "effect", self.labels, **asked)
            for name in self.replacements
        }
        return pd.concat(found, names=["replacement"]).reset_index("replacement").reset_index(drop=True)

    def conclusions(self) -> pd.DataFrame:
        """One row per component: its labels, its state under each replacement, and ``agreement``.

        That is ``agrees`` where all replacements lead to the same decided conclusion, ``flips`` where two of them reach
        different decided ones, and ``open`` where one is undecided and the others do not contradict each other.
        """
        table = self.summary()
        wide = table.pivot(index=list(self.labels), columns="replacement", values="state")[list(self.replacements)]
        settled, flips = (wide != "undecided").all(axis=1), wide.where(wide != "undecided").nunique(axis=1) > 1
        wide["agreement"] = np.select([flips, settled], ["flips", "agrees"], "open")
        return wide.rename_axis(columns=None).reset_index()

    def flips(self) -> pd.DataFrame:
        """The components whose conclusion flips, as rows of ``conclusions``."""
        return self.conclusions().query("agreement == 'flips'").reset_index(drop=True)

    def agreement(self) -> pd.DataFrame:
        """How alike two replacements order the components, one row per pair of them.

        Columns: ``first``, ``second``, ``kendall`` (tau-b) with the percentile interval ``low``, ``high`` (95 %,
        cluster bootstrap), ``spearman``, ``n_cells``. The order of components that do nothing is noise: many such keep
        the agreement from 1, and resampling moves them most, so that the estimate can lie near an end of its interval.
        NaN where a replacement gives all components the same effect.
        """
        table = UnitTable.from_frame(self.examples, "effect", by=("replacement", *self.labels))
        name_of = table.cells.get_level_values("replacement")
        means, resampled = estimates(table), _resampled_means(table, self.provenance["seed"])
        columns = {name: np.flatnonzero(name_of == name) for name in self.replacements}
        rows = []
        for first, second in combinations(self.replacements, 2):
            one, other = columns[first], columns[second]
            kendall, spearman = (_ranks_alike(by, means[one], means[other]) for by in (kendalltau, spearmanr))
            drawn = _kendall(resampled[:, one], resampled[:, other])
            low, high = np.nanquantile(drawn, [0.025, 0.975]) if np.isfinite(drawn).any() else (np.nan, np.nan)
            labels = {"first": first, "second": second}
            rows.append({**labels, "kendall": kendall, "low": low, "high": high, "spearman": spearman})
        return pd.DataFrame(rows).assign(n_cells=len(means) // len(self.replacements))


@documented
def compare_replacements(
    model: Any,
    task: Task | str,
    options: CompareOptions | None = None,
    *,
    progress: Progress | None = None,
    **fields: Any,
) -> ReplacementComparison:
    """Ablate components under several replacements and compare what each would have one conclude.

    Args:
        model: Follows TransformerLens' protocol; our own runs several times faster.
        task: A task, or the name of one.
        options: What is asked; or its fields by name: see ``CompareOptions``.
        progress: Called with (cells done, cells in all).
        fields: Those of `options` that are given by name.

    Returns:
        Effects, conclusions and their agreement. Interrupted (Ctrl-C), they are those of the examples that are
        complete under every replacement, and ``provenance["complete"]`` is False.

    Raises:
        InputError: As ``ablate``; fewer than two replacements or one twice; a KL divergence; shares out of range.
        AuditError: The engine's numbers are not those of the plain way.

    Examples:
        >>> from interp.methods.replacements_compared import compare_replacements
        >>> compared = compare_replacements(interp.load_model(), "agreement", replacements=("zero", "mean"), n=24)
        >>> len(compared.summary())
        24
    """
    asked = CompareOptions.of(options, fields)
    names = _checked(asked.replacements)
    chosen = choose_components(model, asked.components, heads=asked.heads, sets=asked.sets, layers=asked.layers)
    given = as_predicted(task, model, n=asked.n, seed=asked.seed, metric=asked.metric)
    check_judged(asked.metric or given.metric)
    sites, measured = sites_of(chosen), as_measured(given, asked.metric)
    kinds = [name for name in names if name in ALIKE]
    means = make_means(kinds, model, measured, sites=sites, memory_budget=asked.memory_budget)
    made = {name: means.get(name) or as_replacement(name, model, given, asked, sites) for name in names}
    return measured_by(model, given, chosen, made, asked, progress=progress)


@documented
def measured_by(
    model: Any,
    task: Task,
    components: Sequence[Component],
    replacements: Mapping[ReplacementName, Replacement],
    asked: CompareOptions,
    run: Run | None = None,
    progress: Progress | None = None,
) -> ReplacementComparison:
    """As ``compare_replacements``, under replacements that are made already.

    Args:
        model: As there.
        task: Its units.
        components: What is ablated, as of ``choose_components``.
        replacements: By their names; means have to be of all that is ablated.
        asked: How it is measured and judged.
        run: Where the sweep is kept; None for nowhere.
        progress: Called with (cells done, cells in all).

    Returns:
        As there.

    Raises:
        InputError: As ``ablate``.

    Examples:
        >>> from interp.interventions.replacement import Zero
        >>> from interp.methods.ablation import choose_components
        >>> from interp.methods.replacements_compared import measured_by
        >>> from interp.options import CompareOptions
        >>> model = interp.load_model()
        >>> task = interp.load_task("agreement", tokenizer=model.tokenizer, n=4)
        >>> chosen = choose_components(model, "heads", heads=[(2, 2)])
        >>> len(measured_by(model, task, chosen, {"zero": Zero()}, CompareOptions()).examples)
        8
    """
    cells = [
        replace(each, labels={"replacement": name, **each.labels}).cell(made)
        for name, made in replacements.items()
        for each in components
    ]
    result = measure(model, task, cells, asked, progress=progress, run=run)
    how: dict[str, Any] = {name: getattr(asked, name) for name in ("components", "min_effect", "alpha")}
    how["reference_hash"] = reference_hash(as_measured(task, asked.metric))
    labels = tuple(components[0].labels)
    return ReplacementComparison(result.examples, {**result.provenance, **how}, tuple(replacements), labels)


def _checked(replacements: Any) -> tuple[ReplacementName, ...]:
    names: list[Any] = as_names("replacements", REPLACEMENTS if replacements is None else replacements)
    if len(names) < 2 or len(set(names)) < len(names):
        raise InputError(f"replacements: expected different replacements, at least two, got {names}; with one, ablate")
    return tuple(names)


def _ranks_alike(by: Callable[..., Any], one: Float[np.ndarray, " cell"], other: Float[np.ndarray, " cell"]) -> float:
    """Kendall's tau-b or Spearman's rho; NaN where there is nothing to order."""
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # two cells have a perfect correlation and no p
        return float(by(one, other).statistic)


def _kendall(one: Float[np.ndarray, "draw cell"], other: Float[np.ndarray, "draw cell"]) -> Float[np.ndarray, " draw"]:
    """As ``_ranks_alike`` of each draw; of few cells all draws at once, which takes a tenth of the time."""
    if one.shape[1] > FEW:
        return np.array([_ranks_alike(kendalltau, *each) for each in zip(one, other, strict=True)])
    first, second = (np.sign(each[:, :, None] - each[:, None]) for each in (one, other))  # each pair twice
    alike, n_first, n_second = ((each / 2).sum(axis=(1, 2)) for each in (first * second, first**2, second**2))
    with np.errstate(invalid="ignore"):  # nothing to order
        return np.clip(alike / np.sqrt(n_first) / np.sqrt(n_second), -1, 1)


def _resampled_means(table: UnitTable, seed: int) -> Float[np.ndarray, "resample cell"]:
    """The stratified means where the clusters are drawn again, whole, with all cells on the same draw."""
    sums, counts = cluster_sums(table)
    n_clusters = sums.shape[1]
    weights = np.random.default_rng(seed).multinomial(n_clusters, np.full(n_clusters, 1 / n_clusters), size=RESAMPLES)
    return stratum_means(weights @ sums, weights @ counts)
