"""How a command measures: which model, who computes, and where what is measured is kept and written."""

import ctypes
import logging
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from interp.cli.hints import Next, say_next
from interp.cli.messages import say, say_lines
from interp.errors import InputError, LoadError

if TYPE_CHECKING:
    from interp.report.sections import Page
    from interp.runs.executors import Executor
    from interp.runs.run import Run

ExecutorName = Literal["local", "processes", "ray"]
PAGE = "report.html"
M_MMAP_THRESHOLD = -3
SMALLEST_FREED = 128 * 1024

kept_in: ContextVar[Path | None] = ContextVar("kept_in", default=None)
"""The folder of runs where the present command keeps what is complete."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """What commands that measure have in common; made when the command begins.

    Attributes:
        model: A folder or checkpoint file, a hub name, bridge:NAME (through TransformerLens), or an embedded model;
            None for the embedded default.
        device: Where the model is: cpu, cuda, cuda:N or auto.
        dtype: Number format of the model: float32, bfloat16, float16 or float64.
        threads: CPU threads; the last bits of results depend on it.
        processes: Worker processes, each with its own CPU threads; the results do not depend on their number.
        executor: Where to compute: local (this process), processes (of this machine) or ray (a cluster; see
            --address); None for processes where --processes is above 1.
        address: Address of a Ray cluster, such as auto; None for a new one on this machine.
        gpus: GPUs for each Ray worker; a share lets several workers use one; None for 1 unless --device is cpu.
        runs: Folder of kept runs. The same question continues there, or finds its answer; None for $INTERP_RUNS, or
            ~/.local/share/interp/runs.
        fresh: Measure again what is already known. The old answer is used until the new one is complete.
        out: Folder for a page, tables and figures; an older report there is replaced.
        as_json: Print one JSON object instead of text.
    """

    model: str | None = None
    device: str = "cpu"
    dtype: str = "float32"
    threads: int = 1
    processes: int = 1
    executor: ExecutorName | None = None
    address: str | None = None
    gpus: float | None = None
    runs: Path | None = None
    fresh: bool = False
    out: Path | None = None
    as_json: bool = False
    started: float = field(init=False, default_factory=time.perf_counter)

    def run(self) -> "Run":
        """Where what is measured is kept, and who measures; what cannot be written is refused before anything loads.

        Raises:
            ConfigError: As ``who``.
            InputError: As ``who``.
            OutputError: The folder of runs, or ``--out``, cannot be used.
        """
        from interp.report.folder import check_output
        from interp.runs.run import Run

        if self.out is not None:
            check_output(self.out)
        who, root = self.who(), _root(self.runs)
        kept_in.set(root)
        return Run(root, who, self.fresh, {"command": sys.argv[1:], "folder": os.getcwd()})

    def who(self) -> "Executor":
        """Who computes; a worker of a Ray cluster has a GPU unless it computes on its CPU.

        Raises:
            ConfigError: No such device on this machine.
            InputError: Options that do not go together, or more processes than CPUs.
        """
        from interp.runs.executors import Local, Processes

        chosen = self.executor or ("processes" if self.processes > 1 else "local")
        if chosen == "ray":
            from interp.cluster.ray import Ray
            from interp.model.devices import resolve_device

            on_gpu = self.gpus is None and resolve_device(self.device).type != "cpu"
            return Ray(self.processes, address=self.address, gpus=1 if on_gpu else self.gpus)
        if self.address is not None or self.gpus is not None:
            raise InputError("--address and --gpus: expected them with --executor ray; add that, or leave them out")
        if chosen == "local" and self.processes > 1:
            raise InputError(
                f"--executor local: expected one process, got --processes {self.processes}; leave one of them out"
            )
        cpus = os.cpu_count() or 1
        if self.processes > cpus:
            raise InputError(f"--processes: expected at most {cpus}, the CPUs of this machine, got {self.processes}")
        return Local() if chosen == "local" else Processes(self.processes)

    def load(self, name: str | None = None) -> Any:
        """The model, or another by its name, with a tokenizer to encode tasks; as many CPU threads compute as asked.

        Raises:
            LoadError: It cannot be loaded, or has no tokenizer.
        """
        import torch

        from interp.cli.terminal import warnings_as_lines
        from interp.model import loading

        torch.set_num_threads(self.threads)
        model = name or self.model
        with warnings_as_lines():
            loaded = loading.load_model(model, device=self.device, dtype=self.dtype)
        if loaded.tokenizer is None:
            raise LoadError(
                f"model {model}: expected a tokenizer beside the weights, got none: the folder has no tokenizer files; "
                "save one there with tokenizer.save_pretrained(folder)"
            )
        return loaded

    def answer(
        self,
        result: Any,
        numbers: Callable[[], dict[str, Any]],
        hint: Callable[[], Next] | None,
        page: "Callable[[Any], Page] | None" = None,
    ) -> None:
        """Write the result's folder where one is asked for, and print what was found.

        With ``--json`` that is one object: `numbers`, the folder and the page in it (null without ``--out``) and the
        seconds. Else it is the page, which is made once (by `page`, or as any result's), and what one asks next.
        """
        from interp.cli.terminal import print_json, print_page
        from interp.report.folder import save
        from interp.report.sections import page_of

        made = None if self.as_json and self.out is None else (page or page_of)(result)
        folder = None if self.out is None else save(result, self.out, command=typed(), page=made)
        if made is None or self.as_json:
            places = {"folder": folder, "page": folder and folder / PAGE}
            told = {name: place and str(place) for name, place in places.items()}
            print_json({**numbers(), **told, "seconds": seconds_since(self.started)})
            return
        print_page(made)
        if folder is not None:
            say(f"{folder / PAGE}  ({seconds_since(self.started):.0f} s)")
        if hint is not None:
            say_next(hint())


def typed() -> str:
    """The command as it was typed."""
    return shlex.join(["interp", *sys.argv[1:]])


def seconds_since(started: float) -> float:
    """Seconds, to the millisecond."""
    return round(time.perf_counter() - started, 3)


@contextmanager
def measuring(name: str) -> Iterator[Callable[[int, int], None]]:
    """Show progress, and warnings in a line each when all is measured; yields the function to tell (done, total)."""
    from interp.cli import terminal

    with terminal.warnings_as_lines(), terminal.progress_bar(name) as progress:
        yield progress


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


def give_back_freed_memory() -> None:
    """Let the C library keep no freed block of 128 KiB or more, for the rest of this process; it costs some speed.

    It is for commands with a limit of memory. By itself glibc raises that size to 32 MiB, and a process may hold twice
    what it uses. Other C libraries are left as they are.
    """
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "mallopt"):
        library.mallopt(M_MMAP_THRESHOLD, SMALLEST_FREED)


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
