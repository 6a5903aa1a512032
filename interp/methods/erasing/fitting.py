"""One eraser for every place and fold, fitted to the reference sets; and the replacement that they make."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, get_args

import numpy as np

from interp.interventions.erase import Erase, Eraser
from interp.interventions.intervention import heads_at
from interp.methods.erasing.inlp import inlp
from interp.methods.erasing.leace import leace, random_subspace
from interp.methods.erasing.place import Place
from interp.methods.erasing.readings import Readings
from interp.methods.erasing.whitening import Whitening
from interp.model.sites import Site

FittedMethod = Literal["leace", "random", "inlp"]
FITTED_METHODS: tuple[FittedMethod, ...] = get_args(FittedMethod)


@dataclass(frozen=True)
class Fitted:
    """The erasers of one method.

    Attributes:
        erasers: By fold and place, one for every draw.
    """

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
    clusters: Sequence[str],
    methods: Sequence[FittedMethod],
    places: Sequence[Place],
    *,
    draws: int,
    seed: int,
) -> dict[str, Fitted]:
    """Fit erasers to readings, by method.

    Args:
        references: Of the reference sets.
        clusters: The lexical draw of every reference example.
        methods: ``leace``; ``random``, of LEACE's rank; ``inlp``.
        places: What is erased.
        draws: How many random subspaces.
        seed: Of these, and of what judges INLP's probes. A place's draws do not depend on the other places.
    """
    drawn = np.array(clusters)[references.example]
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
            found["inlp"][key] = (inlp(x, labels, drawn[mine], seed=seed),)
    return {method: Fitted(erasers) for method, erasers in found.items()}


def _draws(model: Any, site: Site, by_head: Mapping[int | None, tuple[Eraser, ...]]) -> list[list[Eraser]]:
    """For every draw, the erasers of all heads of a site, or its one."""
    first = next(iter(by_head.values()))
    heads = range(heads_at(site.name, model)) if "head" in site.axes else [None]
    nothing = Eraser.nothing(len(first[0].mu))
    return [[by_head[head][draw] if head in by_head else nothing for head in heads] for draw in range(len(first))]
