"""Training a tuned lens (Belrose et al. 2023): affine translators that bring each depth near to the last.

1. Every translator starts as the identity: before the first step, the lens is the logit lens.
2. A step runs some rows of tokens, and lowers at every depth ``KL(p || q)``, of the model's own distribution ``p`` from
   what is read there, ``q``: the mean over the tokens. Depths are independent of each other; the model stays as it is.
3. Adam (Kingma & Ba 2015), its learning rate falling to zero along a line.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from interp.errors import InputError
from interp.model.devices import documented, ordinary_modes
from interp.model.transformer import HookedTransformer
from interp.model.weights import config_hash
from interp.residual.boundaries import boundary_streams, kl_divergence, log_probabilities, read_out
from interp.residual.tuned_lens import TunedLens, translated
from interp.shapes import Residual, Tokens

DEFAULT_LR = 1e-3


class TunedLensFitter:
    """Trains a tuned lens, some rows at a time: ``fitter.update(rows)``, then ``fitter.lens``.

    Attributes:
        losses: The KL of each step before it, in nats, one number a depth.
    """

    @ordinary_modes()
    def __init__(self, model: HookedTransformer):
        self._model = model
        width, dtype = model.config.d_model, torch.promote_types(model.W_E.dtype, torch.float32)
        zeros = model.W_E.new_zeros(model.config.n_layers, 1 + width, width, dtype=dtype)
        self._b, self._W = zeros[:, 0].clone().requires_grad_(), zeros[:, 1:].clone().requires_grad_()
        self._optimizer = torch.optim.Adam([self._W, self._b])
        self.losses: list[list[float]] = []

    @property
    def lens(self) -> TunedLens:
        """The lens as it is now; later updates leave it alone."""
        hashes = self._model.hash, config_hash(self._model)
        return TunedLens(self._W.detach().clone(), self._b.detach().clone(), *hashes)

    @ordinary_modes()
    def update(self, rows: Tokens, *, lr: float = DEFAULT_LR) -> "TunedLensFitter":
        """Take one step on rows of token ids without padding.

        Args:
            rows: Token ids, special tokens included where the model was trained so.
            lr: The step's learning rate.

        Raises:
            InputError: The rows do not fit the model, or the loss is no finite number.
        """
        tokens, mask = self._model.as_tokens(rows)
        with torch.no_grad():
            streams = boundary_streams(self._model, tokens, mask)
            final = log_probabilities(read_out(self._model, streams[-1]))
        found = [self._gradients(x, depth, final) for depth, x in enumerate(streams[:-1])]
        losses, of_W, of_b = zip(*found, strict=True)
        self._W.grad, self._b.grad = torch.stack(of_W), torch.stack(of_b)
        self._optimizer.param_groups[0]["lr"] = lr
        self._optimizer.step()
        self.losses.append(list(losses))
        return self

    def _gradients(
        self, x: Residual, depth: int, final: Float[Tensor, "batch pos d_vocab"]
    ) -> tuple[float, Float[Tensor, "d_model d_model"], Float[Tensor, " d_model"]]:
        """One depth's loss and its gradients. One depth's logits are held at a time."""
        W, b = (each[depth].detach().requires_grad_() for each in (self._W, self._b))
        read = read_out(self._model, translated(x, W, b))
        loss = kl_divergence(final, log_probabilities(read)).mean()
        # Of these two alone: the model's own parameters get no gradients.
        of_W, of_b = torch.autograd.grad(loss, [W, b])
        return loss.item(), of_W, of_b


@documented
def train_tuned_lens(
    model: HookedTransformer,
    rows: Int[Tensor, "row pos"],
    *,
    steps: int = 250,
    batch_size: int = 16,
    lr: float = DEFAULT_LR,
    seed: int = 0,
) -> TunedLens:
    """Train a tuned lens on rows of token ids; judge it on others (``compare_lenses``).

    Args:
        model: The model, which stays as it is.
        rows: Token ids without padding, special tokens included where the model was trained so.
        steps: Updates.
        batch_size: Rows of an update, drawn without replacement.
        lr: The first update's learning rate; it falls to zero along a line.
        seed: Of the draws.

    Raises:
        InputError: The rows do not fit the model, are fewer than one update takes, or a number is out of range.
    """
    for name, value in (("steps", steps), ("batch_size", batch_size)):
        if value < 1:
            raise InputError(f"{name}: expected at least 1, got {value}")
    if len(rows) < batch_size:
        raise InputError(f"rows: expected at least batch_size={batch_size}, got {len(rows)}; give more rows")
    generator, fitter = torch.Generator().manual_seed(seed), TunedLensFitter(model)
    for step in range(steps):
        drawn = torch.randperm(len(rows), generator=generator)[:batch_size].to(rows.device)
        fitter.update(rows[drawn], lr=lr * (1 - step / steps))
    return fitter.lens
