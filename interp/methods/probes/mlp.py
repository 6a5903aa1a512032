"""A probe with one hidden layer of ReLUs, many at once.

1. Features are centred and divided by their spread (one number a probe), as the probe's training examples have them;
   those that do not vary there are 0.
2. Adam on batches that are the same for all probes; an example that a probe is not trained on has the weight 0.
3. A tenth of the training examples decides when a probe stops: when their loss has not fallen for some epochs. It then
   leaves the batch, with the weights of its best epoch.

Every probe starts from the same weights and sees the same order, so that it does not matter which others are fitted
with it. Kingma & Ba (2015), "Adam"; Prechelt (1998), "Early stopping - but when?".
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from interp.methods.probes.data import Scores, Target
from interp.methods.probes.linear import Examples, Moments, Problems, steps_unseen

HIDDEN = 64
MOST_EPOCHS = 200
PATIENCE = 10
BATCH = 256
_RATE, _BETAS, _EPSILON = 1e-3, (0.9, 0.999), 1e-8

Weights = tuple[Tensor, Tensor, Tensor, Tensor]


@dataclass(frozen=True)
class MLPProbes:
    """What was fitted: weights and biases of the hidden layer ``[cell problem feature hidden]``, and of the scores.

    Features are centred by `mean` and divided by `spread`, infinite for one that does not vary in what a probe trains
    on. `n_epochs` are those of the probe that took most; on a GPU some more may be.
    """

    weights: Weights
    mean: Float[Tensor, "cell problem feature"]
    spread: Float[Tensor, "cell problem feature"]
    converged: Bool[Tensor, "cell problem"]
    n_epochs: int

    def scores(self, x: Examples) -> Scores:
        """Of every example, by every probe of its cell."""
        rows = x.to(self.mean.dtype).split(BATCH, dim=1)
        parts = [_forward(self.weights, _standardised(part, self.mean, self.spread)) for part in rows]
        return torch.cat(parts, dim=2).permute(0, 2, 3, 1).to(x.dtype)


def fit_mlp(
    x: Examples,
    target: Target,
    problems: Problems,
    *,
    hidden: int = HIDDEN,
    most_epochs: int = MOST_EPOCHS,
    seed: int = 0,
) -> MLPProbes:
    """Fit every probe at every cell; the penalty is the weight decay, per training example.

    The seed is that of the first weights, the order of the examples and what decides when to stop.
    """
    training = _Training(x, target, problems, hidden, seed)
    for _ in range(most_epochs):
        if not training.epoch():
            break
    return training.result()


class _Training:
    """The state of all probes that have not stopped."""

    def __init__(self, x: Examples, target: Target, problems: Problems, hidden: int, seed: int):
        moments = Moments.of(x, problems)
        self._x, self._target = x.float(), target  # the optimiser's noise is larger than the rounding
        x = self._x
        self._generator = torch.Generator().manual_seed(seed)
        self._mean = moments.mean.float()
        self._spread = torch.where(moments.varies, moments.variance.sqrt()[..., None], torch.inf).float()
        decides = (torch.rand(x.shape[1], generator=self._generator) < 0.1).to(x.device)
        mask = problems.mask().to(x).T
        self._trains, self._decides = mask * ~decides, mask * decides
        few = self._decides.sum(dim=1, keepdim=True) == 0  # of so few examples, those that are trained on decide
        self._decides = torch.where(few, mask, self._decides)
        self._penalty = problems.penalty.to(x).expand(len(x), -1) / mask.sum(dim=1)
        self._weights = self._first(hidden, problems.n)
        self._moments = [(torch.zeros_like(each), torch.zeros_like(each)) for each in self._weights]
        self._steps, self._n_epochs = 0, 0
        self._orders: list[Tensor] = []
        self._active = torch.arange(problems.n, device=x.device)
        self._best = [each.clone() for each in self._weights]
        self._best_loss = x.new_full((len(x), problems.n), torch.inf)
        self._waited = torch.zeros_like(self._best_loss)
        self._converged = torch.zeros_like(self._best_loss, dtype=torch.bool)

    def epoch(self) -> bool:
        """One pass over the examples; whether any probe is left afterwards."""
        if not self._orders:
            n, unseen = self._x.shape[1], range(steps_unseen(self._x.device))
            orders = torch.stack([torch.randperm(n, generator=self._generator) for _ in unseen])
            self._orders = list(orders.to(self._x.device))
        for batch in self._orders.pop(0).split(BATCH):
            self._step(batch)
        self._remember()
        self._n_epochs += 1
        if not self._orders:
            self._keep()
        return len(self._active) > 0

    def result(self) -> MLPProbes:
        """The weights of every probe's best epoch."""
        w1, b1, w2, b2 = self._best
        return MLPProbes((w1, b1, w2, b2), self._mean, self._spread, self._converged, self._n_epochs)

    def _first(self, hidden: int, n: int) -> list[Tensor]:
        """Glorot & Bengio's (2010) uniform weights, the same for every probe."""
        sizes = ((self._x.shape[2], hidden), (hidden, self._target.n_columns))
        found = []
        for inward, outward in sizes:
            bound = (6 / (inward + outward)) ** 0.5
            one = (2 * torch.rand(inward, outward, generator=self._generator, dtype=self._x.dtype) - 1) * bound
            wide = one.to(self._x.device).expand(len(self._x), n, inward, outward).clone()
            found += [wide, wide.new_zeros(len(self._x), n, 1, outward)]
        return found

    def _standard(self, chosen: Tensor) -> Float[Tensor, "cell problem example feature"]:
        return _standardised(self._x[:, chosen], self._mean[:, self._active], self._spread[:, self._active])

    def _step(self, batch: Tensor) -> None:
        weight = self._trains[self._active][:, batch]
        with torch.enable_grad():
            parameters = [each.detach().requires_grad_() for each in self._weights]
            scores = _forward(tuple(parameters), self._standard(batch))
            error = (self._losses(scores, batch) * weight).sum(dim=2) / weight.sum(dim=1).clamp_min(1)
            decay = sum((each.square().sum(dim=(2, 3)) for each in parameters[::2]), torch.zeros_like(error))
            # A probe that nothing of the batch is for has no error there, and must not shrink either.
            shrinks = self._penalty[:, self._active] * (weight.sum(dim=1) > 0)
            gradients = torch.autograd.grad((error + shrinks / 2 * decay).sum(), parameters)
        self._steps += 1
        self._adam(gradients)

    def _adam(self, gradients: tuple[Tensor, ...]) -> None:
        first, second = _BETAS
        for number, gradient in enumerate(gradients):
            mean, square = self._moments[number]
            mean.mul_(first).add_(gradient, alpha=1 - first)
            square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
            unbiased = (square / (1 - second**self._steps)).sqrt_().add_(_EPSILON)
            self._weights[number] = self._weights[number] - _RATE / (1 - first**self._steps) * mean / unbiased

    def _remember(self) -> None:
        """Keep what is best so far, until a probe has waited long enough."""
        total = torch.zeros_like(self._waited[:, self._active])
        for batch in torch.arange(self._x.shape[1], device=self._x.device).split(BATCH):
            with torch.no_grad():
                scores = _forward(tuple(self._weights), self._standard(batch))
                total += (self._losses(scores, batch) * self._decides[self._active][:, batch]).sum(dim=2)
        better = total < self._best_loss[:, self._active] - 1e-4 * self._decides[self._active].sum(dim=1)
        waited = torch.where(better, 0, self._waited[:, self._active] + 1)
        running = ~self._converged[:, self._active]
        self._best_loss[:, self._active] = torch.where(better & running, total, self._best_loss[:, self._active])
        for best, weight in zip(self._best, self._weights, strict=True):
            best[:, self._active] = torch.where((better & running)[..., None, None], weight, best[:, self._active])
        self._waited[:, self._active] = waited
        self._converged[:, self._active] |= waited >= PATIENCE

    def _keep(self) -> None:
        """Leave out the probes that are through at all cells."""
        kept = (~self._converged[:, self._active].all(dim=0)).nonzero()[:, 0]
        if len(kept) < len(self._active):
            self._active = self._active[kept]
            self._weights = [each[:, kept] for each in self._weights]
            self._moments = [(mean[:, kept], square[:, kept]) for mean, square in self._moments]

    def _losses(
        self, scores: Float[Tensor, "cell problem example column"], chosen: Tensor
    ) -> Float[Tensor, "cell problem example"]:
        y = self._target.y[chosen]
        if self._target.n_columns == 1:
            return torch.nn.functional.softplus((1.0 - 2.0 * y) * scores[..., 0])
        own = y[None, None, :, None].expand(*scores.shape[:3], 1)
        return scores.logsumexp(dim=3) - scores.gather(3, own)[..., 0]


def _standardised(
    x: Examples, mean: Float[Tensor, "cell problem feature"], spread: Float[Tensor, "cell problem feature"]
) -> Float[Tensor, "cell problem example feature"]:
    return (x[:, None] - mean[:, :, None]) / spread[:, :, None]


def _forward(
    weights: Weights | tuple[Tensor, ...], x: Float[Tensor, "cell problem example feature"]
) -> Float[Tensor, "cell problem example column"]:
    hidden_weight, hidden_bias, weight, bias = weights
    return (x @ hidden_weight + hidden_bias).relu() @ weight + bias
