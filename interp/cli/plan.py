"""``interp model plan``: what a model would need here, before it is fetched or trained."""

from typing import Annotated, Any

import typer

from interp.cli.options import DtypeOption, JsonOption, ThreadsOption


def model_plan(
    preset: Annotated[
        str,
        typer.Argument(help="gpt, gpt2, gpt2-medium, gpt2-large, gpt2-xl, gpt3-175b or llama-2-7b.", metavar="PRESET"),
    ],
    hardware: Annotated[str, typer.Option(help="cpu (measured now), a100, h100 or h200.", metavar="NAME")] = "cpu",
    devices: Annotated[
        int,
        typer.Option(
            help="How many hold the layers between them; they add memory, not speed. interp computes on one.",
            min=1,
            metavar="N",
        ),
    ] = 1,
    dtype: DtypeOption = "float32",
    prompts: Annotated[int, typer.Option(help="Prompts of the head sweep.", min=1, metavar="N")] = 16,
    tokens: Annotated[int, typer.Option(help="Tokens of each, BOS included.", min=1, metavar="N")] = 20,
    threads: ThreadsOption = 1,
    as_json: JsonOption = False,
) -> None:
    """Say what a published model's weights, cache and full head ablation would need in memory, operations and time."""
    from interp.cli.terminal import print_json
    from interp.methods.plan import hardware_called, plan
    from interp.model.presets import PRESETS
    from interp.model.presets import preset as find

    shape = find(preset)
    found = plan(
        shape.config,
        hardware_called(hardware, threads),
        devices=devices,
        dtype=dtype,
        n_prompts=prompts,
        n_tokens=tokens,
    )
    result: dict[str, Any] = {
        "preset": preset,
        "parameters": found.parameters,
        "bytes": found.bytes,
        "flops": found.flops,
        "seconds": found.seconds,
        "hardware": found.hardware,
        "devices": found.devices,
    }
    if as_json:
        print_json(result)
        return
    typer.echo(f"{preset}: {found.parameters:,} parameters (published: {PRESETS[preset].published:,})")
    typer.echo(f"on {found.devices} x {found.hardware} in {dtype}, {prompts} prompts of {tokens} tokens")
    for name, value in found.bytes.items():
        typer.echo(f"{_BYTES[name]:>36}: {value / 1e9:,.2f} GB")
    for name, value in found.flops.items():
        typer.echo(f"{_RUNS[name]:>36}: {value / 1e12:,.3g} TFLOP, {_time(found.seconds[name])}")


_BYTES = {"weights": "weights", "cache": "keys and values (generation)", "sweep": "kept at once by the head sweep"}
_RUNS = {"forward": "one forward pass", "sweep": "every head ablated once"}


def _time(seconds: float) -> str:
    for size, unit in ((86_400, "days"), (3600, "hours"), (60, "minutes"), (1, "s")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{1000 * seconds:,.1f} ms"
