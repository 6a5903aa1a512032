"""What probes read and predict: activations of words, their labels, and losses of scores.

Activations are of a task or a corpus that is run now, and held in memory for the labelled words alone; or of a store
that was collected before. What no probe can be judged on is refused: one class, or a class with a single example.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from interp.arguments import numbers_below, require_different
from interp.errors import InputError, among, suggest
from interp.interventions.intervention import heads_at
from interp.methods.ablation import Head, Part
from interp.methods.relations.words import with_offsets
from interp.model.positions import looks_back_only
from interp.model.sites import SITES, Site, is_layered
from interp.options import Pooling, ProbeOptions
from interp.residual.collecting import word_activations
from interp.tasks.alignment import Windows
from interp.tasks.corpus import Corpus
from interp.tasks.features import NUMERIC, features_in
from interp.tasks.passages import CorpusPassages, Passage, passage_index, task_passages
from interp.tasks.task import Task

LONGEST_WINDOW = 512
"""Tokens of a document that are read at once, if the model's context is longer."""


@dataclass(frozen=True)
class Held:
    """Activations in memory: one row a word, and values by site."""

    index: pd.DataFrame
    values: dict[Site, Float[Tensor, "word ..."]] = field(repr=False)

    @property
    def sites(self) -> tuple[Site, ...]:
        """Where activations are known."""
        return tuple(self.values)

    def read(self, site: Site, rows: Any = None, heads: Sequence[int] | None = None) -> Float[Tensor, "word ..."]:
        """Of words by their numbers, and heads; None for all."""
        found = self.values[site] if rows is None else self.values[site][torch.tensor(rows)]
        return found if heads is None else found[:, list(heads)]


def passages_of(model: Any, data: Task | Corpus, features: Sequence[str], asked: ProbeOptions) -> Iterable[Passage]:
    """The words of a task or a corpus that have labels; of a corpus without features, all words."""
    if isinstance(data, Task):
        return list(task_passages(data, asked.at))
    tokenizer = with_offsets(model, "probe")
    longest = min(model.cfg.n_ctx, LONGEST_WINDOW) if asked.context == "document" else model.cfg.n_ctx
    windows = Windows(tokenizer, longest, both_sides=not looks_back_only(model))
    found = list(CorpusPassages(data, windows, features, asked.context, bool(features)))
    if not found and features:
        known = ", ".join(features_in(data)) or "none"
        raise InputError(f"feature {features[0]!r}: no word of the corpus has it; there are: {known}")
    return found


def held(model: Any, passages: Iterable[Passage], sites: Sequence[Site], pooling: Pooling = "last") -> Held:
    """Run a model over passages, and keep its activations at their words."""
    given = list(passages)
    index = passage_index(given)
    if not len(index):
        raise InputError("probe: expected words with labels that the model can read, got none; give other data")
    values: dict[Site, Tensor] = {}
    for part in word_activations(model, given, sites, pooling=pooling):
        for site, value in part.values.items():
            if site not in values:
                values[site] = torch.empty(len(index), *value.shape[1:], dtype=value.dtype)
            values[site][part.numbers] = value.cpu()
    return Held(index, values)


Scores = Float[Tensor, "cell example column problem"]
"""Columns before probes: a softmax over neighbours is several times slower."""


