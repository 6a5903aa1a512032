"""The tuned lens (Belrose et al. 2023): the logit lens, with each stream translated into the terms of the last layer.

The logit lens reads every stream with an unembedding that was made for the last one. A tuned lens first translates: at
each depth ``l`` an affine map ``x + x W_l + b_l``. With ``W = 0`` and ``b = 0``, where training starts, it is the logit
lens.

A training step runs some rows of tokens, and lowers at every depth ``KL(p || q)``, of the model's own distribution
``p`` from what is read there, ``q``, averaged over the tokens. Depths are independent of each other. The optimizer is
Adam (Kingma & Ba 2015), whose learning rate falls linearly to zero.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pandas as pd
import torch
from jaxtyping import Float, Int
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from interp.errors import InputError, LoadError, OutputError
from interp.model.devices import documented, ordinary_modes
from interp.model.loading.tensors import check_weights, read_safetensors
from interp.model.transformer import HookedTransformer
from interp.model.weights import config_hash
from interp.residual.logit_lens import PLACES, logit_lens
from interp.residual.readout import boundary_streams, kl_divergence, log_probabilities, read_out
from interp.result import Result
from interp.shapes import Residual, Tokens

FORMAT = "2"


@dataclass(frozen=True, repr=False)
class TunedLens:
    """A translator for the stream at each depth but the last: ``x + x W + b``.

    It translates the streams of one model only, which has the hashes of weights and config that it was trained on.

    Attributes:
        W: ``[layer d_model d_model]``.
        b: ``[layer d_model]``.
        model_hash: Of the model's weights.
        config_hash: Of its config.
    """

    W: Float[Tensor, "layer d_model d_model"]
    b: Float[Tensor, "layer d_model"]
    model_hash: str
    config_hash: str | None

    def __repr__(self) -> str:
        return f"TunedLens({len(self.W)} depths, d_model {self.W.shape[-1]}, of model {self.model_hash[:12]})"

    def __call__(self, x: Residual, depth: int) -> Residual:
        """The stream at `depth`, translated, in its own dtype; raises InputError for a depth without translator."""
        if not 0 <= depth < len(self.W):
            raise InputError(f"depth: expected 0 to {len(self.W) - 1}, got {depth}; the last stream is not translated")
        return translated(x, self.W[depth], self.b[depth])

    def save(self, path: str | Path) -> Path:
        """Write the lens to one safetensors file, with the hash of its model.

        Args:
            path: Of the file.

        Returns:
            The path.

        Raises:
            OutputError: It cannot be written.
        """
        tensors = {name: tensor.cpu().contiguous() for name, tensor in (("W", self.W), ("b", self.b))}
        hashes = {"model_hash": self.model_hash, "config_hash": str(self.config_hash)}
        try:
            save_file(tensors, path, metadata={"format": FORMAT, **hashes})
        except (OSError, SafetensorError) as error:
            raise OutputError(f"{path}: no lens can be written here ({error}); name another file") from error
        return Path(path)

    @classmethod
    @ordinary_modes()
    def load(cls, path: str | Path, model: HookedTransformer) -> "TunedLens":
        """The lens that ``save`` wrote.

        Args:
            path: Of the file.
            model: The model that it was trained on.

        Returns:
            The lens, on the model's device.

        Raises:
            LoadError: The file is missing, damaged or no lens, or a lens of other weights or of another config.
        """
        state = read_safetensors(Path(path))
        with safe_open(path, "pt") as file:
            kept = file.metadata() or {}
        if kept.get("format") != FORMAT:
            raise LoadError(f"{path}: expected a tuned lens in format {FORMAT}, got format {kept.get('format')!r}")
        depths, width = model.config.n_layers, model.config.d_model
        check_weights(state, [("W", (depths, width, width)), ("b", (depths, width))], str(path))
        weights, config = model.hash, config_hash(model)
        for what, mine in (("model_hash", weights), ("config_hash", config)):
            if kept.get(what) != mine:
                raise LoadError(
                    f"{path}: a lens of a model with {what} {kept.get(what)}, and this one's is {mine}; "
                    "give the model that it was trained on, or train one for this model"
                )
        return cls(state["W"].to(model.W_E.device), state["b"].to(model.W_E.device), weights, config)


def translated(x: Residual, W: Float[Tensor, "d_model d_model"], b: Float[Tensor, " d_model"]) -> Residual:
    """``x + x W + b``, computed on the stream's device in the translator's dtype, and added in the stream's."""
    return x + (x.to(W.dtype) @ W.to(x.device) + b.to(x.device)).to(x.dtype)


