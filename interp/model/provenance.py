"""Which model made a result: its name, hashes, dtype and device, and the versions that computed it."""

import platform
from importlib.metadata import version
from typing import Any

import torch
from torch import nn

from interp.model.devices import place_of
from interp.model.loading.bridge import BRIDGE, configuration, is_bridge, require_model
from interp.model.positions import looks_back_only
from interp.model.weights import config_hash, hash_of_values, tokenizer_hash, weights_hash
from interp.special_tokens import shown_around


def model_provenance(model: Any) -> dict[str, Any]:
    """Name, hashes, dtype and device of a model, the special tokens around its texts, CPU threads, and versions.

    Hashes are None where the model shows no weights or no configuration. Raises InputError for what is no model.
    """
    require_model(model)
    (device, dtype), kind, shown = place_of(model), type(model).__name__, isinstance(model, nn.Module)
    bridged = is_bridge(model)
    return {
        "model": f"{BRIDGE}{model.cfg.model_name}" if bridged else str(getattr(model, "name", kind)),
        "model_hash": weights_hash(model) if shown else None,
        "config_hash": None if not shown else hash_of_values(configuration(model)) if bridged else config_hash(model),
        "tokenizer_hash": tokenizer_hash(getattr(model, "tokenizer", None)),
        "special_tokens": shown_around_texts(model),
        "dtype": str(dtype).removeprefix("torch."),
        "device": str(device),
        "threads": torch.get_num_threads(),
        "versions": {
            **{name: version(name) for name in ("interp", "torch", "transformer_lens")},
            "python": platform.python_version(),
        },
    }


def shown_around_texts(model: Any) -> str | None:
    """The special tokens around a model's texts, for people: ``[CLS] text [SEP]``; None without a tokenizer."""
    tokenizer = getattr(model, "tokenizer", None)
    return None if tokenizer is None else shown_around(tokenizer, both_sides=not looks_back_only(model))
