"""How often is a claim false, and how often is a true one found? See README.md.

python analyses/false_claims/run.py --out DIR [--runs 1000] [--draws 12] [--fresh 200] [--processes 2]
"""

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike

import interp
from interp.calibration.rates import rate
from interp.claims.bootstrap import FEWEST_CLUSTERS, cluster_bootstrap
from interp.claims.claim import Claims, Measured, claim
from interp.claims.looks import Looks
from interp.claims.rules import required_units
from interp.claims.units import PredictedTable, UnitTable, estimates
from interp.interventions.reference_set import make_replacement, mean_of_positions, with_donors
from interp.methods.ablation_looks import predicted_effects
from interp.methods.task_attention import BY, task_attention
from interp.model.sites import Site

TASKS = ("agreement", "coreference", "reflexive", "ioi", "induction")
SHARE, MINIMUM, ALPHA, RESAMPLES = 0.1, 0.1, 0.05, 1000
CLUSTERS = (FEWEST_CLUSTERS, 40, 60, 200)
FAMILIES = {
    "default": (("agreement",), TASKS),
    "books": (("coreference",), ("coreference", "reflexive", "induction")),
}
"""Tasks whose heads are tested together: 12 and 60 of the one model, 54 and 162 of the other."""
MEASURED = 0.6
"""Of the units, at least: in which a cell of attention is measured; in fewer, others are its baselines."""
TRUTHS = (0.0, 0.5, 0.8, 1.0, 1.5)
KINDS = ("effect", "mean_effect", "excess")
COVERED = (
    ("agreement", 48),
    ("coreference", 54),
    ("reflexive", 96),
    ("ioi", 48),
    ("induction", 54),
    ("induction", 200),
)
"""Tasks and units of the draws that intervals are counted on: about 40 clusters, and the task whose heads with the
most skewed effects are covered least with as many as a report has by default."""


def by(kind: str) -> tuple[str, ...]:
    """What a kind of evidence is tested by."""
    return BY if kind == "excess" else ("layer", "head")


def measured(model: interp.HookedTransformer, task: str, seed: int, n: int) -> pd.DataFrame:
    """Effects under both replacements and excess attention of every head, on one draw of the generator."""
    loaded = with_donors(interp.load_task(task, n=n, seed=seed, tokenizer=model.tokenizer, n_ctx=model.cfg.n_ctx))
    frame = interp.ablate(model, loaded, replacement="resample", draws=1, seed=seed).examples
    mean = interp.ablate(model, loaded, replacement=mean_of_positions(loaded), seed=seed).examples
    seen = task_attention(model, loaded, seed=seed).examples[[*BY, "example", "excess"]]
    sites = [Site("z", layer) for layer in range(model.cfg.n_layers)]
    donors = make_replacement("resample", model, loaded, sites=sites, draws=1, seed=seed)
    (predicted,) = predicted_effects(model, loaded, [donors])
    frame = frame.assign(predicted=predicted[frame["example"], frame["layer"], frame["head"]])
    frame = frame.assign(mean_effect=mean["effect"]).merge(seen, on=["layer", "head", "example"], how="left")
    frame["cluster"] = f"{seed} " + frame["cluster"].astype(str)
    frame["unit"] += 1_000_000 * seed
    return frame[[*BY, "unit", "example", "cluster", "template", "layout", "base", "predicted", *KINDS]]


def kept(name: str, task: str, n: int, seed: int, folder: Path) -> pd.DataFrame:
    """A draw of a task, measured once."""
    file = folder / f"{name}-{task}-{n}-{seed}.parquet"
    if not file.exists():
        measured(interp.load_model(name), task, seed, n).to_parquet(file.with_suffix(".part"))
        file.with_suffix(".part").replace(file)
    return pd.read_parquet(file)


