"""Is a sentence's tree in its vectors? Probes that find its distances between them, or its depths in their norms.

``||B (h_i - h_j)||^2`` is to be the distance of the words i and j, ``||B h_i||^2`` the depth of word i.

1. The loss: a sentence's absolute errors, divided by n^2 (depths: by n) for its n words; the mean over sentences.
2. Adam on batches of sentences. After an epoch without a new least loss on the dev sentences a probe's learning rate is
   halved; after some such epochs in a row it stops, and leaves the batch with the weights of the least dev loss.
3. This is done twice. First in the vectors' own coordinates, in units of their root mean square: what varies most is
   found first, which generalises best. Then from there in whitened coordinates, where a tree is found even if what
   hides it varies a hundred times as much. The dev loss says how far to go.

All cells are fitted together. Every probe starts from the same weights and sees the same order, so that it does not
matter which others are fitted with it.

Hewitt & Manning (2019), https://aclanthology.org/N19-1419; Kingma & Ba (2015), "Adam".
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from interp.errors import InputError

MOST_EPOCHS = 100
PATIENCE = 5
RATE = 1e-3
BATCH = 20
_WHITE_RATE = 10
"""Times the rate, in whitened coordinates."""
_BETAS, _EPSILON = (0.9, 0.999), 1e-8
_FIRST = 1e-3
"""Bound of the first weights: what is not learnt should be as good as absent."""
_RIDGE = 1e-6
"""Of the mean variance, is added to every direction's: fewer words than features can be whitened, too."""

Vectors = Float[Tensor, "cell sentence word feature"]
Gold = Float[Tensor, "sentence word word"] | Float[Tensor, "sentence word"]
Projections = Float[Tensor, "probe rank feature"]


def squared_distances(projected: Float[Tensor, "*batch word rank"]) -> Float[Tensor, "*batch word word"]:
    """``||p_i - p_j||^2`` of all pairs of words."""
    away = projected - projected[..., :1, :]  # large vectors that differ little would cancel out
    products = away @ away.mT
    norms = products.diagonal(dim1=-2, dim2=-1)
    return (norms[..., :, None] + norms[..., None, :] - 2 * products).clamp_min(0)


def squared_norms(projected: Float[Tensor, "*batch word rank"]) -> Float[Tensor, "*batch word"]:
    """``||p_i||^2`` of all words."""
    return projected.square().sum(dim=-1)


@dataclass(frozen=True)
class StructuralProbes:
    """What was fitted: of every cell, one probe of each rank.

    Attributes:
        cell: Whose vectors each probe reads.
        rank: Of each.
        projection: B; rows beyond a probe's rank are 0.
        dev_loss: The least, which is that of `projection`.
        n_epochs: How many each took.
    """

    cell: Int[Tensor, " probe"]
    rank: Int[Tensor, " probe"]
    projection: Projections
    dev_loss: Float[Tensor, " probe"]
    n_epochs: Int[Tensor, " probe"]

    def projected(self, vectors: Vectors) -> Float[Tensor, "probe sentence word rank"]:
        """``B h`` of every word: for ``squared_distances`` or ``squared_norms``."""
        return _project(vectors[self.cell].to(self.projection.dtype), self.projection)


def fit_structural(
    vectors: Vectors,
    gold: Gold,
    lengths: Int[Tensor, " sentence"],
    dev: Bool[Tensor, " sentence"],
    *,
    ranks: Sequence[int] | None = None,
    max_epochs: int = MOST_EPOCHS,
    patience: int = PATIENCE,
    lr: float = RATE,
    batch_size: int = BATCH,
    seed: int = 0,
) -> StructuralProbes:
    """Fit probes of all cells (layers, heads) and ranks together; a second copy of the vectors is held meanwhile.

    Args:
        vectors: Of words, padded with zeros.
        gold: The trees' distances for distance probes, depths for depth probes, padded.
        lengths: How many words each sentence has.
        dev: The sentences whose loss decides when to stop; they are not trained on.
        ranks: Rows of B; every cell gets a probe of each. None for as many as features.
        max_epochs: After which a probe stops, in either coordinates.
        patience: Epochs without a new least dev loss.
        lr: The first learning rate.
        batch_size: Sentences of a step.
        seed: Of the first weights and the order of the sentences.

    Returns:
        The probes of all cells, rank by rank.

    Raises:
        InputError: Parts do not fit together, a vector is not finite, a rank or another number is out of range, or
            there is no sentence of two words to train on or to stop by.
    """
    ranks = (vectors.shape[-1],) if ranks is None else tuple(ranks)
    _check_numbers(vectors.shape[-1], ranks, max_epochs=max_epochs, patience=patience, batch_size=batch_size, lr=lr)
    _check_sentences(vectors, gold, lengths, dev)
    vectors = vectors.to(torch.promote_types(vectors.dtype, torch.float32))
    training = _Training(gold.to(vectors), lengths, dev, (max_epochs, patience, batch_size, seed))
    scale, root = _spread(vectors, lengths, between_words=gold.ndim == 3)
    inverse = torch.linalg.solve_triangular(root, torch.eye(root.shape[-1]).to(root), upper=False)
    white_vectors = _project(vectors, inverse.to(vectors))
    unit = (1 / scale)[:, None, None].to(vectors)
    parts = []
    for rank in ranks:
        plain = training.run(vectors, _unfitted(vectors, rank, unit, seed), lr, unit)
        white_start = replace(plain, projection=(plain.projection.double() @ root).to(vectors))
        white = training.run(white_vectors, white_start, _WHITE_RATE * lr, torch.ones_like(unit))
        back = (white.projection.double() @ inverse).to(vectors)
        better = (white.dev_loss < plain.dev_loss)[:, None, None]
        parts.append(replace(white, projection=torch.where(better, back, plain.projection)))
    return _joined(parts)


