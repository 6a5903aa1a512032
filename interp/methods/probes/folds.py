"""Rounds of folds that share neither a document nor a lemma, and the probes that are fitted together.

1. Groups (documents, or templates) are dealt into folds of equal size, and so are the lemmas of the words that carry
   the feature. An *atom* is what one fold of groups and one of lemmas have in common. Where no lemma is to be held out,
   or lemmas are as groups, folds are of groups alone.
2. Each round tests one atom, and trains on what shares neither its groups nor its lemmas: number is a function of the
   word, and a probe that has learnt words must not pass for one that reads number.
3. The penalty of a round is chosen by rounds within its training examples, made in the same way.
4. What the probes need of the examples is summed once for each atom: adding up is cheaper than reading.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from interp.errors import InputError


@dataclass(frozen=True)
class Split:
    """What is trained on, by its number; the atom that is tested; and the splits that choose the penalty."""

    mask: int
    test: int
    inner: tuple["Split", ...] = ()


@dataclass(frozen=True)
class Folds:
    """How examples are trained and tested on: each atom is tested in the round with its number.

    Attributes:
        atom: Of each example, from 0.
        trains_on: The atoms of every different training set.
        rounds: The splits that are scored.
        apart: Of ``groups`` and ``lemmas``, what training and test do not share.
    """

    atom: Int[np.ndarray, " example"]
    trains_on: Bool[np.ndarray, "mask atom"]
    rounds: tuple[Split, ...]
    apart: tuple[str, ...]


def make_folds(
    groups: Sequence[str], lemmas: Sequence[str] | None, n_folds: int, *, nested: bool = True, seed: int = 0
) -> Folds:
    """Deal examples into folds.

    Folds are fewer where there are fewer groups or lemmas; `nested` ones choose penalties; the seed says who is dealt
    first among groups of equal size.
    """
    sides = {"groups": _deal(groups, n_folds, seed)}
    if lemmas is not None and not _alike(groups, lemmas):
        sides["lemmas"] = _deal(lemmas, n_folds, seed + 1)
    sides = {name: side for name, side in sides.items() if side.max() > 0}
    if not sides:
        raise InputError(
            f"folds: expected several documents, templates or lemmas to hold out, got {groups[0]!r} alone; give more "
            "text, or a task with more words"
        )
    blocks, atom = np.unique(np.stack(list(sides.values()), axis=1), axis=0, return_inverse=True)
    return _folds(blocks, atom.reshape(-1), nested, tuple(sides))


def _folds(
    blocks: Int[np.ndarray, "atom side"], atom: Int[np.ndarray, " example"], nested: bool, apart: tuple[str, ...]
) -> Folds:
    """One round a block; inner ones are of each step along the folds of both sides at once, where there are any."""
    numbers: dict[bytes, int] = {}
    masks: list[np.ndarray] = []

    def without(*others: np.ndarray) -> Bool[np.ndarray, " atom"]:
        """The atoms that share no fold of either side with any of these blocks."""
        return (blocks[:, None] != np.stack(others)[None]).all(axis=(1, 2))

    def number_of(mask: np.ndarray) -> int:
        if numbers.setdefault(mask.tobytes(), len(masks)) == len(masks):
            masks.append(mask)
        return numbers[mask.tobytes()]

    rounds, sizes = [], blocks.max(axis=0) + 1
    for number, block in enumerate(blocks):
        mask, inner = without(block), []
        if not mask.any():
            raise InputError(
                f"folds: {np.bincount(atom)[number]} examples share a document or a lemma with all others, so that "
                "there is nothing to train on; give more text, or fewer folds"
            )
        for step in range(1, sizes.max()) if nested else ():
            other = (block + step) % sizes
            tests = np.flatnonzero((blocks == other).all(axis=1))
            trains = without(block, other)
            if (other != block).all() and len(tests) and trains.any():
                inner.append(Split(number_of(trains), int(tests[0])))
        rounds.append(Split(number_of(mask), number, tuple(inner)))
    return Folds(atom, np.stack(masks), tuple(rounds), apart)


def _deal(names: Sequence[str], n_folds: int, seed: int) -> Int[np.ndarray, " example"]:
    """Each example's fold: names are dealt from the most frequent on, each to the smallest fold."""
    counts = Counter(names)
    shuffled = [sorted(counts)[each] for each in np.random.default_rng(seed).permutation(len(counts))]
    sizes, fold = np.zeros(min(n_folds, len(counts))), {}
    for name in sorted(shuffled, key=lambda each: -counts[each]):
        fold[name] = int(sizes.argmin())
        sizes[fold[name]] += counts[name]
    return np.array([fold[name] for name in names])