@dataclass(frozen=True)
class Pool:
    """Contributions of many clusters to one task and kind of evidence, with their mean known.

    Attributes:
        centred: Values less their mean, cell by cell.
        predicted: What gradients say of each effect; nothing of attention.
        base: The base run's metric by unit; 1 of attention.
        sign: Of what is looked for: effects drop, attention rises.
    """

    centred: UnitTable
    predicted: np.ndarray
    base: np.ndarray
    sign: int

    @classmethod
    def of(cls, frame: pd.DataFrame, kind: str) -> "Pool":
        """Of all draws of a task."""
        table = UnitTable.from_frame(frame, kind, by=by(kind))
        there = np.isfinite(table.values).mean(axis=0) >= MEASURED
        rows = np.flatnonzero(np.isfinite(table.values[:, there]).all(axis=1))
        base = UnitTable.from_frame(frame, "base").values[:, 0] if kind != "excess" else np.ones(len(table.values))
        predicted = np.zeros_like(table.values) if kind == "excess" else UnitTable.from_frame(frame, "predicted").values
        labels = (tuple(np.asarray(each)[rows]) for each in (table.clusters, table.strata))
        table = UnitTable(table.values[np.ix_(rows, there)], *labels, table.cells[there])
        centred = table.with_values(table.values - estimates(table))
        return cls(centred, predicted[np.ix_(rows, there)], base[rows], 1 if kind == "excess" else -1)

    def draw(self, n_clusters: int, truth: float, generator: np.random.Generator) -> Measured:
        """As ``with_predictions``, without these."""
        return self.with_predictions(n_clusters, truth, generator)[0]

    def with_predictions(
        self, n_clusters: int, truth: float, generator: np.random.Generator
    ) -> tuple[Measured, np.ndarray]:
        """Clusters as if from a generator of nothing else, with every cell's mean at `truth` times the minimum.

        They are drawn with replacement, each time as a cluster of its own: of a pool that is half used up, a mean would
        vary less than that of new clusters does.
        """
        drawn = generator.integers(0, len(self._rows), n_clusters)
        at = np.concatenate([self._rows[each] for each in drawn])
        names = np.repeat(np.arange(n_clusters), [len(self._rows[each]) for each in drawn])
        strata = np.asarray(self.centred.strata)[at]
        values = self.centred.values[at] + self.sign * truth * self.minimum
        part = UnitTable(values, tuple(names.astype(str)), tuple(strata), self.centred.cells)
        if self.sign > 0:
            return Measured(part, MINIMUM), self.predicted[at]
        base = part.with_values(np.broadcast_to(self.base[at, None], values.shape))
        # As a report does: the minimum has the size of a share of the base, whatever the sign of so few clusters' mean.
        return Measured(part, base.with_values(SHARE * np.sign(estimates(base)) * base.values)), self.predicted[at]

    @cached_property
    def _rows(self) -> list[np.ndarray]:
        """Of each cluster."""
        numbers = np.unique(np.asarray(self.centred.clusters), return_inverse=True)[1]
        return np.split(np.argsort(numbers, kind="stable"), np.cumsum(np.bincount(numbers))[:-1])

    @cached_property
    def minimum(self) -> float:
        """In the metric's units."""
        return MINIMUM if self.sign > 0 else SHARE * float(estimates(self._of_base())[0])

    def _of_base(self) -> UnitTable:
        return self.centred.with_values(np.broadcast_to(self.base[:, None], self.centred.values.shape))


def tested(pools: Sequence[Pool], n: int, truth: float, generator: np.random.Generator) -> list[Claims]:
    """One report on draws whose truth is known."""
    alternative = "greater" if pools[0].sign > 0 else "two-sided"
    drawn = [pool.draw(n, truth, generator) for pool in pools]
    return claim(drawn, alternative=alternative, resamples=RESAMPLES, seed=int(generator.integers(2**31)))


def falsely_said(claims: Sequence[Claims], truth: float) -> tuple[bool, bool]:
    """Whether a report shows something falsely, and whether it says falsely that something is absent."""
    return (
        truth <= 1 and any((each.p_adjusted <= ALPHA).any() for each in claims),
        truth >= 1 and any((each.p_absent <= ALPHA).any() for each in claims),
    )


