"""How does a command measure? As its options say: who does it, and where what is measured is kept."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interp.cli.options import ExecutorName
from interp.cli.saying import say, say_lines
from interp.errors import InputError

if TYPE_CHECKING:
    from interp.runs.executors import Executor
    from interp.runs.run import Run

kept_in: ContextVar[Path | None] = ContextVar("kept_in", default=None)
"""The folder of runs where the present command keeps what is complete."""
answer_due: ContextVar[bool] = ContextVar("answer_due", default=False)
"""Whether the present command was asked for one JSON object, and has not printed it."""


def interrupted(folder: Path | None = None) -> str:
    """What becomes of what an interrupted command has measured, in this folder, or that of its runs."""
    kept = folder or kept_in.get()
    if kept is None:
        return "interrupted: nothing was left half-written"
    return f"interrupted: what is complete is kept in {kept}; the same command goes on"


@contextmanager
def events_as_lines() -> Iterator[None]:
    """Tell at once what goes wrong and is mended, and when the block ends what was found, and so not measured."""
    logger, found = logging.getLogger("interp"), _Lines(logging.INFO)
    if any(isinstance(each, _Lines) for each in logger.handlers):  # a command within `interp runs resume`
        yield
        return
    level = logger.level
    logger.addHandler(found)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(found)
        say_lines("note", found.notes)


class _Lines(logging.Handler):
    """Says each different warning once, for a treebank is read again and again, and keeps the rest."""

    def __init__(self, level: int):
        super().__init__(level)
        self.said: set[str] = set()
        self.notes: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Say it, or keep it."""
        message = record.getMessage()
        if record.levelno < logging.WARNING:
            self.notes.append(message)
        elif message not in self.said:
            self.said.add(message)
            say_lines("warning", [message])


def run_of(
    runs: Path | None,
    fresh: bool,
    *,
    executor: ExecutorName | None = None,
    processes: int = 1,
    address: str | None = None,
    gpus: float | None = None,
    device: str = "cpu",
) -> "Run":
    """The run that the options ask for.

    Raises:
        ConfigError: As ``executor_of``.
        InputError: As ``executor_of``.
        OutputError: The folder of runs is named and cannot be written.
    """
    from interp.runs.run import Run

    who = executor_of(executor=executor, processes=processes, address=address, gpus=gpus, device=device)
    root = _root(runs)
    kept_in.set(root)
    return Run(root, who, fresh, {"command": sys.argv[1:], "folder": os.getcwd()})


def executor_of(
    *,
    executor: ExecutorName | None = None,
    processes: int = 1,
    address: str | None = None,
    gpus: float | None = None,
    device: str = "cpu",
) -> "Executor":
    """Who computes, as the options ask; a worker of a Ray cluster has a GPU unless it computes on its CPU.

    Raises:
        ConfigError: No such device on this machine.
        InputError: Options that do not go together, or more processes than CPUs.
    """
    from interp.runs.executors import Local, Processes

    chosen = executor or ("processes" if processes > 1 else "local")
    if chosen != "ray" and (address is not None or gpus is not None):
        raise InputError("--address and --gpus: expected them with --executor ray; add that, or leave them out")
    if chosen == "ray":
        from interp.cluster.ray import Ray
        from interp.model.devices import resolve_device

        gpus = 1 if gpus is None and resolve_device(device).type != "cpu" else gpus
        return Ray(processes, address=address, gpus=gpus)
    if chosen == "local" and processes > 1:
        raise InputError(f"--executor local: expected one process, got --processes {processes}; leave one of them out")
    cpus = os.cpu_count() or 1
    if processes > cpus:
        raise InputError(f"--processes: expected at most {cpus}, the CPUs of this machine, got {processes}")
    return Local() if chosen == "local" else Processes(processes)


def _root(given: Path | None) -> Path | None:
    """The folder of runs; where nobody named one, and the user's own cannot be written, none, with a warning."""
    from interp.runs.root import root_of

    root = root_of(given)
    if given is not None:
        return root
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why: Any = error.strerror or error
        say(f"warning: nothing is kept, as {root} cannot be made ({why}); name a folder with --runs", err=True)
        return None
    return root
