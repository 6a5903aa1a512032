"""Our own folder: ``config.json`` (architecture ``interp``), ``model.safetensors`` and the tokenizer's files."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformers import AutoTokenizer, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from interp.errors import ConfigError, LoadError, OutputError
from interp.model.config import TransformerConfig
from interp.model.loading.checkpoint import check_numbers, fill, read_weights
from interp.model.transformer import HookedTransformer

ARCHITECTURE = "interp"
FORMAT = 1
TOKENIZER = "tokenizer.json"


def save_model(model: HookedTransformer, folder: str | Path, *, dtype: torch.dtype | None = None) -> Path:
    """Write `model` to `folder`, so that ``load_model(folder)`` gives it back.

    Args:
        model: What to save.
        folder: Made where it is missing.
        dtype: Round the weights to this dtype; None keeps theirs.

    Raises:
        OutputError: `folder` cannot be made, or holds a tokenizer while `model` has none.
        LoadError: The weights are not finite, or not in this dtype; nothing is written.
    """
    folder = Path(folder)
    state = {name: p.detach().to("cpu", dtype).contiguous() for name, p in model.named_parameters()}
    check_numbers(state, f"saving {model.name!r}" + (f" as {dtype}" if dtype else ""))
    if model.tokenizer is None and (folder / TOKENIZER).is_file():
        raise OutputError(f"{folder}: holds another model's tokenizer, and this model has none; name another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: no folder can be made here ({error.strerror}); name another one") from error
    save_file(state, folder / "model.safetensors")
    config = {"architecture": ARCHITECTURE, "format": FORMAT, "name": model.name, **model.config.to_dict()}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    if model.tokenizer is not None:
        model.tokenizer.save_pretrained(folder)
    return folder


def load_native(folder: Path, config: dict[str, Any]) -> HookedTransformer:
    """The model that ``save_model`` wrote to `folder`.

    Raises:
        LoadError: A newer format, a config that describes no model, or weights that do not fit it.
    """
    fields = {key: value for key, value in config.items() if key not in ("architecture", "format", "name")}
    if config.get("format") != FORMAT:
        raise LoadError(
            f"{folder}: written in format {config.get('format')!r}, this version reads format {FORMAT}; update interp"
        )
    try:
        shape = TransformerConfig.from_dict(fields)
    except ConfigError as error:
        raise LoadError(f"{folder / 'config.json'}: {error}") from error
    model = HookedTransformer(shape, load_tokenizer(folder), name=config.get("name", folder.name))
    fill(model, read_weights(folder), str(folder))
    return model


def load_tokenizer(folder: Path) -> PreTrainedTokenizerBase | None:
    """The fast tokenizer of a checkpoint folder, or None where it has none.

    Raises:
        LoadError: Its files cannot be read.
    """
    try:
        if (folder / TOKENIZER).is_file():
            return PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)
        if (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file():
            return AutoTokenizer.from_pretrained(folder, local_files_only=True, use_fast=True)
    except Exception as error:  # tokenizers raises bare Exceptions
        raise LoadError(
            f"{folder}: the tokenizer's files cannot be read ({error}); fetch or save them again"
        ) from error
    return None