def _alike(groups: Sequence[str], lemmas: Sequence[str]) -> bool:
    """Whether both part the examples in the same way."""
    pairs = set(zip(groups, lemmas, strict=True))
    return len(pairs) == len(set(groups)) == len(set(lemmas))


Examples = Float[Tensor, "cell example feature"]
"""Activations of the same examples at many cells (heads, layers), in float64."""
ROUNDING = 1e-12
"""Of a variance, relative to the mean square: activations have 32 bits."""


@dataclass(frozen=True)
class Problems:
    """Probes to be fitted at every cell: the atoms that each trains on, and its penalty, by cell where it differs.

    What the penalty multiplies is the solver's to say.
    """

    atom: Int[Tensor, " example"]
    trains_on: Bool[Tensor, "problem atom"]
    penalty: Float[Tensor, "#cell problem"]

    @property
    def n(self) -> int:
        """Probes at each cell."""
        return len(self.trains_on)

    def mask(self) -> Float[Tensor, "example problem"]:
        """1 where an example is trained on."""
        return self.trains_on.T[self.atom].double()


@dataclass(frozen=True)
class Moments:
    """Number, mean and scatter of what each probe trains on.

    The scatter has sums of products of deviations from the mean; 0 of features that are the same in all it trains on.
    """

    n: Float[Tensor, " problem"]
    mean: Float[Tensor, "cell problem feature"]
    scatter: Float[Tensor, "cell problem feature feature"]

    @classmethod
    def of(cls, x: Examples, problems: Problems) -> "Moments":
        """Sum by atom, then add up; deviations are from the mean of all, so that little cancels.

        Of a feature that does not vary, rounding is left, which is of either sign: that is taken away.
        """
        centre = x.mean(dim=1, keepdim=True)
        away = x - centre
        atoms = range(problems.trains_on.shape[1])
        members = [(problems.atom == each).nonzero()[:, 0] for each in atoms]
        parts = [away[:, each] for each in members]
        counts = torch.tensor([float(len(each)) for each in members], dtype=x.dtype, device=x.device)
        sums = torch.stack([part.sum(dim=1) for part in parts], dim=1)
        products = torch.stack([part.mT @ part for part in parts], dim=1)
        used = problems.trains_on.to(x.dtype)
        n = used @ counts
        mean = (used @ sums) / n[:, None]
        squares = (used @ products.flatten(2)).unflatten(2, products.shape[2:])
        scatter = squares - n[:, None, None] * mean[..., :, None] * mean[..., None, :]
        size = torch.diagonal(squares, dim1=-2, dim2=-1) + n[:, None] * centre.square()
        varies = torch.diagonal(scatter, dim1=-2, dim2=-1) > ROUNDING * size
        return cls(n, mean + centre, scatter * (varies[..., :, None] & varies[..., None, :]))

    @property
    def varies(self) -> Bool[Tensor, "cell problem feature"]:
        """Whether a feature varies in what a probe trains on; the weight of one that does not is 0."""
        return torch.diagonal(self.scatter, dim1=-2, dim2=-1) > 0

    @property
    def variance(self) -> Float[Tensor, "cell problem"]:
        """Mean variance of a feature."""
        return torch.diagonal(self.scatter, dim1=-2, dim2=-1).mean(-1) / self.n


@dataclass(frozen=True)
class LinearProbes:
    """What was fitted: scores are ``x @ weight + bias``, one column a class (a single one where there are two)."""

    weight: Float[Tensor, "cell problem feature column"]
    bias: Float[Tensor, "cell problem column"]
    converged: Bool[Tensor, "cell problem"]

    def scores(self, x: Examples) -> Float[Tensor, "cell example column problem"]:
        """Of every example, by every probe of its cell."""
        by_column = self.weight.permute(0, 2, 3, 1)
        found = (x @ by_column.flatten(2)).unflatten(2, by_column.shape[2:])
        return found + self.bias.transpose(1, 2)[:, None]
