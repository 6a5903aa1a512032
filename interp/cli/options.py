"""The options that several commands share, each with its help."""

import os
from typing import Annotated, Literal

import typer

Ablation = Literal["mean", "zero", "positional_mean", "resample"]


def no_more_than_cpus(threads: int) -> int:
    """Refuse more threads than this machine runs at once: each waits for the others, and enough of them end it."""
    cpus = os.cpu_count() or 1
    if threads > cpus:
        raise typer.BadParameter(f"expected at most {cpus}, the CPUs of this machine, got {threads}")
    return threads


ABLATIONS = "mean, zero, positional_mean or resample"
ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="A folder, a hub name, or the name of an embedded model.",
        show_default="the embedded default",
        metavar="NAME",
    ),
]
NOption = Annotated[
    int | None,
    typer.Option(
        "--n", help="Units to draw of each task.", show_default="the task's own; a file is used whole", metavar="N"
    ),
]
LARGEST_SEED = 2**63 - 1
SeedOption = Annotated[int, typer.Option(help="Seed of every random draw.", min=0, max=LARGEST_SEED, metavar="N")]
DeviceOption = Annotated[str, typer.Option(help="cpu, cuda or auto.", metavar="NAME")]
DtypeOption = Annotated[str, typer.Option(help="float32, bfloat16, float16 or float64.", metavar="NAME")]
ThreadsOption = Annotated[
    int,
    typer.Option(
        help="CPU threads; another number gives other last bits.", min=1, callback=no_more_than_cpus, metavar="N"
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
