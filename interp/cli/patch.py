"""``interp patch``: where the information travels that a task's answers need."""

import time
from typing import Annotated, Any, Literal

import typer

from interp.cli import completing
from interp.cli.hints import after_sweep, say_next
from interp.cli.options import (
    BY,
    SITE_NAMES,
    SITES,
    AddressOption,
    DeviceOption,
    DtypeOption,
    ExecutorOption,
    FreshOption,
    GpusOption,
    JsonOption,
    MemoryOption,
    MetricOption,
    ModelOption,
    NOption,
    OutOption,
    ProcessesOption,
    RunsOption,
    SeedOption,
    TaskOption,
    ThreadsOption,
    UnequalOption,
    axes_of,
)


def patch(
    task: TaskOption,
    site: Annotated[
        str,
        typer.Option(help=f"What is patched: {SITES}.", metavar="NAME", autocompletion=completing.one_of(*SITE_NAMES)),
    ] = "z",
    by: Annotated[
        str,
        typer.Option(
            help=f"{BY} What is left out is patched all at once.", metavar="NAMES", autocompletion=completing.AXES
        ),
    ] = "layer,head",
    direction: Annotated[
        Literal["denoise", "noise"],
        typer.Option(
            help="denoise patches the clean run into the corrupted one: what suffices? noise patches the corrupted run "
            "into the clean one: what is needed?",
            metavar="NAME",
        ),
    ] = "denoise",
    metric: MetricOption = None,
    screen: Annotated[
        bool, typer.Option("--screen", help="Estimate all cells by gradients first, and measure the strongest.")
    ] = False,
    model: ModelOption = None,
    n: NOption = None,
    unequal_lengths: UnequalOption = False,
    seed: SeedOption = 0,
    memory: MemoryOption = None,
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
    """Where does the answer travel? Activations patched between clean and corrupted prompts, cell by cell."""
    started = time.perf_counter()
    from interp.cli.terminal import progress_bar, warnings_as_lines
    from interp.report.folder import check_output

    if out is not None:
        check_output(out)
    from interp.cli.running import run_of

    where: Any = {"executor": executor, "processes": processes, "address": address, "gpus": gpus}
    run = run_of(runs, fresh, **where, device=device)
    from interp.cli import sweeps
    from interp.cli.loading import load_for_tasks
    from interp.cli.memory import limited
    from interp.methods.patching import patch as patch_cells
    from interp.methods.task_arguments import as_predicted
    from interp.report.sweep_cells import swept

    loaded = load_for_tasks(model, device=device, dtype=dtype, threads=threads)
    given = as_predicted(task, loaded, n=n, seed=seed, metric=metric, unequal_lengths=unequal_lengths)
    axes = axes_of(by)
    options: dict[str, Any] = {"site": site, "by": axes, "direction": direction, "metric": metric}
    options |= {"seed": seed, "screen": screen}
    options["memory_budget"] = limited(memory)
    with warnings_as_lines():
        with progress_bar("patch") as progress:
            result = patch_cells(loaded, given, **options, progress=progress, run=run)
        frames = swept(result)
    folder = sweeps.save(result, out)
    if as_json:
        asked = {"task": task, "site": site, "by": axes, "direction": direction, "metric": frames.metric}
        sweeps.print_sweep_json(frames, asked, folder, started)
        sweeps.exit_if_partial(frames)
        return
    sweeps.print_sweep(frames)
    sweeps.end(frames, folder, started)
    say_next(after_sweep(frames, given, model, metric))
