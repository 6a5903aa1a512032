"""Training a language model on rows of tokens, so that it can be interrupted at any time and nothing is lost.

1. Documents are packed whole into rows of ``n_ctx`` tokens; a row starts with BOS, as every prompt does.
2. A step lowers the mean cross-entropy of each row's ``n_ctx - 1`` next tokens under the causal mask, with clipped
   gradients. The learning rate warms up linearly and falls to zero along a cosine.
3. With a folder, a transformer, its optimisers and the loss so far are kept there (``checkpoints.py``). The same
   training asked for again goes on from the newest checkpoint: on a CPU, with the same loss to the bit.
"""

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from torch import nn

from interp.errors import ConfigError, InputError, suggest
from interp.model.checkpoints import newest_checkpoint, restore_checkpoint, save_checkpoint
from interp.model.optimizers import OptimizerName, make_optimizers
from interp.model.transformer import HookedTransformer

Precision = Literal["float32", "bfloat16"]
CHOICES = {"optimizer": get_args(OptimizerName), "precision": get_args(Precision)}
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
        warmup_steps: Steps until the peak.
        clip: Largest norm of the gradient; a larger one is scaled down to it.
        precision: ``bfloat16`` runs the products in 16 bits; the weights and the optimisers stay in 32.
        log_every: Steps between calls of the progress callback.
        checkpoint_every: Steps between checkpoints, where there is a folder for them; None for one at the end.

    Raises:
        ConfigError: A value is out of range.
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

    def __post_init__(self):
        _check(dataclasses.asdict(self))

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "TrainingConfig":
        """The config of `fields`.

        Raises:
            ConfigError: A field is unknown, ``steps`` is missing, or a value is out of range.
        """
        known = [each.name for each in dataclasses.fields(cls)]
        for name in fields:
            if name not in known:
                raise ConfigError(f"training: unknown field {name!r}; {suggest(name, known)}")
        if "steps" not in fields:
            raise ConfigError("training: expected 'steps', the number of optimiser steps; it is missing")
        _check(fields)
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


def packed_rows(documents: Iterable[list[int]], *, bos: int, n_ctx: int) -> Iterator[list[int]]:
    """Rows of exactly `n_ctx` ids: documents, each after a BOS, the last one cut where the row ends."""
    row: list[int] = []
    for document in documents:
        row += [bos, *document]
        if len(row) >= n_ctx:
            yield row[:n_ctx]
            row = []


