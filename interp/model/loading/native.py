"""Our own folder: ``config.json`` (architecture ``interp``), ``model.safetensors`` and the tokenizer's files."""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from safetensors.torch import save_file
from transformers import PreTrainedTokenizerBase

from interp.arguments import named_arguments
from interp.errors import ConfigError, LoadError, OutputError, shown
from interp.model.config import TransformerConfig
from interp.model.devices import resolve_dtype
from interp.model.loading.tensors import WEIGHTS, Checkpoint, Parameters, Taker, read_weights, require_numbers
from interp.model.loading.tokenizer import holds_tokenizer, load_tokenizer
from interp.model.transformer import HookedTransformer

ARCHITECTURE = "interp"
FORMAT = 1


@named_arguments
def save_model(model: HookedTransformer, folder: str | Path, *, dtype: str | torch.dtype | None = None) -> Path:
    """Write `model` to `folder`, so that ``load_model(folder)`` gives it back.

    Everything is written elsewhere first and then moved, file by file: a failure before that leaves an older model
    as it was.

    Args:
        model: What to save.
        folder: Made where it is missing.
        dtype: Round the weights to this dtype (``float16``, ...); None keeps theirs.

    Returns:
        The folder, as a ``Path``.

    Raises:
        OutputError: `folder` cannot be made or written to, or holds a tokenizer while `model` has none.
        LoadError: The weights are not finite, or not in this dtype; nothing is written.
        ConfigError: No such dtype.

    Examples:
        >>> folder = interp.save_model(interp.load_model(), "mine")
        >>> interp.load_model(folder).hash == interp.load_model().hash
        True
    """
    if not isinstance(model, HookedTransformer):
        raise OutputError(f"save_model: expected one of our own models, got {shown(model)}; load it with load_model")
    folder = Path(folder)
    held = None if dtype is None else resolve_dtype(dtype)
    state = {name: p.detach().to("cpu", held).contiguous() for name, p in model.named_parameters()}
    for name, tensor in state.items():
        require_numbers(tensor, name, f"saving {model.name!r}" + (f" as {held}" if held else ""))
    if model.tokenizer is None and holds_tokenizer(folder):
        raise OutputError(f"{folder}: holds another model's tokenizer, and this model has none; name another folder")
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: no folder can be made here ({error.strerror}); name another one") from error
    try:
        with TemporaryDirectory(dir=folder, prefix=".", suffix=".partial") as draft:
            save_file(state, Path(draft) / WEIGHTS)
            config = {"architecture": ARCHITECTURE, "format": FORMAT, "name": model.name, **model.config.to_dict()}
            (Path(draft) / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
            if model.tokenizer is not None:
                model.tokenizer.save_pretrained(draft)
            _move(Path(draft), folder)
    except BaseException as error:
        for each in made:
            with suppress(OSError):
                each.rmdir()
        if not isinstance(error, Exception):
            raise
        # safetensors has its own errors, and tokenizers raises bare Exceptions
        raise OutputError(f"{folder}: the model cannot be written here ({error}); name another folder") from error
    return folder


def _move(draft: Path, folder: Path) -> None:
    """Put the files of `draft` into `folder`, all of them or, as far as can be foreseen, none."""
    files = [path.relative_to(draft) for path in draft.rglob("*") if path.is_file()]
    for file in files:
        if (folder / file).is_dir():
            raise IsADirectoryError(f"{file} is a folder there")
    for file in files:
        (folder / file).parent.mkdir(exist_ok=True)
        os.replace(draft / file, folder / file)


def native_checkpoint(folder: Path, config: dict[str, Any], tokenizer: PreTrainedTokenizerBase | None) -> Checkpoint:
    """What ``save_model`` wrote to `folder`, with its own tokenizer unless another is given."""
    fields = {key: value for key, value in config.items() if key not in ("architecture", "format", "name")}
    if config.get("format") != FORMAT:
        written = shown(config.get("format"))
        raise LoadError(f"{folder}: written in format {written}, this version reads format {FORMAT}; update interp")
    try:
        shape = TransformerConfig.from_dict(fields)
    except ConfigError as error:
        raise LoadError(f"{folder / 'config.json'}: {error}") from error
    tokenizer = load_tokenizer(folder) if tokenizer is None else tokenizer
    name, read = str(config.get("name", folder.name)), partial(read_weights, folder)
    return Checkpoint(str(folder), "this architecture", shape, read, _weights, tokenizer, name=name)


def _weights(take: Taker, config: TransformerConfig) -> Parameters:
    """The parameters as they are."""
    try:
        for name, shape in parameter_shapes(config):
            yield name, take(name, *shape)
    except ConfigError as error:
        raise LoadError(f"{take.source}: {error}") from error


def parameter_shapes(config: TransformerConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Every parameter's name and shape: of a config of any size that can be counted, without its memory."""
    try:
        with torch.device("meta"):
            template = HookedTransformer(replace(config, n_layers=1, local_layers=None))
    except (RuntimeError, TypeError, OverflowError) as error:
        raise ConfigError("expected sizes that can be counted, got a tensor of more than 2**63 numbers") from error
    for name, parameter in template.named_parameters():
        if not name.startswith("blocks."):
            yield name, tuple(parameter.shape)
    for layer in range(config.n_layers):
        for name, parameter in template.blocks[0].named_parameters():
            yield f"blocks.{layer}.{name}", tuple(parameter.shape)
