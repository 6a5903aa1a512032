"""``interp model plan``: what a model would need here, before it is fetched or trained."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from interp.cli import completing
from interp.cli.hints import after_looking, after_plan, say_next
from interp.cli.options import DtypeOption, JsonOption, NOption, ThreadsOption, UnequalOption
from interp.cli.saying import say
from interp.errors import InputError

if TYPE_CHECKING:
    from interp.model.config import TransformerConfig


def model_plan(
    preset: Annotated[
        str | None,
        typer.Argument(
            help="gpt, gpt2, gpt2-medium, gpt2-large, gpt2-xl, gpt3-175b, llama-2-7b or llama-2-70b.",
            metavar="PRESET",
            show_default="none: give --model",
            autocompletion=completing.PRESETS,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="In place of a preset: a folder or checkpoint file, a hub name, or an embedded model. Its weights are "
            "not read.",
            show_default=False,
            metavar="NAME",
            autocompletion=completing.models,
        ),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            help="With --model: the sweep is on this task of `interp tasks`.",
            show_default=False,
            metavar="NAME",
            autocompletion=completing.TASKS,
        ),
    ] = None,
    n: NOption = None,
    unequal_lengths: UnequalOption = False,
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
    prompts: Annotated[
        int | None, typer.Option(help="Prompts of the head sweep.", min=1, show_default="16, or --task's", metavar="N")
    ] = None,
    tokens: Annotated[
        int | None,
        typer.Option(
            help="Tokens of each, special tokens included.", min=1, show_default="20, or --task's longest", metavar="N"
        ),
    ] = None,
    threads: ThreadsOption = 1,
    as_json: JsonOption = False,
) -> None:
    """What would a model need? Memory, operations and time of its weights, its cache and a full head ablation."""
    from interp.cli.terminal import print_json
    from interp.methods.plan import hardware_called, plan

    config, tokenizer, published = _described(preset, model)
    drawn: dict[str, Any] = {"--n": n, "--unequal-lengths": unequal_lengths or None}
    n_prompts, n_tokens = _prompts(task, drawn, prompts, tokens, config, tokenizer)
    computer = hardware_called(hardware, threads)
    how: Any = {"dtype": dtype, "n_prompts": n_prompts, "n_tokens": n_tokens}
    found = plan(config, computer, devices=devices, **how)
    result: dict[str, Any] = {
        **({"preset": preset} if model is None else {"model": model}),
        "prompts": n_prompts,
        "tokens": n_tokens,
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
    say(f"{model or preset}: {found.parameters:,} parameters{published}")
    if devices > 1:
        say(f"This model takes the memory of {devices} devices, over which interp does not divide a model yet.")
    say(f"on {found.devices} x {found.hardware} in {dtype}, {n_prompts} prompts of {n_tokens} tokens")
    for name, value in found.bytes.items():
        say(f"{_BYTES[name]:>36}: {value / 1e9:,.2f} GB")
    for name, value in found.flops.items():
        say(f"{_RUNS[name]:>36}: {value / 1e12:,.3g} TFLOP, {_time(found.seconds[name])}")

    if model is not None:
        from interp.tasks.catalogue import carries_any

        able = config.causal and (task is not None or carries_any(tokenizer, config.n_ctx))
        asked: dict[str, Any] = {"--dtype": dtype, **({} if n is None else {"--n": n})}
    else:
        able, asked = str(preset).startswith("gpt2"), {"--dtype": dtype}
    again = [str(each) for option in asked.items() for each in option] + ["--unequal-lengths"] * unequal_lengths
    say_next(after_plan(preset, model, task, asked=again) if able else after_looking(model, able=model is None))


def _described(preset: str | None, model: str | None) -> "tuple[TransformerConfig, Any, str]":
    """The configuration, the tokenizer where there is one, and the published number of parameters, for people."""
    if (preset is None) == (model is None):
        raise InputError(
            f"model plan: expected a preset or --model, one of the two, got {'both' if preset else 'neither'}; "
            "type interp model plan gpt2-xl, or interp model plan --model my-gpt2"
        )
    if model is not None:
        from interp.model.loading import configuration_and_tokenizer

        return *configuration_and_tokenizer(model), ""
    from interp.model.presets import preset as find

    found = find(str(preset))
    return found.config, None, f" (published: {found.published:,})"


def _prompts(
    task: str | None, drawn: dict[str, Any], prompts: int | None, tokens: int | None, config: Any, tokenizer: Any
) -> tuple[int, int]:
    """How many prompts there are, and how many tokens the longest has."""
    if task is None:
        for option in (name for name, value in drawn.items() if value is not None):
            raise InputError(f"{option}: expected --task beside it, whose units it is of; add that, or give --prompts")
        return prompts or 16, tokens or 20
    if prompts is not None or tokens is not None:
        raise InputError("--task: expected no --prompts or --tokens beside it, since it has its own; leave these out")
    if tokenizer is None:
        raise InputError(
            f"--task {task}: expected --model with a tokenizer beside its config.json, which encodes the task, got "
            "none; give --prompts and --tokens in place of --task"
        )
    from interp.tasks.catalogue import load_task

    given = load_task(
        task, n=drawn["--n"], unequal_lengths=bool(drawn["--unequal-lengths"]), tokenizer=tokenizer, n_ctx=config.n_ctx
    )
    rows = [(each, end) for each in given.examples for end in each.continuations(given.metric)]
    return len(rows), max(len(each.prompt + end + each.after) for each, end in rows)


_BYTES = {"weights": "weights", "cache": "keys and values (generation)", "sweep": "kept at once by the head sweep"}
_RUNS = {"forward": "one forward pass", "sweep": "every head ablated once"}


def _time(seconds: float) -> str:
    for size, unit in ((86_400, "days"), (3600, "hours"), (60, "minutes"), (1, "s")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{1000 * seconds:,.1f} ms"
