"""Scores of the probes of all cells, and of the controls that each score stands beside.

- **Control task**: every type of the word that carries the feature gets a random label, always the same, from the
  labels' own distribution; where no word carries it, each example is a type. *Selectivity* is what the probe reaches on
  the feature beyond that, on the same folds (Hewitt & Liang 2019, "Designing and interpreting probes with control
  tasks").
- **Majority**: the most frequent class, or the mean. **Embedding** and **position**: a probe on the embedding of the
  token that is read, or on its position. **Untrained**: the probe in a model with random weights (Zhang & Bowman 2018).
  **Permuted**: a probe on the labels in random order.
- **Description length** by the online code (Voita & Titov 2020, "Information-theoretic probing with minimum description
  length", 3.2): labels are sent in blocks, the first with ``log2 K`` bits a label, each further one with a probe that
  was trained on all before, ``-log2 p`` bits a label. The choice of the penalty is sent first.

A score is 1 or 0 for a class that was found or not; of a number it is ``1 - e^2 / mean e0^2``, with e the error and e0
that of the mean, so that its mean is R^2. Most are on folds that hold out documents (or templates) and lemmas; ``seen``
and ``control`` are on folds that hold out documents alone, so that types of words may be known from training.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.special import gammaln
from torch import Tensor

from interp.interventions.engine.run import shape_of
from interp.methods.probes.cross_fitting import PENALTIES, CrossFit, cross_fit, fitted, make_folds, most_bytes
from interp.methods.probes.data import Labelled, Target, own_of
from interp.methods.probes.linear import Examples
from interp.methods.probes.mlp import HIDDEN
from interp.model.devices import documented, place_of
from interp.model.transformer import HookedTransformer
from interp.options import ProbeKind, ProbeOptions

MOST_POSITIONS = 64
"""That are told apart; of more, neighbours are one."""


def control_labels(carriers: Sequence[str], values: Sequence[str], seed: int = 0) -> list[str]:
    """A random but fixed label for every type of carrier (empty for one of its own), from the labels' distribution."""
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
    """A model of the same shape with random weights.

    Args:
        model: Follows TransformerLens' protocol.
        seed: Of the weights.

    Returns:
        The model, on the same device and in the same dtype; None where the shape is not known here.

    Examples:
        >>> from interp.methods.probes.scores import untrained
        >>> untrained(interp.load_model()).name
        'untrained'
    """
    config = shape_of(model)
    if config is None:
        return None
    return HookedTransformer(config, getattr(model, "tokenizer", None), seed=seed).to(*place_of(model))


FRACTIONS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.0625, 0.125, 0.25, 0.5, 1.0)
"""Where the online code's blocks end."""


def description_length(
    x: Examples,
    target: Target,
    kind: ProbeKind = "logistic",
    penalties: Sequence[float] = PENALTIES,
    *,
    seed: int = 0,
    memory_budget: int | None = None,
) -> Float[np.ndarray, " cell"]:
    """Bits of the code of the labels (classes), with the probes of every cell."""
    n = x.shape[1]
    order = np.random.default_rng(seed).permutation(n)
    block = torch.from_numpy(_blocks(n)[np.argsort(order)])
    n_blocks, atom = int(block.max()) + 1, block.to(x.device)
    before = torch.ones(n_blocks, n_blocks, device=x.device).tril(-1).bool()[1:]
    loss = x.new_zeros(len(x), n, len(penalties))
    for numbers, _, _, found in fitted(kind, x, target, atom, before, penalties, memory_budget):
        loss = own_of(found, atom - 1, numbers, loss)
    loss = loss.cpu()
    bits = loss.new_full((len(x), len(penalties)), float((block == 0).sum()) * np.log2(target.n_classes))
    for number in range(1, n_blocks):
        bits += loss[:, block == number].sum(dim=1) / np.log(2)
    return bits.min(dim=1).values.numpy() + np.log2(len(penalties))


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
AT_ONCE = 4
"""Fits side by side on a CPU, with a share of the threads each: problems as small as these gain little from several."""
ON_GPU = 16
"""Cells that are fitted at once on a GPU."""
WORTH_A_GPU = 2 * 10**7
"""Products in a step of all probes of a fit from which on they are fitted on a GPU.

Its step is some 170 launches of 10 microseconds, however few the probes are; a thread of a CPU was measured to do 1
(logistic) to 5 (MLP) such products in a nanosecond, so that four threads do these in 5 to 1 milliseconds.
"""
CACHE = 1 << 18
"""Bytes of activations that are fitted at once on a CPU: what stays in its cache; one cell at least."""


