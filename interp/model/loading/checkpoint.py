"""Reading tensors from files, safely: safetensors, or PyTorch files that hold nothing but tensors.

A pickle can run code when it is opened; ``torch.load(weights_only=True)`` refuses one that would.
"""

import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from interp.errors import LoadError, suggest

State = dict[str, Tensor]
INDEX = "model.safetensors.index.json"


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in `path`.

    Raises:
        LoadError: It cannot be read, is not JSON, or is not an object.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise LoadError(f"{path}: expected a JSON object, got {type(error).__name__}: {error}") from error
    if not isinstance(content, dict):
        raise LoadError(f"{path}: expected a JSON object, got {type(content).__name__}")
    return content


def read_weights(folder: Path) -> State:
    """All tensors of a checkpoint folder: safetensors (one file or shards), else ``pytorch_model.bin``.

    Raises:
        LoadError: There are no weights, a shard is missing, or a file is damaged or holds more than tensors.
    """
    if (folder / "model.safetensors").is_file():
        return _read_safetensors(folder / "model.safetensors")
    if (folder / INDEX).is_file():
        shards = sorted(set(read_json(folder / INDEX).get("weight_map", {}).values()))
        state: State = {}
        for shard in shards:
            state.update(_read_safetensors(folder / shard))
        return state
    if (folder / "pytorch_model.bin").is_file():
        return _read_torch(folder / "pytorch_model.bin")
    raise LoadError(
        f"{folder}: no weights here; expected model.safetensors, {INDEX} with its shards, or pytorch_model.bin"
    )


def _read_safetensors(path: Path) -> State:
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise LoadError(f"{path}: not a readable safetensors file ({error}); fetch or save it again") from error


def _read_torch(path: Path) -> State:
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise LoadError(
            f"{path}: this pickle holds more than tensors and could run code when opened, so it is refused; "
            "save the weights as safetensors"
        ) from error
    except (OSError, RuntimeError, EOFError) as error:
        raise LoadError(f"{path}: not a readable PyTorch file ({error}); fetch or save it again") from error
    if not isinstance(state, dict) or not all(isinstance(value, Tensor) for value in state.values()):
        raise LoadError(f"{path}: expected a dictionary of tensors, got {type(state).__name__}")
    return state


def fill(model: nn.Module, state: Mapping[str, Tensor], source: str) -> None:
    """Copy `state` into `model`'s parameters, every one of them and nothing else, and take its dtype.

    Raises:
        LoadError: A tensor is missing, extra, of another shape, or holds NaN or infinity; it is named.
    """
    check_finite(state, source)
    model.to(dtype=next(iter(state.values())).dtype)
    own = dict(model.named_parameters())
    for name in own:
        if name not in state:
            raise LoadError(f"{source}: tensor {name!r} is missing; {suggest(name, state)}")
    for name in state:
        if name not in own:
            raise LoadError(f"{source}: tensor {name!r} is not part of this architecture; {suggest(name, own)}")
    with torch.no_grad():
        for name, parameter in own.items():
            if state[name].shape != parameter.shape:
                raise LoadError(
                    f"{source}: tensor {name!r}: expected shape {tuple(parameter.shape)}, "
                    f"got {tuple(state[name].shape)}; does the config describe these weights?"
                )
            parameter.copy_(state[name])


def check_finite(state: Mapping[str, Tensor], source: str) -> None:
    """Refuse weights that are not numbers.

    Raises:
        LoadError: A tensor holds NaN or infinity; it is named.
    """
    for name, tensor in state.items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            bad = int((~tensor.isfinite()).sum())
            raise LoadError(f"{source}: tensor {name!r}: {bad} of its {tensor.numel()} values are NaN or infinite")
