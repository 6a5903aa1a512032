"""Synthetic sweeps: frames as the report takes them, with invented numbers and hostile text."""

from itertools import product

import numpy as np
import pandas as pd

from interp.report.sweep_frames import SweepFrames

N = 30
ABLATION = {"layer": range(3), "head": range(4)}
PATCHING = {"layer": range(2), "pos": ("BOS", "related", "last")}


def sweep(
    axes=None, *, direction=None, state=None, p_adjusted=None, complete=True, tokens=(), estimates=None, **changed
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
    return SweepFrames(
        cells=cells,
        examples=examples.assign(status=np.repeat(status, N), effect=np.repeat(effect, N)),
        labels=tuple(axes),
        runs=pd.DataFrame([_run(*run) for run in ((("clean", 5.0), ("corrupted", -5.0)) if direction else _WHOLE)]),
        tokens=pd.DataFrame(list(tokens), columns=["pos", "token", "share"]),
        estimates=estimates,
        task={"Question": "Does the verb agree? <b>bold</b>", "Left out": ""},
        n_examples=N if complete else 2 * N,
        provenance=_provenance(direction, complete=complete, screened=estimates is not None),
    )


_WHOLE = (("unablated", 5.0),)


def _run(name, mean):
    numbers = {"mean": mean, "low": mean - 0.3, "high": mean + 0.3, "accuracy": float(mean > 0)}
    return {"run": name, **numbers, "above_chance": mean > 0, "n_units": N, "n_clusters": N}


def _provenance(direction, *, complete, screened):
    how = {"task": "agreement", "metric": "logit_difference", "model": "<b>tiny</b>", "model_hash": "0123456789abcdef"}
    how |= {"seed": 0, "device": "cpu", "complete": complete, "site": "z"}
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
    measured = [whole.cells.head(6), whole.examples[whole.examples["layer"] * 4 + whole.examples["head"] < 6]]
    return SweepFrames(**{**vars(whole), "cells": measured[0], "examples": measured[1]})
