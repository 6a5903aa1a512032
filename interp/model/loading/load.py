"""One call for every source of a model: the embedded default, a folder, a hub name, a transformers module.

1. Nothing given: the embedded default (``interp/model/zoo``), or one of its siblings by name.
2. A folder: ``config.json`` says which family reads it.
3. A ``transformers`` module: its state dict, in memory.
4. Anything else is a hub name, fetched once by ``huggingface_hub`` and then read as a folder.

Loading never changes weights; folding is a separate call.
"""

import os
from importlib import resources
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedTokenizerBase

from interp.errors import LoadError, suggest
from interp.model.devices import resolve_device, resolve_dtype
from interp.model.loading.checkpoint import BIN, fill, read_json, read_weights
from interp.model.loading.huggingface_gpt2 import gpt2_config, gpt2_state, name_special_tokens
from interp.model.loading.native import ARCHITECTURE, load_native, load_tokenizer
from interp.model.transformer import HookedTransformer

DEFAULT = "default"
ZOO = Path(str(resources.files("interp.model.zoo")))
FILES = ["config.json", "*.safetensors", "*.safetensors.index.json", "tokenizer*", "vocab.json", "merges.txt"]


def load_model(
    name_or_path: str | Path | nn.Module | None = None,
    *,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
    tokenizer: PreTrainedTokenizerBase | None = None,
) -> HookedTransformer:
    """Load a model, in evaluation mode, with its weights unchanged.

    Args:
        name_or_path: None for the embedded default; the name of an embedded model; a folder in Hugging Face
            GPT-2 format or saved by ``save_model``; a hub name; or a ``transformers`` ``GPT2LMHeadModel``. A
            ``Path`` is always a folder.
        device: ``cpu`` (default), ``cuda``, ``cuda:N``, or ``auto``.
        dtype: ``float32`` (default), ``float64``, ``bfloat16`` or ``float16``.
        tokenizer: Instead of the one that lies beside the weights, which is then not read.

    Raises:
        LoadError: The source is missing, incomplete, damaged or of an unknown architecture, its name could mean
            two things, or its weights do not fit into `dtype`.
        ConfigError: No such device or dtype here.
    """
    to_device, to_dtype = resolve_device(device), resolve_dtype(dtype)
    if isinstance(name_or_path, nn.Module):
        model = _from_module(name_or_path, tokenizer)
    else:
        model = _from_folder(_default_folder() if name_or_path is None else _find(name_or_path), tokenizer)
    model.to(device=to_device, dtype=to_dtype)
    _require_no_overflow(model, to_dtype)
    return model


def embedded_models() -> list[str]:
    """Names of the models that come with the package, the default first."""
    names = sorted(path.parent.name for path in ZOO.glob("*/config.json"))
    return sorted(names, key=lambda name: name != DEFAULT)


def model_folder(name: str) -> Path:
    """The folder of an embedded model."""
    return ZOO / name


def _default_folder() -> Path:
    if DEFAULT not in embedded_models():
        raise LoadError("this installation lacks the embedded default model; install interp again, or name a folder")
    return model_folder(DEFAULT)


def _find(name: str | Path) -> Path:
    """The folder that `name` stands for: an embedded model, a path, or a hub name's download."""
    if not str(name):
        raise LoadError("the model's name is empty; expected an embedded model, a folder or a hub name")
    path = Path(os.path.expanduser(name))
    if isinstance(name, str) and name in embedded_models():
        if (path / "config.json").is_file():
            raise LoadError(
                f"{name!r} is an embedded model, and a folder with a model here is called so too; give './{name}' "
                "for the folder, or rename it"
            )
        return model_folder(name)
    if path.is_dir():
        return path
    if path.is_file():
        raise LoadError(f"{name}: expected a folder with config.json and weights, got a file; give its folder")
    if isinstance(name, Path) or name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise LoadError(f"{name}: no such folder; expected one with config.json and weights")
    return _download(name)


def _download(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    known = suggest(name, embedded_models())
    try:
        folder = Path(snapshot_download(name, allow_patterns=FILES))
        if not any(folder.glob("*.safetensors")):
            snapshot_download(name, allow_patterns=[BIN])
        return folder
    except HFValidationError as error:
        raise LoadError(f"{name!r}: neither a folder nor a hub name; {known}") from error
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise LoadError(
            f"{name!r}: not a folder here, not an embedded model ({known}), and it could not be fetched from "
            f"the hub ({type(error).__name__}); check the name and the network, or give a folder"
        ) from error


def _from_folder(folder: Path, tokenizer: PreTrainedTokenizerBase | None) -> HookedTransformer:
    if not (folder / "config.json").is_file():
        held = "is empty" if not any(folder.iterdir()) else "has no config.json"
        raise LoadError(f"{folder}: the folder {held}; expected config.json, model.safetensors and a tokenizer")
    config = read_json(folder / "config.json")
    if config.get("architecture") == ARCHITECTURE:
        return load_native(folder, config, tokenizer)
    _require_gpt2(config, str(folder))
    if tokenizer is None and (tokenizer := load_tokenizer(folder)) is not None:
        name_special_tokens(tokenizer)
    return _gpt2(config, read_weights(folder), str(folder), tokenizer)


def _from_module(module: nn.Module, tokenizer: PreTrainedTokenizerBase | None) -> HookedTransformer:
    if isinstance(module, HookedTransformer):
        raise LoadError(f"{module.name!r} already is an interp model; use it as it is, or move it with its own .to()")
    config = getattr(module, "config", None)
    if config is None or not hasattr(config, "to_dict"):
        raise LoadError(f"expected a transformers GPT2LMHeadModel, got {type(module).__name__}, which has no config")
    _require_gpt2(config.to_dict(), type(module).__name__)
    # GPT-2's state dict lists the tied unembedding too; it is read as the embedding's transpose.
    return _gpt2(config.to_dict(), module.state_dict(), type(module).__name__, tokenizer)


def _require_gpt2(config: dict[str, Any], source: str) -> None:
    kind = config.get("model_type") or config.get("architecture")
    if kind != "gpt2":
        hint = suggest(str(kind), ["gpt2", ARCHITECTURE]) if kind else "its config.json names no model_type"
        raise LoadError(f"{source}: architecture {kind!r} is not known here; expected 'gpt2' or our own; {hint}")


def _gpt2(config: dict[str, Any], state: Any, source: str, tokenizer: Any) -> HookedTransformer:
    shape = gpt2_config(config, source)
    ours = gpt2_state(state, shape, source)  # checks the shapes, so that a wrong size allocates nothing
    model = HookedTransformer(shape, tokenizer, name=source)
    fill(model, ours)
    return model


def _require_no_overflow(model: HookedTransformer, dtype: torch.dtype) -> None:
    """Refuse weights that were finite and are no longer, now that they are held in `dtype`."""
    for name, parameter in model.named_parameters():
        if not parameter.isfinite().all():
            raise LoadError(
                f"{model.name}: tensor {name!r} holds values beyond {torch.finfo(dtype).max:g}, the largest number of "
                f"{dtype}; take bfloat16 or a wider dtype"
            )
