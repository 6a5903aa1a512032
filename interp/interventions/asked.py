"""What was asked of a sweep? All that its numbers follow from, beside the program and the machine, as plain values."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from torch import nn

from interp.errors import InputError
from interp.interventions.cell import Cell
from interp.interventions.intervention import Intervention
from interp.interventions.later import origin_of
from interp.interventions.provenance import task_provenance
from interp.interventions.replacement import Replacement, sources_of
from interp.interventions.rows import Row
from interp.model.devices import arithmetic, place_of
from interp.model.loading.bridge import has_foreign_code, has_hooks, is_bridge, modules_of, settings_of
from interp.tasks.task import Task, digest

_OF_MODEL = ("model_hash", "config_hash", "tokenizer_hash", "dtype", "threads")


def canonical(value: Any) -> str:
    """JSON that is the same for equal values: sorted keys, no spaces.

    Raises:
        InputError: A value that JSON has no name for, or a number that is none.
    """
    how: Any = {"sort_keys": True, "ensure_ascii": False, "allow_nan": False, "separators": (",", ":")}
    try:
        return json.dumps(value, default=_plain, **how)
    except (TypeError, ValueError) as error:
        raise InputError(f"run: expected numbers and texts to be asked for, got something else ({error})") from error


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} {value!r:.80}")


def model_asked(model: Any, own: Mapping[str, Any]) -> dict[str, Any]:
    """What is asked of whoever runs a model.

    Args:
        model: What is run.
        own: Its provenance.

    Raises:
        InputError: No hash could tell it from others: it does not show what it is made of, or as
            ``require_told_by_weights``.
    """
    if own["model_hash"] is None or own["config_hash"] is None:
        raise InputError(
            f"run: {own['model']} does not show what it is made of, so that no hash could tell it from others; "
            "expected one of our own models or a TransformerBridge; measure without run"
        )
    require_told_by_weights(model, "run", "measure without run")
    found = {name: own[name] for name in _OF_MODEL}
    how = {"device": place_of(model)[0].type, "arithmetic": arithmetic()}
    return {**found, **how, "settings_hash": settings_hash(model)}


def settings_hash(model: nn.Module) -> str:
    """SHA-256 of what its modules hold beside weights: an edited ``eps`` is in no configuration."""
    return _hash(settings_of(model))


def require_told_by_weights(model: nn.Module, what: str, instead: str) -> None:
    """Refuse a torch module whose numbers do not follow from its weights and its configuration, where a hash tells it.

    Args:
        model: The module.
        what: What is asked for, for the message.
        instead: What else to do, for the message.

    Raises:
        InputError: It has somebody's hooks or code in it, or draws numbers, as a bridge does in training mode.
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
    """What is asked of whoever measures all of a task."""
    units = [[unit.cluster, unit.fold, len(unit.examples)] for unit in task.units]
    return {
        **task_provenance(task),
        **{name: getattr(task, name) for name in ("description", "metric", "query", "feature")},
        "dropped": dict(task.dropped),
        "coverage": dict(task.coverage),
        # A task of some of another's units has the other's hash.
        "units_hash": digest([task.units, *task.references]),
        "folds_hash": _hash(units),
    }


def asked_of(
    model: Any, own: Mapping[str, Any], task: Task, cells: Sequence[Cell], rows: Sequence[Row], **options: Any
) -> dict[str, Any]:
    """What is asked of a sweep.

    Args:
        model: What is run.
        own: Its provenance.
        task: What is measured.
        cells: What is changed.
        rows: What is run for it.
        options: Metric, direction, seed and plan.

    Raises:
        InputError: It cannot be told from another request: as ``model_asked``, or a replacement that nobody can name;
            or it has labels that no table can hold.
    """
    _require_columns(cells)
    replacements = list({id(each): each for each in _replacements(cells)}.values())
    number = {id(each): at for at, each in enumerate(replacements)}
    return {
        "kind": "sweep",
        **model_asked(model, own),
        **task_provenance(task),
        # A task of some of another's units has the other's hash.
        "rows_hash": _hash([*map(_row, rows), [[unit.cluster, len(unit.examples)] for unit in task.units]]),
        "labels": list(cells[0].labels),
        "n_cells": len(cells),
        "sites": sorted({each.site.name for cell in cells for each in cell.interventions}),
        "replacements": [_named(each, model) for each in replacements],
        "cells_hash": _hash(_cell(cell, number) for cell in cells),
        **options,
    }


def _require_columns(cells: Sequence[Cell]) -> None:
    """Refuse labels that no table's column can hold, before anything is measured."""
    for name in cells[0].labels:
        kinds = {type(_plain_label(cell.labels[name])) for cell in cells}
        if len(kinds) > 1 or not kinds <= {int, float, str, bool}:
            names = ", ".join(sorted(each.__name__ for each in kinds))
            raise InputError(
                f"run: label {name!r}: expected numbers alone, or texts alone, which a table can hold, got {names}; "
                "give others, or measure without run"
            )


def _plain_label(label: Any) -> Any:
    """A label as Python's own number."""
    return label.item() if isinstance(label, np.generic) else label


def _replacements(cells: Iterable[Cell]) -> Iterable[Replacement]:
    return (each.replacement for cell in cells for each in cell.interventions)


def _named(replacement: Replacement, model: Any) -> str:
    """What a replacement is called; where its values come from other models, of which."""
    name = replacement.identity
    if name is None:
        raise InputError(
            f"run: a replacement of kind {replacement.kind!r} that does not say what it is, so that no other could be "
            "told from it; expected one with an identity; give it one, or measure without run"
        )
    others = [each for each in sources_of(replacement) if each is not model]
    origins = [each if isinstance(each, str) else origin_of(each) for each in others]
    return name + "".join(f" from {each}" for each in origins if each != origin_of(model))


def _hash(rows: Iterable[Any]) -> str:
    digest = hashlib.sha256()
    for row in rows:
        digest.update(canonical(row).encode() + b"\n")
    return digest.hexdigest()


def _row(row: Row) -> list[Any]:
    scored = row.encoded
    answers = (scored.right, scored.wrong, scored.example.template, row.layout, row.run.critical)
    return [row.example, row.fold, row.sign, row.tokens, row.source_tokens, row.source_positions, *answers]


def _cell(cell: Cell, number: Mapping[int, int]) -> list[Any]:
    return [dict(cell.labels), [_intervention(each, number[id(each.replacement)]) for each in cell.interventions]]


def _intervention(each: Intervention, replacement: int) -> list[Any]:
    at = each.positions
    positions = sorted(at.items()) if isinstance(at, Mapping) else at
    return [each.site.name, each.site.layer, each.heads, positions, each.units, each.keys, replacement]