@dataclass(frozen=True)
class Target:
    """Classes from 0, or, where `n_classes` is 0, numbers."""

    y: Int[Tensor, " example"] | Float[Tensor, " example"]
    n_classes: int

    def to(self, device: torch.device) -> "Target":
        """The same on a device."""
        return Target(self.y.to(device), self.n_classes)

    @property
    def n_columns(self) -> int:
        """Of the scores: one for numbers and for two classes, else one a class."""
        return self.n_classes if self.n_classes > 2 else 1

    def indicators(self) -> Float[Tensor, "example column"]:
        """1 where an example is of the column's class, and 0; numbers as they are."""
        if not self.n_classes:
            return self.y.double()[:, None]
        return self.members()[:, -self.n_columns :]

    def members(self) -> Float[Tensor, "example class"]:
        """1 where an example is of a class, with two columns for two classes."""
        return (self.y[:, None] == torch.arange(self.n_classes, device=self.y.device)).double()

    def signs(self) -> Float[Tensor, "example column"]:
        """1 and -1 in place of 1 and 0; numbers as they are."""
        return 2 * self.indicators() - 1 if self.n_classes else self.indicators()

    def hits(self, scores: Scores) -> Bool[Tensor, "cell example problem"]:
        """Whether the class with the highest score is the example's."""
        found = (scores[:, :, 0] > 0).long() if self.n_columns == 1 else scores.argmax(dim=2)
        return found == self.y[None, :, None]

    def log_loss(self, scores: Scores, n_trained: Float[Tensor, " problem"]) -> Float[Tensor, "cell example problem"]:
        """``-log p`` of the example's class, in nats.

        p is mixed with the uniform distribution, which gets as many votes as there are classes beside the `n_trained`
        examples: what a probe has never seen costs much, not infinitely much (Laplace's rule).
        """
        share = self.n_classes / (n_trained + self.n_classes)
        return -torch.logaddexp(self._log_p(scores) + (-share).log1p(), (share / self.n_classes).log())

    def _log_p(self, scores: Scores) -> Float[Tensor, "cell example problem"]:
        if self.n_columns == 1:
            return torch.nn.functional.logsigmoid(self.signs()[None, :, 0, None] * scores[:, :, 0])
        own = self.y[None, :, None, None].expand(len(scores), -1, 1, scores.shape[3])
        return scores.gather(2, own)[:, :, 0] - scores.logsumexp(dim=2)

    def squared_error(self, scores: Scores) -> Float[Tensor, "cell example problem"]:
        """Of the scores as numbers: summed over the columns."""
        return (scores - self.signs()[None, :, :, None]).square().sum(dim=2)


ByStrength = Float[Tensor, "cell example strength"]


def own_of(
    found: Float[Tensor, "cell example mask strength"], own: Int[Tensor, " example"], numbers: range, others: ByStrength
) -> ByStrength:
    """What each example's own training set has of it, if its number is among these; else what the others have."""
    place = own - numbers.start
    among = (place >= 0) & (place < len(numbers))
    place = place.clamp(0, len(numbers) - 1)[None, :, None, None].expand(len(found), -1, 1, found.shape[3])
    return torch.where(among[:, None], found.gather(2, place)[:, :, 0], others)


def choose_cells(
    site: str | Sequence[str], model: Any, layers: Sequence[int] | None = None, heads: Sequence[Head] | None = None
) -> list[Part]:
    """The cells that are meant, site by site and layer by layer: different sites, all of heads or all of layers."""
    names = (site,) if isinstance(site, str) else tuple(site)
    for name in names:
        if name not in SITES:
            raise InputError(f"no site is called {name!r}; {suggest(str(name), SITES)}")
    require_different("site", list(names))
    kinds = {(is_layered(name), "head" in SITES[name][1]) for name in names}
    if len(kinds) > 1:
        raise InputError(
            f"site: expected sites of heads, or sites of layers, got {', '.join(names)}; probe them one after the other"
        )
    return [part for name in names for part in _cells_at(name, model, layers, heads)]


def _cells_at(site: str, model: Any, layers: Sequence[int] | None, heads: Sequence[Head] | None) -> list[Part]:
    axes = SITES[site][1]
    if axes[1] != "pos":
        raise InputError(f"site {site!r}: a word has no activation of its own there; take z, or a point of the stream")
    if heads is not None and (layers is not None or "head" not in axes):
        raise InputError(f"heads: expected them without layers, and a site that has heads, got site {site!r}")
    if not is_layered(site):
        return [Part(Site(site))]
    n_layers, n_heads = model.cfg.n_layers, heads_at(site, model)
    if heads is None:
        chosen = range(n_layers) if layers is None else sorted(numbers_below(n_layers, "layers", layers))
        every = tuple(range(n_heads)) if "head" in axes else None
        return [Part(Site(site, layer), every) for layer in chosen]
    for layer, head in heads:
        if not (0 <= layer < n_layers and 0 <= head < n_heads):
            raise InputError(
                f"head {layer}.{head}: there are {n_layers} layers (0 to {n_layers - 1}) of {n_heads} heads (0 to "
                f"{n_heads - 1}); choose one of these"
            )
    if not len(heads):
        raise InputError("heads: expected (layer, head) pairs, got none")
    by_layer = {layer: {head for own, head in heads if own == layer} for layer in sorted({layer for layer, _ in heads})}
    return [Part(Site(site, layer), tuple(sorted(own))) for layer, own in by_layer.items()]