LOOKS = (30, 60, 120, 200)
"""Clusters of each look, as of a report on 200."""


def false_claims(
    name: str, kind: str, own: Sequence[Pool], clusters: int, truth: float, runs: int
) -> dict[str, object]:
    """In how many reports some head gets a claim that is false; five times as many where it is more than .08."""
    n_cells = sum(len(each.centred.cells) for each in own)
    generator = np.random.default_rng([n_cells, clusters, kind == "excess", int(10 * truth)])
    said: list[tuple[bool, bool]] = []
    for n in (runs, 5 * runs):
        while len(said) < n:
            said.append(falsely_said(tested(own, clusters, truth, generator), truth))
        if np.mean(said, axis=0).max() <= 0.08:
            break
    setting = {"model": name, "kind": kind, "cells": n_cells, "clusters": clusters, "truth": truth}
    return setting | {"reports": len(said)} | rates(said, truth)


def false_claims_in_looks(name: str, own: Sequence[Pool], truth: float, runs: int) -> dict[str, object]:
    """In how many reports in looks some head gets a claim on its effect that is false, and what these measure."""
    generator = np.random.default_rng([len(own), len(LOOKS), int(10 * truth)])
    found = np.array([falsely_in_looks(own, truth, generator) for _ in range(runs)])
    setting = {"model": name, "cells": sum(len(each.centred.cells) for each in own), "truth": truth}
    return setting | {"reports": runs, "measured": found[:, 2].mean()} | rates(found[:, :2], truth)


def rates(said: ArrayLike, truth: float) -> dict[str, float]:
    """How often something is falsely shown and how often it is falsely absent, where either can be."""
    shown, absent = np.mean(said, axis=0)
    return {"false shown": shown if truth <= 1 else np.nan, "false absent": absent if truth >= 1 else np.nan}


def falsely_in_looks(pools: Sequence[Pool], truth: float, generator: np.random.Generator) -> tuple[bool, bool, float]:
    """As ``falsely_said``, of a report in which heads leave; and the share of cells and units that it measures."""
    drawn = [pool.with_predictions(LOOKS[-1], truth, generator) for pool in pools]
    how = {"resamples": RESAMPLES, "seed": int(generator.integers(2**31))}
    looks = Looks("effect", {"layer": int, "head": int}, len(LOOKS), ALPHA, how)
    stay = [np.ones(predicted.shape[1], dtype=bool) for _, predicted in drawn]
    there = [np.zeros(predicted.shape, dtype=bool) for _, predicted in drawn]
    for size in LOOKS:
        for (each, _), seen, mask in zip(drawn, there, stay, strict=True):
            seen |= (np.asarray(each.values.clusters).astype(int) < size)[:, None] & mask
        looks = looks.look(
            {str(n): _only(*each, seen) for n, (each, seen) in enumerate(zip(drawn, there, strict=True))}
        )
        stay = np.split(looks.open, np.cumsum([len(each) for each in stay])[:-1])
    shown, absent = (looks.frame[f"effect_{name}"].min() <= ALPHA for name in ("p_adjusted", "p_absent"))
    return truth <= 1 and shown, truth >= 1 and absent, float(np.mean([each.mean() for each in there]))


def _only(measured: Measured, predicted: np.ndarray, there: np.ndarray) -> Measured:
    """What was measured by now, with what is predicted of the others."""
    values = measured.values
    assert isinstance(values, UnitTable)
    return Measured(
        PredictedTable(values.with_values(np.where(there, values.values, np.nan)), predicted), measured.minimum
    )


