"""``interp ablate``: what the ablation of one head, or of every component, does to one task."""

import time
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from interp.cli import completing
from interp.cli.hints import after_sweep, say_next
from interp.cli.options import (
    ABLATIONS,
    BY,
    SITE_NAMES,
    SITES,
    Ablation,
    AddressOption,
    DeviceOption,
    DtypeOption,
    ExecutorOption,
    FreshOption,
    GpusOption,
    HeadOption,
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
    one_head,
)
from interp.cli.saying import say
from interp.errors import InputError

if TYPE_CHECKING:
    from interp.report.sweep_cells import Swept

Components = Literal["heads", "mlps", "neurons"]


def ablate(
    task: TaskOption,
    layer: Annotated[
        int | None,
        typer.Option(help="The layer, from 0, of all that is ablated.", show_default=False, metavar="N"),
    ] = None,
    head: HeadOption = None,
    components: Annotated[
        Components, typer.Option(help="What is ablated one by one: heads, mlps or neurons.", metavar="NAME")
    ] = "heads",
    site: Annotated[
        str | None,
        typer.Option(
            help=f"In place of components: {SITES}.",
            show_default="z where --by is given",
            metavar="NAME",
            autocompletion=completing.one_of(*SITE_NAMES),
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            help=f"{BY} What is left out is ablated all at once.",
            show_default="layer, and head",
            metavar="NAMES",
            autocompletion=completing.AXES,
        ),
    ] = None,
    replacement: Annotated[
        Ablation,
        typer.Option("--replacement", help=f"What takes their place: {ABLATIONS}.", metavar="NAME"),
    ] = "mean",
    metric: MetricOption = None,
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
    """What does a task lose without a head? Or without an MLP, a neuron, a site: each effect with its interval."""
    started = time.perf_counter()
    if site is None and by is None:
        which = _chosen(layer, head, components)
    else:
        which = _at_site(layer, head, components, site, by)
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
    from interp.methods.ablation import ablate as ablate_components
    from interp.methods.task_arguments import as_predicted
    from interp.report.sweep_cells import swept

    loaded = load_for_tasks(model, device=device, dtype=dtype, threads=threads)
    given = as_predicted(task, loaded, n=n, seed=seed, metric=metric, unequal_lengths=unequal_lengths)
    options: dict[str, Any] = {**which, "replacement": replacement, "metric": metric, "seed": seed}
    options["memory_budget"] = limited(memory)
    with warnings_as_lines():
        with progress_bar("ablate") as progress:
            result = ablate_components(loaded, given, **options, progress=progress, run=run)
        frames = swept(result)
    folder = sweeps.save(result, out)
    asked = {"task": task, **which, "replacement": replacement, "metric": frames.metric}
    if as_json and head is not None:
        _print_head_json(frames, asked, sweeps.facts(frames, folder, started))
    elif as_json:
        sweeps.print_sweep_json(frames, asked, folder, started)
    elif head is not None:
        _print_head(frames, task)
    else:
        sweeps.print_sweep(frames)
    if as_json:
        sweeps.exit_if_partial(frames)
    else:
        sweeps.end(frames, folder, started)
        say_next(after_sweep(frames, given, model, metric))


def _chosen(layer: int | None, head: str | None, components: Components) -> dict[str, Any]:
    """Which components are meant, as ``interp.ablate`` takes them."""
    if head is not None and components != "heads":
        raise InputError(f"--head {head}: expected it with --components heads, got {components}; leave one of them out")
    chosen: dict[str, Any] = {"components": components}
    if head is not None:
        return chosen | {"heads": [one_head(head, layer)]}
    return chosen if layer is None else chosen | {"layers": [layer]}


def _at_site(
    layer: int | None, head: str | None, components: Components, site: str | None, by: str | None
) -> dict[str, Any]:
    """Which site is meant, as ``interp.ablate`` takes it."""
    if head is not None:
        raise InputError(f"--head {head}: expected none beside --site or --by; leave one of them out")
    if components != "heads":
        raise InputError(f"--components {components}: expected none beside --site or --by; leave one of them out")
    return {
        "site": site or "z",
        "by": None if by is None else axes_of(by),
        "layers": None if layer is None else [layer],
    }


def _print_head(frames: "Swept", task: str) -> None:
    """One head's effect, in words."""
    from interp.cli.terminal import records
    from interp.report.sweep_sentences import partial_sentence
    from interp.report.words import METRICS, UNITS

    (row,) = records(frames.summary)
    replacement = frames.provenance["replacement"]
    interval = "no interval" if row["low"] is None else f"95 % interval {row['low']:.3g} to {row['high']:.3g}"
    sign = "" if frames.metric == "kl_divergence" else ", a cost where it is negative"
    say(
        f"head {row['layer']}.{row['head']}, {task}, {replacement} ablation, "
        f"{row['n_units']} units in {row['n_clusters']} clusters"
    )
    if partial_sentence(frames):
        say(partial_sentence(frames))
    say(f"{METRICS[frames.metric]}: {row['base']:.3g} -> {row['value']:.3g}")
    say(f"effect: {row['effect']:.3g} {UNITS[frames.metric]}{sign} ({interval})")
    if row["accuracy_base"] is not None:
        say(f"accuracy: {row['accuracy_base']:.3f} -> {row['accuracy_intervened']:.3f}")


def _print_head_json(frames: "Swept", asked: dict[str, Any], facts: dict[str, Any]) -> None:
    from interp.cli.terminal import print_json, records

    (row,) = records(frames.summary)
    print_json({**asked, **row, **facts})
