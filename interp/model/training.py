"""Training a language model on rows of tokens, so that it can be interrupted at any time and nothing is lost.

1. Documents are packed whole into rows of ``n_ctx`` tokens; each document stands behind a BOS, where there is one.
2. A step lowers the mean cross-entropy of each row's ``n_ctx - 1`` next tokens under the causal mask, with clipped
   gradients. The learning rate warms up linearly and falls to zero along a cosine.
3. Muon (Jordan et al. 2024) steps the blocks' matrices, and AdamW (Loshchilov & Hutter 2019) the rest; or AdamW all.
   Muon makes each step a nearly orthogonal matrix. ``torch.optim.Muon`` takes matrices only, so a per-head weight
   ``[head d_model d_head]`` is stepped as its ``[d_model head * d_head]`` view.
4. With a folder, a transformer, its optimisers and the loss so far are kept there (``checkpoints.py``). The same
   training asked for again goes on from the newest checkpoint: on a CPU, with the same loss to the bit.
"""

import dataclasses
import math
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from interp.errors import ConfigError, InputError, shown
from interp.model.checkpoints import Training, checkpoints, restore_checkpoint, save_checkpoint
from interp.model.config import is_number, require_fields, require_kinds
from interp.model.devices import documented
from interp.model.transformer import HookedTransformer

OptimizerName = Literal["muon", "adamw"]
Precision = Literal["float32", "bfloat16"]
BETAS = (0.9, 0.98)
ROWS_AT_ONCE = 16


@dataclass(frozen=True)
class TrainingConfig:
    """How to train.

    Attributes:
        steps: Optimiser steps.
        batch_size: Rows of ``n_ctx`` tokens a step.
        optimizer: ``muon`` (with AdamW for what are no blocks' matrices, so for all that is no transformer's) or
            ``adamw``.
        muon_lr: Muon's peak learning rate.
        adamw_lr: AdamW's peak learning rate.
        weight_decay: Of both optimisers, decoupled.
        warmup_steps: Steps until the peak, which a training of fewer steps never reaches.
        clip: Largest norm of the gradient; a larger one is scaled down to it.
        precision: ``bfloat16`` runs the products in 16 bits; the weights and the optimisers stay in 32.
        log_every: Steps between calls of the progress callback.
        checkpoint_every: Steps between checkpoints, where there is a folder for them; None for one at the end.

    Raises:
        ConfigError: A value is out of range.

    Examples:
        >>> from interp.model.training import TrainingConfig
        >>> TrainingConfig(steps=2_000, batch_size=32).optimizer
        'muon'
    """

    steps: int
    batch_size: int = 16
    optimizer: OptimizerName = "muon"
    muon_lr: float = 0.02
    adamw_lr: float = 1.5e-3
    weight_decay: float = 0.1
    warmup_steps: int = 150
    clip: float = 1.0
    precision: Precision = "float32"
    log_every: int = 50
    checkpoint_every: int | None = None

    def __post_init__(self) -> None:
        require_kinds(self, least={"warmup_steps": 0})
        for name in ("muon_lr", "adamw_lr", "weight_decay", "clip"):
            if not is_number(getattr(self, name)):
                got = shown(getattr(self, name))
                raise ConfigError(f"{name}: expected a finite number of at least 0, got {got}")

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "TrainingConfig":
        """The config of `fields`; one that is unknown, missing or out of range raises ``ConfigError``."""
        require_fields("training", cls, fields)
        return cls(**fields)


@dataclass
class LossCurve:
    """How well the next token was predicted, in nats.

    Attributes:
        train: The loss on each step's rows, before the step.
        held_out: By number of steps made, the loss on rows that are never trained on.
    """

    train: list[float] = field(default_factory=list)
    held_out: dict[int, float] = field(default_factory=dict)


def packed_rows(documents: Iterable[list[int]], *, bos: int | None, n_ctx: int) -> Iterator[list[int]]:
    """Rows of exactly `n_ctx` ids: documents, each after a BOS, the last one cut where the row ends.

    Args:
        documents: Token ids of each, without special tokens.
        bos: What a document begins with; None for nothing, as of a tokenizer that names none: then documents simply
            follow each other, and one that is to end with a token of its own has it in its ids.
        n_ctx: How long a row is, in tokens.

    Yields:
        Rows ``[n_ctx]``; a last one that is not full is left out.

    Examples:
        >>> from interp.model.training import packed_rows
        >>> list(packed_rows([[5, 6], [7], [8, 9]], bos=0, n_ctx=4))
        [[0, 5, 6, 0]]
    """
    before = [] if bos is None else [bos]
    row: list[int] = []
    for document in documents:
        row += [*before, *document]
        if len(row) >= n_ctx:
            yield row[:n_ctx]
            row = []


