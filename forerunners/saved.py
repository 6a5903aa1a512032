"""A forerunner in a folder: ``config.json`` (its kind and config), ``model.safetensors`` and the tokenizer's files."""

import dataclasses
import json
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

from forerunners.convolution import Convolution, ConvolutionConfig
from forerunners.language_model import Forerunner, ForerunnerConfig, NeuralConfig, NeuralForerunner
from forerunners.ngram import FIELDS, NGram, NGramConfig, OrderTable, is_table
from forerunners.recurrent import Bidirectional, Recurrent, RecurrentConfig
from interp.arguments import named_arguments
from interp.errors import ConfigError, LoadError, OutputError, shown, suggest
from interp.model.devices import documented
from interp.model.loading.tensors import State, check_weights, read_json, read_safetensors
from interp.model.loading.tokenizer import load_tokenizer

FORMAT, WEIGHTS, CONFIG = 1, "model.safetensors", "config.json"
NEURAL: dict[str, tuple[type[NeuralForerunner], type[NeuralConfig]]] = {
    "Recurrent": (Recurrent, RecurrentConfig),
    "Bidirectional": (Bidirectional, RecurrentConfig),
    "Convolution": (Convolution, ConvolutionConfig),
}


@named_arguments
def save_forerunner(model: Forerunner, folder: str | Path) -> Path:
    """Write `model` to `folder`, so that ``load_forerunner(folder)`` gives it back.

    Args:
        model: What to save.
        folder: Made where it is missing.

    Raises:
        OutputError: `folder` cannot be made or written to.
    """
    folder = Path(folder)
    described = {"kind": type(model).__name__, "format": FORMAT, "name": model.name}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        save_file({name: each.cpu().contiguous() for name, each in model.state_dict().items()}, folder / WEIGHTS)
        config = {**described, "config": dataclasses.asdict(model.config)}
        (folder / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
        if model.tokenizer is not None:
            model.tokenizer.save_pretrained(folder)
    except (OSError, SafetensorError) as error:
        raise OutputError(f"{folder}: the model cannot be written here ({error}); name another folder") from error
    return folder


@documented
def load_forerunner(folder: str | Path) -> Forerunner:
    """The model that ``save_forerunner`` wrote to `folder`.

    Raises:
        LoadError: No such folder, another format or kind, a config that describes no model, or weights that do not fit.
    """
    folder = Path(folder)
    described = read_json(folder / CONFIG)
    if described.get("format") != FORMAT:
        raise LoadError(
            f"{folder}: written in format {shown(described.get('format'))}, this version reads format {FORMAT}"
        )
    kind, name = str(described.get("kind")), str(described.get("name", folder.name))
    kinds: dict[str, type[ForerunnerConfig]] = {each: its_config for each, (_, its_config) in NEURAL.items()}
    kinds["NGram"] = NGramConfig
    if kind not in kinds:
        raise LoadError(f"{folder}: no forerunner is called {kind!r}; {suggest(kind, kinds)}")
    try:
        fields = described.get("config")
        if not isinstance(fields, dict):
            raise ConfigError(f"config: expected the model's fields by name, got {shown(fields)}")
        config: Any = kinds[kind].from_dict(fields)
    except ConfigError as error:
        raise LoadError(f"{folder / CONFIG}: {error}") from error
    state, tokenizer = read_safetensors(folder / WEIGHTS), load_tokenizer(folder)
    if kind == "NGram":
        return NGram(config, *_tables(state, config, str(folder)), tokenizer, name=name)
    check_weights(state, _parameter_shapes(NEURAL[kind][0], config, state, str(folder)), str(folder))
    model = NEURAL[kind][0](config, tokenizer, name=name)
    model.to(dtype=reduce(torch.promote_types, (each.dtype for each in state.values())))
    model.load_state_dict(state, strict=False)  # its names and shapes were checked
    return model


def _parameter_shapes(
    kind: type[NeuralForerunner], config: NeuralConfig, state: State, source: str
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Every parameter's name and shape, without making room for a size that a config merely claims."""
    if config.n_layers > len(state):  # each layer has a tensor at least
        raise LoadError(
            f"{source}: {shown(config.n_layers)} layers, but {len(state)} tensors; does the config describe these "
            "weights?"
        )
    try:
        with torch.device("meta"):
            template = kind(config)
    except (RuntimeError, TypeError, OverflowError) as error:
        raise LoadError(f"{source}: expected sizes that can be counted, got a tensor beyond 2**63 numbers") from error
    for name, parameter in template.named_parameters():
        yield name, tuple(parameter.shape)


def _tables(state: State, config: NGramConfig, source: str) -> tuple[Any, list[OrderTable]]:
    """The unigrams and the tables of an n-gram model."""
    try:
        orders = [{name: state[f"orders.{each}.{name}"] for name in FIELDS} for each in range(config.order - 1)]
        unigram = {"unigram": state["unigram"]}
    except KeyError as error:
        raise LoadError(f"{source}: tensor {error} is missing; does the config describe these weights?") from error
    check_weights(unigram, [("unigram", (config.d_vocab,))], source)
    for order, tensors in enumerate(orders, start=2):
        if not is_table(tensors, config.d_vocab):
            raise LoadError(
                f"{source}: the table of order {order} is none of {config.d_vocab} words; the file is damaged, or the "
                "config describes other weights; save the model again"
            )
    return unigram["unigram"], [OrderTable(**tensors) for tensors in orders]
