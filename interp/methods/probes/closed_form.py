"""Ridge regression and linear discriminant analysis, thousands of probes at once: sums by atom, then small systems.

- **Ridge** minimises ``||y - x W - b||^2 + penalty ||W||^2``, as scikit-learn's ``Ridge(alpha=penalty)``; classes are 1
  and -1, as in ``RidgeClassifier``.
- **LDA** has Gaussian classes of one covariance, shrunk towards a multiple of the identity by the penalty, a share from
  0 to 1: scikit-learn's ``LinearDiscriminantAnalysis(solver="lsqr", shrinkage=penalty)``.

Hoerl & Kennard (1970); Fisher (1936); Ledoit & Wolf (2004) on shrinkage.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from interp.methods.probes.problems import Examples, LinearProbes, Moments, Problems
from interp.methods.probes.targets import Target


def fit_ridge(x: Examples, target: Target, problems: Problems) -> LinearProbes:
    """Fit every probe at every cell; the penalty multiplies the squared norm of the weights."""
    moments, y = Moments.of(x, problems), target.signs().to(x)
    cross, mean_y = _cross_moments(x, y, problems, moments)
    eye = torch.eye(x.shape[2], dtype=x.dtype, device=x.device)
    weight = _solve(moments.scatter + problems.penalty[..., None, None] * eye, cross) * moments.varies[..., None]
    bias = mean_y - (moments.mean[..., None, :] @ weight)[..., 0, :]
    return _closed(weight, bias)


def fit_lda(x: Examples, target: Target, problems: Problems) -> LinearProbes:
    """Fit every probe at every cell; the penalty is the share of shrinkage."""
    moments = Moments.of(x, problems)
    cross, shares = _cross_moments(x, target.members().to(x), problems, moments)
    counts = shares * moments.n[:, None]
    away = cross.mT / counts[..., None].clamp_min(1)  # class means, from the mean of all
    within = (moments.scatter - (away * counts[..., None]).mT @ away) / moments.n[:, None, None]
    trace = torch.diagonal(within, dim1=-2, dim2=-1).mean(-1)
    eye = torch.eye(x.shape[2], dtype=x.dtype, device=x.device)
    shrinkage = problems.penalty[..., None, None]
    covariance = (1 - shrinkage) * within + shrinkage * trace[..., None, None] * eye
    means = moments.mean[..., None, :] + away
    weight = _solve(covariance, means.mT) * moments.varies[..., None]
    bias = shares.log() - 0.5 * (means.mT * weight).sum(dim=-2)
    if target.n_columns == 1:
        weight, bias = weight[..., 1:] - weight[..., :1], bias[..., 1:] - bias[..., :1]
    return _closed(weight, bias)


def _cross_moments(
    x: Examples, y: Float[Tensor, "example column"], problems: Problems, moments: Moments
) -> tuple[Float[Tensor, "cell problem feature column"], Float[Tensor, "problem column"]]:
    """Sums of products of deviations of x and y, and the means of y."""
    centre = x.mean(dim=1, keepdim=True)
    atoms = range(problems.trains_on.shape[1])
    members = [(problems.atom == each).nonzero()[:, 0] for each in atoms]
    products = torch.stack([(x[:, each] - centre).mT @ y[each] for each in members], dim=1)
    sums = torch.stack([y[each].sum(dim=0) for each in members])
    used = problems.trains_on.to(x.dtype)
    mean_y = (used @ sums) / moments.n[:, None]
    cross = (used @ products.flatten(2)).unflatten(2, products.shape[2:])
    away = moments.mean - centre
    return cross - moments.n[:, None, None] * away[..., None] * mean_y[:, None], mean_y


def _solve(
    matrix: Float[Tensor, "cell problem feature feature"], right: Float[Tensor, "cell problem feature column"]
) -> Float[Tensor, "cell problem feature column"]:
    """``matrix^-1 right``; of a singular matrix the solution of least norm."""
    factor, failed = torch.linalg.cholesky_ex(matrix)
    if not failed.any():
        return torch.cholesky_solve(right, factor)
    return torch.linalg.pinv(matrix, hermitian=True) @ right


def _closed(
    weight: Float[Tensor, "cell problem feature column"], bias: Float[Tensor, "*cell problem column"]
) -> LinearProbes:
    converged = torch.ones(weight.shape[:2], dtype=torch.bool, device=weight.device)
    return LinearProbes(weight, bias.expand(len(weight), *bias.shape[-2:]), converged)