@documented
def train(
    model: nn.Module,
    rows: Iterable[list[int]],
    config: TrainingConfig,
    *,
    held_out: Sequence[list[int]] = (),
    folder: str | Path | None = None,
    material: Mapping[str, Any] | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> LossCurve:
    """Train `model` in place on token rows.

    Source: Jordan et al. (2024), "Muon"; Loshchilov & Hutter (2019), "Decoupled weight decay regularization".

    Args:
        model: A ``HookedTransformer``, or any model whose ``model(tokens, return_type="loss")`` is the mean loss. Left
            in evaluation mode.
        rows: Rows of ``n_ctx`` ids, as many as the steps need; an endless stream, for example. The same ones each time
            that a training goes on.
        config: How to train.
        held_out: Rows that are never trained on; the loss on them is measured at every checkpoint and at the end.
        folder: Where a transformer's checkpoints go, one folder ``step-00000100`` each, which ``load_model`` reads; an
            interrupt (Ctrl-C) waits for the end of the step and keeps one, too. If it holds some of the same training,
            that one goes on.
        material: What says which rows these are, and which weights come first, such as a text's hash and a seed: a
            checkpoint of other material is one of another training.
        progress: Called every ``log_every`` steps with the step and the mean loss since the last call.

    Returns:
        The loss of every step, and that of the held-out rows, in nats for each token.

    Raises:
        InputError: There are fewer rows than the steps need, the loss is no longer a finite number, the weights are
            in float16, or there is a folder and the model is no transformer.
        LoadError: The folder holds another training, or a damaged checkpoint.
        OutputError: The folder cannot be written to.

    Examples:
        >>> from interp.model.config import TransformerConfig
        >>> from interp.model.training import TrainingConfig, train
        >>> shape = TransformerConfig(n_layers=1, n_heads=2, d_model=8, d_head=4, d_mlp=16, d_vocab=10, n_ctx=5)
        >>> curve = train(interp.HookedTransformer(shape), [[1, 2, 3, 4, 5]] * 8, TrainingConfig(steps=4, batch_size=2))
        >>> len(curve.train)
        4
    """
    run = _Run(model, config, None if folder is None else Path(folder), held_out, material or {})
    stream = islice(iter(rows), len(run.curve.train) * config.batch_size, None)
    with _patient() as interrupted, ExitStack() as afterwards:
        model.train()
        afterwards.callback(model.eval)
        for step in range(len(run.curve.train), config.steps):
            batch = list(islice(stream, config.batch_size))
            if len(batch) < config.batch_size:
                raise InputError(
                    f"the rows ended in step {step + 1} of {config.steps}; give more of them, or fewer steps"
                )
            run.step(step, batch)
            if progress is not None and (step + 1) % config.log_every == 0:
                progress(step + 1, sum(run.curve.train[-config.log_every :]) / config.log_every)
            if interrupted():
                run.save()
                raise KeyboardInterrupt
    return run.curve


@contextmanager
def _patient() -> Iterator[Callable[[], bool]]:
    """Whether somebody has asked for an interrupt (Ctrl-C), which waits to be looked at; a second one does not.

    Only where an interrupt would raise ``KeyboardInterrupt`` otherwise: not in another thread, nor in the background.
    """
    asked: list[int] = []

    def ask(number: int, frame: Any) -> None:
        if asked:
            signal.default_int_handler(number, frame)
        asked.append(number)

    mine = threading.current_thread() is threading.main_thread()
    if not mine or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield lambda: False
        return
    signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: bool(asked)
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class _Run:
    """A training in progress."""

    def __init__(
        self, model: Any, config: TrainingConfig, folder: Path | None, held_out: Any, material: Mapping[str, Any]
    ):
        if folder is not None and not isinstance(model, HookedTransformer):
            got = type(model).__name__
            raise InputError(f"folder: checkpoints hold a HookedTransformer, got a {got}; leave the folder out")
        if any(each.dtype == torch.float16 for each in model.parameters()):
            raise InputError(
                "model: expected weights in float32, got float16, in which Adam divides by 0; train model.float(), for "
                "products in 16 bits with precision='bfloat16'"
            )
        self._model, self._config, self._folder = model, config, folder
        self._held_out, self._training = list(held_out), Training(dataclasses.asdict(config), material)
        self._optimizers = _make_optimizers(model, config)
        self._model.zero_grad()  # an interrupted training of the same model may have left some
        self.curve = LossCurve()
        newest = None if folder is None else next(reversed(checkpoints(folder).values()), None)
        if newest is not None:
            kept = restore_checkpoint(newest, model, self._optimizers, self._training)
            self.curve = LossCurve(kept["train"], {int(step): loss for step, loss in kept["held_out"].items()})

    def step(self, step: int, batch: list[list[int]]) -> None:
        """Step once on `batch`, and keep what is to be kept then."""
        loss = self._loss(batch)
        loss.backward()
        nn.utils.clip_grad_norm_([p for p in self._model.parameters() if p.requires_grad], self._config.clip)
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["peak_lr"] * learning_rate_scale(step, self._config)
            optimizer.step()
        self._model.zero_grad()
        self.curve.train.append(loss.item())
        if not math.isfinite(self.curve.train[-1]):
            raise InputError(
                f"the loss of step {step + 1} is {self.curve.train[-1]}, expected a finite number; "
                "lower the learning rates, or warm up longer"
            )
        self._keep(step + 1)

    def save(self) -> None:
        """Keep the training as it is now, where there is a folder for it and it was not kept already."""
        if self._folder is not None and len(self.curve.train) not in checkpoints(self._folder):
            kept = dataclasses.asdict(self.curve)
            save_checkpoint(self._folder, self._model, self._optimizers, self._training, kept)

    def _loss(self, batch: list[list[int]]) -> torch.Tensor:
        device = next(self._model.parameters()).device
        torch.clear_autocast_cache()  # within a caller's autocast, the weights of the step before are kept there
        with torch.autocast(device.type, torch.bfloat16, enabled=self._config.precision == "bfloat16"):
            return self._model(torch.tensor(batch, device=device), return_type="loss")

    def _keep(self, done: int) -> None:
        every, last = self._config.checkpoint_every, done == self._config.steps
        if not last and (every is None or done % every):
            return
        if rows := self._held_out:
            with torch.no_grad():
                batches = [rows[start : start + ROWS_AT_ONCE] for start in range(0, len(rows), ROWS_AT_ONCE)]
                self.curve.held_out[done] = sum(self._loss(each).item() * len(each) for each in batches) / len(rows)
        self.save()


def learning_rate_scale(step: int, config: TrainingConfig) -> float:
    """Share of the peak learning rate at `step`: a linear warm-up, then a cosine to zero."""
    if step < config.warmup_steps:
        return (step + 1) / config.warmup_steps
    done = (step - config.warmup_steps) / max(1, config.steps - config.warmup_steps)
    return 0.5 * (1 + math.cos(math.pi * done))


def _make_optimizers(model: nn.Module, config: TrainingConfig) -> list[torch.optim.Optimizer]:
    """The optimisers of a model; the ``b_U`` of a ``HookedTransformer``, which GPT-2 lacks, stays as it is."""
    if isinstance(model, HookedTransformer):
        model.unembed.b_U.requires_grad_(False)
    named = {name: p for name, p in model.named_parameters() if p.requires_grad}
    matrices = [each for each in named if config.optimizer == "muon" and each.startswith("blocks.") and ".W_" in each]
    rest = [p for each, p in named.items() if each not in matrices]
    optimizers: list[torch.optim.Optimizer] = []
    if matrices:
        views = [_as_matrix(each, named[each]) for each in matrices]
        optimizers.append(torch.optim.Muon(views, lr=config.muon_lr, weight_decay=config.weight_decay))
        _share_gradients(optimizers[0], {each: named[each] for each in matrices})
    optimizers.append(torch.optim.AdamW(rest, lr=config.adamw_lr, betas=BETAS, weight_decay=config.weight_decay))
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["peak_lr"] = group["lr"]
    return optimizers


def _share_gradients(optimizer: torch.optim.Optimizer, parameters: dict[str, nn.Parameter]) -> None:
    """Before each step, give the optimizer's matrices the gradients of the `parameters` that they view."""

    def copy(*_: object) -> None:
        matrices = optimizer.param_groups[0]["params"]
        for matrix, (name, parameter) in zip(matrices, parameters.items(), strict=True):
            matrix.grad = None if parameter.grad is None else _as_matrix(name, parameter.grad)

    optimizer.register_step_pre_hook(copy)


def _as_matrix(name: str, weight: Tensor) -> Tensor:
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
