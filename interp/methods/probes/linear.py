"""Linear probes, thousands at once: logistic regression by L-BFGS, ridge regression and LDA by small systems.

- **Logistic** minimises ``sum of -log p(y|x) + penalty / 2 ||W||^2`` over its training examples, the bias free, as
  scikit-learn's ``LogisticRegression(C=1 / penalty)``. Coordinates are chosen by Böhning's bound on the Hessian (1/4 of
  the scatter for two classes, 1/2 for more, plus the penalty): there it is the identity, and some ten steps do. Where
  examples are told apart nearly without error, the bound is far above the Hessian: a probe that needs more steps gets
  coordinates by the Hessian where it is, for several classes by one that is above each of theirs. Along a direction the
  scores are linear, so that a line search costs no product. A probe stops where its next step would move its scores by
  less than the tolerance, and leaves the batch. A class that it is not trained on has the bias minus infinity, which it
  would have in the limit.
- **Ridge** minimises ``||y - x W - b||^2 + penalty ||W||^2``, as scikit-learn's ``Ridge``; classes are 1 and -1.
- **LDA** has Gaussian classes of one covariance, shrunk towards a multiple of the identity by the penalty, a share:
  scikit-learn's ``LinearDiscriminantAnalysis(solver="lsqr", shrinkage=penalty)``.

What the probes need of the examples is summed once for each atom: adding up is cheaper than reading.

Böhning (1992), "Multinomial logistic regression algorithm"; Nocedal & Wright (2006), "Numerical optimization", 7.2;
Hoerl & Kennard (1970); Fisher (1936); Ledoit & Wolf (2004) on shrinkage.
"""

from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from interp.methods.probes.data import Scores, Target

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
        atoms = torch.arange(problems.trains_on.shape[1], device=x.device)
        counts = (problems.atom[:, None] == atoms).sum(dim=0)
        members = problems.atom.argsort(stable=True).split(counts.tolist())
        parts = [away[:, each] for each in members]
        sums = torch.stack([part.sum(dim=1) for part in parts], dim=1)
        products = torch.stack([part.mT @ part for part in parts], dim=1)
        used = problems.trains_on.to(x.dtype)
        n = used @ counts.to(x.dtype)
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


TOLERANCE = 1e-6
"""Of a step, in scores, relative to 1 and to the scores."""
MOST_STEPS = 1000
HISTORY = 10
_RENEWED = 10
"""Steps after which those that are left get other coordinates."""
_STEEP = 0.5
_SHORTENINGS = 20
_UNSEEN = 3
"""Lengths that a GPU tries of every step, as many as a batch of probes has been seen to need."""
_STILL_WORTH = 0.8
"""The share of probes at work above which it costs less to carry the others along than to copy these."""

Coordinates = Float[Tensor, "cell problem feature column"]
PerProbe = Float[Tensor, "cell problem"]


def steps_unseen(device: torch.device) -> int:
    """Steps from one look at which probes are through to the next: a GPU that is asked is waited for."""
    return 1 if device.type == "cpu" else 10


def fit_logistic(x: Examples, target: Target, problems: Problems, *, most_steps: int = MOST_STEPS) -> LinearProbes:
    """Fit every probe at every cell; penalties are above 0, and after `most_steps` a probe stops, converged or not."""
    descent = _Descent(x, target, problems)
    for _ in range(most_steps):
        if not descent.step():
            break
    return descent.result()


@dataclass
class _Memory:
    """The last steps of every probe, how the gradient changed on them, and one over the product of the two."""

    pairs: list[tuple[Coordinates, Coordinates, PerProbe]] = field(default_factory=list)

    def add(self, step: Coordinates, change: Coordinates) -> None:
        """Remember a step; one that was none has no say."""
        product = (step * change).sum(dim=(2, 3))
        rho = torch.where(product > 0, 1 / product.clamp_min(torch.finfo(product.dtype).tiny), 0.0)
        self.pairs = [*self.pairs, (step, change, rho)][-HISTORY:]

    def take(self, kept: Int[Tensor, " problem"]) -> None:
        """Forget the other probes."""
        self.pairs = [(step[:, kept], change[:, kept], rho[:, kept]) for step, change, rho in self.pairs]

    def direction(self, gradient: Coordinates) -> Coordinates:
        """Minus the gradient times the inverse Hessian that the steps have seen: L-BFGS' two loops."""
        direction, weights = -gradient, []
        for step, change, rho in reversed(self.pairs):
            weight = (rho * (step * direction).sum(dim=(2, 3)))[..., None, None]
            weights.append(weight)
            direction = direction - weight * change
        if self.pairs:
            _, change, rho = self.pairs[-1]
            scale = rho * change.square().sum(dim=(2, 3))
            direction = direction / torch.where(scale > 0, scale, 1.0)[..., None, None]
        for (step, change, rho), weight in zip(self.pairs, reversed(weights), strict=True):
            direction = direction + (weight - (rho * (change * direction).sum(dim=(2, 3)))[..., None, None]) * step
        return direction


