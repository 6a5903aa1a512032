"""``interp heads``: which attention heads track what, as a folder with a page."""

import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from interp.cli import completing
from interp.cli.answers import left, page_line
from interp.cli.hints import after_heads, say_next
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
    ProcessesOption,
    RunsOption,
    SeedOption,
    TasksOption,
    ThreadsOption,
    UnequalOption,
)
from interp.cli.saying import say
from interp.errors import InputError

if TYPE_CHECKING:
    from interp.methods.dossier import HeadsReport
    from interp.runs.run import Run
    from interp.tasks.task import Task


def heads(
    out: Annotated[Path, typer.Option(help="Folder for the report; an older report there is replaced.", metavar="DIR")],
    model: ModelOption = None,
    task: TasksOption = None,
    n: NOption = None,
    unequal_lengths: UnequalOption = False,
    seed: SeedOption = 0,
    probes: Annotated[
        bool,
        typer.Option(help="Probe for each task's feature."),
    ] = True,
    choose: Annotated[
        bool,
        typer.Option(
            "--choose",
            help="Choose heads on other items first (the split `select` of generated tasks): nothing is shown of the "
            "others.",
        ),
    ] = False,
    claims: Annotated[
        Path | None,
        typer.Option(
            help="A TOML file of claims that were declared before measuring: only these can be shown.",
            show_default=False,
            metavar="FILE",
        ),
    ] = None,
    sibling: Annotated[
        list[str] | None,
        typer.Option(
            help="A model of another seed of the same training, judged as well: do verdicts replicate? Repeat it for "
            "several.",
            show_default=False,
            metavar="NAME",
            autocompletion=completing.models,
        ),
    ] = None,
    cards: Annotated[
        bool,
        typer.Option(help="A page for each head of which something is found, as of `interp head`."),
    ] = True,
    device: DeviceOption = "cpu",
    dtype: DtypeOption = "float32",
    threads: ThreadsOption = 1,
    processes: ProcessesOption = 1,
    executor: ExecutorOption = None,
    address: AddressOption = None,
    gpus: GpusOption = None,
    runs: RunsOption = None,
    fresh: FreshOption = False,
    as_json: JsonOption = False,
) -> None:
    """Which heads track what? Every head's evidence, a verdict on each head and task, and a page.

    Attention is held against its toughest baseline, two kinds of ablation against
    the smallest effect that counts, probes against controls; and for heads that
    look and matter, the related word is exchanged. All claims are tested, and
    corrected over all heads and tasks.
    """
    started = time.perf_counter()
    from interp.cli.terminal import print_json, progress_bar, records, warnings_as_lines
    from interp.report.folder import check_output

    check_output(out)
    from interp.cli.running import run_of
    from interp.methods import dossier

    where: Any = {"executor": executor, "processes": processes, "address": address, "gpus": gpus}
    run = run_of(runs, fresh, **where, device=device)
    options: dict[str, Any] = {"seed": seed}
    names = list(dict.fromkeys(task or generated_tasks()))
    command = shlex.join(["interp", *sys.argv[1:]])
    from interp.cli.loading import load_for_tasks, load_tasks
    from interp.methods.task_arguments import with_left_out

    loaded = load_for_tasks(model, device=device, dtype=dtype, threads=threads)
    how: Any = {"n": n, "seed": seed, "unequal_lengths": unequal_lengths}
    tasks, left_out = load_tasks(names, loaded, **how)
    if choose:
        chosen, without = load_tasks(_with_splits([each.name for each in tasks]), loaded, **how, split="select")
        options["choose_on"], left_out = chosen, {**left_out, **without}
        tasks = [each for each in tasks if each.name not in without]
    siblings = [load_for_tasks(name, device=device, dtype=dtype, threads=threads) for name in sibling or ()]
    with warnings_as_lines(), progress_bar("heads") as progress:
        more: Any = {"siblings": siblings, "claims": claims, "run": run}
        found = dossier.heads(loaded, tasks, **options, probes=probes, **more, progress=progress)
    report = with_left_out(found, left_out)
    pages: dict[str, str] = {}
    try:
        pages = _card_pages(loaded, tasks, report, command, run) if cards else {}
    finally:  # whatever became of the cards
        folder = report.save(out, command=command, cards=pages)
    if not as_json:
        _print_summary(report)
        say(page_line(folder, started))
        drawn = {each.name: 1 + sum(each.dropped.values()) / len(each.units) for each in tasks if ":" not in each.name}
        again = ["--unequal-lengths"] * unequal_lengths
        again += [*(() if probes else ("--no-probes",)), *(("--choose",) if choose else ())]
        again += [*(("--seed", str(seed)) if seed else ()), *(("--claims", str(claims)) if claims is not None else ())]
        say_next(after_heads(report, model, drawn, again))
        return
    print_json(
        {
            **left(folder, started),
            "verdicts": records(report.summary()[["layer", "head", "task", "verdict", "reason", "partners"]]),
            "tasks": records(report.tasks),
            "left_out": report.provenance.get("left_out", {}),
            "replication": records(report.replication),
            "cards": sorted(pages),
        }
    )


def _with_splits(names: list[str]) -> list[str]:
    """The tasks, all of which have items to choose on."""
    files = [name for name in names if ":" in name]
    if files:
        raise InputError(
            f"--choose: expected generated tasks, which have other items to choose on, got {files[0]}; choose in "
            "Python, with interp.heads(..., choose_on=[...])"
        )
    return names


def _card_pages(model: Any, tasks: list["Task"], report: "HeadsReport", command: str, run: "Run") -> dict[str, str]:
    """By its name, the page of every head that earned one."""
    from interp.cli.terminal import progress_bar, warnings_as_lines
    from interp.methods.head_card import head_cards
    from interp.report.html import as_page
    from interp.report.sections import page_of

    with warnings_as_lines(), progress_bar("cards") as progress:
        found = head_cards(model, tasks, report, progress=progress, run=run)
    return {card.name: as_page(page_of(card), command) for card in found}


def generated_tasks() -> list[str]:
    """Names of the tasks that need no file."""
    from interp.tasks.catalogue import list_tasks

    return [name for name in list_tasks()["name"] if ":" not in name]


def _print_summary(report: "HeadsReport") -> None:
    from interp.cli.terminal import console
    from interp.report.heads import page_of
    from interp.report.terminal import lines_of

    for line in lines_of(page_of(report)):
        if isinstance(line, str):
            say(line)
        else:
            console().print(line)
