"""``interp heads``: which attention heads track what, as a folder with a page."""

import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from interp.cli.options import (
    ABLATIONS,
    Ablation,
    DeviceOption,
    DtypeOption,
    JsonOption,
    ModelOption,
    NOption,
    SeedOption,
    ThreadsOption,
)

if TYPE_CHECKING:
    from interp.report.frames import HeadsFrames


def heads(
    out: Annotated[Path, typer.Option(help="Folder for the report; an older report there is replaced.", metavar="DIR")],
    model: ModelOption = None,
    task: Annotated[
        list[str] | None,
        typer.Option(
            help="A task of `interp tasks`; repeat it for several.",
            show_default="all generated tasks",
            metavar="NAME",
        ),
    ] = None,
    n: NOption = None,
    seed: SeedOption = 0,
    ablation: Annotated[
        Ablation, typer.Option(help=f"What replaces a head's output: {ABLATIONS}.", metavar="KIND")
    ] = "mean",
    device: DeviceOption = "cpu",
    dtype: DtypeOption = "float32",
    threads: ThreadsOption = 1,
    as_json: JsonOption = False,
) -> None:
    """Find the heads that track each task, by attention and by ablation, and write a report."""
    started = time.perf_counter()
    from interp.cli.terminal import print_json, progress_bar, records
    from interp.report.folder import check_output, save_report

    check_output(out)
    from interp.cli.loading import load_for_tasks
    from interp.methods import dossier
    from interp.tasks.catalogue import load_task

    loaded = load_for_tasks(model, device=device, dtype=dtype, threads=threads)
    tasks = [
        load_task(name, n=n, seed=seed, tokenizer=loaded.tokenizer, n_ctx=loaded.cfg.n_ctx)
        for name in dict.fromkeys(task or generated_tasks())
    ]
    with progress_bar("heads") as progress:
        report = dossier.heads(loaded, tasks, n=n, seed=seed, ablation=ablation, progress=progress)
    folder = save_report(report, out, command=shlex.join(["interp", *sys.argv[1:]]))
    seconds = time.perf_counter() - started
    if not as_json:
        _print_summary(report, folder, seconds)
        return
    print_json(
        {
            "folder": str(folder),
            "page": str(folder / "report.html"),
            "seconds": round(seconds, 3),
            "verdicts": records(report.frame[["layer", "head", "task", "verdict"]]),
            "tasks": records(report.tasks),
        }
    )


def generated_tasks() -> list[str]:
    """Names of the tasks that need no file."""
    from interp.tasks.catalogue import list_tasks

    return [name for name in list_tasks()["name"] if ":" not in name]


def _print_summary(report: "HeadsFrames", folder: Path, seconds: float) -> None:
    from interp.report.sentences import summarise

    for summary, (_, task) in zip(summarise(report), report.tasks.iterrows(), strict=True):
        typer.echo(f"{summary.task}\n  {summary.headline}")
        if summary.untested:
            typer.echo(f"  {summary.untested}")
        for label in ("coverage", "dropped"):
            if task[label]:
                typer.echo(f"  {label}: {task[label]}")
        for finding in summary.findings:
            typer.echo(f"  - {finding}")
        for question in summary.open_questions:
            typer.echo(f"  {question}")
        typer.echo()
    typer.echo(f"{folder / 'report.html'}  ({seconds:.0f} s)")
