"""Training a transformer from a stream of documents: Muon on the block matrices, AdamW on the rest.

1. Documents are packed whole into rows of ``n_ctx`` tokens; a row starts with BOS, as every prompt does.
2. Block matrices step with Muon (Jordan et al. 2024); ``torch.optim.Muon`` takes matrices only, so a
   per-head weight ``[head d_model d_head]`` is stepped as its ``[d_model head * d_head]`` view.
3. Everything else steps with AdamW (Loshchilov & Hutter 2019).
4. The learning rate warms up linearly and falls to zero along a cosine; gradients are clipped.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import torch
from jaxtyping import Float
from torch import Tensor, nn

from interp.errors import ConfigError, InputError
from interp.model.transformer import HookedTransformer

CLIP = 1.0


@dataclass(frozen=True)
class TrainingConfig:
    """How to train.

    Attributes:
        steps: Optimiser steps.
        batch_size: Rows of ``n_ctx`` tokens a step.
        muon_lr: Muon's peak learning rate.
        adamw_lr: AdamW's peak learning rate.
        weight_decay: Of both optimisers, decoupled.
        warmup_steps: Steps until the peak.
        log_every: Steps between calls of the progress callback.

    Raises:
        ConfigError: A value is out of range.
    """

    steps: int
    batch_size: int = 16
    muon_lr: float = 0.02
    adamw_lr: float = 1.5e-3
    weight_decay: float = 0.1
    warmup_steps: int = 150
    log_every: int = 50

    def __post_init__(self):
        for name in ("steps", "batch_size", "log_every"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}: expected at least 1, got {getattr(self, name)}")
        if self.warmup_steps < 0:
            raise ConfigError(f"warmup_steps: expected 0 or more, got {self.warmup_steps}")
        for name in ("muon_lr", "adamw_lr", "weight_decay"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ConfigError(f"{name}: expected a finite number of at least 0, got {getattr(self, name)}")


def packed_rows(documents: Iterable[list[int]], *, bos: int, n_ctx: int) -> Iterator[list[int]]:
    """Rows of exactly `n_ctx` ids: documents, each after a BOS, the last one cut where the row ends."""
    row: list[int] = []
    for document in documents:
        row += [bos, *document]
        if len(row) >= n_ctx:
            yield row[:n_ctx]
            row = []


def train(
    model: HookedTransformer,
    rows: Iterable[list[int]],
    config: TrainingConfig,
    *,
    progress: Callable[[int, float], None] | None = None,
) -> list[float]:
    """Train `model` in place on token rows and return the loss of every step, in nats a token.

    Args:
        model: Left in evaluation mode.
        rows: Rows of ``n_ctx`` ids, as many as the steps need; an endless stream, for example.
        config: How to train.
        progress: Called every ``log_every`` steps with the step and the mean loss since the last call.

    Raises:
        InputError: There are fewer rows than the steps need.
    """
    optimizers = make_optimizers(model, config)
    losses: list[float] = []
    stream = iter(rows)
    model.train()
    try:
        for step in range(config.steps):
            batch = list(islice(stream, config.batch_size))
            if len(batch) < config.batch_size:
                raise InputError(
                    f"the rows ended in step {step + 1} of {config.steps}; give more of them, or fewer steps"
                )
            losses.append(_step(model, batch, optimizers, learning_rate_scale(step, config)))
            if progress is not None and (step + 1) % config.log_every == 0:
                progress(step + 1, sum(losses[-config.log_every :]) / config.log_every)
    finally:
        model.eval()
    return losses


def _step(
    model: HookedTransformer, batch: list[list[int]], optimizers: list[torch.optim.Optimizer], scale: float
) -> float:
    """Step once on `batch`, at `scale` of the peak learning rates; returns the loss before."""
    loss = model(torch.tensor(batch, device=model.W_E.device), return_type="loss")
    loss.backward()
    nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], CLIP)
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = group["peak_lr"] * scale
        optimizer.step()
    model.zero_grad()
    return loss.item()


def learning_rate_scale(step: int, config: TrainingConfig) -> float:
    """Share of the peak learning rate at `step`: a linear warm-up, then a cosine to zero."""
    if step < config.warmup_steps:
        return (step + 1) / config.warmup_steps
    done = (step - config.warmup_steps) / max(1, config.steps - config.warmup_steps)
    return 0.5 * (1 + math.cos(math.pi * done))


def make_optimizers(model: HookedTransformer, config: TrainingConfig) -> list[torch.optim.Optimizer]:
    """Muon on the blocks' matrices and AdamW on the other parameters; ``b_U``, which GPT-2 lacks, stays zero."""
    model.unembed.b_U.requires_grad_(False)
    named = {name: p for name, p in model.named_parameters() if p.requires_grad}
    matrices = [name for name in named if name.startswith("blocks.") and ".W_" in name]
    muon = torch.optim.Muon(
        [as_matrix(name, named[name]) for name in matrices], lr=config.muon_lr, weight_decay=config.weight_decay
    )
    share_gradients(muon, {name: named[name] for name in matrices})
    adamw = torch.optim.AdamW(
        [p for name, p in named.items() if name not in matrices],
        lr=config.adamw_lr,
        betas=(0.9, 0.98),
        weight_decay=config.weight_decay,
    )
    for optimizer in (muon, adamw):
        for group in optimizer.param_groups:
            group["peak_lr"] = group["lr"]
    return [muon, adamw]


def share_gradients(optimizer: torch.optim.Optimizer, parameters: dict[str, nn.Parameter]) -> None:
    """Before each step, give the optimizer's matrices the gradients of the `parameters` that they view."""

    def copy(*_: object) -> None:
        matrices = optimizer.param_groups[0]["params"]
        for matrix, (name, parameter) in zip(matrices, parameters.items(), strict=True):
            matrix.grad = None if parameter.grad is None else as_matrix(name, parameter.grad)

    optimizer.register_step_pre_hook(copy)


def as_matrix(name: str, weight: Tensor) -> Float[Tensor, "d_out d_in"]:
    """A block's weight as the matrix ``[out in]`` that Muon's step is defined on.

    ``W_Q``, ``W_K`` and ``W_V`` are ``[head d_model d_head]`` with ``d_model`` outermost in memory, ``W_O`` is
    ``[head d_head d_model]``, ``W_in`` and ``W_out`` are ``[in out]``: each is viewed, not copied.
    """
    plain = weight.detach()
    # `view` raises where `reshape` would copy: a copy would be trained, and the model would stay as it was.
    if name.endswith(("W_Q", "W_K", "W_V")):
        plain = plain.permute(1, 0, 2)
        return plain.view(len(plain), -1).T
    return plain.view(-1, plain.shape[-1]).T
