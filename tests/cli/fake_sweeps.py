"""What the faked sweeps answer: a real result, of invented effects."""

from itertools import product

import numpy as np
import pandas as pd

from interp.interventions.sweep import SweepResult
from interp.methods.patching import PatchResult
from interp.tasks.example import Example
from interp.tasks.task import EncodedExample, Task, Unit

PROVENANCE = {
    "task": "agreement",
    "metric": "logit_difference",
    "site": "z",
    "replacement": "mean",
    "components": "heads",
    "seed": 0,
    "complete": True,
    "n_asked": 30,
    "dropped": {"answers of several tokens": 3},
    "audit": {"cells": 2, "rows": 8, "largest_difference": 1e-7, "tolerance": 1e-4},
}
UNITS = 30


def a_task(name):
    """A task of 30 items in prompts of two lengths, of which three were left out."""
    example = Example("The cat", " is", " are", None, "plain", "plain")
    items = [EncodedExample(example, (0, 1, 2)[: 2 + n % 2], (3,), (4,), None, (), {}) for n in range(UNITS)]
    units = tuple(Unit(item, None, str(number)) for number, item in enumerate(items))
    dropped = {"answers of several tokens": 3}
    return Task(
        name, "Does it agree?", "logit_difference", "predicting position", units, (units,), dropped, {}, hash="0"
    )


def effects(axes, base=4.0):
    """Effects on 30 units, each a cluster of its own: -1.5 in the first cell, about 0 in the others."""
    cells, unit = list(product(*axes.values())), np.arange(UNITS)
    rng = np.random.default_rng(0)
    parts = []
    for number, labels in enumerate(cells):
        effect = (-1.5 if number == 0 else 0.0) + 0.3 * np.sin(unit) + 0.01 * rng.standard_normal(UNITS)
        part = pd.DataFrame({"unit": unit, "example": unit, "cluster": unit.astype(str), "template": "plain"})
        part = part.assign(base=base + unit / 100, effect=effect, base_correct=1.0, value_correct=0.75, fired=1)
        parts.append(part.assign(change_norm=1.0, status="changed", **dict(zip(axes, labels, strict=True))))
    frame = pd.concat(parts, ignore_index=True)
    return frame.assign(value=frame["base"] + frame["effect"])


def ablation(axes, base=4.0, **how):
    """An ablation of every cell of `axes`."""
    return SweepResult(effects(axes, base), PROVENANCE | how, tuple(axes))


def patching(axes, **how):
    """Patching of every cell of `axes`: the first brings the answer back."""
    frame = effects(axes, base=-4.0)
    frame = frame.assign(source=-frame["base"], base_correct=0.0, effect=-5 * frame["effect"])
    frame = frame.assign(value=frame["base"] + frame["effect"])
    return PatchResult(frame, PROVENANCE | {"direction": "denoise"} | how, tuple(axes))
