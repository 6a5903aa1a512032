"""How often is a claim false, and how often is a true one found? See README.md.

python analyses/false_claims/run.py --out DIR [--runs 1000] [--draws 12] [--fresh 200]
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch

import interp
from interp.claims.bootstrap import FEWEST_CLUSTERS, cluster_bootstrap
from interp.claims.claim import Claims, Measured, claim
from interp.claims.units import UnitTable, estimates
from interp.interventions.preparing import mean_of_positions, with_donors
from interp.methods.task_attention import BY, task_attention

TASKS = ("agreement", "coreference", "reflexive", "ioi", "induction")
SHARE, MINIMUM, ALPHA, RESAMPLES = 0.1, 0.1, 0.05, 1000
CLUSTERS = (FEWEST_CLUSTERS, 40, 60, 200)
FAMILIES = {
    "default": {12: ("agreement",), 60: TASKS},
    "books": {54: ("coreference",), 162: ("coreference", "reflexive", "induction")},
}
"""By model: which tasks make a family of so many heads; attention is tested for each value of a task's feature."""
KINDS = ("effect", "mean_effect", "excess")


def by(kind: str) -> tuple[str, ...]:
    """What a kind of evidence is tested by."""
    return BY if kind == "excess" else ("layer", "head")


def measured(model: interp.HookedTransformer, task: str, seed: int, n: int) -> pd.DataFrame:
    """Effects under both replacements and excess attention of every head, on one draw of the generator."""
    loaded = with_donors(interp.load_task(task, n=n, seed=seed, tokenizer=model.tokenizer, n_ctx=model.cfg.n_ctx))
    frame = interp.ablate(model, loaded, kind="resample", draws=1, seed=seed).frame
    mean = interp.ablate(model, loaded, kind=mean_of_positions(loaded), seed=seed).frame
    seen = task_attention(model, loaded, seed=seed).frame[[*BY, "example", "excess"]]
    frame = frame.assign(mean_effect=mean["effect"]).merge(seen, on=["layer", "head", "example"], how="left")
    frame["cluster"] = f"{seed} " + frame["cluster"].astype(str)
    frame["unit"] += 1_000_000 * seed
    return frame[[*BY, "unit", "example", "cluster", "template", "layout", "base", *KINDS]]


def kept(folder: Path, name: str, task: str, seeds: Sequence[int], n: int) -> list[pd.DataFrame]:
    """The draws of a task, measured once."""
    model, found = interp.load_model(name), []
    for seed in seeds:
        file = folder / f"{name}-{task}-{n}-{seed}.parquet"
        if not file.exists():
            measured(model, task, seed, n).to_parquet(file)
        found.append(pd.read_parquet(file))
    return found


@dataclass(frozen=True)
class Pool:
    """Contributions of many clusters to one task and kind of evidence, with their mean known.

    Attributes:
        centred: Values less their mean, cell by cell.
        base: The base run's metric by unit; 1 of attention.
        sign: Of what is looked for: effects drop, attention rises.
    """

    centred: UnitTable
    base: np.ndarray
    sign: int

    @classmethod
    def of(cls, frame: pd.DataFrame, kind: str) -> "Pool":
        """Of all draws of a task."""
        table = UnitTable.from_frame(frame, kind, by=by(kind))
        rows = np.flatnonzero(np.isfinite(table.values).any(axis=1))
        there = np.isfinite(table.values[rows]).all(axis=0)  # heads against a distractor that some items lack are not
        base = UnitTable.from_frame(frame, "base").values[:, 0] if kind != "excess" else np.ones(len(table.values))
        labels = (tuple(np.asarray(each)[rows]) for each in (table.clusters, table.strata))
        table = UnitTable(table.values[np.ix_(rows, there)], *labels, table.cells[there])
        return cls(table.with_values(table.values - estimates(table)), base[rows], 1 if kind == "excess" else -1)

    def draw(self, n_clusters: int, truth: float, generator: np.random.Generator) -> Measured:
        """Some clusters, with every cell's mean at `truth` times the minimum."""
        names = np.asarray(self.centred.clusters)
        drawn = generator.choice(np.unique(names), n_clusters, replace=False)
        at = np.flatnonzero(np.isin(names, drawn))
        part, base = _rows(self.centred, at), np.broadcast_to(self.base[at, None], (len(at), len(self.centred.cells)))
        shifted = part.with_values(part.values + self.sign * truth * self.minimum)
        return Measured(shifted, part.with_values(SHARE * base) if self.sign < 0 else MINIMUM)

    @property
    def minimum(self) -> float:
        """In the metric's units."""
        return MINIMUM if self.sign > 0 else SHARE * float(estimates(self._of_base())[0])

    @property
    def spread(self) -> np.ndarray:
        """Of a cluster's contribution, in minima: the standard error of one cluster."""
        found = claim([Measured(self.centred)], resamples=100)[0]
        return found.standard_error * np.sqrt(found.n_clusters) / self.minimum

    def _of_base(self) -> UnitTable:
        return self.centred.with_values(np.broadcast_to(self.base[:, None], self.centred.values.shape))


def _rows(table: UnitTable, at: np.ndarray) -> UnitTable:
    labels = (tuple(np.asarray(each)[at]) for each in (table.clusters, table.strata))
    return UnitTable(table.values[at], *labels, table.cells)


