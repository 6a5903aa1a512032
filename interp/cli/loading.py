"""Which model and tasks does a command work on? A model with a tokenizer, and the tasks that this can carry."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from interp.cli.saying import say
from interp.errors import LoadError
from interp.model import loading

if TYPE_CHECKING:
    from interp.tasks.task import Task


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
    from interp.cli.terminal import warnings_as_lines

    torch.set_num_threads(threads)
    with warnings_as_lines():
        loaded = loading.load_model(model, device=device, dtype=dtype)
    if loaded.tokenizer is None:
        raise LoadError(
            f"model {model}: expected a tokenizer beside the weights, got none: the folder has no tokenizer files; "
            "save one there with tokenizer.save_pretrained(folder)"
        )
    return loaded


def load_tasks(
    names: Sequence[str], model: Any, *, n: int | None, seed: int, **how: Any
) -> "tuple[list[Task], dict[str, str]]":
    """The named tasks that the model's tokenizer can carry; where it cannot carry all, say how much of each it can.

    Returns:
        The tasks; and by its name, why each of the others is left out.

    Raises:
        InputError: As ``interp.methods.task_arguments.carried``.
        TaskError: Likewise.
    """
    from interp.cli.terminal import warnings_as_lines
    from interp.methods.task_arguments import carried

    with warnings_as_lines():
        tasks, left_out = carried(names, model, n=n, seed=seed, **how)
    if left_out or any(task.dropped for task in tasks):
        for task in tasks:
            dropped = sum(task.dropped.values())
            why = "; ".join(task.dropped)
            without = f" ({dropped} left out: {why})" if dropped else ""
            say(f"{task.name}: {len(task.units)} of {len(task.units) + dropped} units{without}", err=True)
    return tasks, left_out


def can_be_asked(model: Any) -> bool:
    """Whether a model predicts the next token, and its tokenizer carries any generated task."""
    from interp.tasks.catalogue import carries_any

    return predicts(model) and carries_any(model.tokenizer, model.cfg.n_ctx)


def predicts(model: Any) -> bool:
    """Whether a model predicts the next token."""
    from interp.model.loading.bridge import why_no_head
    from interp.model.positions import looks_back_only

    return looks_back_only(model) and why_no_head(model) is None
