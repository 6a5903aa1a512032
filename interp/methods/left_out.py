"""Which of several tasks can be measured? What cannot is left out, with its reason, and the others go on.

Left out is what this model or its tokenizer cannot carry. What is wrong with the question is an error, which whoever
asked can mend: a name that no task has, a file that is not there.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from interp.errors import InputError, InterpError, NotCarriedError
from interp.methods.given_task import as_predicted, listed
from interp.tasks.task import Task

AnyReport = TypeVar("AnyReport")


def carried(
    tasks: Sequence[Task | str] | Task | str, model: Any, *, n: int | None, seed: int, **how: Any
) -> tuple[list[Task], dict[str, str]]:
    """The tasks that the model's tokenizer can carry; a warning tells of the others.

    Args:
        tasks: Tasks, or names for ``interp.load_task``.
        model: Whose tokenizer encodes those that are named.
        n: Units of each that is named, if any is; None for its own default.
        seed: Of the draws.
        how: As of ``given_task.as_task``.

    Returns:
        The tasks, in their order; and by its name, why each of the others is left out.

    Raises:
        InputError: As ``given_task.as_predicted``; or there is no list.
        TaskError: No task is left; or as ``given_task.as_task``.
    """
    given = listed(tasks)
    of_tasks = None if any(isinstance(each, str) for each in given) else n
    found, failed = list[Task](), dict[str, InterpError]()
    for each in given:
        try:
            found.append(as_predicted(each, model, n=n if isinstance(each, str) else of_tasks, seed=seed, **how))
        except NotCarriedError as error:
            failed[each if isinstance(each, str) else each.name] = error
    if failed and not found:
        raise none_left(failed)
    return found, told(failed)


def told(failed: Mapping[str, InterpError]) -> dict[str, str]:
    """Why each task is left out, by its name; a warning says so, too."""
    reasons = {name: _reason(name, error) for name, error in failed.items()}
    for name, reason in reasons.items():
        warnings.warn(f"{name} is left out: {reason}", RuntimeWarning, stacklevel=3)
    return reasons


def none_left(failed: Mapping[str, InterpError]) -> InterpError:
    """What to raise where no task is left: the only error, or one with the reason of each."""
    first, *others = failed.values()
    if all(str(each) == str(first) for each in others):
        return first
    ways = [way for way in first.ways if all(way in each.ways for each in others)]
    reasons = "; ".join(f"{name}: {_reason(name, error)}" for name, error in failed.items())
    return type(first)(f"none of the {len(failed)} tasks can be measured: {reasons}", *ways)


def _reason(name: str, error: InterpError) -> str:
    return error.fault.removeprefix(f"{name}: ")


def with_left_out(report: AnyReport, reasons: Mapping[str, str]) -> AnyReport:
    """The report, whose provenance says of these tasks, too, why they were left out."""
    if not reasons:
        return report
    made: Any = report
    left_out = {**reasons, **made.provenance["left_out"]}
    return replace(made, provenance={**made.provenance, "left_out": left_out})


def those_in(report: Any, tasks: Sequence[Task]) -> list[Task]:
    """The tasks without those that a report says were left out of it.

    Raises:
        InputError: None is in it.
    """
    left_out = report.provenance.get("left_out", {})
    found = [task for task in tasks if task.name not in left_out]
    if tasks and not found:
        reasons = "; ".join(f"{task.name}: {left_out[task.name]}" for task in tasks)
        raise InputError(f"tasks: expected one that is in the report, got those that were left out of it ({reasons})")
    return found
