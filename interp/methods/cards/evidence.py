"""How do a head's effects compare across tasks, and do they come back in the other half of the items?

Both are of examples that a dossier has measured: nothing is run.
"""

from typing import Any

import numpy as np
import pandas as pd

from interp.claims.bootstrap import Intervals, cluster_bootstrap
from interp.claims.units import UnitTable, estimates

CELL = ("layer", "head")
SHARES = (
    *("metric", "base", "effect", "effect_low", "effect_high", "share", "share_low", "share_high"),
    *("minimum", "n_units", "n_clusters"),
)
HALVES = ("evidence", "half", "estimate", "low", "high", "minimum", "passes", "n_units", "n_clusters")


def share_of_base(effects: UnitTable, base: UnitTable, *, seed: int) -> Intervals:
    """Effects as shares of the base run's mean: a ratio of means with its 95 % cluster bootstrap, by cell.

    NaN where the base run is not shown to be above 0: a share of nothing says nothing.
    """
    ratio = cluster_bootstrap(effects, per=base, seed=seed)
    nothing = cluster_bootstrap(base, seed=seed).low <= 0  # an interval that is not known says nothing about it
    return Intervals(*(np.where(nothing, np.nan, each) for each in (ratio.estimate, ratio.low, ratio.high)))


def shares(examples: pd.DataFrame, row: pd.Series, *, minimum: float, seed: int) -> pd.DataFrame:
    """A head's effect on one task, as a share of what the whole model does there.

    Args:
        examples: Of this head and task, as in ``HeadsReport.examples``.
        row: Of this head and task in ``HeadsReport.frame``.
        minimum: The smallest share that counts.
        seed: Of the resamples.

    Returns:
        One row, columns as in ``SHARES``: the ``effect`` in the metric's units, and its ``share`` of the ``base``
        run's mean (-1 is all of it), as ``share_of_base`` gives it.
    """
    effects, base = (UnitTable.from_frame(examples, name, by=CELL) for name in ("effect", "base"))
    share = share_of_base(effects, base, seed=seed)
    found = {name: row[name] for name in ("metric", "effect", "effect_low", "effect_high")}
    found |= {"base": float(estimates(base)[0]), "minimum": minimum}
    found |= {"share": share.estimate[0], "share_low": share.low[0], "share_high": share.high[0]}
    found |= {"n_units": int(effects.n_units[0]), "n_clusters": int(effects.n_clusters[0])}
    return pd.DataFrame([found])[list(SHARES)]


def halves(examples: pd.DataFrame, row: pd.Series, *, seed: int) -> pd.DataFrame:
    """Excess attention and effect of ablation in two random halves of a task's clusters.

    Args:
        examples: Of this head and task, as in ``HeadsReport.examples``.
        row: Of this head and task in ``HeadsReport.frame``.
        seed: Of the split and the resamples.

    Returns:
        One row a kind of evidence and half, columns as in ``HALVES``: ``evidence`` (``attention``, ``effect``),
        ``half`` (1, 2), the ``estimate`` with its interval, the ``minimum`` that counts (that of the whole), and
        whether the estimate ``passes`` it: an effect in the direction that it has on the whole. No row of a
        kind of evidence that is measured on fewer than two clusters. They describe, and test nothing: the whole has
        been looked at.
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
            rows.append(
                {"evidence": evidence, "half": half, **_half(part, column, sign, row[f"minimum_{evidence}"], seed)}
            )
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
