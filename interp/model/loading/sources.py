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
from interp.model.loading.checkpoint import (
    BIN,
    GGUF,
    as_state,
    file_state,
    gguf_refusal,
    no_weights,
    read_json,
    read_torch,
    read_weights,
)
from interp.model.loading.families import family_of
from interp.model.loading.llama2c import llama2c_checkpoint
from interp.model.loading.llama2c_bin import bin_checkpoint
from interp.model.loading.mingpt import mingpt_checkpoint
from interp.model.loading.nanogpt import nanogpt_checkpoint
from interp.model.loading.native import ARCHITECTURE, native_checkpoint
from interp.model.loading.tokenizer_files import load_tokenizer, name_ends
from interp.model.transformer import HookedTransformer

CONFIG, ADAPTER, MINGPT = "config.json", "adapter_config.json", "model.pt"
PYTORCH = (".pt", ".pth", ".ckpt")
Tokenizer = PreTrainedTokenizerBase | None


def folder_checkpoint(folder: Path, tokenizer: Tokenizer) -> Checkpoint:
    """The checkpoint in a folder, with its own tokenizer unless another is given.

    Raises:
        LoadError: There is none, or more than one, or it is damaged or of an unknown architecture.
    """
    _require_no_adapter(folder)
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


def _require_no_adapter(folder: Path) -> None:
    """Refuse a folder of PEFT's: its adapter changes the weights, which may lie beside it or elsewhere."""
    if (folder / ADAPTER).is_file():
        raise LoadError(
            f"{folder}: an adapter of PEFT ({ADAPTER}); merge it into its model's weights first, and give load_model "
            f"what AutoPeftModelForCausalLM.from_pretrained({str(folder)!r}).merge_and_unload() returns"
        )


def _only_file(folder: Path) -> Path:
    """The one file in a folder that may be a whole checkpoint."""
    files = sorted(path for path in folder.iterdir() if path.suffix in (*PYTORCH, ".bin", GGUF))
    files = [path for path in files if path.name != BIN and not path.name.startswith("tok")]
    if not files:
        raise no_weights(folder, "no config.json here; expected it, model.safetensors and a tokenizer")
    if len(files) > 1:
        names = ", ".join(path.name for path in files)
        raise LoadError(f"{folder}: the folder has no config.json and several checkpoints ({names}); name one of them")
    return files[0]


def file_checkpoint(path: Path, tokenizer: Tokenizer) -> Checkpoint:
    """The checkpoint that is one file: nanoGPT's, minGPT's or llama2.c's.

    Raises:
        LoadError: It is another file, damaged, or describes no model.
    """
    if path.suffix == GGUF:
        raise gguf_refusal(path)
    llama2c_bin = path.suffix == ".bin" and path.name != BIN
    if not llama2c_bin and path.suffix not in PYTORCH:
        raise LoadError(
            f"{path}: expected a folder with config.json and weights, nanoGPT's or minGPT's checkpoint (.pt), or "
            "llama2.c's (.bin), got another file; give its folder"
        )
    if tokenizer is None:
        tokenizer = load_tokenizer(path.parent)
    if llama2c_bin:
        return bin_checkpoint(path, tokenizer)
    content = read_torch(path)
    if isinstance(content, dict) and {"model", "model_args"} <= content.keys():
        arguments = content["model_args"]
        if not isinstance(arguments, dict):
            kind = type(arguments).__name__
            raise LoadError(f"{path}: 'model_args': expected a dictionary of the model's sizes, got {kind}")
        return (llama2c_checkpoint if "dim" in arguments else nanogpt_checkpoint)(path, content, tokenizer)
    if isinstance(content, dict) and isinstance(content.get("state_dict"), dict):
        raise LoadError(
            f"{path}: a checkpoint of Lightning, which does not say what the model is made of; save its 'state_dict' "
            f"as {BIN} in a folder with the config.json of the model, and give that folder"
        )
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
    name = type(module).__name__
    if not _has_config(module):
        raise LoadError(
            f"expected a transformers model, such as GPT2LMHeadModel, got {name}, which has no config{_hint(module)}"
        )
    config: Any = module.config
    # The state dict of a tied model lists the unembedding too; it is read as the embedding's transpose.
    fields = config.to_dict()
    return family_of(fields, name).checkpoint(fields, lambda: as_state(own_state(module), name), name, tokenizer)


def _has_config(module: nn.Module) -> bool:
    return hasattr(getattr(module, "config", None), "to_dict")


def _hint(module: nn.Module) -> str:
    """What to do with a module that is not from ``transformers``."""
    if hasattr(module, "run_with_cache"):
        return "; pass it to the methods as it is, which run on it, too"
    held = next(((name, each) for name, each in module.named_modules() if _has_config(each)), None)
    return f"; give the {type(held[1]).__name__} in it, module.get_submodule({held[0]!r})" if held else ""
