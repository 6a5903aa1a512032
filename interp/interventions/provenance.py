"""Where a result comes from, and what its numbers follow from, as plain values that JSON can hold.

``*_provenance`` is for whoever reads a result; ``*_asked`` is what a kept measurement is found by (``interp.Run``).
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from torch import nn

from interp.errors import InputError
from interp.hashing import hash_of_rows
from interp.model.devices import arithmetic, place_of
from interp.model.loading.bridge import has_foreign_code, has_hooks, is_bridge, modules_of, settings_hash
from interp.model.provenance import model_provenance
from interp.tasks.task import Task, digest

_OF_MODEL = ("model_hash", "config_hash", "tokenizer_hash", "dtype", "threads")


def origin_of(model: Any) -> str:
    """The hashes and dtype that tell a model from others, in all processes."""
    own = model_provenance(model)
    return json.dumps([own[name] for name in ("model_hash", "config_hash", "dtype")])


def task_provenance(task: Task) -> dict[str, Any]:
    """Name and data hash of a task; where there are any, its counterfactual, Python file's hash and chat template."""
    more: dict[str, Any] = {"counterfactual": task.counterfactual, "source_hash": task.source_hash}
    more |= {"chat": any(each.example.chat for each in task.examples)}
    return {"task": task.name, "data_hash": task.hash, **{name: each for name, each in more.items() if each}}


def task_shown(task: Task, tokenizer: Any, labels: Iterable[str]) -> dict[str, Any]:
    """What a report says of a task: its question, what was left out, and how many examples were asked for.

    Where cells are positions and all prompts have one length, also the commonest token at each position, with the share
    of prompts that have it.
    """
    shown = {
        "question": task.description,
        "dropped": dict(task.dropped),
        "coverage": dict(task.coverage),
        "n_asked": len(task.examples),
    }
    prompts = [each.prompt for each in task.examples]
    if tokenizer is None or not {"pos", "key"} & set(labels) or len(set(map(len, prompts))) > 1:
        return shown
    n_before, positions = min(each.n_before for each in task.examples), []
    for position, tokens in enumerate(zip(*prompts, strict=True)):
        token, n = Counter(tokens).most_common(1)[0]
        text = "BOS" if position < n_before and token == tokenizer.bos_token_id else tokenizer.decode([token])
        positions.append([text, n / len(tokens)])
    return {**shown, "positions": positions}


def model_asked(model: Any, own: Mapping[str, Any]) -> dict[str, Any]:
    """All of a model that numbers follow from; `own` is its provenance. Refuses one that no hash tells from others."""
    if own["model_hash"] is None or own["config_hash"] is None:
        raise InputError(
            f"run: {own['model']} does not show what it is made of, so that no hash could tell it from others; "
            "expected one of our own models or a TransformerBridge; measure without run"
        )
    require_told_by_weights(model, "run", "measure without run")
    found = {name: own[name] for name in _OF_MODEL}
    how = {"device": place_of(model)[0].type, "arithmetic": arithmetic()}
    return {**found, **how, "settings_hash": settings_hash(model)}


def require_told_by_weights(model: nn.Module, what: str, instead: str) -> None:
    """Refuse a model with hooks or foreign code, or a bridge in training mode: no hash says what it computes.

    `what` was asked for, and `instead` is the advice; both are for the message.
    """
    if has_hooks(model):
        raise InputError(
            f"{what}: somebody's hooks are on the model, and what they do no hash can tell; expected a model without; "
            f"remove them (model.reset_hooks(), or .remove() of what register_forward_hook gave), or {instead}"
        )
    if has_foreign_code(model):
        raise InputError(
            f"{what}: somebody's code is in the model (a class of its own, or a function in the place of a module's), "
            f"and what it computes no hash can tell; expected a model as interp, transformers or TransformerLens make "
            f"it; {instead}"
        )
    if is_bridge(model) and any(each.training for each in modules_of(model)):
        raise InputError(
            f"{what}: the bridge is in training mode, and drops out what chance says; expected evaluation mode; call "
            f"model.eval(), or {instead}"
        )


def task_asked(task: Task) -> dict[str, Any]:
    """All of a task that numbers follow from, where the whole task is measured."""
    units = [[unit.cluster, unit.fold, len(unit.examples)] for unit in task.units]
    return {
        **task_provenance(task),
        **{name: getattr(task, name) for name in ("description", "metric", "query", "feature")},
        "dropped": dict(task.dropped),
        "coverage": dict(task.coverage),
        # A task of some of another's units has the other's hash.
        "units_hash": digest([task.units, *task.references]),
        "folds_hash": hash_of_rows(units),
    }
