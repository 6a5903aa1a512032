"""Which kinds of probe are there, and what does each call wrong? One name for each.

=============  ==========================================  ==================  ====================================
kind           what it is                                  what it minimises   strength of its penalty
=============  ==========================================  ==================  ====================================
``logistic``   multinomial logistic regression, L2         log loss            share of the features' mean variance
``ridge``      least squares, L2; of classes as 1 and -1   squared error       the same
``lda``        linear discriminant analysis                (closed form)       share of shrinkage, from 0 to 1
``mlp``        one hidden layer of ReLUs                   log loss            weight decay
=============  ==========================================  ==================  ====================================

A strength has no unit, so that the same ones serve heads that write much and heads that write little.
"""

from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from interp.methods.probes.closed_form import fit_lda, fit_ridge
from interp.methods.probes.logistic import fit_logistic
from interp.methods.probes.mlp import fit_mlp
from interp.methods.probes.problems import ROUNDING, Examples, Problems
from interp.methods.probes.targets import Scores, Target

Kind = Literal["logistic", "ridge", "lda", "mlp"]


@runtime_checkable
class Probes(Protocol):
    """Fitted probes."""

    @property
    def converged(self) -> Bool[Tensor, "cell problem"]:
        """Whether each came to its optimum."""
        ...

    def scores(self, x: Examples) -> Scores:
        """Of every example, by every probe of its cell."""
        ...


def fit(kind: Kind, x: Examples, target: Target, trains_on: Problems) -> Probes:
    """Fit probes whose penalties are given as strengths."""
    problems = Problems(trains_on.atom, trains_on.trains_on, _penalties(kind, x, trains_on))
    if kind == "logistic":
        return fit_logistic(x, target, problems)
    if kind == "ridge":
        return fit_ridge(x, target, problems)
    return fit_lda(x, target, problems) if kind == "lda" else fit_mlp(x, target, problems)


def losses(
    kind: Kind, target: Target, scores: Scores, n_trained: Float[Tensor, " problem"]
) -> Float[Tensor, "cell example problem"]:
    """What each probe is to make small on examples that it was not trained on."""
    if kind == "ridge":
        return target.squared_error(scores)
    return target.log_loss(scores, n_trained)


def problems_of(
    atom: Int[Tensor, " example"], trains_on: Bool[Tensor, "mask atom"], strengths: Sequence[float]
) -> Problems:
    """Every training set with every strength; those of a set stand together."""
    n = len(strengths)
    penalty = torch.tensor(list(strengths), dtype=torch.float64, device=atom.device).repeat(len(trains_on))
    return Problems(atom, trains_on.repeat_interleave(n, dim=0), penalty[None])


def _penalties(kind: Kind, x: Examples, problems: Problems) -> Float[Tensor, "#cell problem"]:
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
