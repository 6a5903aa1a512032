"""Where does a result come from? What one needs to make it again, as plain JSON-ready values."""

import hashlib
import platform
from importlib.metadata import version
from typing import Any

import torch

from interp.model.weights import weights_hash
from interp.tasks.task import Task


def model_provenance(model: Any) -> dict[str, Any]:
    """Name, hashes, dtype and device of a model, CPU threads, and the versions it runs under."""
    parameter = next(model.parameters())
    return {
        "model": str(getattr(model, "name", type(model).__name__)),
        "model_hash": weights_hash(model),
        "tokenizer_hash": _tokenizer_hash(getattr(model, "tokenizer", None)),
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


def _tokenizer_hash(tokenizer: Any) -> str | None:
    """SHA-256 of a fast tokenizer's full definition, of a slow one's vocabulary; None without one."""
    if tokenizer is None:
        return None
    backend = getattr(tokenizer, "backend_tokenizer", None)
    text = repr(sorted(tokenizer.get_vocab().items())) if backend is None else backend.to_str()
    return hashlib.sha256(text.encode()).hexdigest()