@dataclass(frozen=True, eq=False, repr=False)
class LensComparison(Result):
    """How far each depth is from the model's own distribution, by the logit lens and by a tuned one.

    Attributes:
        examples: One row a depth and token: ``depth``, ``example``, ``pos``, ``kl_logit_lens`` and ``kl_tuned_lens``
            (nats). The last depth is the model's own output, and 0 for both.
        provenance: How it was made.
    """

    shown_by: ClassVar[str] = "results.stream"

    def summary(self) -> pd.DataFrame:
        """One row a depth: ``depth``, the means of ``kl_logit_lens`` and ``kl_tuned_lens``, ``n`` (tokens)."""
        groups = self.examples.groupby("depth")
        return groups[["kl_logit_lens", "kl_tuned_lens"]].mean().assign(n=groups.size()).reset_index()


@documented
def compare_lenses(
    model: HookedTransformer, prompts: str | Sequence[str] | Int[Tensor, "batch pos"], lens: TunedLens
) -> LensComparison:
    """Compare how far the logit lens and a tuned one are from the model's own distribution, at each depth.

    Args:
        model: The model that `lens` was trained on.
        prompts: Texts or token ids that it was not trained on.
        lens: The tuned lens.

    Returns:
        One row per depth, prompt and token in ``examples``, with both divergences ``KL(p || q)`` in nats.

    Raises:
        InputError: The prompts do not fit the model, or the lens is another model's.

    Examples:
        >>> from interp.residual.tuned_lens import compare_lenses, train_tuned_lens
        >>> model = interp.load_model()
        >>> rows = model.to_tokens(["The keys to the cabinet"] * 16)
        >>> comparison = compare_lenses(model, "The keys near the cabinet", train_tuned_lens(model, rows, steps=2))
        >>> sorted({"kl_logit_lens", "kl_tuned_lens"} & set(comparison.examples))
        ['kl_logit_lens', 'kl_tuned_lens']
    """
    if (lens.model_hash, lens.config_hash) != (model.hash, config_hash(model)):
        raise InputError(
            f"lens: expected one that was trained on this model ({model.hash[:12]}), "
            f"got one of {lens.model_hash[:12]}, or of the same weights with another config"
        )
    plain, tuned = (logit_lens(model, prompts, translate=each, top=1) for each in (None, lens))
    both = plain.examples[PLACES].assign(kl_logit_lens=plain.examples["kl"], kl_tuned_lens=tuned.examples["kl"])
    return LensComparison(both, {name: each for name, each in plain.provenance.items() if name not in ("lens", "top")})


DEFAULT_LR = 1e-3


class TunedLensFitter:
    """Trains a tuned lens, some rows at a time: ``fitter.update(rows)``, then ``fitter.lens``.

    ``losses`` has the KL of each step before it, in nats, one number a depth.
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
        """Take one step, of learning rate `lr`, on rows of token ids without padding.

        Special tokens are included where the model was trained so. Raises InputError where the rows do not fit the
        model, or the loss is no finite number.
        """
        tokens, mask = self._model.as_tokens(rows)
        with torch.no_grad():
            streams = boundary_streams(self._model, tokens, mask)
            final = log_probabilities(read_out(self._model, streams[-1]))
        self._optimizer.zero_grad()
        losses = []
        for depth, x in enumerate(streams[:-1]):  # one depth's logits are held at a time
            read = read_out(self._model, translated(x, self._W[depth], self._b[depth]))
            loss = kl_divergence(final, log_probabilities(read)).mean()
            loss.backward(inputs=[self._W, self._b])  # the model's own parameters get no gradients
            losses.append(loss.item())
        self._optimizer.param_groups[0]["lr"] = lr
        self._optimizer.step()
        self.losses.append(losses)
        return self


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

    Source: Belrose et al. (2023), "Eliciting latent predictions from transformers with the tuned lens".

    Args:
        model: The model, which stays as it is.
        rows: Token ids ``[row pos]`` without padding, special tokens included where the model was trained so.
        steps: Updates.
        batch_size: Rows of an update, drawn without replacement.
        lr: The first update's learning rate; it falls to zero along a line.
        seed: Of the draws.

    Returns:
        The lens, for ``compare_lenses`` or ``logit_lens(model, prompts, translate=lens)``.

    Raises:
        InputError: The rows do not fit the model, are fewer than one update takes, or a number is out of range.

    Examples:
        >>> from interp.residual.tuned_lens import train_tuned_lens
        >>> model = interp.load_model()
        >>> tuple(train_tuned_lens(model, model.to_tokens(["The keys to the cabinet"] * 16), steps=2).W.shape)
        (3, 128, 128)
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
