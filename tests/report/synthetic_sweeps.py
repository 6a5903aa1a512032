"""Synthetic sweeps: results with invented numbers and hostile text."""

from dataclasses import dataclass, replace
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from interp.interventions.sweep import SweepResult
from interp.report.sweep_cells import swept

N = 30
ABLATION = {"layer": range(3), "head": range(4)}
PATCHING = {"layer": range(2), "pos": ("BOS", "related", "last")}


@dataclass(frozen=True, eq=False, repr=False)
class MadeUp(SweepResult):
    """A sweep whose summaries are given."""

    cells: Any = None
    held_against: Any = None
    screen: Any = None

    def summary(self):
        """Of the cells."""
        return self.cells

    def runs(self):
        """That cells are held against."""
        return self.held_against


def shown_of(*axes, **how):
    """A sweep as its page takes it."""
    return swept(sweep(*axes, **how))


def sweep(
    axes=None,
    *,
    direction=None,
    state=None,
    p_adjusted=None,
    complete=True,
    tokens=(),
    estimates=None,
    how=None,
    runs=None,
    **changed,
):
    """A sweep whose first cell has the strongest effect; cells' states are those of `state`, by their numbers."""
    axes = axes or (PATCHING if direction else ABLATION)
    rows = list(product(*axes.values()))
    number = np.arange(len(rows))
    labels = pd.DataFrame(rows, columns=list(axes))
    effect = np.where(number == 0, -4.0, 0.9**number / 10)
    if direction == "denoise":
        effect = -2 * effect
    cells = labels.assign(effect=effect, low=effect - 0.2, high=effect + 0.2, p=0.5, p_adjusted=0.5, base=5.0)
    cells = cells.assign(value=5.0 + effect, accuracy_base=1.0, accuracy_intervened=1.0, change_norm=1.0)
    cells = cells.assign(n_units=N, n_clusters=N)
    cells.loc[0, ["p_adjusted", "accuracy_intervened"]] = (1e-4, 0.55)
    cells["p_adjusted"] = cells["p_adjusted"] if p_adjusted is None else p_adjusted
    if direction:
        start = float(direction == "noise")
        for name in ("effect", "low", "high"):
            cells["normalised" + ("" if name == "effect" else f"_{name}")] = start + cells[name] / 10
        cells = cells.assign(clean=5.0, corrupted=-5.0)
    for name, value in changed.items():
        cells[name] = value
    examples = (
        labels.loc[labels.index.repeat(N)].reset_index(drop=True).assign(example=np.tile(np.arange(N), len(rows)))
    )
    status = [(state or {}).get(each, "changed") for each in number]
    measured = pd.DataFrame([_run(*run) for run in ((("clean", 5.0), ("corrupted", -5.0)) if direction else _WHOLE)])
    provenance = _provenance(direction, complete=complete, screened=estimates is not None)
    provenance["positions"] = [(token, share) for _, token, share in tokens]
    return MadeUp(
        examples.assign(status=np.repeat(status, N), effect=np.repeat(effect, N)),
        provenance | (how or {}),
        tuple(axes),
        cells,
        measured.assign(**(runs or {})),
        None if estimates is None else SimpleNamespace(summary=lambda: estimates),
    )


_WHOLE = (("unablated", 5.0),)


def _run(name, mean):
    numbers = {"mean": mean, "low": mean - 0.3, "high": mean + 0.3, "accuracy": float(mean > 0)}
    return {"run": name, **numbers, "above_chance": mean > 0, "n_units": N, "n_clusters": N}


def _provenance(direction, *, complete, screened):
    how = {"task": "agreement", "metric": "logit_difference", "model": "<b>tiny</b>", "model_hash": "0123456789abcdef"}
    how |= {"seed": 0, "device": "cpu", "complete": complete, "site": "z"}
    how |= {"question": "Does the verb agree? <b>bold</b>", "dropped": {}, "n_asked": N if complete else 2 * N}
    how["audit"] = {"cells": 2, "rows": 8, "largest_difference": 1.5e-7, "tolerance": 1e-4}
    how |= {"direction": direction} if direction else {"components": "heads", "replacement": "mean"}
    if screened:
        sizes = {"method": "attribution", "cells": 12, "top": 4, "audit": 2, "correlation": float("nan")}
        how["screen"] = {**sizes, "recall": 1.0, "recall_low": 0.75, "recall_high": 1.0}
    return how


def screened():
    """A screen of 12 cells of which 6 were measured."""
    labels = pd.DataFrame(product(range(3), range(4)), columns=["layer", "head"])
    estimates = labels.assign(estimate=np.linspace(1, 0, 12), chosen=["top"] * 4 + ["audit"] * 2 + ["not measured"] * 6)
    whole = sweep(ABLATION, direction="denoise", estimates=estimates, p_adjusted=np.nan)
    few = whole.examples[whole.examples["layer"] * 4 + whole.examples["head"] < 6]
    return replace(whole, examples=few, cells=whole.cells.head(6))
