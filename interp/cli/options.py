"""The options that several commands share, each with its help."""

from typing import Annotated, Literal

import typer

Ablation = Literal["mean", "zero", "positional_mean", "resample"]

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
SeedOption = Annotated[int, typer.Option(help="Seed of every random draw.", metavar="N")]
DeviceOption = Annotated[str, typer.Option(help="cpu, cuda or auto.", metavar="NAME")]
DtypeOption = Annotated[str, typer.Option(help="float32, bfloat16, float16 or float64.", metavar="NAME")]
ThreadsOption = Annotated[
    int, typer.Option(help="CPU threads; another number gives other last bits.", min=1, metavar="N")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