class _Descent:
    """The state of all probes that have not stopped.

    A probe's coordinates give its weights, the bias last, by ``basis @ coordinates``.
    """

    def __init__(self, x: Examples, target: Target, problems: Problems):
        self._x = torch.cat([x, x.new_ones(*x.shape[:2], 1)], dim=2)
        self._columns = target.n_columns
        self._target = target.indicators().to(x)[..., None]
        self._mask = problems.mask().to(x)[:, None]
        shape = (len(x), problems.n, x.shape[2] + 1, self._columns)
        self._penalty = problems.penalty.expand(shape[:2]).clone()
        bound = 0.25 if self._columns == 1 else 0.5
        moments = Moments.of(x, problems)
        self._basis, self._varies = _basis(moments, bound, self._penalty), moments.varies
        self._n, self._n_steps, self._unseen = moments.n, 0, steps_unseen(x.device)
        self._weight = x.new_zeros(shape)
        self._absent = _absent(target, problems).to(x)
        self._scores = self._absent.expand(*x.shape[:2], -1, -1)
        self._residual = self._errors(self._scores)
        self._gradient = self._gradients(self._residual)
        self._memory = _Memory()
        self._active = torch.arange(problems.n, device=x.device)
        self._stopped = torch.zeros(shape[:2], dtype=torch.bool, device=x.device)
        self._found, self._converged = x.new_zeros(shape), self._stopped.clone()

    def step(self) -> bool:
        """Take a step with every probe that needs one; whether any did."""
        if self._n_steps and self._n_steps % _RENEWED == 0:
            self._renew()
        self._n_steps += 1
        direction = self._memory.direction(self._gradient)
        moved = self._basis @ direction
        along = self._scores_of(moved)
        if self._n_steps % self._unseen == 0:
            self._stop(along)
            left = (~self._stopped.all(dim=0)).nonzero()[:, 0]
            if not len(left):
                return False
            if len(left) <= _STILL_WORTH * len(self._active):
                self._keep(left)
                direction, moved, along = direction[:, left], moved[:, left], along[..., left]
        going = (~self._stopped).to(direction)
        direction, moved = (each * going[..., None, None] for each in (direction, moved))
        along = along * going[:, None, None]
        length, scores, residual = self._search(direction, moved, along)
        step = length[..., None, None] * direction
        self._weight = self._weight + length[..., None, None] * moved
        self._scores, self._residual = scores, residual
        gradient = self._gradients(residual)
        self._memory.add(step, gradient - self._gradient)
        self._gradient = gradient
        return True

    def result(self) -> LinearProbes:
        """The weights of every probe, those of unfinished ones as they are."""
        self._found[:, self._active] = torch.where(
            self._stopped[..., None, None], self._found[:, self._active], self._weight
        )
        bias = self._found[:, :, -1] + self._absent.T
        return LinearProbes(self._found[:, :, :-1], bias, self._converged)

    def _renew(self) -> None:
        """Choose the coordinates by the Hessian where each probe is; what was remembered is in the old ones."""
        p = self._residual + self._target * self._mask
        weight = (p * (self._mask - p)).amax(dim=2)
        hessian = torch.stack([(self._x * each[..., None]).mT @ self._x for each in weight.unbind(2)], dim=1)
        there = pad(self._varies, (0, 1), value=True).to(hessian)
        hessian = hessian * there[..., :, None] * there[..., None, :]
        least = torch.finfo(hessian.dtype).eps * self._n[:, None]  # where a probe is sure of all examples
        diagonal = torch.diagonal(hessian, dim1=-2, dim2=-1)
        diagonal += pad(self._penalty[..., None].expand(self._varies.shape), (0, 1)) + least
        factor, failed = torch.linalg.cholesky_ex(hessian)
        basis = _inverse_root(factor) * there[..., None]
        self._basis = torch.where((failed == 0)[..., None, None], basis, self._basis)
        self._memory, self._gradient = _Memory(), self._gradients(self._residual)

    def _stop(self, along: Scores) -> None:
        """Write down the probes whose next step is small enough."""
        reached = (self._scores - self._absent[:, self._active]).nan_to_num(nan=0.0)  # of absent classes nothing
        size, reached = ((each.square() * self._mask).sum(dim=(1, 2)) / self._n for each in (along, reached))
        now = ~self._stopped & (size.sqrt() <= TOLERANCE * (1 + reached.sqrt()))
        kept = self._found[:, self._active]
        self._found[:, self._active] = torch.where(now[..., None, None], self._weight, kept)
        self._converged[:, self._active] |= now
        self._stopped = self._stopped | now

    def _keep(self, kept: Int[Tensor, " problem"]) -> None:
        """Leave out the other probes, which have stopped at all cells."""
        self._active = self._active[kept]
        for name in ("_stopped", "_basis", "_penalty", "_varies", "_weight", "_gradient"):
            setattr(self, name, getattr(self, name)[:, kept])
        self._mask, self._n = self._mask[..., kept], self._n[kept]
        self._scores, self._residual = self._scores[..., kept], self._residual[..., kept]
        self._memory.take(kept)

    def _search(self, direction: Coordinates, moved: Coordinates, along: Scores) -> tuple[PerProbe, Scores, Scores]:
        """How far every probe goes, and its scores and errors there."""
        start = (self._gradient * direction).sum(dim=(2, 3))
        most = _STEEP * start.abs()
        inside = self._penalty * (moved * self._weight)[:, :, :-1].sum(dim=(2, 3))
        bend = self._penalty * moved[:, :, :-1].square().sum(dim=(2, 3))
        length = torch.ones_like(start)
        for more in reversed(range(_SHORTENINGS if self._unseen == 1 else _UNSEEN)):
            scores = self._scores + length[:, None, None] * along
            residual = self._errors(scores)
            slope = (residual * along).sum(dim=(1, 2)) + inside + length * bend
            steep = slope > most
            if not more or (self._unseen == 1 and not steep.any()):
                break
            length = torch.where(steep, length * (start / (start - slope)).clamp(0.05, 0.9), length)
        return length, scores, residual

    def _scores_of(self, weight: Coordinates) -> Scores:
        by_column = weight.permute(0, 2, 3, 1)
        return (self._x @ by_column.flatten(2)).unflatten(2, by_column.shape[2:])

    def _errors(self, scores: Scores) -> Scores:
        """Probability less target, 0 where an example is not trained on."""
        p = scores.sigmoid() if self._columns == 1 else scores.softmax(2)
        return (p - self._target) * self._mask

    def _gradients(self, residual: Scores) -> Coordinates:
        sums = (self._x.mT @ residual.flatten(2)).unflatten(2, residual.shape[2:]).permute(0, 3, 1, 2)
        penalised = pad(self._weight[:, :, :-1], (0, 0, 0, 1))  # all but the bias
        return self._basis.mT @ (sums + self._penalty[..., None, None] * penalised)


