"""Which tasks are read from files, and which file does a name mean?

1. A row of the table says what a task is, how it is loaded, and in which folder of the data its files are.
   ``load_task`` takes the row's key, a colon and a path.
2. A name without a folder that is no file here is looked up in the task's folder below the folder that the
   environment variable ``INTERP_DATA`` names.
3. ``hub:...`` in place of a path is the reader's concern.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from interp.errors import TaskError, suggest
from interp.tasks import blimp_task, treebank_agreement, treebank_anaphora, treebank_coreference, winobias, winogender
from interp.tasks.readers.hub import is_hub
from interp.tasks.request import FileRequest, TaskInfo
from interp.tasks.task import Task


@dataclass(frozen=True)
class FileTask:
    """A task that is read from a file.

    Attributes:
        info: What the list of tasks says.
        load: Reads and encodes it.
        folder: Where files are looked up by name, below ``INTERP_DATA``; None where only paths are taken.
        suffix: What a name there can leave out, such as ``.jsonl``.
    """

    info: TaskInfo
    load: Callable[[FileRequest], Task]
    folder: str | None = None
    suffix: str = ""


FILE_TASKS: dict[str, FileTask] = {
    "blimp": FileTask(blimp_task.INFO, blimp_task.load, folder="blimp", suffix=".jsonl"),
    "winobias": FileTask(winobias.INFO, winobias.load, folder="winobias"),
    "winogender": FileTask(winogender.INFO, winogender.load, folder="winogender"),
    "agreement": FileTask(treebank_agreement.INFO, treebank_agreement.load),
    "coreference": FileTask(treebank_coreference.INFO, treebank_coreference.load),
    "anaphora": FileTask(treebank_anaphora.INFO, treebank_anaphora.load),
}


def find_source(name: str, task: FileTask, source: str) -> str | Path:
    """What `source`, the part of a task's name after the colon, means.

    Returns:
        The path, whether or not there is such a file; a name of the hub as it is.

    Raises:
        TaskError: `source` is empty, or a name that is found nowhere.
    """
    if is_hub(source):
        return source
    if not source:
        raise TaskError(f"{name!r} names no file; expected {task.info.name} with a file's path")
    path = Path(os.path.expanduser(source))
    sought = (
        task.folder is not None and path.name == source and not (task.suffix and path.suffix not in ("", task.suffix))
    )
    return _find_by_name(name, task, source) if sought and not path.exists() else path


def _find_by_name(name: str, task: FileTask, source: str) -> Path:
    named, data = source.removesuffix(task.suffix), os.environ.get("INTERP_DATA")
    if not data:
        raise TaskError(
            f"{name}: no such file here, and INTERP_DATA is not set, so there is no folder to find {source!r} in; set "
            f"it to the folder that holds {task.folder}/{named}{task.suffix}, or give the path after the colon"
        )
    folder = Path(os.path.expanduser(data)) / str(task.folder)
    found = folder if source == task.folder else folder / f"{named}{task.suffix}"
    if not found.exists():
        known = sorted(each.name.removesuffix(task.suffix) for each in folder.glob(f"*{task.suffix or '.*'}"))
        hint = suggest(named, known) if known else f"the folder has no {task.suffix or 'such'} files"
        raise TaskError(f"{name}: no such file here, and no file {found} (the folder comes from INTERP_DATA); {hint}")
    return found
