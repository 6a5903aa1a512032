"""A training that was interrupted goes on where it was: what has to be kept for that, and how it is read again.

A checkpoint ``step-00000100`` is a model's own folder (``load_model`` reads it) with two files more: what the
optimisers remember (safetensors), and the training's settings and loss so far (JSON). It is written elsewhere and then
renamed, so it is whole or it is not there. The optimisers' file, up to twice the model's size, is kept of the newest
one only.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from safetensors.torch import save_file

from interp.errors import LoadError, OutputError
from interp.model.loading.checkpoint import check_shapes, read_json, read_safetensors, read_weights
from interp.model.loading.native import save_model
from interp.model.optimizers import optimizer_tensors, restore_optimizers
from interp.model.transformer import HookedTransformer

OPTIMIZERS, SETTINGS, FORMAT = "optimizers.safetensors", "training.json", 1
STEP = "step-{:08d}"


def checkpoints(folder: str | Path) -> dict[int, Path]:
    """The checkpoints in a folder, by the number of steps made, in order."""
    found = [path for path in Path(folder).glob("step-*") if (path / SETTINGS).is_file()]
    return {int(path.name.removeprefix("step-")): path for path in sorted(found)}


def newest_checkpoint(folder: Path) -> Path | None:
    """The checkpoint that a training goes on from; None where there is none."""
    found = checkpoints(folder)
    return found[max(found)] if found else None


def save_checkpoint(
    folder: Path,
    model: HookedTransformer,
    optimizers: list[torch.optim.Optimizer],
    config: Mapping[str, Any],
    curve: Mapping[str, Any],
) -> Path:
    """Write a checkpoint of a training after as many steps as `curve` holds losses.

    Raises:
        OutputError: The folder cannot be written to.
    """
    final = folder / STEP.format(len(curve["train"]))
    before = newest_checkpoint(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder, prefix=".", suffix=".partial") as draft:
            whole = Path(draft) / final.name
            save_model(model, whole)
            save_file(optimizer_tensors(optimizers), whole / OPTIMIZERS)
            settings = {"format": FORMAT, "config": dict(config), **curve}
            (whole / SETTINGS).write_text(json.dumps(settings) + "\n", encoding="utf-8")
            os.replace(whole, final)
    except OSError as error:
        raise OutputError(f"{folder}: no checkpoint can be written here ({error}); name another folder") from error
    if before is not None:
        with suppress(OSError):
            (before / OPTIMIZERS).unlink()
    return final


def restore_checkpoint(
    path: Path, model: HookedTransformer, optimizers: list[torch.optim.Optimizer], config: Mapping[str, Any]
) -> dict[str, Any]:
    """Put `model` and `optimizers` back to where the checkpoint was written, and return the losses so far.

    Raises:
        LoadError: The checkpoint is damaged, or of another training: another format, model or setting, which is named.
    """
    settings = read_json(path / SETTINGS)
    if settings.get("format") != FORMAT:
        raise LoadError(f"{path}: a checkpoint in format {settings.get('format')!r}, this version reads {FORMAT}")
    kept = settings.get("config", {})
    for name, value in config.items():
        if kept.get(name) != value:
            raise LoadError(
                f"{path}: a checkpoint of another training: {name} was {kept.get(name)!r} there and is {value!r} here; "
                "give the same settings, or another folder"
            )
    state = read_weights(path)
    check_shapes(state, ((name, tuple(p.shape)) for name, p in model.named_parameters()), str(path))
    tensors = read_safetensors(path / OPTIMIZERS)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(state[name])
    restore_optimizers(optimizers, tensors)
    return settings
