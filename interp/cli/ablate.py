"""``interp ablate``: what one head's ablation does to one task."""

import math
import time
from pathlib import Path
from typing import Annotated

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


def ablate(
    layer: Annotated[int, typer.Option(help="The head's layer, from 0.", metavar="N")],
    head: Annotated[int, typer.Option(help="The head's number in its layer, from 0.", metavar="N")],
    task: Annotated[str, typer.Option(help="A task of `interp tasks`.", metavar="NAME")],
    model: ModelOption = None,
    n: NOption = None,
    seed: SeedOption = 0,
    ablation: Annotated[
        Ablation, typer.Option(help=f"What replaces the head's output: {ABLATIONS}.", metavar="KIND")
    ] = "mean",
    device: DeviceOption = "cpu",
    dtype: DtypeOption = "float32",
    threads: ThreadsOption = 1,
    out: Annotated[
        Path | None, typer.Option(help="CSV file for the effect on every example.", metavar="FILE.csv")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Ablate one head and print the effect on a task, with its interval and the accuracy."""
    started = time.perf_counter()
    from interp.cli.terminal import print_json, progress_bar, records
    from interp.report.sentences import UNITS
    from interp.report.table import check_table, save_table

    if out is not None:
        check_table(out)
    from interp.cli.loading import load_for_tasks
    from interp.methods.ablation import ablate as ablate_heads
    from interp.stats.intervals import cluster_bootstrap
    from interp.stats.units import UnitTable
    from interp.tasks.catalogue import load_task

    loaded = load_for_tasks(model, device=device, dtype=dtype, threads=threads)
    given = load_task(task, n=n, seed=seed, tokenizer=loaded.tokenizer, n_ctx=loaded.cfg.n_ctx)
    with progress_bar("ablate") as progress:
        result = ablate_heads(loaded, given, kind=ablation, heads=[(layer, head)], seed=seed, progress=progress)
    saved = None if out is None else save_table(result.frame, out)
    (row,) = records(result.summary())
    # As `interp heads` judges it; where there is no interval, nobody knows.
    base_low = cluster_bootstrap(UnitTable.from_frame(result.frame, "base"), seed=seed).low[0]
    above_chance = None if math.isnan(base_low) else bool(base_low > 0)
    if as_json:
        asked = {"task": task, "ablation": ablation, "metric": given.metric}
        file = None if saved is None else str(saved)
        seconds = round(time.perf_counter() - started, 3)
        print_json({**asked, **row, "above_chance": above_chance, "file": file, "seconds": seconds})
        return
    interval = "no interval" if row["low"] is None else f"95 % interval {row['low']:.3g} to {row['high']:.3g}"
    unit = UNITS[given.metric]
    typer.echo(
        f"head {layer}.{head}, {task}, {ablation} ablation, {row['n_units']} units in {row['n_clusters']} clusters"
    )
    typer.echo(f"{given.metric.replace('_', ' ')}: {row['base']:.3g} -> {row['value']:.3g}")
    typer.echo(f"effect: {row['effect']:.3g} {unit}, a cost where it is negative ({interval})")
    typer.echo(f"accuracy: {row['accuracy_base']:.3f} -> {row['accuracy_intervened']:.3f}")
    if above_chance is False:
        typer.echo(
            "warning: the unablated model is not shown to be above chance on this task, so an effect says little",
            err=True,
        )
    if saved is not None:
        typer.echo(str(saved))