def tested(pools: Sequence[Pool], n: int, truth: float, generator: np.random.Generator) -> list[Claims]:
    """One report on draws whose truth is known."""
    alternative = "greater" if pools[0].sign > 0 else "two-sided"
    drawn = [pool.draw(n, truth, generator) for pool in pools]
    return claim(drawn, alternative=alternative, resamples=RESAMPLES, seed=int(generator.integers(2**31)))


def false_claims(pools: dict[tuple[str, str, str], Pool], runs: int) -> Iterator[dict[str, object]]:
    """In how many reports some head gets a claim that is false."""
    for name, families in FAMILIES.items():
        for n_cells, tasks in families.items():
            for kind in ("effect", "excess"):
                own = [pools[name, task, kind] for task in tasks]
                for n in CLUSTERS:
                    if min(len(set(pool.centred.clusters)) for pool in own) < 2 * n:
                        continue
                    generator = np.random.default_rng([n_cells, n, kind == "excess"])
                    for truth in (0.0, 0.5, 0.8, 1.0, 1.5):
                        reports = [tested(own, n, truth, generator) for _ in range(runs)]
                        shown = np.mean([any((each.p_adjusted <= ALPHA).any() for each in one) for one in reports])
                        absent = np.mean([any((each.p_absent <= ALPHA).any() for each in one) for one in reports])
                        yield {
                            **{"model": name, "kind": kind, "cells": n_cells, "clusters": n, "truth": truth},
                            "false shown": shown if truth <= 1 else np.nan,
                            "false absent": absent if truth >= 1 else np.nan,
                        }


def power(pools: dict[tuple[str, str, str], Pool], runs: int, n: int = 100) -> Iterator[dict[str, object]]:
    """How often a head with twice the minimum is shown, under both replacements, by the spread of its clusters."""
    for name, families in FAMILIES.items():
        tasks = families[max(families)]
        for kinds in (("effect", "mean_effect"), ("excess",)):
            found = []
            large = [each for each in tasks if len(set(pools[name, each, kinds[0]].centred.clusters)) >= 2 * n]
            if not large:
                continue
            for kind in kinds:
                own = [pools[name, task, kind] for task in large]
                generator = np.random.default_rng(n)
                reports = [tested(own, n, 2.0, generator) for _ in range(runs)]
                found.append([np.concatenate([each.p_adjusted <= ALPHA for each in one]) for one in reports])
                spread = np.concatenate([pool.spread for pool in own])
            both = np.all(found, axis=0).mean(axis=0)
            narrow = spread <= 1.5
            yield {
                **{"model": name, "kind": " and ".join(kinds), "cells": len(both), "median power": np.median(both)},
                **{"narrow cells": int(narrow.sum()), "least power of these": both[narrow].min(initial=1.0)},
                "widest spread": spread.max(),
            }


def coverage(folder: Path, draws: int) -> Iterator[dict[str, object]]:
    """How often the 95 % interval of a fresh draw of the generator covers the mean of all draws."""
    for task, n_units in {"agreement": 48, "coreference": 54, "reflexive": 96, "ioi": 48, "induction": 54}.items():
        frames = kept(folder, "default", task, range(1000, 1000 + draws), n_units)
        for kind in KINDS:
            tables = [UnitTable.from_frame(each, kind, by=by(kind)) for each in frames]
            truth = np.mean([estimates(each) for each in tables], axis=0)
            found = [cluster_bootstrap(each) for each in tables]
            covered = np.mean([(each.low <= truth) & (truth <= each.high) for each in found], axis=0)
            known = np.isfinite([each.low for each in found]).all(axis=0)
            yield {
                **{"task": task, "kind": kind, "units": n_units, "draws": draws},
                "clusters": float(np.median([each.n_clusters.max() for each in tables])),
                **{"mean coverage": covered[known].mean(), "least": covered[known].min()},
            }


def main() -> None:
    """Measure, draw, print and write the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--draws", type=int, default=12)
    parser.add_argument("--fresh", type=int, default=200)
    options = parser.parse_args()
    torch.set_num_threads(1)
    pd.set_option("display.width", 200)
    options.out.mkdir(parents=True, exist_ok=True)
    pools: dict[tuple[str, str, str], Pool] = {}
    for name, families in FAMILIES.items():
        for task in {each: None for tasks in families.values() for each in tasks}:
            frame = pd.concat(kept(options.out, name, task, range(options.draws), 200), ignore_index=True)
            pools |= {(name, task, kind): Pool.of(frame, kind) for kind in KINDS}
    tables = {
        "false claims": pd.DataFrame(false_claims(pools, options.runs)),
        "power": pd.DataFrame(power(pools, min(options.runs, 200))),
        "coverage": pd.DataFrame(coverage(options.out, options.fresh)),
    }
    by_truth = tables["false claims"].groupby("truth")[["false shown", "false absent"]]
    tables["false claims, pooled"] = by_truth.mean().reset_index()
    tables["false claims, worst"] = by_truth.max().reset_index()
    for title, table in tables.items():
        table.to_csv(options.out / f"{title.replace(', ', '-').replace(' ', '-')}.csv", index=False)
        print(f"{title}\n\n{table.round(3).to_string(index=False)}\n")


if __name__ == "__main__":
    main()
