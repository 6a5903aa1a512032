"""What could a probe find that the head has not put there? The controls that every score stands beside.

- **Control task**: every type of the word that carries the feature gets a random label, always the same, from the
  labels' own distribution. What a probe learns of it, it has memorised. *Selectivity* is what the probe reaches on the
  feature beyond that, on the same folds (Hewitt & Liang 2019, "Designing and interpreting probes with control tasks").
  Where no word carries the feature, as of a word's senses, each example is a type of its own: one type for all would
  have one label, which every probe gets right.
- **Majority**: the most frequent class, or the mean.
- **Embedding**: a probe on the embedding of the token that is read, which has seen no other word.
- **Position**: a probe on the position that is read.
- **Untrained**: the probe at the same place in a model of the same shape with random weights (Zhang & Bowman 2018).
- **Permuted**: a probe on the labels in random order.

How many bits do labels take, sent to someone who has the activations? Minimum description length by the online code.

1. The examples are put into a random order and cut into blocks: 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.25, 12.5, 25, 50 and
   100 % of them.
2. The first block is sent with a uniform code: ``log2 K`` bits a label. Each further one is sent with a probe that was
   trained on all before: ``-log2 p`` bits a label. Whoever receives it can train the same probe.
3. The strength of the penalty is sent first, which takes ``log2`` of their number, and then the best may be chosen.

So the sum is the length of a code that can be decoded, and on random labels nobody gets below ``n log2 K`` on average.
Compression is the length of another code over it: of the uniform one, and of one that learns how frequent the classes
are (Laplace's rule).

Voita & Titov (2020), "Information-theoretic probing with minimum description length", section 3.2.

What do the probes of all cells reach, and what do their controls? Every example's score, by what it is a score of.

1. ``probe``: on folds that hold out documents (or templates) and lemmas.
2. ``seen`` and ``control``: on folds that hold out documents (or templates) alone, so that types of words may be known
   from training: on the feature, and on the control task.
3. ``embedding``, ``position``, ``majority``, ``untrained`` and ``permuted``: as ``probe``.

A score is 1 or 0 for a class that was found or not; of a number it is ``1 - e^2 / mean e0^2``, with e the error and e0
that of the mean, so that its mean is R^2.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.special import gammaln
from torch import Tensor

from interp.interventions.engine.run import shape_of
from interp.methods.probes.cross_fitting import (
    BYTES_AT_ONCE,
    STRENGTHS,
    CrossFit,
    Kind,
    cross_fit,
    fit,
    losses,
    problems_of,
)
from interp.methods.probes.data import Labelled, Target
from interp.methods.probes.folds import Examples, make_folds
from interp.model.devices import documented, place_of
from interp.model.transformer import HookedTransformer

MOST_POSITIONS = 64
"""That are told apart; of more, neighbours are one."""


def control_labels(carriers: Sequence[str], values: Sequence[str], seed: int = 0) -> list[str]:
    """A random but fixed label for every type, from the labels' distribution.

    Args:
        carriers: The type of each example; empty for one of its own.
        values: Its label.
        seed: Of the draw.
    """
    generator = np.random.default_rng(seed)
    counts = Counter(values)
    classes = sorted(counts)
    shares = np.array([counts[each] for each in classes]) / len(values)
    of_example = [(carrier, 0 if carrier else number) for number, carrier in enumerate(carriers)]
    types = sorted(set(of_example))
    drawn = dict(zip(types, generator.choice(len(classes), size=len(types), p=shares).tolist(), strict=True))
    return [classes[drawn[each]] for each in of_example]


def permuted_labels(values: Sequence[str], seed: int = 0) -> list[str]:
    """The labels in random order."""
    order = np.random.default_rng(seed).permutation(len(values))
    return [values[each] for each in order]


def majority(target: Target) -> Float[Tensor, "1 example"]:
    """Whether who says the most frequent class of all examples is right; of numbers, the squared error of their mean.

    Of the training examples it would be less: where classes are even, what is frequent there is rare among the others.
    """
    if target.n_classes:
        return (target.y == torch.bincount(target.y).argmax()).double()[None]
    return (target.y - target.y.mean()).square().double()[None]


def position_features(tokens: Int[np.ndarray, " example"]) -> Float[Tensor, "1 example feature"]:
    """One axis for every position, or for every run of neighbours where there are many."""
    places, number = np.unique(tokens, return_inverse=True)
    if len(places) > MOST_POSITIONS:
        number = np.searchsorted(np.quantile(tokens, np.linspace(0, 1, MOST_POSITIONS + 1)[1:-1]), tokens, side="right")
    return torch.nn.functional.one_hot(torch.from_numpy(number.reshape(-1).astype(np.int64))).double()[None]


@documented
def untrained(model: Any, seed: int = 0) -> HookedTransformer | None:
    """A model of the same shape with random weights; None where the shape is not known here.

    Args:
        model: Follows TransformerLens' protocol.
        seed: Of the weights.
    """
    config = shape_of(model)
    if config is None:
        return None
    return HookedTransformer(config, getattr(model, "tokenizer", None), seed=seed).to(*place_of(model))


FRACTIONS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.0625, 0.125, 0.25, 0.5, 1.0)


@dataclass(frozen=True)
class DescriptionLength:
    """Lengths in bits.

    Attributes:
        bits: With the probes of each cell.
        uniform: ``n log2 K``.
        prior: With the classes' frequencies alone.
    """

    bits: Float[np.ndarray, " cell"]
    uniform: float
    prior: float


def description_length(
    x: Examples,
    target: Target,
    kind: Kind = "logistic",
    strengths: Sequence[float] = STRENGTHS,
    *,
    seed: int = 0,
) -> DescriptionLength:
    """The length of the labels' code, with the probes of every cell.

    Args:
        x: Activations.
        target: Classes.
        kind: Of probe; ``ridge`` gives no probabilities.
        strengths: Of the penalty.
        seed: Of the order.
    """
    n, log_k = x.shape[1], np.log2(target.n_classes)
    order = np.random.default_rng(seed).permutation(n)
    atom = torch.from_numpy(_blocks(n)[np.argsort(order)]).to(x.device)
    n_blocks = int(atom.max()) + 1
    before = torch.ones(n_blocks, n_blocks, device=x.device).tril(-1).bool()[1:]
    bits = x.new_full((len(x), len(strengths)), float((atom == 0).sum()) * log_k)
    width = max(1, BYTES_AT_ONCE // (6 * x.shape[0] * n * target.n_columns * len(strengths) * 8))
    for start in range(0, n_blocks - 1, width):
        part = before[start : start + width]
        problems = problems_of(atom, part, strengths)
        scores = fit(kind, x, target, problems).scores(x)
        found = losses(kind, target, scores, problems.mask().sum(dim=0)).unflatten(2, (-1, len(strengths)))
        for at in range(len(part)):
            bits += found[:, atom == start + at + 1, at].sum(dim=1) / np.log(2)
    best = bits.min(dim=1).values.cpu().numpy() + np.log2(len(strengths))
    counts = np.bincount(target.y.cpu().numpy(), minlength=target.n_classes)
    return DescriptionLength(best, n * log_k, prior_length(counts))


def prior_length(counts: Int[np.ndarray, " class"]) -> float:
    """Bits of labels that are sent by how often each class has come so far, with one vote for each to begin with."""
    k, n = len(counts), counts.sum()
    # The product of (count so far + 1) / (labels so far + K) is a ratio of factorials, whatever the order.
    log_p = gammaln(counts + 1).sum() + gammaln(k) - gammaln(n + k)
    return float(-log_p / np.log(2))


def _blocks(n: int) -> Int[np.ndarray, " place"]:
    """The block of each place in the order; blocks that would be empty are none."""
    ends = np.unique(np.ceil(np.array(FRACTIONS) * n).astype(int))
    return np.searchsorted(ends, np.arange(n), side="right")


Scores = Float[np.ndarray, "#cell example"]
ON_GPU = 16
"""Cells that are fitted at once on a GPU."""
CACHE = 1 << 18
"""Bytes of activations that are fitted at once on a CPU: what stays in its cache; one cell at least."""


@dataclass
class Measured:
    """Scores of every example, and lengths of codes.

    Attributes:
        scores: By name, ``[cell example]``, or ``[1 example]`` where all cells have the same.
        bits: Description length of the labels with each cell's probes; NaN where the probes give no probabilities.
        control_bits: The same of the control task.
        uniform: Of a code that knows nothing.
        prior: Of a code that learns how frequent the classes are.
    """

    scores: dict[str, Scores]
    bits: Float[np.ndarray, " cell"]
    control_bits: Float[np.ndarray, " cell"]
    uniform: float
    prior: float


@dataclass
class Measuring:
    """Fits the probes of one feature, cell by cell.

    Attributes:
        labelled: The examples.
        kind: Of probe.
        strengths: Of the penalty.
        n_folds: Of documents, and of lemmas.
        device: Where probes are fitted.
        seed: Of folds, control labels, permutation and order.
        description_lengths: Whether they are measured, too.
        permuted: Whether permuted labels are probed for, too.
    """

    labelled: Labelled
    kind: Kind
    strengths: Sequence[float]
    n_folds: int
    device: torch.device
    seed: int
    description_lengths: bool = True
    permuted: bool = True
    _fits: list[CrossFit] = field(default_factory=list)

    def __post_init__(self) -> None:
        given, nested = self.labelled, len(self.strengths) > 1
        self._folds = make_folds(given.groups, given.lemmas, self.n_folds, nested=nested, seed=self.seed)
        self._seen = self._folds
        if given.lemmas is not None:
            # Where each group has words of its own, or there is one alone, words are held out one by one.
            groups = given.groups if self._folds.apart == ("groups", "lemmas") else tuple(map(str, given.rows))
            self._seen = make_folds(groups, None, self.n_folds, nested=nested, seed=self.seed)
        self._target = given.target
        self._control = given.target_of(control_labels(given.carriers, given.values, self.seed))
        self._permuted = given.target_of(permuted_labels(given.values, self.seed))

    def shared(self, embedding: Float[Tensor, "example d_model"] | None) -> dict[str, Scores]:
        """The controls that are the same for all cells."""
        found = {"majority": _scored(self._target, majority(self._target).numpy())}
        found["position"] = self._cross(position_features(self.labelled.tokens), "probe")
        if embedding is not None:
            found["embedding"] = self._cross(embedding[None], "probe")
        return found

    def cells(
        self, x: Float[Tensor, "cell example feature"], twin: Float[Tensor, "cell example feature"] | None
    ) -> Iterator[dict[str, Scores]]:
        """What some cells at a time reach, with the lengths of their codes as ``bits`` and ``control_bits``."""
        size = ON_GPU if self.device.type == "cuda" else max(1, CACHE // (8 * x[0].numel()))
        for start in range(0, len(x), size):
            part = x[start : start + size]
            found = {name: self._cross(part, name) for name in ("probe", "control")}
            if self.permuted:
                found["permuted"] = self._cross(part, "permuted")
            found["seen"] = found["probe"] if self._seen is self._folds else self._cross(part, "seen")
            if twin is not None:
                found["untrained"] = self._cross(twin[start : start + size], "probe")
            yield found | self._lengths(part)

    @property
    def code_lengths(self) -> tuple[float, float]:
        """Of the codes without activations: uniform, and by the classes' frequencies."""
        if not self._has_code:
            return np.nan, np.nan
        nothing = torch.zeros(1, len(self._target.y), 1, dtype=torch.float64)
        found = description_length(nothing, self._target, "lda", (1.0,), seed=self.seed)
        return found.uniform, found.prior

    @property
    def held_out(self) -> list[str]:
        """What training and test do not share."""
        groups = "templates" if self.labelled.groups == self.labelled.strata else "documents"
        return [groups if name == "groups" else name for name in self._folds.apart]

    @property
    def counts(self) -> tuple[int, int]:
        """How many probes did not converge, of how many."""
        n_probes = sum(each.n_probes for each in self._fits)
        return n_probes - sum(each.n_converged for each in self._fits), n_probes

    @property
    def _has_code(self) -> bool:
        return self.description_lengths and self._target.n_classes > 0 and self.kind != "ridge"

    def _cross(self, x: Examples | Tensor, name: str) -> Scores:
        folds = self._seen if name in ("seen", "control") else self._folds
        target = {"control": self._control, "permuted": self._permuted}.get(name, self._target)
        on_device = target.to(self.device)
        found = cross_fit(x.to(self.device, torch.float64), on_device, folds, self.kind, self.strengths)
        self._fits.append(found)
        return _scored(target, found.hits if target.n_classes else found.loss)

    def _lengths(self, x: Tensor) -> dict[str, Scores]:
        if not self._has_code:
            return {name: np.full((len(x), 1), np.nan) for name in ("bits", "control_bits")}
        given = x.to(self.device, torch.float64)
        length: Callable[..., np.ndarray] = lambda target: description_length(  # noqa: E731
            given, target.to(self.device), self.kind, self.strengths, seed=self.seed
        ).bits[:, None]
        return {"bits": length(self._target), "control_bits": length(self._control)}


def _scored(target: Target, found: Scores) -> Scores:
    """Hits as they are; squared errors beside those of the target's own mean."""
    return found if target.n_classes else 1 - found / float(majority(target).mean())
