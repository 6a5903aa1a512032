"""Cross-fitting: the scores of probes on examples that they were not trained on, of all cells at once.

**Folds** share neither a document nor a lemma.

1. Groups (documents, or templates) are dealt into folds of equal size, and so are the lemmas of the words that carry
   the feature. An *atom* is what one fold of groups and one of lemmas have in common. Where no lemma is to be held out,
   or lemmas are as groups, folds are of groups alone.
2. Each round tests one atom, and trains on what shares neither its groups nor its lemmas: number is a function of the
   word, and a probe that has learnt words must not pass for one that reads number.
3. The penalty of a round is chosen by rounds within its training examples, made in the same way.

=============  ==========================================  ==================  ====================================
kind           what it is                                  what it minimises   strength of its penalty
=============  ==========================================  ==================  ====================================
``logistic``   multinomial logistic regression, L2         log loss            share of the features' mean variance
``ridge``      least squares, L2; of classes as 1 and -1   squared error       the same
``lda``        linear discriminant analysis                (closed form)       share of shrinkage, from 0 to 1
``mlp``        one hidden layer of ReLUs                   log loss            weight decay
=============  ==========================================  ==================  ====================================

**Scores.** A strength has no unit, so that the same ones serve heads that write much and heads that write little.

1. All different training sets are fitted with all strengths of the penalty together.
2. The strength of a round is the one that does best in its inner rounds, the strongest of equals.
3. Each example is scored once, by the probe of its round.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from interp.errors import InputError
from interp.interventions.engine.plan import budget_of
from interp.methods.probes.data import ByStrength, Scores, Target, own_of
from interp.methods.probes.linear import ROUNDING, Examples, LinearProbes, Problems, fit_lda, fit_logistic, fit_ridge
from interp.methods.probes.mlp import BATCH, HIDDEN, MLPProbes, fit_mlp
from interp.options import ProbeKind


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
            f"cv: expected several documents, templates or lemmas to hold out, got {groups[0]!r} alone; give more "
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
                f"cv: {np.bincount(atom)[number]} examples share a document or a lemma with all others, so that "
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


SOLVERS: dict[ProbeKind, Callable[[Examples, Target, Problems], LinearProbes | MLPProbes]]
SOLVERS = {"logistic": fit_logistic, "ridge": fit_ridge, "lda": fit_lda, "mlp": fit_mlp}


def fit(kind: ProbeKind, x: Examples, target: Target, trains_on: Problems) -> LinearProbes | MLPProbes:
    """Fit probes whose penalties are given as strengths."""
    return SOLVERS[kind](x, target, replace(trains_on, penalty=_penalties(kind, x, trains_on)))


Strengths = Sequence[float] | Float[Tensor, " strength"]


def problems_of(atom: Int[Tensor, " example"], trains_on: Bool[Tensor, "mask atom"], penalties: Strengths) -> Problems:
    """Every training set with every strength; those of a set stand together."""
    penalty = torch.as_tensor(penalties, dtype=torch.float64, device=atom.device).repeat(len(trains_on))
    return Problems(atom, trains_on.repeat_interleave(len(penalties), dim=0), penalty[None])


def _penalties(kind: ProbeKind, x: Examples, problems: Problems) -> Float[Tensor, "#cell problem"]:
    if kind in ("lda", "mlp"):
        return problems.penalty
    away = x - x.mean(dim=1, keepdim=True)
    used = problems.mask()
    n = used.sum(dim=0)
    mean = used.T @ away / n[:, None]
    variance = away.square().mean(dim=2) @ used / n - mean.square().mean(dim=2)
    # Of activations that are all the same, there is rounding alone: it must not be taken for a scale.
    rounding = ROUNDING * x.square().mean(dim=(1, 2))[:, None]
    variance = torch.where(variance > rounding, variance, rounding.clamp_min(torch.finfo(torch.float32).tiny))
    return problems.penalty * n * variance


BYTES_AT_ONCE = 256 << 20
"""That probes which are fitted together take on a CPU, unless a budget says less; on a GPU it is a sweep's budget."""
OF_EXAMPLES, OF_FEATURES = 7, 6
"""How many tensors a fit holds with a number for each probe and example, and for each probe and two features."""
PENALTIES = (1.0, 1e-1, 1e-2, 1e-3, 1e-4)


@dataclass(frozen=True)
class CrossFit:
    """Out-of-sample scores of every cell, and how many probes were fitted, and came to their optimum.

    Attributes:
        hits: Whether an example's class was found; of numbers NaN.
        loss: The probe's loss on it: ``-log p`` in nats, or the squared error.
        strength: Chosen in each round.
    """

    hits: Float[np.ndarray, "cell example"]
    loss: Float[np.ndarray, "cell example"]
    strength: Float[np.ndarray, "cell round"]
    n_probes: int
    n_converged: int