def power(name: str, pools: Mapping[str, Sequence[Pool]], runs: int, n: int = 100) -> dict[str, object]:
    """How often a head with twice the minimum is shown, under both replacements, by the spread of its clusters."""
    shown, spreads, needed = [], [], []
    for own in pools.values():
        generator = np.random.default_rng(n)  # the same clusters under both replacements
        reports = [tested(own, n, 2.0, generator) for _ in range(runs)]
        shown.append([np.concatenate([each.p_adjusted <= ALPHA for each in one]) for one in reports])
        error = [np.concatenate([each.standard_error / each.minimum for each in one]) for one in reports]
        critical = np.median([one[0].critical[0] for one in reports])
        spreads.append(np.sqrt(n) * np.median(error, axis=0))
        needed.append([required_units(each, n, 1.0, critical=critical) for each in np.median(error, axis=0)])
    both, spread, clusters = np.all(shown, axis=0).mean(axis=0), np.max(spreads, axis=0), np.max(needed, axis=0)
    narrow = spread <= 1.5
    return {
        **{"model": name, "kind": " and ".join(pools), "cells": len(both), "median power": np.median(both)},
        **{"narrow": narrow.sum(), "their least power": both[narrow].min(initial=1.0), "wide": (~narrow).sum()},
        **{f"{of} they need": np.quantile(clusters[~narrow], at) for of, at in (("half of", 0.5), ("all", 1.0))},
    }


@dataclass(frozen=True)
class Fresh:
    """Whole draws of a generator, with the layouts that it balances.

    Attributes:
        tables: One a draw.
        bases: The base run's metric, likewise.
        sign: As of ``Pool``.
    """

    tables: Sequence[UnitTable]
    bases: Sequence[UnitTable]
    sign: int

    @classmethod
    @cache
    def of(cls, folder: Path, task: str, n_units: int, kind: str, draws: int) -> "Fresh":
        """Draws of a task, with as many units each."""
        frames = [kept("default", task, n_units, 1000 + draw, folder) for draw in range(draws)]
        tables, bases = ([UnitTable.from_frame(each, name, by=by(kind)) for each in frames] for name in (kind, "base"))
        return cls(tables, bases, 1 if kind == "excess" else -1)

    @cached_property
    def truth(self) -> np.ndarray:
        """The mean over all draws, cell by cell."""
        return np.mean([estimates(each) for each in self.tables], axis=0)

    @cached_property
    def minimum(self) -> float:
        """In the metric's units."""
        return MINIMUM if self.sign > 0 else SHARE * float(np.mean([estimates(each) for each in self.bases]))

    def report(self, number: int, truth: float) -> Measured:
        """A draw, with every cell's mean at `truth` times the minimum."""
        table, base = self.tables[number], self.bases[number]
        values = table.with_values(table.values - self.truth + self.sign * truth * self.minimum)
        return Measured(values, MINIMUM if self.sign > 0 else base.with_values(SHARE * base.values))


def on_fresh_draws(
    kind: str, covered: Sequence[tuple[str, int]], truth: float, folder: Path, draws: int
) -> dict[str, object]:
    """In how many reports on whole draws some head gets a claim that is false."""
    own = [Fresh.of(folder, task, n_units, kind, draws) for task, n_units in covered]
    alternative = "greater" if kind == "excess" else "two-sided"
    said = []
    for number in range(draws):
        measured = [each.report(number, truth) for each in own]
        claims = claim(measured, alternative=alternative, resamples=RESAMPLES, seed=number)
        said.append(falsely_said(claims, truth))
    return {
        **{"kind": kind, "cells": sum(len(each.truth) for each in own)},
        **{"units": " ".join(str(n_units) for _, n_units in covered), "truth": truth, "reports": draws},
        **rates(said, truth),
    }


def coverage(task: str, n_units: int, kind: str, folder: Path, draws: int) -> dict[str, object]:
    """How often the 95 % interval of a fresh draw of the generator covers the mean of all draws."""
    fresh = Fresh.of(folder, task, n_units, kind, draws)
    tables, truth = fresh.tables, fresh.truth
    found = [cluster_bootstrap(each) for each in tables]
    covered = np.mean([(each.low <= truth) & (truth <= each.high) for each in found], axis=0)
    known = np.isfinite([each.low for each in found]).all(axis=0)
    least = rate(round(covered[known].min() * draws), draws)
    return {
        **{"task": task, "kind": kind, "units": n_units, "draws": draws},
        "clusters": float(np.median([each.n_clusters.max() for each in tables])),
        **{"cells": known.sum(), "mean coverage": covered[known].mean()},
        **{"least": least["rate"], "low": least["low"], "high": least["high"]},
    }


