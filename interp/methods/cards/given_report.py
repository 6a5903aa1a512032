"""Is a dossier that somebody made before of this model, and of these items; and which one is it?"""

import hashlib
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import pandas as pd

from interp.errors import InputError
from interp.interventions.provenance import model_provenance
from interp.methods.dossier import HeadsReport
from interp.methods.judged_models import Asked
from interp.model.weights import hash_of_values
from interp.tasks.task import Task

_OPTIONS = {each.name for each in fields(Asked)}


def check_report(report: HeadsReport, model: Any, tasks: Sequence[Task]) -> None:
    """Refuse a dossier of another model, without one of the tasks, or of other items of it.

    Raises:
        InputError: It is one of these; or no task, or one twice.
    """
    names = [task.name for task in tasks]
    if not names or len(set(names)) < len(names):
        raise InputError(f"tasks: expected different tasks, at least one; got {names}")
    made = {each["task"]: each for each in report.provenance["tasks"]}
    ours = model_provenance(model)["model_hash"]
    for task in tasks:
        if task.name not in made:
            raise InputError(
                f"report: expected a dossier of the task {task.name!r}, got one of {', '.join(made)}; make one of all "
                "these tasks with interp.heads, or leave the report out"
            )
        for what, expected in (("model_hash", ours), ("data_hash", task.hash)):
            if made[task.name][what] != expected:
                raise InputError(
                    f"report: expected a dossier of this model and of these items of {task.name!r}, got one with "
                    f"another {what}; make it anew with interp.heads, or leave the report out"
                )


def report_hash(report: HeadsReport) -> str:
    """SHA-256 of all tables of a dossier, and of the options that it was made with."""
    options = {name: value for name, value in report.provenance.items() if name in _OPTIONS}
    digest = hashlib.sha256(hash_of_values(options).encode())
    for each in fields(report):
        table = getattr(report, each.name)
        if isinstance(table, pd.DataFrame):
            digest.update(f"{each.name}\n{table.to_csv(index=False)}".encode())
    return digest.hexdigest()