def _joined(parts: Sequence[StructuralProbes]) -> StructuralProbes:
    longest = max(part.projection.shape[1] for part in parts)
    columns = {field.name: [getattr(part, field.name) for part in parts] for field in fields(StructuralProbes)}
    columns["projection"] = [pad(each, (0, 0, 0, longest - each.shape[1])) for each in columns["projection"]]
    return StructuralProbes(**{name: torch.cat(each) for name, each in columns.items()})


def _unfitted(vectors: Vectors, rank: int, unit: Float[Tensor, "cell 1 1"], seed: int) -> StructuralProbes:
    """A probe for every cell, from the same weights."""
    generator = torch.Generator().manual_seed(seed)
    drawn = 2 * torch.rand(rank, vectors.shape[-1], generator=generator, dtype=torch.float64) - 1
    cell = torch.arange(len(vectors), device=vectors.device)
    endless = torch.full_like(vectors[:, 0, 0, 0], torch.inf)
    return StructuralProbes(
        cell, torch.full_like(cell, rank), _FIRST * drawn.to(vectors) * unit, endless, torch.zeros_like(cell)
    )


def _project(vectors: Vectors, projections: Projections) -> Float[Tensor, "probe sentence word rank"]:
    return (vectors.flatten(1, 2) @ projections.mT).unflatten(1, vectors.shape[1:3])


def _spread(
    vectors: Vectors, lengths: Int[Tensor, " sentence"], *, between_words: bool
) -> tuple[Float[Tensor, " cell"], Float[Tensor, "cell feature feature"]]:
    """The vectors' root mean square, and what whitened vectors times it are: Cholesky's root of their second moments.

    Of what the probe sees: of distances, how the words of a sentence differ.
    """
    inside = (torch.arange(vectors.shape[2], device=vectors.device) < lengths[:, None])[..., None]
    total = torch.zeros(len(vectors), *[vectors.shape[-1]] * 2, dtype=torch.float64, device=vectors.device)
    for part, here in zip(vectors.split(256, dim=1), inside.split(256), strict=True):
        words = torch.where(here, part.double(), 0)
        if between_words:
            words = torch.where(here, words - words.sum(dim=2, keepdim=True) / here.sum(dim=1, keepdim=True), 0)
        total += words.flatten(1, 2).mT @ words.flatten(1, 2)
    moments = total / lengths.sum()
    scale = moments.diagonal(dim1=1, dim2=2).mean(dim=1).sqrt()
    scale = torch.where(scale > 0, scale, 1)
    ridge = _RIDGE * torch.eye(vectors.shape[-1], dtype=moments.dtype, device=moments.device)
    root = torch.linalg.cholesky(moments / scale[:, None, None] ** 2 + ridge) * scale[:, None, None]
    return scale, root


