"""A training that was interrupted goes on where it was: what has to be kept for that, and how it is read again.

A checkpoint ``step-00000100`` is a model's own folder (``load_model`` reads it) with two files more: what the
optimisers remember (safetensors), and the training's settings and loss so far (JSON). It is written elsewhere and then
renamed, so it is whole or it is not there. The optimisers' file, up to twice the model's size, is kept of the newest
two only: of two, should the newest one be damaged.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from interp.arguments import named_arguments
from interp.errors import LoadError, OutputError, shown
from interp.model.loading.native import save_model
from interp.model.loading.tensors import check_weights, read_json, read_safetensors, read_weights
from interp.model.transformer import HookedTransformer

OPTIMIZERS, SETTINGS, FORMAT = "optimizers.safetensors", "training.json", 2
CHECKPOINTS = "checkpoints"
"""What the folder of a training's checkpoints is called, beside the model."""
STEP, NAME = "step-{:08d}", re.compile(r"step-(\d+)")
REMEMBERED: dict[type[torch.optim.Optimizer], dict[str, bool]] = {
    torch.optim.Muon: {"momentum_buffer": False},
    torch.optim.AdamW: {"step": True, "exp_avg": False, "exp_avg_sq": False},
}
"""What each optimiser keeps of a parameter, and whether that is one number."""


def checkpoints(folder: str | Path) -> dict[int, Path]:
    """The checkpoints in a folder, by the number of steps made, in order.

    Args:
        folder: That which ``train`` was given; one that is missing holds none.

    Returns:
        The folder of each, which ``interp.load_model`` reads, by the number of steps.

    Examples:
        >>> from interp.model.checkpoints import checkpoints
        >>> checkpoints("empty")
        {}
    """
    named = ((NAME.fullmatch(path.name), path) for path in Path(folder).glob("step-*"))
    found = {int(match[1]): path for match, path in named if match and (path / SETTINGS).is_file()}
    return dict(sorted(found.items()))


@dataclass(frozen=True)
class Training:
    """What a training is: one that differs in any of it is another one.

    Attributes:
        settings: How it is trained (``TrainingConfig``).
        material: What it is trained on and begins from, whatever says that, as JSON has it.
    """

    settings: Mapping[str, Any]
    material: Mapping[str, Any]


@named_arguments
def save_checkpoint(
    folder: Path,
    model: HookedTransformer,
    optimizers: list[torch.optim.Optimizer],
    training: Training,
    curve: Mapping[str, Any],
) -> Path:
    """Write a checkpoint of a training after as many steps as `curve` holds losses.

    Raises:
        OutputError: The folder cannot be written to.
    """
    final = folder / STEP.format(len(curve["train"]))
    older = list(checkpoints(folder).values())[:-1]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder, prefix=".", suffix=".partial") as draft:
            whole = Path(draft) / final.name
            save_model(model, whole)
            save_file(_remembered(optimizers), whole / OPTIMIZERS)
            settings = {"format": FORMAT, **asdict(training), **curve}
            (whole / SETTINGS).write_text(json.dumps(settings) + "\n", encoding="utf-8")
            os.replace(whole, final)
    except (OSError, SafetensorError) as error:
        raise OutputError(f"{folder}: no checkpoint can be written here ({error}); name another folder") from error
    for path in older:
        with suppress(OSError):
            (path / OPTIMIZERS).unlink()
    return final


