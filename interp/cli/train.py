"""``interp train``: makes the embedded models anew."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from interp.cli.options import LARGEST_SEED, JsonOption, ThreadsOption


def default(
    out: Annotated[Path, typer.Option(help="Folder for the model; new or empty.", metavar="DIR")],
    seed: Annotated[
        int | None,
        typer.Option(
            help="Seed of the weights and of the corpus.",
            min=0,
            max=LARGEST_SEED,
            show_default="the default model's",
            metavar="N",
        ),
    ] = None,
    threads: ThreadsOption = 1,
    steps: Annotated[
        int | None, typer.Option(help="Optimiser steps.", min=1, show_default="the recipe's own number", metavar="N")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Train the embedded default model anew."""
    from interp.cli.terminal import print_json, progress_bar
    from interp.report.folder import check_new_folder

    folder = check_new_folder(out)
    from interp.recipes.default import SEED, STEPS, train_default

    started = time.perf_counter()
    total = STEPS if steps is None else steps
    with progress_bar("train") as progress:
        training: Any = train_default(
            folder,
            seed=SEED if seed is None else seed,
            steps=total,
            threads=threads,
            progress=lambda step, _loss: progress(step, total),
        )
    result = {
        "folder": str(folder),
        "seconds": round(time.perf_counter() - started, 3),
        "tokens": training.tokens,
        "loss": training.loss,
        "hash": training.hash,
    }
    if as_json:
        print_json(result)
        return
    for name, value in result.items():
        typer.echo(f"{name}: {value}")