def _absent(target: Target, problems: Problems) -> Float[Tensor, "column problem"]:
    """0; infinite where a probe is trained on no example of the column's class, or of no other."""
    there = (problems.mask().T @ target.members() > 0).T
    if target.n_columns > 1:
        return torch.where(there, 0.0, -torch.inf).double()
    return torch.where(there[1:], 0.0, -torch.inf).double() + torch.where(there[:1], 0.0, torch.inf)


def _basis(moments: Moments, bound: float, penalty: PerProbe) -> Float[Tensor, "cell problem feature feature"]:
    """From coordinates in which the bound is the identity to weights, the bias last."""
    n_features = moments.mean.shape[-1]
    eye = torch.eye(n_features, dtype=moments.mean.dtype, device=moments.mean.device)
    hessian = bound * moments.scatter + penalty[..., None, None] * eye
    inverse = _inverse_root(torch.linalg.cholesky_ex(hessian).L) * moments.varies[..., None]
    basis = hessian.new_zeros(*hessian.shape[:2], n_features + 1, n_features + 1)
    basis[..., :-1, :-1] = inverse
    basis[..., -1, :-1] = -(moments.mean[..., None, :] @ inverse)[..., 0, :]
    basis[..., -1, -1] = (bound * moments.n).rsqrt()
    return basis


