"""``interp model plan``: what a model would need here, before it is fetched or trained."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from interp.cli import completing
from interp.cli.hints import after_plan, say_next
from interp.cli.options import DtypeOption, JsonOption, ThreadsOption
from interp.cli.saying import say
from interp.errors import InputError

if TYPE_CHECKING:
    from interp.methods.scaling import Scaled


def model_plan(
    preset: Annotated[
        str,
        typer.Argument(
            help="gpt, gpt2, gpt2-medium, gpt2-large, gpt2-xl, gpt3-175b, llama-2-7b or llama-2-70b.",
            metavar="PRESET",
            autocompletion=completing.PRESETS,
        ),
    ],
    hardware: Annotated[
        str,
        typer.Option(
            help="cpu (measured now), a100, h100 or h200.", metavar="NAME", autocompletion=completing.HARDWARE
        ),
    ] = "cpu",
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
    tokens: Annotated[int, typer.Option(help="Tokens of each, special tokens included.", min=1, metavar="N")] = 20,
    gpus: Annotated[
        str | None,
        typer.Option(
            help="How the sweep would scale to so many devices, separated by commas: 8,64,512.",
            show_default=False,
            metavar="NUMBERS",
        ),
    ] = None,
    threads: ThreadsOption = 1,
    as_json: JsonOption = False,
) -> None:
    """What would a model need? Memory, operations and time of its weights, its cache and a full head ablation."""
    from interp.cli.terminal import print_json
    from interp.methods.plan import hardware_called, plan
    from interp.model.presets import PRESETS
    from interp.model.presets import preset as find

    shape, computer, counts = find(preset), hardware_called(hardware, threads), _counts(gpus)
    found = plan(
        shape.config,
        computer,
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
    from interp.methods.scaling import Parts, scaled

    parts = Parts.of(shape.config, computer, dtype=dtype, n_prompts=prompts, n_tokens=tokens)
    scaling = scaled(parts, counts, devices)
    if counts:
        result |= {
            "parts": parts.n,
            "scaling": [vars(each) for each in scaling],
            "saturates": parts.saturates * devices,
        }
    if as_json:
        print_json(result)
        return
    say(f"{preset}: {found.parameters:,} parameters (published: {PRESETS[preset].published:,})")
    if devices > 1:
        say(f"This model takes the memory of {devices} devices, over which interp does not divide a model yet.")
    say(f"on {found.devices} x {found.hardware} in {dtype}, {prompts} prompts of {tokens} tokens")
    for name, value in found.bytes.items():
        say(f"{_BYTES[name]:>36}: {value / 1e9:,.2f} GB")
    for name, value in found.flops.items():
        say(f"{_RUNS[name]:>36}: {value / 1e12:,.3g} TFLOP, {_time(found.seconds[name])}")

    if counts:
        _print_scaling(parts, scaling, devices)
    asked = {"--hardware": hardware, "--dtype": dtype, "--prompts": prompts, "--tokens": tokens}
    say_next(after_plan(preset, devices, [str(each) for option in asked.items() for each in option]))


def _counts(text: str | None) -> list[int]:
    numbers = [] if text is None else [each.strip() for each in text.split(",")]
    if not all(each.isdecimal() and int(each[:9]) >= 1 for each in numbers):
        raise InputError(f"--gpus: expected numbers from 1, separated by commas, such as 8,64,512, got {text!r}")
    return [int(each[:9]) for each in numbers]


def _print_scaling(parts: Any, scaling: "list[Scaled]", per_worker: int) -> None:
    from rich.table import Table

    from interp.cli.terminal import console

    say(
        f"\nAs {parts.n:,} parts of {_time(parts.seconds)} on {parts.batches:,} batches; a worker begins in "
        f"{_time(parts.begin_seconds)}:"
    )
    table = Table(
        "devices", "workers", "time", "speed-up", "efficiency", "most is lost to", box=None, padding=(0, 2, 0, 0)
    )
    for each in scaling:
        shares = (_time(each.seconds), f"{each.speedup:,.1f}", f"{100 * each.efficiency:.0f} %")
        table.add_row(str(each.devices), str(each.workers), *shares, "-" if each.limit == "computing" else each.limit)
    console().print(table)
    say(f"Twice the devices bring less than a tenth from {parts.saturates * per_worker:,} on.")


_BYTES = {"weights": "weights", "cache": "keys and values (generation)", "sweep": "kept at once by the head sweep"}
_RUNS = {"forward": "one forward pass", "sweep": "every head ablated once"}


def _time(seconds: float) -> str:
    for size, unit in ((86_400, "days"), (3600, "hours"), (60, "minutes"), (1, "s")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{1000 * seconds:,.1f} ms"
