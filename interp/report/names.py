"""What is a task called? A short name for readers, and one that every file system takes.

A task that was read from a file is named by its path, which says little to a reader and much about
the machine: headings, tables, figures and sentences show the file's stem, the provenance the path.
"""

import itertools
import re
from collections.abc import Sequence
from pathlib import Path

from interp.report.frames import Dossier, HeadsFrames

_BLIMP = "blimp:"
_LONGEST = 120
"""Characters of a name for readers: a longer one would fill the page."""


def with_shown_names(report: HeadsFrames) -> HeadsFrames:
    """The report with every task named for readers; its examples and provenance stay as they are."""
    names = shown_names([str(task) for task in report.tasks["task"]])
    frame, tasks, groups, others, maps = (
        each.assign(task=each["task"].map(names))
        for each in (report.frame, report.tasks, report.groups, report.replication, report.attention_maps)
    )
    return Dossier(frame, report.examples, tasks, groups, others, maps, report.provenance)


def shown_names(tasks: Sequence[str]) -> dict[str, str]:
    """A distinct name for each task: of a path its last part, with as many folders as tell it from the others.

    Of a name that is too long to read it is the beginning, with an ellipsis.
    """
    names = {task: _shown_name(task, [other for other in tasks if other != task]) for task in tasks}
    taken = set(names.values())
    for task, name in names.items():
        if len(name) > _LONGEST:
            endings = (f"…{n}" if n > 1 else "…" for n in itertools.count(1))
            beginnings = (name[: _LONGEST - len(ending)] + ending for ending in endings)
            names[task] = next(each for each in beginnings if each not in taken)
            taken.add(names[task])
    return names


def file_names(tasks: Sequence[str]) -> list[str]:
    """A distinct name for each task that every file system takes: a path's last part, in plain letters."""
    names: list[str] = []
    for task in tasks:
        plain = re.sub(r"[^a-z0-9_]+", "-", Path(task).stem.lower().removeprefix(_BLIMP)).strip("-")[:60]
        candidates = (f"{plain or 'task'}-{n}" if n > 1 else plain or "task" for n in itertools.count(1))
        names.append(next(name for name in candidates if name not in names))
    return names


def _shown_name(task: str, others: Sequence[str]) -> str:
    for n_parts in range(1, len(Path(task).parts) + 1):
        name = _ending(task, n_parts)
        if name not in {_ending(other, n_parts) for other in others}:
            return name
    return task


def _ending(task: str, n_parts: int) -> str:
    """The last parts of a file's path, without ``.jsonl``; another task's name as it is."""
    if not task.startswith(_BLIMP):
        return task
    path = Path(task.removeprefix(_BLIMP).removesuffix(".jsonl"))
    return _BLIMP + "/".join(path.parts[-n_parts:])