def _inverse_root(factor: Float[Tensor, "cell problem n n"]) -> Float[Tensor, "cell problem n n"]:
    """What times its transpose is the inverse of a matrix, by the matrix' Cholesky factor."""
    eye = torch.eye(factor.shape[-1], dtype=factor.dtype, device=factor.device)
    return torch.linalg.solve_triangular(factor, eye, upper=False).mT


def fit_ridge(x: Examples, target: Target, problems: Problems) -> LinearProbes:
    """Fit every probe at every cell; the penalty multiplies the squared norm of the weights."""
    moments, cross, mean_y = _with_labels(x, target.signs().to(x), problems)
    eye = torch.eye(x.shape[2], dtype=x.dtype, device=x.device)
    weight = _solve(moments.scatter + problems.penalty[..., None, None] * eye, cross) * moments.varies[..., None]
    bias = mean_y - (moments.mean[..., None, :] @ weight)[..., 0, :]
    return _closed(weight, bias)


def fit_lda(x: Examples, target: Target, problems: Problems) -> LinearProbes:
    """Fit every probe at every cell; the penalty is the share of shrinkage."""
    moments, cross, shares = _with_labels(x, target.members().to(x), problems)
    counts = (shares * moments.n[:, None]).round()
    away = cross.mT / counts[..., None].clamp_min(1)  # class means, from the mean of all
    within = (moments.scatter - (away * counts[..., None]).mT @ away) / moments.n[:, None, None]
    trace = torch.diagonal(within, dim1=-2, dim2=-1).mean(-1)
    eye = torch.eye(x.shape[2], dtype=x.dtype, device=x.device)
    shrinkage = problems.penalty[..., None, None]
    covariance = (1 - shrinkage) * within + shrinkage * trace[..., None, None] * eye
    means = moments.mean[..., None, :] + away
    weight = _solve(covariance, means.mT) * moments.varies[..., None]
    bias = (counts / moments.n[:, None]).log() - 0.5 * (means.mT * weight).sum(dim=-2)
    if target.n_columns == 1:
        weight, bias = weight[..., 1:] - weight[..., :1], bias[..., 1:] - bias[..., :1]
    return _closed(weight, bias)


def _with_labels(
    x: Examples, y: Float[Tensor, "example column"], problems: Problems
) -> tuple[Moments, Float[Tensor, "cell problem feature column"], Float[Tensor, "cell problem column"]]:
    """The moments of x, the sums of products of deviations of x and y, and the means of y."""
    both = Moments.of(torch.cat([x, y.expand(len(x), -1, -1)], dim=2), problems)
    own = slice(None, x.shape[2])
    of_y = slice(x.shape[2], None)
    moments = Moments(both.n, both.mean[..., own], both.scatter[..., own, own])
    return moments, both.scatter[..., own, of_y], both.mean[..., of_y]


def _solve(
    matrix: Float[Tensor, "cell problem feature feature"], right: Float[Tensor, "cell problem feature column"]
) -> Float[Tensor, "cell problem feature column"]:
    """``matrix^-1 right``; of a singular matrix the solution of least norm."""
    factor, failed = torch.linalg.cholesky_ex(matrix)
    if not failed.any():
        return torch.cholesky_solve(right, factor)
    return torch.linalg.pinv(matrix, hermitian=True) @ right


def _closed(
    weight: Float[Tensor, "cell problem feature column"], bias: Float[Tensor, "cell problem column"]
) -> LinearProbes:
    converged = torch.ones(weight.shape[:2], dtype=torch.bool, device=weight.device)
    return LinearProbes(weight, bias, converged)
