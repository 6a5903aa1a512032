"""Measurements of one head that a dossier holds already, and its ablation under every kind of replacement.

1. The effect as a share of what the whole model does, and two random halves of the clusters: nothing is run.
2. All heads of the model are ablated under every kind of replacement (``replacements_compared.py``): the heads of a
   kind are one family of tests, and their order under two kinds is compared by Kendall's tau-b.
3. A kind that the task cannot provide is left out with its reason: a positional mean needs positions that mean the
   same, a resample reference examples of the same length.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import pandas as pd

from interp.claims.bootstrap import Intervals, cluster_bootstrap
from interp.claims.units import UnitTable, estimates
from interp.errors import InputError
from interp.interventions.engine.plan import NoRoomError
from interp.interventions.reference_set import make_replacement
from interp.interventions.sweep import Progress
from interp.methods.replacements_compared import ReplacementComparison, compare_replacements
from interp.model.sites import Site
from interp.options import Head, HeadsOptions, ReplacementName
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
KINDS: tuple[ReplacementName, ...] = get_args(ReplacementName)


def share_of_base(effects: UnitTable, base: UnitTable, *, seed: int) -> Intervals:
    """Effects as shares of the base run's mean: a ratio of means with its 95 % cluster bootstrap, by cell.

    NaN where the base run is not shown to be above 0: a share of nothing says nothing.
    """
    ratio = cluster_bootstrap(effects, per=base, seed=seed)
    nothing = cluster_bootstrap(base, seed=seed).low <= 0  # an interval that is not known says nothing about it
    return Intervals(*(np.where(nothing, np.nan, each) for each in (ratio.estimate, ratio.low, ratio.high)))


def shares(examples: pd.DataFrame, row: pd.Series, *, minimum: float, seed: int) -> pd.DataFrame:
    """A head's effect on one task as a ``share`` of the ``base`` run's mean (-1 is all of it): one row, ``SHARES``.

    `examples` and `row` are the dossier's of this head and task; `minimum` is the smallest share that counts.
    """
    effects, base = (UnitTable.from_frame(examples, name, by=CELL) for name in ("effect", "base"))
    share = share_of_base(effects, base, seed=seed)
    found = {name: row[name] for name in ("metric", "effect", "effect_low", "effect_high")}
    found |= {"base": float(estimates(base)[0]), "minimum": minimum}
    found |= {"share": share.estimate[0], "share_low": share.low[0], "share_high": share.high[0]}
    found |= {"n_units": int(effects.n_units[0]), "n_clusters": int(effects.n_clusters[0])}
    return pd.DataFrame([found])[list(SHARES)]


def halves(examples: pd.DataFrame, row: pd.Series, *, seed: int) -> pd.DataFrame:
    """Excess attention and effect of ablation in two random halves of a task's clusters, columns ``HALVES``.

    An estimate ``passes`` where it reaches the ``minimum`` of the whole, an effect in the direction that it has on the
    whole. Evidence on fewer than two clusters has no row. Halves describe and test nothing: the whole has been seen.
    """
    rows = []
    for evidence, column in (("attention", "excess"), ("effect", "effect")):
        measured = examples[examples[column].notna()]
        if measured["cluster"].nunique() < 2:
            continue
        first = _first_half(measured["cluster"], seed)
        sign = np.sign(row["effect"]) if evidence == "effect" else 1.0
        for half, inside in ((1, True), (2, False)):
            part = measured[measured["cluster"].isin(first) == inside]
            found = _half(part, column, sign, row[f"min_{evidence}"], seed)
            rows.append({"evidence": evidence, "half": half, **found})
    return pd.DataFrame(rows, columns=list(HALVES))


def _first_half(clusters: pd.Series, seed: int) -> set[str]:
    order = np.random.default_rng(seed).permutation(sorted(clusters.unique()))
    return set(order[: len(order) // 2])


def _half(part: pd.DataFrame, column: str, sign: float, minimum: float, seed: int) -> dict[str, Any]:
    table = UnitTable.from_frame(part, column, by=CELL)
    found = cluster_bootstrap(table, seed=seed)
    return {
        "estimate": float(found.estimate[0]),
        "low": float(found.low[0]),
        "high": float(found.high[0]),
        "minimum": minimum,
        "passes": bool(sign * found.estimate[0] >= minimum),
        "n_units": int(table.n_units[0]),
        "n_clusters": int(table.n_clusters[0]),
    }


@dataclass(frozen=True)
class Compared:
    """All heads under all kinds of replacement on one task; `refused` has the kinds that it cannot provide, and why."""

    comparison: ReplacementComparison
    effects: pd.DataFrame
    agreement: pd.DataFrame
    refused: Mapping[ReplacementName, str]


class Comparisons:
    """Every head of a model under every kind of replacement; each task is run once."""

    def __init__(self, model: Any, asked: HeadsOptions):
        self._model, self._asked = model, asked
        self._found: dict[str, Compared] = {}

    def of(self, task: Task, progress: Progress | None = None) -> Compared:
        """The comparison on a task.

        Raises:
            InputError: Fewer than two kinds are possible.
            KeyboardInterrupt: The sweep was interrupted: some of the examples are no evidence on the task.
        """
        if task.name not in self._found:
            self._found[task.name] = self._compared(task, progress)
        return self._found[task.name]

    def _compared(self, task: Task, progress: Progress | None) -> Compared:
        refused: dict[ReplacementName, str] = {}
        try:
            found = self._compare(task, KINDS, progress)
        except NoRoomError:
            raise
        except InputError:
            refused = _refused(self._model, task, self._asked.seed)
            if not refused or len(KINDS) - len(refused) < 2:
                raise
            found = self._compare(task, [each for each in KINDS if each not in refused], progress)
        if not found.provenance["complete"]:
            raise KeyboardInterrupt
        effects = found.summary()
        return Compared(found, effects, found.agreement()[list(AGREEMENT)], refused)

    def _compare(self, task: Task, kinds: Any, progress: Progress | None) -> ReplacementComparison:
        asked = self._asked
        how: Any = {"replacements": kinds, "min_effect": asked.min_effect, "alpha": asked.alpha}
        return compare_replacements(self._model, task, **how, seed=asked.seed, draws=asked.draws, progress=progress)


def replacements(
    comparisons: Comparisons, head: Head, task: Task, progress: Progress | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A head ablated under every kind of replacement, one row a kind; and how alike two kinds order all heads.

    ``p_adjusted`` is family-wise over the heads, ``rank`` 1 the largest drop of the model's ``n_heads``; a kind that is
    refused has NaN and its ``reason``. Columns as in ``REPLACEMENTS`` and ``AGREEMENT``.
    """
    found = comparisons.of(task, progress)
    by_kind = found.effects.groupby("replacement")["effect"]
    effects = found.effects.assign(rank=by_kind.rank(method="min").astype(int), n_heads=by_kind.transform("size"))
    examples = _rows_of(found.comparison.examples, head)
    own = _rows_of(effects, head).set_index("replacement")
    own = own.join(_shares(examples, found.comparison.provenance["seed"]))
    frame = own.reindex(list(KINDS)).rename_axis("replacement").reset_index()
    return frame.assign(reason=[found.refused.get(kind, "") for kind in KINDS])[list(REPLACEMENTS)], found.agreement


def _refused(model: Any, task: Task, seed: int) -> dict[ReplacementName, str]:
    """The kinds that the task cannot provide, with the reason."""
    refused: dict[ReplacementName, str] = {}
    for kind in KINDS:
        try:
            make_replacement(kind, model, task, sites=[Site("z", 0)], draws=1, seed=seed)
        except InputError as error:
            refused[kind] = str(error)
    return refused


def _rows_of(frame: pd.DataFrame, head: Head) -> pd.DataFrame:
    return frame[(frame["layer"] == head[0]) & (frame["head"] == head[1])]


def _shares(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    """By kind, the effect as a share of the base run."""
    effects, base = (UnitTable.from_frame(frame, name, by=("replacement",)) for name in ("effect", "base"))
    share = share_of_base(effects, base, seed=seed)
    columns = {"share": share.estimate, "share_low": share.low, "share_high": share.high}
    return pd.DataFrame(columns, index=effects.cells)
