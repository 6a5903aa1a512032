"""Which model does a command work on? One with a tokenizer: tasks are text."""

from typing import Any

import torch

from interp.errors import LoadError
from interp.model import loading


def load_for_tasks(model: str | None, *, device: str, dtype: str, threads: int) -> Any:
    """Load a model that tasks can be encoded for, and set how many CPU threads compute.

    Args:
        model: A folder, a hub name, or the name of an embedded model; None for the embedded default.
        device: Where it computes.
        dtype: What it computes in.
        threads: Of the CPU.

    Raises:
        LoadError: It cannot be loaded, or has no tokenizer.
    """
    torch.set_num_threads(threads)
    loaded = loading.load_model(model, device=device, dtype=dtype)
    if loaded.tokenizer is None:
        raise LoadError(
            f"model {model}: expected a tokenizer beside the weights, got none: the folder has no tokenizer files; "
            "save one there with tokenizer.save_pretrained(folder)"
        )
    return loaded
