"""Erasers of a feature from activations, one for every place and fold, and the probes that judge them.

**Probe.** scikit-learn's logistic regression, against always saying the commonest class. At every place one is fitted
to activations as they are, and another one to the erased ones:

- **fitted**: both to the reference sets, and judged on these. LEACE's theorem is about this number.
- **held out**: the same probes, judged on the scored units, which neither probe nor eraser has seen.
- **refitted**: both to scored units, and judged on lexical draws that they were not fitted to. After LEACE, the probes
  above say the same of everything; these ask whether its map serves other sentences than it was fitted to.

**Whitening.** Coordinates in which activations have mean 0 and covariance 1. They are first divided by their spread, so
that outliers among them (GPT-2 has some that are a thousand times the others) do not hide the rest behind rounding;
then the eigenvectors of their covariance are divided by the roots of its eigenvalues. Directions with little more
spread than rounding are left out: a map that read them would write noise as large as all else.

**LEACE.** In whitened coordinates the means of the classes span a subspace of at most ``classes - 1`` dimensions. The
projection that takes it away leaves the classes with one mean, so that no linear probe, and no probe with a convex
loss, does better than a constant on the data that it was fitted to; of all affine maps with this property it moves the
activations least. Its control is the same projection along a random subspace of as many dimensions.

**INLP.** A probe is fitted, what it reads is projected out, and the next probe sees what is left, until one reads no
better than the commonest class. That is decided on other lexical draws than the probe was fitted to: on its own data a
probe of many dimensions is always somewhat above chance, and everything would be taken away.

Belrose et al. (2023), "LEACE: perfect linear concept erasure in closed form"; Ravfogel et al. (2020), "Null it out:
guarding protected attributes by iterative nullspace projection".
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, get_args

import numpy as np
import pandas as pd
import torch
from concept_erasure import LeaceFitter
from jaxtyping import Bool, Float
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold
from threadpoolctl import threadpool_limits
from torch import Tensor

from interp.claims.bootstrap import cluster_bootstrap
from interp.claims.units import UnitTable
from interp.interventions.intervention import ROUNDING
from interp.interventions.replacement import Eraser
from interp.interventions.rows import example_labels
from interp.methods.ablation import Part
from interp.methods.erasure.readings import Readings, labels_of
from interp.tasks.task import Task

ITERATIONS = 1000


@dataclass(frozen=True)
class Standard:
    """The units in which a probe reads: the spread of each number of the activations before anything is erased.

    A number that an eraser has made constant but for rounding would be read again if it were divided by what is left.
    """

    mu: Float[Tensor, " d"]
    scale: Float[Tensor, " d"]

    @classmethod
    def of(cls, x: Float[Tensor, "reading d"]) -> "Standard":
        """Those of some activations."""
        spread = x.double().std(0, correction=0)
        return cls(x.double().mean(0), torch.where(spread > 0, spread, 1.0))

    def __call__(self, x: Float[Tensor, "reading d"]) -> np.ndarray:
        """`x` in these units."""
        return ((x.double() - self.mu) / self.scale).numpy()


def fit_probe(units: Standard, x: Float[Tensor, "reading d"], labels: np.ndarray) -> LogisticRegression:
    """A probe that reads classes out of the activations `x`, in these units."""
    with threadpool_limits(1, user_api="blas"):  # so small a problem that threads wait for each other
        return LogisticRegression(max_iter=ITERATIONS).fit(units(x), labels)


def majority(labels: np.ndarray) -> float:
    """The share of the commonest class."""
    return max(Counter(labels.tolist()).values()) / len(labels)


MOST = 64
"""Probes after which it stops, whatever is left."""

PARTS = 5
"""One part of so many judges the probes that are fitted on the others."""


def inlp(x: Float[Tensor, "reading d"], labels: np.ndarray, clusters: np.ndarray, *, seed: int = 0) -> Eraser:
    """The eraser after which a new probe does not read the classes of `x`; `clusters` are the lexical draws."""
    wide, mu = x.double(), x.double().mean(0)
    judging, units = _judging(labels, clusters, seed), Standard.of(x)
    enough, erased = majority(labels[judging]), wide.new_zeros(0, x.shape[1])
    for _ in range(MOST):
        left = Eraser(mu, erased, erased)(wide)
        probe = fit_probe(units, left[~judging], labels[~judging])
        if (probe.predict(units(left[judging])) == labels[judging]).mean() <= enough:
            break
        erased = _with(erased, torch.from_numpy(probe.coef_) / units.scale)
    return Eraser(mu, erased, erased)


def _judging(labels: np.ndarray, clusters: np.ndarray, seed: int) -> Bool[np.ndarray, " reading"]:
    """Which readings judge: whole clusters, unless some class would be missing on one side."""
    fewest = int(np.unique(labels, return_counts=True)[1].min())
    for groups in (clusters, np.arange(len(labels))):
        n = min(PARTS, fewest, len(np.unique(groups)))
        folds = StratifiedGroupKFold(n, shuffle=True, random_state=seed) if n > 1 else None
        for sides in folds.split(labels, labels, groups) if folds is not None else ():
            if all(len(np.unique(labels[side])) == len(np.unique(labels)) for side in sides):
                return np.isin(np.arange(len(labels)), sides[1])
    raise AssertionError("every class has two examples, so that some split leaves one of each on both sides")


def _with(erased: Float[Tensor, "rank d"], directions: Float[Tensor, "row d"]) -> Float[Tensor, "more d"]:
    """An orthonormal basis of both."""
    new = directions - directions @ erased.T @ erased
    _, sizes, basis = torch.linalg.svd(new, full_matrices=False)
    return torch.cat([erased, basis[sizes > 1e-6 * sizes[0]]])


ABOVE_ROUNDING = 0.75
"""A direction is known where its spread, as a share of the largest, is above rounding to this power."""


@dataclass(frozen=True)
class Whitening:
    """``y = (x - mu) F``, and back: ``x = mu + y B``; ``B F = 1``. In 64-bit floats; F is ``forward``, B ``back``."""

    mu: Float[Tensor, " d"]
    forward: Float[Tensor, "d white"]
    back: Float[Tensor, "white d"]

    @classmethod
    def of(cls, x: Float[Tensor, "reading d"]) -> "Whitening":
        """That of some activations, in the dtype that they were computed in."""
        wide, d = x.double(), x.shape[1]
        mu = wide.mean(0)
        spread = (wide - mu).square().mean(0).sqrt()
        moves = spread > ROUNDING[x.dtype] * mu.abs()
        scale = torch.where(moves, spread, 1.0)
        standard = (wide - mu) / scale * moves
        values, vectors = torch.linalg.eigh(standard.T @ standard / max(len(x) - 1, 1))
        least = max(d * torch.finfo(torch.float64).eps, ROUNDING[x.dtype] ** (2 * ABOVE_ROUNDING))
        kept = values > least * values[-1]
        roots, vectors = values[kept].sqrt(), vectors[:, kept]
        return cls(mu, vectors / roots / scale[:, None], (vectors * roots).T * scale)

    def __call__(self, x: Float[Tensor, "reading d"]) -> Float[Tensor, "reading white"]:
        """`x`, whitened."""
        return (x.double() - self.mu) @ self.forward

    @property
    def n(self) -> int:
        """How many directions have any spread."""
        return self.forward.shape[1]


SMALLEST = 1e-12
"""Covariances of whitened activations with classes (1/2 for two that are told apart) below which there is none."""


def leace(x: Float[Tensor, "reading d"], labels: np.ndarray) -> Eraser:
    """The eraser after which all classes of `x`, in the dtype that it was computed in, have the same mean."""
    white = Whitening.of(x)
    classes = torch.from_numpy(labels[:, None] == np.unique(labels)).double()
    if not white.n:
        return _between(white, classes.new_zeros(0, 0))
    # Shrinkage and a bound on the trace would leave the means apart; the threshold is for the last class, which the
    # others determine.
    options = {"shrinkage": False, "constrain_cov_trace": False, "svd_tol": SMALLEST}
    found = LeaceFitter.fit(white(x), classes, **options).eraser
    erased = found.proj_right.norm(dim=1) > 0
    right, left = found.proj_right[erased], found.proj_left.T[erased]
    return Eraser(white.mu, right @ white.forward.T, left @ white.back)


def random_subspace(white: Whitening, rank: int, generator: np.random.Generator) -> Eraser:
    """The eraser of a random subspace of whitened activations."""
    directions = torch.from_numpy(generator.normal(size=(white.n, rank)))
    return _between(white, torch.linalg.qr(directions).Q.T)


def _between(white: Whitening, directions: Float[Tensor, "rank white"]) -> Eraser:
    """The eraser that projects on what is orthogonal to some directions of whitened activations."""
    return Eraser(white.mu, directions @ white.forward.T, directions @ white.back)


FittedMethod = Literal["leace", "random", "inlp"]
FITTED_METHODS: tuple[FittedMethod, ...] = get_args(FittedMethod)
Fitted = Mapping[tuple[int, Part], tuple[Eraser, ...]]
"""The erasers of one method, by fold and place, one for every draw."""


def fit_erasers(
    references: Readings,
    methods: Sequence[FittedMethod],
    places: Sequence[Part],
    *,
    draws: int,
    seed: int,
) -> Mapping[str, Fitted]:
    """Fit erasers to readings, by method."""
    found: dict[str, dict[tuple[int, Part], tuple[Eraser, ...]]] = {method: {} for method in methods}
    for fold, place in product(references.folds, places):
        mine, key = references.of(fold), (fold, place)
        x, labels = references.at(place)[torch.from_numpy(mine)], references.labels[mine]
        least = leace(x, labels)
        if "leace" in methods:
            found["leace"][key] = (least,)
        if "random" in methods:
            (head,) = place.heads or (0,)
            generator = np.random.default_rng([seed, fold, place.site.layer or 0, head])
            white = Whitening.of(x)
            found["random"][key] = tuple(random_subspace(white, least.rank, generator) for _ in range(draws))
        if "inlp" in methods:
            found["inlp"][key] = (inlp(x, labels, references.cluster[mine], seed=seed),)
    return found


BEFORE, MAJORITY = "before", "majority"

ByMethod = Mapping[str, Float[Tensor, "_ d"]]
Split = tuple[Standard, np.ndarray, np.ndarray]
"""The units of a probe, the readings that it is fitted to, and those that it is judged on."""


def readability(
    references: Readings,
    scored: Readings | None,
    task: Task,
    fitted: Mapping[str, Fitted],
    places: Sequence[Part],
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
                rank = max(each.rank for fold in references.folds for each in erased[fold, place])
                told = {"method": method, **labels_of(place), "data": data, "rank": rank}
                for when, column in ((BEFORE, BEFORE), ("after", method)):
                    told |= {f"{when}{end}": found.loc[column, f"share{end}"] for end in ("", "_low", "_high")}
                rows.append({**told, MAJORITY: found.loc[MAJORITY, "share"], "n": int(found.loc[BEFORE, "n"])})
    return pd.DataFrame(rows)


def _by_method(readings: Readings, place: Part, fitted: Mapping[str, Fitted]) -> ByMethod:
    """The activations ``before``, and after each method, every reading erased by the eraser of its fold."""
    x = readings.at(place).double()
    found = {BEFORE: x} | {method: x.clone() for method in fitted}
    for fold in readings.folds:
        mine = torch.from_numpy(readings.of(fold))
        for method, each in fitted.items():
            found[method][mine] = each[fold, place][0](x[mine])
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