class _Training:
    """What is trained on, and how; a run starts from some probes and gives better ones."""

    def __init__(
        self,
        gold: Gold,
        lengths: Int[Tensor, " sentence"],
        dev: Bool[Tensor, " sentence"],
        options: tuple[int, int, int, int],
    ):
        self._gold, self._lengths = gold, lengths
        self._train, self._dev = (~dev).nonzero()[:, 0], dev.nonzero()[:, 0]
        self._max_epochs, self._patience, self._batch_size, self._seed = options

    def run(
        self, vectors: Vectors, start: StructuralProbes, lr: float, unit: Float[Tensor, "probe 1 1"]
    ) -> StructuralProbes:
        """Train one probe of each cell; `unit` is what a weight of 1 is in these vectors' coordinates."""
        best, dev_loss, n_epochs = (each.clone() for each in (start.projection, start.dev_loss, start.n_epochs))
        running, waited = torch.arange(len(best), device=best.device), torch.zeros_like(n_epochs)
        B, rate, moments = best.clone(), torch.full_like(dev_loss, lr), (torch.zeros_like(best),) * 2
        generator, n_steps = torch.Generator().manual_seed(self._seed), 0
        for _ in range(self._max_epochs):
            order = torch.randperm(len(self._train), generator=generator).to(self._train.device)
            for batch in self._train[order].split(self._batch_size):
                n_steps += 1
                gradient = self._gradient(vectors, running, batch, B)
                step, moments = _adam(gradient * unit, moments, n_steps)
                B = B - rate[:, None, None] * unit * step
            found = self._dev_loss(vectors, running, B)
            better = found < dev_loss[running]
            best[running[better]], dev_loss[running[better]] = B[better], found[better]
            n_epochs[running] += 1
            waited = torch.where(better, 0, waited + 1)
            rate = torch.where(better, rate, rate / 2)
            left = waited < self._patience
            running, waited, rate, unit, B = (each[left] for each in (running, waited, rate, unit, B))
            moments = (moments[0][left], moments[1][left])
            if not len(running):
                break
        return replace(start, projection=best, dev_loss=dev_loss, n_epochs=n_epochs)

    def _gradient(self, vectors: Vectors, running: Int[Tensor, " probe"], batch: Tensor, B: Projections) -> Projections:
        with torch.enable_grad():
            B = B.detach().requires_grad_()
            loss = self._losses(vectors, running, batch, B).mean(dim=1).sum()
        return torch.autograd.grad(loss, B)[0]

    def _dev_loss(self, vectors: Vectors, running: Int[Tensor, " probe"], B: Projections) -> Float[Tensor, " probe"]:
        with torch.no_grad():
            parts = [self._losses(vectors, running, batch, B) for batch in self._dev.split(self._batch_size)]
        return torch.cat(parts, dim=1).mean(dim=1)

    def _losses(
        self, vectors: Vectors, running: Int[Tensor, " probe"], batch: Int[Tensor, " some"], B: Projections
    ) -> Float[Tensor, "probe some"]:
        """Of every probe and sentence of a batch, which is padded to its own longest."""
        lengths = self._lengths[batch]
        words = slice(int(lengths.max()))
        projected = _project(vectors[:, :, words][running[:, None], batch], B)
        gold = self._gold[batch, words, words] if self._gold.ndim == 3 else self._gold[batch, words]
        found = squared_distances(projected) if gold.ndim == 3 else squared_norms(projected)
        inside = torch.arange(words.stop, device=lengths.device) < lengths[:, None]
        if gold.ndim == 3:
            inside = inside[:, :, None] & inside[:, None]
        errors = torch.where(inside, (found - gold).abs(), 0)
        return errors.flatten(2).sum(dim=2) / lengths ** (gold.ndim - 1)


def _adam(
    gradient: Projections, moments: tuple[Projections, Projections], n_steps: int
) -> tuple[Projections, tuple[Projections, Projections]]:
    """The step for a learning rate of 1, and the moments after it."""
    mean = torch.lerp(gradient, moments[0], _BETAS[0])
    square = torch.lerp(gradient.square(), moments[1], _BETAS[1])
    root = (square / (1 - _BETAS[1] ** n_steps)).sqrt() + _EPSILON
    return mean / (1 - _BETAS[0] ** n_steps) / root, (mean, square)


def _check_numbers(n_features: int, ranks: Sequence[int], *, lr: float, **counts: int) -> None:
    for rank in ranks:
        if not 1 <= rank <= n_features:
            raise InputError(f"rank: expected 1 to {n_features}, the vectors' features, got {rank}")
    for name, value in counts.items():
        if value < 1:
            raise InputError(f"{name}: expected at least 1, got {value}")
    if not lr > 0:
        raise InputError(f"lr: expected a number above 0, got {lr}")


def _check_sentences(
    vectors: Vectors, gold: Gold, lengths: Int[Tensor, " sentence"], dev: Bool[Tensor, " sentence"]
) -> None:
    n, longest = vectors.shape[1:3]
    if {len(gold), len(lengths), len(dev)} != {n} or set(gold.shape[1:]) != {longest}:
        raise InputError(
            f"structural probes: expected {n} sentences of {longest} words, as the vectors, got gold "
            f"{tuple(gold.shape)}, {len(lengths)} lengths and {len(dev)} dev marks"
        )
    bad = ~(torch.isfinite(vectors).all(dim=3).all(dim=2).all(dim=0) & torch.isfinite(gold).flatten(1).all(dim=1))
    if bad.any():
        raise InputError(f"sentence {int(bad.nonzero()[0])}: expected finite vectors and gold numbers, got others")
    if not ((lengths >= 1) & (lengths <= longest)).all():
        raise InputError(f"lengths: expected 1 to {longest}, got {int(lengths.min())} to {int(lengths.max())}")
    long = lengths > 1
    if not (long & dev).any() or not (long & ~dev).any():
        raise InputError(
            f"structural probes: expected sentences of two words or more to train on and to stop by, got "
            f"{int((long & ~dev).sum())} and {int((long & dev).sum())}; give more sentences"
        )
