"""``interp head``: all that can be said about one head, on the terminal and as a folder with a page."""

import shlex
import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from interp.cli.answers import left, page_line
from interp.cli.hints import after_head, say_next
from interp.cli.options import (
    AddressOption,
    DeviceOption,
    DtypeOption,
    ExecutorOption,
    FreshOption,
    GpusOption,
    JsonOption,
    ModelOption,
    NOption,
    OutOption,
    ProcessesOption,
    RunsOption,
    SeedOption,
    TasksOption,
    ThreadsOption,
    UnequalOption,
)
from interp.cli.saying import say

if TYPE_CHECKING:
    from pathlib import Path

    from interp.methods.head_card import HeadCard

_STRONGEST = 10
"""Paths of a task, into the head and from it, that the JSON has."""


def head(
    name: Annotated[str, typer.Argument(help="Layer and head, both from 0, such as 2.1.", metavar="LAYER.HEAD")],
    model: ModelOption = None,
    task: TasksOption = None,
    n: NOption = None,
    unequal_lengths: UnequalOption = False,
    seed: SeedOption = 0,
    probes: Annotated[
        bool, typer.Option(help="Probe for each task's feature, and erase it where it can be read.")
    ] = True,
    max_units: Annotated[
        int, typer.Option(help="Units of a task that direct paths are patched on.", min=1, metavar="N")
    ] = 40,
    device: DeviceOption = "cpu",
    dtype: DtypeOption = "float32",
    threads: ThreadsOption = 1,
    processes: ProcessesOption = 1,
    executor: ExecutorOption = None,
    address: AddressOption = None,
    gpus: GpusOption = None,
    runs: RunsOption = None,
    fresh: FreshOption = False,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """What does this head do? Its verdicts, kinds of ablation, halves, values, words, direct paths and circuits."""
    started = time.perf_counter()
    from interp.cli.terminal import progress_bar, warnings_as_lines
    from interp.report.folder import check_output

    if out is not None:
        check_output(out)
    from interp.methods import head_card
    from interp.methods.ablation import as_head, parse_head

    parse_head(name)  # before anything is loaded
    from interp.cli.running import run_of

    where: Any = {"executor": executor, "processes": processes, "address": address, "gpus": gpus}
    run = run_of(runs, fresh, **where, device=device)
    from interp.cli.heads import generated_tasks
    from interp.cli.loading import load_for_tasks, load_tasks
    from interp.methods.task_arguments import with_left_out

    loaded = load_for_tasks(model, device=device, dtype=dtype, threads=threads)
    which = as_head(loaded, name)
    names = list(dict.fromkeys(task or generated_tasks()))
    tasks, left_out = load_tasks(names, loaded, n=n, seed=seed, unequal_lengths=unequal_lengths)
    options: dict[str, Any] = {"seed": seed, "probes": probes, "max_units": max_units}
    with warnings_as_lines(), progress_bar("head") as progress:
        found = head_card.head_card(loaded, which, tasks, **options, progress=progress, run=run)
    card = with_left_out(found, left_out)
    folder = None if out is None else card.save(out, command=shlex.join(["interp", *sys.argv[1:]]))
    if as_json:
        _print_json(card, folder, started)
        return
    from interp.cli.terminal import print_page
    from interp.report.sections import page_of

    print_page(page_of(card))
    if folder is not None:
        say(page_line(folder, started))
    first = next((each for each in tasks if each.name in set(card.tasks["task"])), tasks[0])
    say_next(after_head(card.name, first, model, folder is not None))


def _print_json(card: "HeadCard", folder: "Path | None", started: float) -> None:
    """Print the card as one JSON object; of direct paths the strongest of each task."""
    import math

    from interp.cli.terminal import print_json, records

    whole = ("shares", "halves", "replacements", "agreement", "positions", "feature", "left_out")
    paths = {name: getattr(card, name).groupby("task", sort=False).head(_STRONGEST) for name in ("feeds", "readers")}
    print_json(
        {
            "head": card.name,
            **left(folder, started),
            "verdicts": records(card.verdicts[["task", "verdict", "reason", "partners"]]),
            "copying": None if math.isnan(card.copying) else card.copying,
            **{name: records(getattr(card, name)) for name in whole},
            "tasks_left_out": card.provenance.get("left_out", {}),
            **{name: records(frame) for name, frame in paths.items()},
        }
    )
