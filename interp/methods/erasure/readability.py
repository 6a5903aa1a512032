"""One eraser for every place and fold; and how well probes read the feature before and after it is erased.

At every place, one probe is fitted to activations as they are, and another one to the erased ones:

- **fitted**: both to the reference sets, and judged on these. LEACE's theorem is about this number.
- **held out**: the same probes, judged on the scored units, which neither probe nor eraser has seen.
- **refitted**: both to scored units, and judged on lexical draws that they were not fitted to. After LEACE, the probes
  above say the same of everything; these ask whether its map serves other sentences than it was fitted to.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from sklearn.model_selection import GroupKFold
from torch import Tensor

from interp.claims.bootstrap import cluster_bootstrap
from interp.claims.units import UnitTable
from interp.interventions.intervention import heads_at
from interp.interventions.replacement import Erase, Eraser
from interp.interventions.rows import example_labels
from interp.methods.erasure.erasers import Standard, Whitening, fit_probe, inlp, leace, random_subspace
from interp.methods.erasure.readings import Place, Readings
from interp.model.sites import Site
from interp.tasks.task import Task

FittedMethod = Literal["leace", "random", "inlp"]
FITTED_METHODS: tuple[FittedMethod, ...] = get_args(FittedMethod)


@dataclass(frozen=True)
class Fitted:
    """The erasers of one method, by fold and place, one for every draw."""

    erasers: Mapping[tuple[int, Place], tuple[Eraser, ...]]

    def rank(self, place: Place) -> int:
        """How many directions are erased at a place; where folds differ, the most."""
        return max(each.rank for (_, its), draws in self.erasers.items() if its == place for each in draws)

    def replacement(self, model: Any) -> Erase:
        """What makes the changes in sweeps; heads that no eraser is fitted to stay as they are."""
        by_site: dict[tuple[int, Site], dict[int | None, tuple[Eraser, ...]]] = {}
        for (fold, place), draws in self.erasers.items():
            by_site.setdefault((fold, place.site), {})[place.head] = draws
        return Erase.of(model, {key: _draws(model, key[1], by_head) for key, by_head in by_site.items()})


def fit_erasers(
    references: Readings,
    methods: Sequence[FittedMethod],
    places: Sequence[Place],
    *,
    draws: int,
    seed: int,
) -> dict[str, Fitted]:
    """Fit erasers to readings, by method."""
    found: dict[str, dict[tuple[int, Place], tuple[Eraser, ...]]] = {method: {} for method in methods}
    for fold, place in product(references.folds, places):
        x, mine = references.at(place, fold), references.of(fold)
        labels, key = references.labels[mine], (fold, place)
        least = leace(x, labels)
        if "leace" in methods:
            found["leace"][key] = (least,)
        if "random" in methods:
            generator = np.random.default_rng([seed, fold, place.site.layer or 0, place.head or 0])
            white = Whitening.of(x)
            found["random"][key] = tuple(random_subspace(white, least.rank, generator) for _ in range(draws))
        if "inlp" in methods:
            found["inlp"][key] = (inlp(x, labels, references.cluster[mine], seed=seed),)
    return {method: Fitted(erasers) for method, erasers in found.items()}


def _draws(model: Any, site: Site, by_head: Mapping[int | None, tuple[Eraser, ...]]) -> list[list[Eraser]]:
    """For every draw, the erasers of all heads of a site, or its one."""
    first = next(iter(by_head.values()))
    heads = range(heads_at(site.name, model)) if "head" in site.axes else [None]
    nothing = Eraser.nothing(len(first[0].mu))
    return [[by_head[head][draw] if head in by_head else nothing for head in heads] for draw in range(len(first))]


BEFORE, MAJORITY = "before", "majority"
PARTS = 5

ByMethod = Mapping[str, Float[Tensor, "_ d"]]
Split = tuple[Standard, np.ndarray, np.ndarray]
"""The units of a probe, the readings that it is fitted to, and those that it is judged on."""


def readability(
    references: Readings,
    scored: Readings | None,
    task: Task,
    fitted: Mapping[str, Fitted],
    places: Sequence[Place],
    seed: int,
) -> pd.DataFrame:
    """How well probes read the feature before and after it is erased; columns as of ``ErasureResult.probes``."""
    rows = []
    for place in places:
        there = _by_method(references, place, fitted)
        of = [references.of(fold) for fold in references.folds]
        units = [Standard.of(there[BEFORE][fit]) for fit in of]
        splits = list(zip(units, of, of, strict=True))
        shares = {"fitted": _on_readings(_correct(splits, references, there, references, there))}
        if scored is not None:
            here = _by_method(scored, place, fitted)
            splits = list(zip(units, of, map(scored.of, references.folds), strict=True))
            shares["held out"] = _on_units(_correct(splits, references, there, scored, here), task, seed)
            anew = list(_splits(scored, here))
            shares["refitted"] = _on_units(_correct(anew, scored, here, scored, here), task, seed)
        for data, found in shares.items():
            for method, erased in fitted.items():
                told = {"method": method, **place.labels, "data": data, "rank": erased.rank(place)}
                for when, column in ((BEFORE, BEFORE), ("after", method)):
                    told |= {f"{when}{end}": found.loc[column, f"share{end}"] for end in ("", "_low", "_high")}
                rows.append({**told, MAJORITY: found.loc[MAJORITY, "share"], "n": int(found.loc[BEFORE, "n"])})
    return pd.DataFrame(rows)


def _by_method(readings: Readings, place: Place, fitted: Mapping[str, Fitted]) -> ByMethod:
    """The activations ``before``, and after each method, every reading erased by the eraser of its fold."""
    x = place.of(readings.activations[place.site]).double()
    found = {BEFORE: x} | {method: x.clone() for method in fitted}
    for fold in readings.folds:
        mine = torch.from_numpy(readings.of(fold))
        for method, each in fitted.items():
            found[method][mine] = each.erasers[fold, place][0](x[mine])
    return found


def _splits(readings: Readings, here: ByMethod) -> Iterator[Split]:
    """Parts of the lexical draws: probes are fitted to all but one, and judged on that one."""
    units, labels = Standard.of(here[BEFORE]), readings.labels
    n = min(PARTS, len(set(readings.cluster.tolist())))
    for fit, judge in GroupKFold(n).split(labels, labels, readings.cluster) if n > 1 else ():
        yield units, fit, judge


def _correct(
    splits: Sequence[Split], fitted: Readings, there: ByMethod, judged: Readings, here: ByMethod
) -> pd.DataFrame:
    """Whether probes are right: one row a reading, with its example, and one column for each method.

    NaN where the readings that a probe is fitted to have one class. The majority is right about the commonest class.
    """
    commonest, _ = Counter(judged.labels.tolist()).most_common(1)[0]
    known = {"example": judged.example, MAJORITY: 1.0 * (judged.labels == commonest)}
    found = pd.DataFrame({**known, **dict.fromkeys(here, np.nan)})
    for units, fit, judge in splits:
        labels, own = fitted.labels[fit], judged.labels[judge]
        for name, x in there.items() if len(own) and len(set(labels.tolist())) > 1 else ():
            probe = fit_probe(units, x[fit], labels)
            found.loc[judge, name] = 1.0 * (probe.predict(units(here[name][judge])) == own)
    return found


def _on_readings(correct: pd.DataFrame) -> pd.DataFrame:
    """Shares of all readings; what a probe was fitted to tells no interval."""
    shares = correct.drop(columns="example").mean()
    return pd.DataFrame({"share": shares, "share_low": np.nan, "share_high": np.nan, "n": correct["example"].nunique()})


def _on_units(correct: pd.DataFrame, task: Task, seed: int) -> pd.DataFrame:
    """Shares over balanced units, with their intervals."""
    by_example = correct.groupby("example").mean()
    labels = pd.DataFrame(example_labels(task)).loc[by_example.index]
    by_unit = by_example.groupby(labels["unit"]).mean()
    first = labels.drop_duplicates("unit")
    table = UnitTable(by_unit.to_numpy(), tuple(first["cluster"]), tuple(first["template"]), by_unit.columns)
    interval = cluster_bootstrap(table, seed=seed)
    columns = {"share": interval.estimate, "share_low": interval.low, "share_high": interval.high}
    return pd.DataFrame({**columns, "n": len(by_example)}, index=table.cells)