def counted(pool: ProcessPoolExecutor, options: argparse.Namespace) -> dict[str, pd.DataFrame]:
    """Every table; what each row counts is measured or drawn by whichever process is free."""
    folder, runs, fresh = options.out, options.runs, options.fresh

    def spread(function: Callable, settings: Iterable[Sequence], **how: object) -> list:
        return list(pool.map(partial(function, **how), *zip(*settings, strict=True)))

    pools: dict[tuple[str, str, str], Pool] = {}
    of_models = [(name, task, 200) for name, families in FAMILIES.items() for task in families[-1]]
    drawn = [(*each, seed) for each in of_models for seed in range(options.draws)]
    drawn += [("default", *of, 1000 + seed) for of in COVERED for seed in range(fresh)]
    for _ in pool.map(partial(kept, folder=folder), *zip(*drawn, strict=True)):
        pass  # it is kept, and read again where it is needed
    for each in of_models:
        frame = pd.concat([kept(*each, seed, folder) for seed in range(options.draws)], ignore_index=True)
        pools |= {(*each[:2], kind): Pool.of(frame, kind) for kind in KINDS}

    def of(name: str, tasks: Sequence[str], kind: str) -> list[Pool]:
        return [pools[name, task, kind] for task in tasks]

    of_draws: dict[str, object] = {"folder": folder, "draws": fresh}
    cells = [(name, tasks) for name, families in FAMILIES.items() for tasks in families]
    at_once = [
        (name, kind, of(name, tasks, kind), n, truth)
        for (name, tasks), kind, n, truth in product(cells, ("effect", "excess"), CLUSTERS, TRUTHS)
    ]
    in_looks = [(name, of(name, tasks, "effect"), truth) for (name, tasks), truth in product(cells, TRUTHS)]
    shown = [
        (name, {kind: of(name, families[-1], kind) for kind in kinds})
        for (name, families), kinds in product(FAMILIES.items(), (("effect", "mean_effect"), ("excess",)))
    ]
    apart = (COVERED[:-1], COVERED[-1:])  # one task has more units, by itself
    found = {
        "false claims": spread(false_claims, at_once, runs=runs),
        "false claims in looks": spread(false_claims_in_looks, in_looks, runs=runs),
        "power": spread(power, shown, runs=min(runs, 200)),
        "false claims on fresh draws": spread(on_fresh_draws, product(KINDS, apart, TRUTHS), **of_draws),
        "coverage": spread(coverage, [(*of, kind) for of in COVERED for kind in KINDS], **of_draws),
    }
    return {title: pd.DataFrame(rows) for title, rows in found.items()}


def main() -> None:
    """Measure, draw, print and write the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--draws", type=int, default=12)
    parser.add_argument("--fresh", type=int, default=200)
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    pd.set_option("display.width", 200)
    options.out.mkdir(parents=True, exist_ok=True)
    one_thread = {"initializer": torch.set_num_threads, "initargs": (1,)}
    with ProcessPoolExecutor(options.processes, mp_context=get_context("forkserver"), **one_thread) as pool:
        tables = counted(pool, options)
    by_truth = tables["false claims"].groupby("truth")[["false shown", "false absent"]]
    tables["false claims, pooled"] = by_truth.mean().reset_index()
    tables["false claims, worst"] = by_truth.max().reset_index()
    covered = tables["coverage"]
    mean = np.average(covered["mean coverage"], weights=covered["cells"])
    tables["coverage, all cells"] = pd.DataFrame([{"mean coverage": mean, "least": covered["least"].min()}])
    for title, table in tables.items():
        table.to_csv(options.out / f"{title.replace(', ', '-').replace(' ', '-')}.csv", index=False)
        print(f"{title}\n\n{table.round(3).to_string(index=False)}\n")


if __name__ == "__main__":
    main()
