"""Where does a result come from? What one needs to make it again, as plain JSON-ready values."""

import platform
from importlib.metadata import version
from typing import Any

import torch
from torch import nn

from interp.model.devices import place_of
from interp.model.loading.bridge import BRIDGE, configuration, is_bridge
from interp.model.loading.modules import require_model
from interp.model.positions import looks_back_only
from interp.model.weights import config_hash, hash_of_values, tokenizer_hash, weights_hash
from interp.special_tokens import shown_around
from interp.tasks.task import Task


def model_provenance(model: Any) -> dict[str, Any]:
    """Name, hashes, dtype and device of a model, what stands around its texts, CPU threads, and versions.

    The hashes of a model that is no ``torch`` module, and so shows no weights, are None; and ``config_hash`` is of one
    that is neither ours nor behind a ``TransformerBridge``.

    Raises:
        InputError: It is no model.
    """
    require_model(model)
    (device, dtype), kind, shown = place_of(model), type(model).__name__, isinstance(model, nn.Module)
    return {
        "model": f"{BRIDGE}{model.cfg.model_name}" if is_bridge(model) else str(getattr(model, "name", kind)),
        "model_hash": weights_hash(model) if shown else None,
        "config_hash": _config_hash(model) if shown else None,
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
    """What stands around the texts of a model, for people: ``[CLS] text [SEP]``; None without a tokenizer."""
    tokenizer = getattr(model, "tokenizer", None)
    return None if tokenizer is None else shown_around(tokenizer, both_sides=not looks_back_only(model))


def _config_hash(model: nn.Module) -> str | None:
    return hash_of_values(configuration(model)) if is_bridge(model) else config_hash(model)


def task_provenance(task: Task) -> dict[str, Any]:
    """Name and data hash of a task."""
    return {"task": task.name, "data_hash": task.hash}