PLACES = ("document", "template", "sentence", "word", "token", "n_tokens", "form")
"""The columns of an index that are no features."""


@dataclass(frozen=True)
class Labelled:
    """Words with a label.

    Attributes:
        words: One row a word, by its row in the index: where it stands, its ``value``, ``carrier`` and ``lemma``.
        classes: In alphabetical order; none where the labels are numbers.
    """

    words: pd.DataFrame
    classes: tuple[str, ...]

    @property
    def values(self) -> list[str]:
        """The labels."""
        return self.words["value"].astype(str).tolist()

    @property
    def lemmas(self) -> list[str] | None:
        """What is held out beside groups; None where the feature is a word's identity."""
        lemmas = self.words["lemma"].tolist()
        return lemmas if all(lemmas) else None

    @property
    def held_out(self) -> str:
        """What groups are: ``template`` if there are several and none says what the label is, else ``document``."""
        n_values = self.words.groupby("template")["value"].nunique()
        return "template" if len(n_values) > 1 and (n_values > 1).all() else "document"

    @property
    def groups(self) -> list[str]:
        """What is held out."""
        return self.words[self.held_out].tolist()

    @property
    def resampled(self) -> list[list[str]]:
        """What of the examples is not independent: those of a document, and those of a lemma that is held out."""
        documents, lemmas = self.words["document"].tolist(), self.lemmas
        return [documents, *([] if lemmas is None or lemmas == documents else [lemmas])]

    def target_of(self, values: Sequence[str]) -> Target:
        """What is to be predicted, where these are the labels."""
        if not self.classes:
            return Target(torch.tensor([float(each) for each in values], dtype=torch.float64), 0)
        number = {name: at for at, name in enumerate(self.classes)}
        return Target(torch.tensor([number[each] for each in values]), len(self.classes))


def features_of(index: pd.DataFrame) -> list[str]:
    """The features that an index has labels of."""
    return [name for name in index.columns if f"{name}:carrier" in index.columns]


def labelled(index: pd.DataFrame, feature: str, min_examples: int = 1) -> Labelled:
    """The words that have a label of `feature`; classes with fewer than `min_examples` are left out."""
    known = features_of(index)
    if feature not in known:
        raise InputError(f"feature {feature!r}: the data have no labels of it{among(feature, known)}")
    numeric = feature in NUMERIC
    there = index[index[feature].notna()]
    if not numeric and min_examples > 1:
        counts = there[feature].value_counts()
        there = there[there[feature].isin(counts.index[counts >= min_examples])]
    values = there[feature].astype(str).tolist()
    _check(feature, values, numeric)
    columns = {feature: "value", f"{feature}:carrier": "carrier", f"{feature}:lemma": "lemma"}
    words = there[[*PLACES, *columns]].rename(columns=columns)
    return Labelled(words, () if numeric else tuple(sorted(set(values))))


def drawn(index: pd.DataFrame, feature: str, n: int, seed: int) -> pd.DataFrame:
    """The index with the labels of `n` of the words that have one, drawn at random; of all, where there are no more."""
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
    """The index with labels of one's own; a word's own form carries them, and is held out."""
    if len(labels) != len(index):
        raise InputError(f"labels: expected {len(index)}, one for each word that is read, got {len(labels)}")
    forms = index["form"].str.lower()
    return index.assign(**{feature: list(labels), f"{feature}:carrier": forms, f"{feature}:lemma": forms})


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
            *(["leave rare classes out by min_examples=2"] if len(counts) - len(single) > 1 else []),
            "give more data",
        )


def _check_numbers(feature: str, values: Sequence[str]) -> None:
    try:
        numbers = np.array([float(each) for each in values])
    except ValueError as error:
        raise InputError(f"feature {feature!r}: expected numbers, got {error}") from error
    if not np.isfinite(numbers).all() or len(set(numbers.tolist())) < 2:
        raise InputError(f"feature {feature!r}: expected different finite numbers, got {set(values) or 'none'}")
