"""Where does a result come from? What one needs to make it again, as plain JSON-ready values."""

import platform
from importlib.metadata import version
from typing import Any

import torch

from interp.model.weights import config_hash, tokenizer_hash, weights_hash
from interp.tasks.task import Task


def model_provenance(model: Any) -> dict[str, Any]:
    """Name, hashes, dtype and device of a model, CPU threads, and the versions it runs under."""
    parameter = next(model.parameters())
    return {
        "model": str(getattr(model, "name", type(model).__name__)),
        "model_hash": weights_hash(model),
        "config_hash": config_hash(model),
        "tokenizer_hash": tokenizer_hash(getattr(model, "tokenizer", None)),
        "dtype": str(parameter.dtype).removeprefix("torch."),
        "device": str(parameter.device),
        "threads": torch.get_num_threads(),
        "versions": {
            **{name: version(name) for name in ("interp", "torch", "transformer_lens")},
            "python": platform.python_version(),
        },
    }


def task_provenance(task: Task) -> dict[str, Any]:
    """Name and data hash of a task."""
    return {"task": task.name, "data_hash": task.hash}