@dataclass
class Measured:
    """Scores of every example by name, and lengths of codes; ``[1 example]`` where all cells have the same scores.

    Attributes:
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


class Measuring:
    """Fits the probes of one feature, cell by cell, on a device, few on the CPU; with the kind and penalties used."""

    def __init__(self, labelled: Labelled, asked: ProbeOptions, device: torch.device):
        self.labelled, self._asked, self._device = labelled, asked, device
        self._penalties = tuple(asked.penalties or PENALTIES)
        self._fits: list[CrossFit] = []
        self.fitted_on: set[str] = set()  # kinds of device
        how: dict[str, Any] = {"nested": len(self._penalties) > 1, "seed": asked.seed}
        self._folds = make_folds(labelled.groups, labelled.lemmas, asked.cv, **how)
        self._seen = self._folds
        if labelled.lemmas is not None:
            # Where each group has words of its own, or there is one alone, words are held out one by one.
            apart = self._folds.apart == ("groups", "lemmas")
            self._seen = make_folds(
                labelled.groups if apart else labelled.words.index.astype(str).tolist(), None, asked.cv, **how
            )
        values, carriers = labelled.values, labelled.words["carrier"].tolist()
        self._target = labelled.target_of(values)
        self._control = labelled.target_of(control_labels(carriers, values, asked.seed))
        self._permuted = labelled.target_of(permuted_labels(values, asked.seed))
        self._has_code = asked.description_lengths and self._target.n_classes > 0 and asked.kind != "ridge"

    def cells(
        self, x: Float[Tensor, "cell example feature"], twin: Float[Tensor, "cell example feature"] | None
    ) -> Iterator[dict[str, Scores]]:
        """What some cells at a time reach, with the lengths of their codes as ``bits`` and ``control_bits``."""
        device = self._place(x)
        self.fitted_on.add(device.type)
        size = max(1, CACHE // (8 * x[0].numel())) if device.type == "cpu" else ON_GPU
        parts = x.split(size)
        twins = [None] * len(parts) if twin is None else twin.split(size)
        n_threads = torch.get_num_threads()
        at_once = min(AT_ONCE, n_threads, len(parts)) if device.type == "cpu" else 1
        fit = partial(self._cells, device, max(1, (self._asked.memory_budget or most_bytes(device)) // at_once))
        if at_once == 1:
            yield from map(fit, parts, twins)
            return
        try:
            torch.set_num_threads(n_threads // at_once)
            with ThreadPoolExecutor(at_once) as threads:
                yield from threads.map(fit, parts, twins)
        finally:
            torch.set_num_threads(n_threads)

    def _cells(self, device: torch.device, budget: int, x: Tensor, twin: Tensor | None) -> dict[str, Scores]:
        x = x.to(device, torch.float64)
        cross, length = partial(self._cross, memory_budget=budget), partial(self._length, memory_budget=budget)
        found = {"probe": cross(x), "control": cross(x, self._control, seen=True)}
        if self._asked.permuted_labels:
            found["permuted"] = cross(x, self._permuted)
        found["seen"] = found["probe"] if self._seen is self._folds else cross(x, seen=True)
        if twin is not None:
            found["untrained"] = cross(twin.to(x))
        return found | {"bits": length(x, self._target), "control_bits": length(x, self._control)}

    def joined(
        self, parts: Sequence[dict[str, Scores]], embedding: Float[Tensor, "example d_model"] | None
    ) -> Measured:
        """What ``cells`` gave, with the controls that are the same for all cells."""
        found = {"majority": _scored(self._target, majority(self._target).numpy())}
        cross = partial(self._cross, memory_budget=self._asked.memory_budget)
        alone = {"position": position_features(self.labelled.words["token"].to_numpy())}
        if embedding is not None:
            alone["embedding"] = embedding[None]
        found |= {name: cross(each.to(self._place(each), torch.float64)) for name, each in alone.items()}
        found |= {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        bits, control_bits = (found.pop(name)[:, 0] for name in ("bits", "control_bits"))
        uniform = prior = np.nan
        if self._has_code:
            counts = np.bincount(self._target.y.numpy(), minlength=self._target.n_classes)
            uniform, prior = counts.sum() * np.log2(len(counts)), prior_length(counts)
        return Measured(found, bits, control_bits, uniform, prior)

    @property
    def held_out(self) -> list[str]:
        """What training and test do not share."""
        return [f"{self.labelled.held_out}s" if name == "groups" else name for name in self._folds.apart]

    @property
    def counts(self) -> tuple[int, int]:
        """How many probes did not converge, of how many."""
        n_probes = sum(each.n_probes for each in self._fits)
        return n_probes - sum(each.n_converged for each in self._fits), n_probes

    def _place(self, x: Float[Tensor, "cell example feature"]) -> torch.device:
        """Where probes on these are fitted: the CPU is through with few before a GPU is told what to do."""
        (n_cells, n, width), kind = x.shape, self._asked.kind
        width = min(n, width) if kind in ("logistic", "ridge") else width
        n_probes = min(n_cells, ON_GPU) * len(self._folds.trains_on) * len(self._penalties) * self._target.n_columns
        work = n_probes * width * (n + width) * (HIDDEN if kind == "mlp" else 1)
        return self._device if work >= WORTH_A_GPU else torch.device("cpu")

    def _cross(
        self, x: Examples, target: Target | None = None, *, memory_budget: int | None, seen: bool = False
    ) -> Scores:
        target, folds = target or self._target, self._seen if seen else self._folds
        labels = target.to(x.device)
        found = cross_fit(x, labels, folds, self._asked.kind, self._penalties, memory_budget=memory_budget)
        self._fits.append(found)
        return _scored(target, found.hits if target.n_classes else found.loss)

    def _length(self, x: Examples, target: Target, *, memory_budget: int) -> Float[np.ndarray, "cell 1"]:
        if not self._has_code:
            return np.full((len(x), 1), np.nan)
        how: Any = {"seed": self._asked.seed, "memory_budget": memory_budget}
        return description_length(x, target.to(x.device), self._asked.kind, self._penalties, **how)[:, None]


def _scored(target: Target, found: Scores) -> Scores:
    """Hits as they are; squared errors beside those of the target's own mean."""
    return found if target.n_classes else 1 - found / float(majority(target).mean())