@named_arguments
def restore_checkpoint(
    path: Path, model: HookedTransformer, optimizers: list[torch.optim.Optimizer], training: Training
) -> dict[str, Any]:
    """Put `model` and `optimizers` back to where the checkpoint was written, and return the losses so far.

    Raises:
        LoadError: The checkpoint is damaged, or of another training: another format, model, setting or material, which
            is named; nothing was changed then.
    """
    kept = _settings(path)
    _require_same({**kept["settings"], **kept["material"]}, {**training.settings, **training.material}, path)
    config, described = model.config.to_dict(), read_json(path / "config.json")
    _require_same({name: described.get(name) for name in config}, config, path)
    try:
        state, remembered = read_weights(path), read_safetensors(path / OPTIMIZERS)
        check_weights(state, ((name, tuple(p.shape)) for name, p in model.named_parameters()), str(path))
        check_weights(remembered, _to_remember(optimizers), str(path / OPTIMIZERS), "these optimisers")
    except LoadError as error:
        raise LoadError(f"{error}; delete {path} to go on from the checkpoint before it") from error
    _restore_optimizers(optimizers, remembered)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(state[name])
    return kept


def _settings(path: Path) -> dict[str, Any]:
    """What ``training.json`` holds, checked."""
    kept = read_json(path / SETTINGS)
    if kept.get("format") != FORMAT:
        raise LoadError(f"{path}: a checkpoint in format {shown(kept.get('format'))}, this version reads {FORMAT}")
    try:
        losses = [*kept["train"], *kept["held_out"].values()]
        sound = all(isinstance(each, float) for each in losses) and all(map(str.isdecimal, kept["held_out"]))
        sound = sound and all(isinstance(kept[name], dict) for name in ("settings", "material"))
    except (AttributeError, KeyError, TypeError):
        sound = False
    if not sound:
        raise LoadError(f"{path / SETTINGS}: expected settings, material and losses; delete {path} to go on without it")
    steps = NAME.fullmatch(path.name)
    if steps is None or len(kept["train"]) != int(steps[1]):
        raise LoadError(f"{path / SETTINGS}: expected a loss for each step, got {len(kept['train'])}; delete {path}")
    return kept


def _require_same(kept: Mapping[str, Any], asked: Mapping[str, Any], path: Path) -> None:
    for name in dict.fromkeys((*asked, *kept)):
        if kept.get(name) != asked.get(name):
            there, here = kept.get(name), asked.get(name)
            raise LoadError(
                f"{path}: a checkpoint of another training: {name} was {shown(there)} there and is {shown(here)} here; "
                "give the same settings, or another folder"
            )


def _remembered(optimizers: list[torch.optim.Optimizer]) -> dict[str, Tensor]:
    """What the optimisers remember, by ``optimizer.parameter.name``."""
    return {
        f"{place}.{key}": value.detach().cpu().contiguous().clone()
        for place, (optimizer, parameter) in _parameters(optimizers).items()
        for key, value in optimizer.state[parameter].items()
    }


def _to_remember(optimizers: list[torch.optim.Optimizer]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Name and shape of all that these optimisers remember after a step."""
    for place, (optimizer, parameter) in _parameters(optimizers).items():
        for key, scalar in REMEMBERED[type(optimizer)].items():
            yield f"{place}.{key}", () if scalar else tuple(parameter.shape)


def _restore_optimizers(optimizers: list[torch.optim.Optimizer], tensors: Mapping[str, Tensor]) -> None:
    """Let new optimisers remember `tensors`.

    In each parameter's own order in memory: with another one, the products of the next step would round differently.
    """
    parameters = _parameters(optimizers)
    for name, tensor in tensors.items():
        place, _, key = name.rpartition(".")
        optimizer, parameter = parameters[place]
        kept: Any = torch.empty_like(parameter) if tensor.shape == parameter.shape else torch.empty_like(tensor)
        optimizer.state[parameter][key] = kept.detach().copy_(tensor)


def _parameters(optimizers: list[torch.optim.Optimizer]) -> dict[str, tuple[torch.optim.Optimizer, Tensor]]:
    """By ``optimizer.parameter``, both by their numbers: an optimiser and one of its parameters."""
    return {
        f"{number}.{place}": (optimizer, parameter)
        for number, optimizer in enumerate(optimizers)
        for place, parameter in enumerate(each for group in optimizer.param_groups for each in group["params"])
    }
