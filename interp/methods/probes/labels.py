"""Which words have a label, and what is it? The rows of an index that a probe can be trained and tested on.

An analysis refuses what no probe can be judged on: one class, or a class with a single example.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from jaxtyping import Int

from interp.errors import InputError, among
from interp.methods.probes.targets import Target
from interp.tasks.features import NUMERIC

PLACES = ("document", "template", "sentence", "word", "token", "n_tokens", "form")
"""The columns of an index that are no features."""


@dataclass(frozen=True)
class Labelled:
    """Words with a label.

    Attributes:
        feature: Its name.
        rows: Their rows in the index.
        values: The labels.
        classes: In alphabetical order; none where the labels are numbers.
        carriers: The type of each label's carrier.
        lemmas: What is held out beside groups; None where the feature is a word's identity.
        groups: What folds are made of: documents, or templates.
        clusters: What is resampled: documents, or lexical draws.
        strata: Templates.
        tokens: Each word's first position in its row.
    """

    feature: str
    rows: Int[np.ndarray, " example"]
    values: tuple[str, ...]
    classes: tuple[str, ...]
    carriers: tuple[str, ...]
    lemmas: tuple[str, ...] | None
    groups: tuple[str, ...]
    clusters: tuple[str, ...]
    strata: tuple[str, ...]
    tokens: Int[np.ndarray, " example"]

    @property
    def resampled(self) -> list[tuple[str, ...]]:
        """What of the examples is not independent: those of a document, and those of a lemma that is held out."""
        lemmas = [] if self.lemmas is None or self.lemmas == self.clusters else [self.lemmas]
        return [self.clusters, *lemmas]

    @property
    def target(self) -> Target:
        """What is to be predicted."""
        return self.target_of(self.values)

    def target_of(self, values: Sequence[str]) -> Target:
        """Other labels of the same kind."""
        if not self.classes:
            return Target(torch.tensor([float(each) for each in values], dtype=torch.float64), 0)
        number = {name: at for at, name in enumerate(self.classes)}
        return Target(torch.tensor([number[each] for each in values]), len(self.classes))


def features_of(index: pd.DataFrame) -> list[str]:
    """The features that an index has labels of."""
    return [name for name in index.columns if f"{name}:carrier" in index.columns]


def labelled(index: pd.DataFrame, feature: str, least: int = 1) -> Labelled:
    """The words that have a label of `feature`.

    Args:
        index: One row a word, as of an activation store.
        feature: Its name.
        least: Classes with fewer examples are left out.

    Raises:
        InputError: The data have no such feature; what is left has one class, or a class with a single example; or a
            number is none.
    """
    known = features_of(index)
    if feature not in known:
        raise InputError(f"feature {feature!r}: the data have no labels of it{among(feature, known)}")
    numeric = feature in NUMERIC
    there = index[index[feature].notna()]
    if not numeric and least > 1:
        counts = there[feature].value_counts()
        there = there[there[feature].isin(counts.index[counts >= least])]
    values = tuple(there[feature].astype(str))
    _check(feature, values, numeric)
    templates = tuple(there["template"])
    lemmas = tuple(there[f"{feature}:lemma"])
    return Labelled(
        feature,
        there.index.to_numpy(),
        values,
        () if numeric else tuple(sorted(set(values))),
        tuple(there[f"{feature}:carrier"]),
        lemmas if all(lemmas) else None,
        templates if _hold_out(templates, values) else tuple(there["document"]),
        tuple(there["document"]),
        templates,
        there["token"].to_numpy(),
    )


def drawn(index: pd.DataFrame, feature: str, n: int, seed: int) -> pd.DataFrame:
    """The index with the labels of `n` of the words that have one, drawn at random; of all, where there are no more.

    Raises:
        InputError: `n` is below 1.
    """
    if n < 1:
        raise InputError(f"n: expected 1 word at least, got {n}")
    if feature not in features_of(index):
        return index
    there = index.index[index[feature].notna()]
    if n >= len(there):
        return index
    kept = np.random.default_rng(seed).choice(there, size=n, replace=False)
    return index.assign(**{feature: index[feature].where(index.index.isin(kept))})


def with_labels(index: pd.DataFrame, feature: str, labels: Sequence[str]) -> pd.DataFrame:
    """The index with labels of one's own; a word's own form carries them, and is held out.

    Raises:
        InputError: There are not as many labels as words.
    """
    if len(labels) != len(index):
        raise InputError(f"labels: expected {len(index)}, one for each word that is read, got {len(labels)}")
    forms = index["form"].str.lower()
    return index.assign(**{feature: list(labels), f"{feature}:carrier": forms, f"{feature}:lemma": forms})


def _hold_out(templates: Sequence[str], values: Sequence[str]) -> bool:
    """Whether templates can be folds: there are several, and none says what the label is."""
    by_template: dict[str, set[str]] = {}
    for template, value in zip(templates, values, strict=True):
        by_template.setdefault(template, set()).add(value)
    return len(by_template) > 1 and all(len(each) > 1 for each in by_template.values())


def _check(feature: str, values: Sequence[str], numeric: bool) -> None:
    if numeric:
        _check_numbers(feature, values)
        return
    counts = Counter(values)
    if len(counts) < 2:
        found = ", ".join(f"{name!r} ({n} words)" for name, n in counts.items()) or "no word at all"
        raise InputError(f"feature {feature!r}: expected two classes at least, got {found}; give other data")
    single = sorted(name for name, n in counts.items() if n == 1)
    if single:
        raise InputError(
            f"feature {feature!r}: expected at least 2 examples of each of its {len(counts)} classes, got 1 of "
            f"{', '.join(map(repr, single[:3]))}{', ...' if len(single) > 3 else ''}",
            *(["leave rare classes out by least=2"] if len(counts) - len(single) > 1 else []),
            "give more data",
        )


def _check_numbers(feature: str, values: Sequence[str]) -> None:
    try:
        numbers = np.array([float(each) for each in values])
    except ValueError as error:
        raise InputError(f"feature {feature!r}: expected numbers, got {error}") from error
    if not np.isfinite(numbers).all() or len(set(numbers.tolist())) < 2:
        raise InputError(f"feature {feature!r}: expected different finite numbers, got {set(values) or 'none'}")
