"""What lies in a folder, in a file, or in a ``transformers`` module, and who reads it?

============================================  ================================
``config.json`` with our ``architecture``     ``native.py``
``config.json`` with a ``model_type``         a family of ``families.py``
``config.json`` with a ``model``              ``mingpt.py``
a PyTorch file with ``model_args``            ``nanogpt.py``, or ``llama2c.py``
another ``.bin`` file                         ``llama2c_bin.py``
============================================  ================================
"""

from pathlib import Path
from typing import Any

from torch import nn
from transformers import PreTrainedTokenizerBase

from interp.errors import LoadError
from interp.model.loading.bridge import own_state
from interp.model.loading.build import Checkpoint
from interp.model.loading.checkpoint import BIN, as_state, file_state, read_json, read_torch, read_weights
from interp.model.loading.families import family_of
from interp.model.loading.llama2c import llama2c_checkpoint
from interp.model.loading.llama2c_bin import bin_checkpoint
from interp.model.loading.mingpt import mingpt_checkpoint
from interp.model.loading.nanogpt import nanogpt_checkpoint
from interp.model.loading.native import ARCHITECTURE, native_checkpoint
from interp.model.loading.tokenizer_files import load_tokenizer, name_ends
from interp.model.transformer import HookedTransformer

CONFIG, MINGPT = "config.json", "model.pt"
PYTORCH = (".pt", ".pth", ".ckpt")
Tokenizer = PreTrainedTokenizerBase | None


def folder_checkpoint(folder: Path, tokenizer: Tokenizer) -> Checkpoint:
    """The checkpoint in a folder, with its own tokenizer unless another is given.

    Raises:
        LoadError: There is none, or more than one, or it is damaged or of an unknown architecture.
    """
    if not (folder / CONFIG).is_file():
        return file_checkpoint(_only_file(folder), tokenizer)
    config = read_json(folder / CONFIG)
    if config.get("architecture") == ARCHITECTURE:
        return native_checkpoint(folder, config, tokenizer)
    if "model_type" not in config and isinstance(config.get("model"), dict):
        return file_checkpoint(folder / MINGPT, tokenizer)
    family = family_of(config, str(folder))
    if tokenizer is None and (tokenizer := load_tokenizer(folder, family.vocabulary)) is not None:
        name_ends(tokenizer, family.vocabulary)
    return family.checkpoint(config, lambda: read_weights(folder), str(folder), tokenizer)


def _only_file(folder: Path) -> Path:
    """The one file in a folder that may be a whole checkpoint."""
    files = sorted(path for path in folder.iterdir() if path.suffix in (*PYTORCH, ".bin"))
    files = [path for path in files if path.name != BIN and not path.name.startswith("tok")]
    if not files:
        held = "is empty" if not any(folder.iterdir()) else "has no config.json"
        raise LoadError(f"{folder}: the folder {held}; expected config.json, model.safetensors and a tokenizer")
    if len(files) > 1:
        names = ", ".join(path.name for path in files)
        raise LoadError(f"{folder}: the folder has no config.json and several checkpoints ({names}); name one of them")
    return files[0]


def file_checkpoint(path: Path, tokenizer: Tokenizer) -> Checkpoint:
    """The checkpoint that is one file: nanoGPT's, minGPT's or llama2.c's.

    Raises:
        LoadError: It is another file, damaged, or describes no model.
    """
    if path.suffix == ".bin" and path.name != BIN:
        return bin_checkpoint(path, tokenizer)
    if path.suffix not in PYTORCH:
        raise LoadError(
            f"{path}: expected a folder with config.json and weights, nanoGPT's or minGPT's checkpoint (.pt), or "
            "llama2.c's (.bin), got another file; give its folder"
        )
    content = read_torch(path)
    if tokenizer is None:
        tokenizer = load_tokenizer(path.parent)
    if isinstance(content, dict) and {"model", "model_args"} <= content.keys():
        arguments = content["model_args"]
        if not isinstance(arguments, dict):
            kind = type(arguments).__name__
            raise LoadError(f"{path}: 'model_args': expected a dictionary of the model's sizes, got {kind}")
        return (llama2c_checkpoint if "dim" in arguments else nanogpt_checkpoint)(path, content, tokenizer)
    if not (path.parent / CONFIG).is_file():
        raise LoadError(
            f"{path}: expected a dictionary with 'model' and 'model_args', as nanoGPT writes, or minGPT's config.json "
            "beside it, which says how many heads there are; got neither"
        )
    return mingpt_checkpoint(path, file_state(content, path), read_json(path.parent / CONFIG), tokenizer)


def module_checkpoint(module: nn.Module, tokenizer: Tokenizer) -> Checkpoint:
    """The model in a ``transformers`` module.

    Raises:
        LoadError: It is not from ``transformers``, or of an unknown architecture.
    """
    if isinstance(module, HookedTransformer):
        raise LoadError(f"{module.name!r} already is an interp model; use it as it is, or move it with its own .to()")
    config: Any = getattr(module, "config", None)
    name = type(module).__name__
    if config is None or not hasattr(config, "to_dict"):
        hint = "; pass it to the methods as it is, which run on it, too" if hasattr(module, "run_with_cache") else ""
        raise LoadError(
            f"expected a transformers model, such as GPT2LMHeadModel, got {name}, which has no config{hint}"
        )
    # The state dict of a tied model lists the unembedding too; it is read as the embedding's transpose.
    fields = config.to_dict()
    return family_of(fields, name).checkpoint(fields, lambda: as_state(own_state(module), name), name, tokenizer)