def train(
    model: nn.Module,
    rows: Iterable[list[int]],
    config: TrainingConfig,
    *,
    held_out: Sequence[list[int]] = (),
    folder: str | Path | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> LossCurve:
    """Train `model` in place on token rows.

    Args:
        model: A ``HookedTransformer``, or any model whose ``model(tokens, return_type="loss")`` is the mean loss. Left
            in evaluation mode.
        rows: Rows of ``n_ctx`` ids, as many as the steps need; an endless stream, for example. The same ones each time
            that a training goes on.
        config: How to train.
        held_out: Rows that are never trained on; the loss on them is measured at every checkpoint and at the end.
        folder: Where a transformer's checkpoints go, one folder ``step-00000100`` each, which ``load_model`` reads; an
            interrupt (Ctrl-C) keeps one, too. If it holds some of the same training, that one goes on.
        progress: Called every ``log_every`` steps with the step and the mean loss since the last call.

    Raises:
        InputError: There are fewer rows than the steps need, the loss is no longer a finite number, or there is a
            folder and the model is no transformer.
        LoadError: The folder holds another training, or a damaged checkpoint.
        OutputError: The folder cannot be written to.
    """
    run = _Run(model, config, None if folder is None else Path(folder), held_out)
    stream = islice(iter(rows), len(run.curve.train) * config.batch_size, None)
    model.train()
    try:
        for step in range(len(run.curve.train), config.steps):
            batch = list(islice(stream, config.batch_size))
            if len(batch) < config.batch_size:
                raise InputError(
                    f"the rows ended in step {step + 1} of {config.steps}; give more of them, or fewer steps"
                )
            run.step(step, batch)
            if progress is not None and (step + 1) % config.log_every == 0:
                progress(step + 1, sum(run.curve.train[-config.log_every :]) / config.log_every)
    except KeyboardInterrupt:
        run.keep_unkept()
        raise
    finally:
        model.eval()
    return run.curve


class _Run:
    """A training in progress."""

    def __init__(self, model: Any, config: TrainingConfig, folder: Path | None, held_out: Any):
        if folder is not None and not isinstance(model, HookedTransformer):
            raise InputError(
                f"folder: checkpoints hold a HookedTransformer, got a {type(model).__name__}; leave the folder out"
            )
        self._model, self._config, self._folder = model, config, folder
        self._held_out = list(held_out)
        rates = {name: getattr(config, name) for name in ("muon_lr", "adamw_lr", "weight_decay")}
        self._optimizers = make_optimizers(model, config.optimizer, **rates)
        self._model.zero_grad()  # an interrupted training of the same model may have left some
        self.curve = LossCurve()
        self._unkept = False
        newest = None if folder is None else newest_checkpoint(folder)
        if newest is not None:
            kept = restore_checkpoint(newest, model, self._optimizers, dataclasses.asdict(config))
            self.curve = LossCurve(kept["train"], {int(step): loss for step, loss in kept["held_out"].items()})

    def step(self, step: int, batch: list[list[int]]) -> None:
        """Step once on `batch`, and keep what is to be kept then."""
        loss = self._loss(batch)
        loss.backward()
        nn.utils.clip_grad_norm_([p for p in self._model.parameters() if p.requires_grad], self._config.clip)
        self._unkept = False  # from here on, an interrupt leaves half a step
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
        self._unkept = not self._keep(step + 1)

    def keep_unkept(self) -> None:
        """Keep what was learned since the last checkpoint, if it is whole steps."""
        if self._unkept:
            self._save()

    def _loss(self, batch: list[list[int]]) -> torch.Tensor:
        device = next(self._model.parameters()).device
        with torch.autocast(device.type, torch.bfloat16, enabled=self._config.precision == "bfloat16"):
            return self._model(torch.tensor(batch, device=device), return_type="loss")

    def _keep(self, done: int) -> bool:
        """Keep what is to be kept after so many steps; whether there was anything."""
        every, last = self._config.checkpoint_every, done == self._config.steps
        if not last and (every is None or done % every):
            return False
        if self._held_out:
            self.curve.held_out[done] = self._held_out_loss()
        self._save()
        return True

    def _save(self) -> None:
        if self._folder is not None:
            kept = dataclasses.asdict(self.curve)
            save_checkpoint(self._folder, self._model, self._optimizers, dataclasses.asdict(self._config), kept)

    def _held_out_loss(self) -> float:
        """The mean over all held-out rows, ``ROWS_AT_ONCE`` at a time."""
        rows, total = self._held_out, 0.0
        with torch.no_grad():
            for start in range(0, len(rows), ROWS_AT_ONCE):
                batch = rows[start : start + ROWS_AT_ONCE]
                total += self._loss(batch).item() * len(batch)
        return total / len(rows)


def learning_rate_scale(step: int, config: TrainingConfig) -> float:
    """Share of the peak learning rate at `step`: a linear warm-up, then a cosine to zero."""
    if step < config.warmup_steps:
        return (step + 1) / config.warmup_steps
    done = (step - config.warmup_steps) / max(1, config.steps - config.warmup_steps)
    return 0.5 * (1 + math.cos(math.pi * done))


def _check(fields: Mapping[str, Any]) -> None:
    for name, value in fields.items():
        if name in ("steps", "batch_size", "log_every", "warmup_steps", "checkpoint_every"):
            least = 0 if name == "warmup_steps" else 1
            if not (isinstance(value, int) and value >= least) and (name, value) != ("checkpoint_every", None):
                raise ConfigError(f"{name}: expected a whole number of at least {least}, got {value!r}")
        elif name in CHOICES and value not in CHOICES[name]:
            raise ConfigError(f"{name}: expected one of {', '.join(CHOICES[name])}, got {value!r}")
        elif name not in CHOICES and not (isinstance(value, int | float) and 0 <= value < math.inf):
            raise ConfigError(f"{name}: expected a finite number of at least 0, got {value!r}")