def cross_fit(
    x: Examples,
    target: Target,
    folds: Folds,
    kind: ProbeKind = "logistic",
    penalties: Sequence[float] = PENALTIES,
    *,
    memory_budget: int | None = None,
) -> CrossFit:
    """Fit and score the probes of every cell. The penalties are strengths (see the module)."""
    ordered = sorted(penalties, reverse=True)
    sums, hits, loss, n_converged = _fitted(x, target, folds, kind, ordered, memory_budget)
    chosen = torch.stack([_choice(sums, each) for each in folds.rounds], dim=1)
    own = (torch.arange(len(x))[:, None], torch.arange(x.shape[1])[None], chosen[:, torch.from_numpy(folds.atom)])
    found, lost, strength = hits[own], loss[own], torch.tensor(ordered, dtype=torch.float64)[chosen]
    return CrossFit(found.numpy(), lost.numpy(), strength.numpy(), sums[..., 0].numel(), n_converged)


def _choice(sums: Float[Tensor, "cell mask strength atom"], each: Split) -> Int[Tensor, " cell"]:
    """The strength of a round, by its number."""
    if not each.inner:
        return torch.zeros(len(sums), dtype=torch.long)
    total = sum((sums[:, inner.mask, :, inner.test] for inner in each.inner), 0.0)
    return torch.as_tensor(total).argmin(dim=1)


def _fitted(
    x: Examples, target: Target, folds: Folds, kind: ProbeKind, strengths: Sequence[float], memory_budget: int | None
) -> tuple[Float[Tensor, "cell mask strength atom"], ByStrength, ByStrength, int]:
    """Losses summed by training set, strength and atom; each example's hit and loss, of its round's probes.

    They are computed where x is, and on the CPU when they are given.
    """
    by_round = np.array([each.mask for each in folds.rounds])
    atom, own = torch.from_numpy(np.stack([folds.atom, by_round[folds.atom]])).to(x.device)
    masks, n = torch.from_numpy(folds.trains_on).to(x.device), len(strengths)
    members = (atom[:, None] == torch.arange(masks.shape[1], device=x.device)).to(x)
    sums: list[Tensor] = []
    hits = loss = x.new_full((len(x), x.shape[1], n), torch.nan)
    n_converged = atom.new_zeros(())
    for numbers, probes, scores, found in fitted(kind, x, target, atom, masks, strengths, memory_budget):
        sums.append(found.permute(0, 2, 3, 1) @ members)
        right = target.hits(scores).to(x).unflatten(2, (-1, n)) if target.n_classes else found * torch.nan
        hits, loss = (own_of(each, own, numbers, before) for each, before in ((right, hits), (found, loss)))
        n_converged += probes.converged.sum()
    return torch.cat(sums, dim=1).cpu(), hits.cpu(), loss.cpu(), int(n_converged)


def most_bytes(device: torch.device) -> int:
    """That probes which are fitted together take there."""
    return BYTES_AT_ONCE if device.type == "cpu" else budget_of(device, None)


def fitted(
    kind: ProbeKind,
    x: Examples,
    target: Target,
    atom: Int[Tensor, " example"],
    masks: Bool[Tensor, "mask atom"],
    penalties: Strengths,
    memory_budget: int | None = None,
) -> Iterator[tuple[range, LinearProbes | MLPProbes, Scores, Float[Tensor, "cell example mask strength"]]]:
    """Numbers of training sets that are fitted together; their probes, scores of all examples, and losses.

    Of more features than examples, the examples span a space of fewer, and a penalty on the norm keeps weights there.
    """
    n, width, penalties = len(penalties), x.shape[2], torch.as_tensor(penalties, dtype=torch.float64, device=x.device)
    if kind in ("logistic", "ridge") and width > x.shape[1]:
        x = x @ torch.linalg.qr(x.mT).Q
        penalties = penalties * x.shape[2] / width  # shares of the variance of one feature
    each = len(x) * n * x.element_size() * _held(kind, x, target)
    size = max(1, min(most_bytes(x.device), memory_budget or most_bytes(x.device)) // each)
    for start in range(0, len(masks), size):
        problems = problems_of(atom, masks[start : start + size], penalties)
        probes = fit(kind, x, target, problems)
        scores = probes.scores(x)
        n_trained = problems.mask().sum(dim=0)
        found = target.squared_error(scores) if kind == "ridge" else target.log_loss(scores, n_trained)
        yield range(start, start + problems.n // n), probes, scores, found.unflatten(2, (-1, n))


def _held(kind: ProbeKind, x: Examples, target: Target) -> int:
    """How many numbers a fit holds for each probe."""
    n_examples, width, n_columns = *x.shape[1:], target.n_columns
    of_examples, squares = OF_EXAMPLES * n_examples * n_columns, OF_FEATURES * (width + 1) ** 2
    if kind != "mlp":
        return of_examples + squares
    # Its weights with their moments and gradients, and a batch on its way through it, of half as many bits.
    network = 8 * (width + n_columns) * HIDDEN + min(n_examples, BATCH) * (2 * width + 3 * HIDDEN)
    return of_examples + max(squares, network // 2)
