"""What did erasing do? To the behaviour, place by place and task by task; and to what can be read there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from interp.claims.claim import Measured, claim
from interp.claims.units import UnitTable
from interp.interventions.sweep import SweepResult
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
    parts = [each.frame.assign(task=task.name) for each, task in zip(results, tasks, strict=False)]
    found = pd.concat(parts, ignore_index=True)
    return found[["task", *(name for name in found.columns if name != "task")]]
